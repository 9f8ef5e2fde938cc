"""``python -m compat_patches`` is the command ``compat-patches``."""

from .cli import main

if __name__ == "__main__":
    main(prog_name="compat-patches")
