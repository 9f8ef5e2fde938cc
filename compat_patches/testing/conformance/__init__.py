"""The conformance suite: tests made out of each patch of a manifest, by ``pytest --compat-patches-manifest=FILE``."""
