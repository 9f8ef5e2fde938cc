"""Pytest fixtures of the stand-in XPU; tests/conftest.py names this module in ``pytest_plugins``."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from .install import installed
from .program import run_program
from .runtime import StandinXpu


@pytest.fixture
def standin_xpu() -> Iterator[StandinXpu]:
    """torch.xpu works on two stand-in devices during the test."""
    with installed() as standin:
        yield standin


@pytest.fixture
def standin_accelerator() -> Iterator[StandinXpu]:
    """As ``standin_xpu``, and torch.accelerator says xpu."""
    with installed(as_accelerator=True) as standin:
        yield standin


@pytest.fixture
def run_on_standin_xpu() -> Callable[..., str]:
    """``run_program``: a program in a fresh process that has the stand-in before torch is imported."""
    return run_program
