"""Real environments, with compat_patches installed as users install it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from environments import CHECKOUT, Environment


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: takes more than ten seconds or so; left out by -m 'not slow'")


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of the checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "wheel", "--no-deps"]
    subprocess.run(
        [*command, "--no-index", "--no-build-isolation", "--wheel-dir", folder, CHECKOUT],
        check=True,
        capture_output=True,
        text=True,
    )
    (built,) = folder.glob("compat_patches-*.whl")
    return built


@pytest.fixture(scope="session")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment without compat_patches. Tests leave it as it is."""
    return Environment(tmp_path_factory.mktemp("bare"))


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Environment:
    """An environment with the wheel installed. Tests leave it as it is."""
    environment = Environment(tmp_path_factory.mktemp("installed"))
    environment.pip("install", "--no-deps", "--no-index", str(wheel))
    return environment


@pytest.fixture(scope="session")
def editable(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment with an editable install of the checkout. Tests leave it as it is."""
    environment = Environment(tmp_path_factory.mktemp("editable"))
    environment.pip("install", "--no-deps", "--no-index", "--no-build-isolation", "--editable", str(CHECKOUT))
    return environment


@pytest.fixture(params=["installed", "editable"])
def environment(request: pytest.FixtureRequest) -> Environment:
    """Both kinds of install, one after the other."""
    found: Environment = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def disposable(tmp_path: Path, wheel: Path) -> Environment:
    """An environment with the wheel installed, for one test alone."""
    environment = Environment(tmp_path / "disposable")
    environment.pip("install", "--no-deps", "--no-index", str(wheel))
    return environment
