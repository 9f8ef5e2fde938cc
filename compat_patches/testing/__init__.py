"""Help for tests of code that torch patches touch: with pytest, with unittest, or with neither.

With pytest nothing of this has to be imported: the fixtures and the marker are there when the package is installed.
Nothing here imports pytest, but for :func:`both`, which is for pytest alone.
"""

from __future__ import annotations

from typing import Any

from .scope import DoesNotApply, PatchScope, patches
from .unittest_case import PatchedTestCase

__all__ = ["DoesNotApply", "PatchScope", "PatchedTestCase", "both", "patches"]


def both(*ids: str) -> Any:
    """Run a pytest test twice: with patches applied, and with them undone.

    Several such decorators on a test run it in all combinations. A test whose patches do not apply here is skipped in
    both forms, with the reason; with ``--compat-patches-strict`` it fails.

    Args:
        ids: ids or groups.

    Returns:
        A decorator for a test function or a class of them. The parameter sets are called ``with-ID`` and ``without-ID``
        in test ids.
    """
    import pytest

    if not ids:
        raise ValueError("both() names no patch; expected at least one id or group")
    return pytest.mark.compat_patches(both=ids)
