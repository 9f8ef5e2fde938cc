"""The suite on each torch, and what needs no torch on each Python.

Environments with torch take gigabytes and minutes, so each is made once and kept outside of the checkout.
"""

import os
from pathlib import Path

import nox

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "compat-patches" / "nox"
TORCHES = ["2.9.1", "2.10.0", "2.11.0", "2.13.0", "2.15.0"]
PYTHONS = ["3.10", "3.11", "3.12", "3.13", "3.14"]

nox.options.envdir = str(CACHE)
nox.options.default_venv_backend = "venv"
nox.options.reuse_existing_virtualenvs = True
nox.options.error_on_missing_interpreters = False
nox.options.sessions = ["tests"]


@nox.session
@nox.parametrize("torch", TORCHES)
def tests(session: nox.Session, torch: str) -> None:
    """The whole suite, or the files that are named, on one torch."""
    session.install("--quiet", "--requirement", f"requirements/torch-{torch}.txt", "--editable", ".[test,lint]")
    session.run("python", "-m", "pytest", *session.posargs)


@nox.session(python=PYTHONS)
def without_torch(session: nox.Session) -> None:
    """The core, or the files that are named, where there is no torch: tests that need one skip themselves."""
    session.install("--quiet", "--editable", ".[test,lint]")
    core = sorted(map(str, Path("tests").glob("test_*.py")))
    session.run("python", "-m", "pytest", "--quiet", "--numprocesses=2", *(session.posargs or core))
