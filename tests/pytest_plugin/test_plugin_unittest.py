"""The same for unittest, without pytest and under pytest."""

from __future__ import annotations

import sys

import pytest
from inner_project import Project

TESTS = """
import unittest
from unittest import mock

import victim
from compat_patches.testing import DoesNotApply, PatchedTestCase, patches


class Applied(PatchedTestCase):
    apply_patches = ["hundred"]
    revert_patches = ["ten"]

    def test_it(self):
        self.assertEqual(victim.answer(), 101)

    def test_the_scope(self):
        self.compat_patches.apply("ten")
        self.assertEqual(victim.answer(), 111)

    def test_mock(self):
        with mock.patch("victim.answer", lambda: 7):
            self.assertEqual(victim.answer(), 7)


class Only(PatchedTestCase):
    only_patches = []

    def test_it(self):
        self.assertEqual(victim.answer(), 1)


class Never(PatchedTestCase):
    apply_patches = ["never"]

    def test_it(self):
        raise AssertionError("is not run")


class Plain(unittest.TestCase):
    def test_before_and_after(self):
        self.assertEqual(victim.answer(), 11)
        with patches(apply=["hundred"]) as scope:
            self.assertEqual(victim.answer(), 111)
            self.assertEqual(scope.status("hundred")[0].state, "applied")
        self.assertEqual(victim.answer(), 11)
        with self.assertRaisesRegex(DoesNotApply, "wanted pytest<1"):
            with patches(apply=["never"]):
                pass

    @unittest.skipUnless(hasattr(unittest.TestCase, "enterContext"), "starts with Python 3.11")
    def test_enter_context(self):
        self.enterContext(patches(revert=["ten"]))
        self.assertEqual(victim.answer(), 1)


    def test_strictly(self):
        class Strict(Never):
            strict_patches = True

        result = unittest.TestResult()
        Strict("test_it").run(result)
        self.assertIn("AssertionError: never does not apply here", result.failures[0][1])


if __name__ == "__main__":
    unittest.main()
"""

BLOCKS_PYTEST = """
import sys

class Blocks:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pytest", "_pytest"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocks())
"""


def test_under_unittest_without_pytest(project: Project) -> None:
    project.makepyfile(test_it=TESTS, sitecustomize=BLOCKS_PYTEST)
    result = project.run(sys.executable, "-m", "unittest", "-v", "test_it", timeout=120)
    text = result.stderr.str()
    assert result.ret == 0, text
    assert "Ran 8 tests" in text and "OK (skipped=1)" in text
    assert "never does not apply here: pytest is" in text


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["one-process", "two-workers"])
def test_under_pytest(project: Project, workers: tuple[str, ...]) -> None:
    project.makepyfile(test_it=TESTS)
    result = project.run_tests("--compat-patches-leaks=error", *workers)
    result.assert_outcomes(passed=7, skipped=1)


def test_the_marker_on_a_test_case(project: Project) -> None:
    project.tests(
        """
        import unittest
        import pytest
        import victim
        from compat_patches.testing import both

        @pytest.mark.compat_patches(apply=["hundred"])
        class TestIt(unittest.TestCase):
            def setUp(self):
                assert victim.answer() == 111

            def test_it(self):
                assert victim.answer() == 111

            @both("ten")
            def test_both(self):
                pass

        def test_after():
            assert victim.answer() == 11
        """
    )
    result = project.run_tests()
    result.assert_outcomes(passed=2, errors=1)
    assert "both() is for test functions" in result.stdout.str()
