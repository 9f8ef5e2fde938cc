"""For tests written with unittest: a test case whose tests find the patches that they ask for."""

from __future__ import annotations

import contextlib
import unittest
from collections.abc import Sequence
from typing import Any, ClassVar

from .scope import DoesNotApply, PatchScope, patches


class PatchedTestCase(unittest.TestCase):
    """A test case with ``self.compat_patches``, a :class:`~compat_patches.testing.PatchScope` for each test.

    A test whose patches do not apply here is skipped with the reason.

    Attributes:
        apply_patches: ids or groups that each test finds applied.
        revert_patches: ids or groups that each test finds undone.
        only_patches: ids or groups to be applied while all others are undone; None for no such thing.
        strict_patches: fail, where a patch does not apply here, instead of skipping.
    """

    apply_patches: ClassVar[Sequence[str]] = ()
    revert_patches: ClassVar[Sequence[str]] = ()
    only_patches: ClassVar[Sequence[str] | None] = None
    strict_patches: ClassVar[bool] = False

    compat_patches: PatchScope

    def setUp(self) -> None:
        super().setUp()
        asked = patches(apply=self.apply_patches, revert=self.revert_patches, only=self.only_patches)
        try:
            self.compat_patches = self.enterContext(asked)
        except DoesNotApply as found:
            reason = str(found)
        else:
            return
        if self.strict_patches:
            self.fail(reason)
        self.skipTest(reason)

    if not hasattr(unittest.TestCase, "enterContext"):  # Python 3.10

        def enterContext(self, cm: contextlib.AbstractContextManager[Any]) -> Any:
            """Enter a context that is left after the test, as ``unittest`` does from Python 3.11."""
            result = cm.__enter__()
            self.addCleanup(cm.__exit__, None, None, None)
            return result
