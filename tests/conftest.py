"""Fixtures of all tests."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# The checkout's own package and `support`, whatever is installed.
sys.path[:0] = [str(Path(__file__).resolve().parent.parent), str(Path(__file__).resolve().parent)]

from made_up_machine import machine, service  # noqa: E402, F401  # fixtures, as these
from standins import strict_world, world  # noqa: E402, F401  # fixtures; behind the path on purpose

pytest_plugins = ["standin.plugin"]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: starts many processes; leave out with -m 'not slow'")


@pytest.fixture(autouse=True)
def _no_settings_of_the_user(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A developer's own COMPAT_PATCHES variables decide nothing in a test."""
    import os

    for name in [name for name in os.environ if name.startswith("COMPAT_PATCHES")]:
        monkeypatch.delenv(name)
    yield
