"""Virtual environments to install compat_patches into."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[2]


class Environment:
    """A virtual environment in which what the tests' own environment has (torch among it) can be imported."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python = str(folder / "bin" / "python")
        self.site_packages = folder / "lib" / "python{}.{}".format(*sys.version_info[:2]) / "site-packages"
        venv.create(folder, with_pip=False, symlinks=True)
        (self.site_packages / "zz_tests.pth").write_text(sysconfig.get_path("purelib") + "\n")

    def pip(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "pip", "--python", self.python, "--quiet", "--disable-pip-version-check"]
        # pip takes what PYTHONPATH leads to for installed, and then installs nothing.
        subprocess.run([*command, *arguments], check=True, capture_output=True, text=True, env=clean_environment())

    def run(
        self, *arguments: str, check: bool = True, cwd: Path | None = None, timeout: float = 300, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Run this environment's Python, with no variable of the tests' own but these."""
        done = subprocess.run(
            [self.python, *arguments],
            capture_output=True,
            text=True,
            timeout=timeout,
            cwd=cwd or self.folder,
            env=clean_environment(**variables),
        )
        if check:
            assert done.returncode == 0, done.stderr
        return done

    def ask(self, code: str, *flags: str, **variables: str) -> Any:
        """Run code that prints JSON, and nothing else, on either stream."""
        done = self.run(*flags, "-c", code, **variables)
        assert done.stderr == ""
        return json.loads(done.stdout)


def clean_environment(**variables: str) -> dict[str, str]:
    """The tests' own environment, without what tells Python or compat_patches anything, and with ``variables``."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "COMPAT_PATCHES", "VIRTUAL_ENV"))}
    return {**kept, **variables}
