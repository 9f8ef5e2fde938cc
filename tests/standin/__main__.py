"""``python -m standin [--device-count N] [--as-accelerator] FILE [ARGUMENT ...]`` runs a file on a stand-in.

The file finds the StandinXpu under the global name ``standin_xpu``.
"""

from __future__ import annotations

import argparse
import runpy
import sys

from .install import install_before_torch


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m standin", description=__doc__)
    parser.add_argument("--device-count", type=int, default=2)
    parser.add_argument("--as-accelerator", action="store_true", help="torch.accelerator says xpu too")
    parser.add_argument("file")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    standin = install_before_torch(device_count=options.device_count, as_accelerator=options.as_accelerator)
    sys.argv = [options.file, *options.arguments]
    runpy.run_path(options.file, init_globals={"standin_xpu": standin}, run_name="__main__")


if __name__ == "__main__":
    main()
