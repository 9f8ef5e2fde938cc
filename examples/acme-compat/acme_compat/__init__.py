"""What acme changes in torch. The patches are declared in patches.toml; importing this does nothing."""
