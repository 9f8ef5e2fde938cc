"""The fixtures and the marker: what a test asks for is the case in it, and only in it."""

from __future__ import annotations

import pytest
from inner_project import HEADER, Project, patch


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["one-process", "two-workers"])
def test_the_fixture_applies_and_reverts(project: Project, workers: tuple[str, ...]) -> None:
    project.tests(
        """
        import compat_patches as package
        import pytest
        import victim

        @pytest.fixture(autouse=True)
        def as_before():
            assert victim.answer() == 11
            yield

        def test_apply(compat_patches):
            [status] = compat_patches.apply("hundred")
            assert status.state == "applied"
            assert victim.answer() == 111

        def test_revert(compat_patches):
            compat_patches.revert("ten")
            assert victim.answer() == 1

        def test_group(compat_patches):
            compat_patches.revert("all")
            assert victim.answer() == 1
            compat_patches.apply("all")
            assert victim.answer() == 111

        def test_back_and_forth(compat_patches):
            for _ in range(50):
                compat_patches.revert("ten")
                assert victim.answer() == 1
                compat_patches.apply("ten")
                assert victim.answer() == 11

        def test_status_tells_why(compat_patches):
            [status] = compat_patches.status("never")
            assert status.state == "skipped" and "wanted pytest<1" in status.reason

        def test_force(compat_patches):
            compat_patches.apply("never", force=True)
            assert victim.answer() == 21

        def test_what_the_package_does_is_taken_back_too(compat_patches):
            package.apply("hundred")
            package.revert("ten")
            assert victim.answer() == 101

        def test_as_it_was(compat_patches):
            assert [s.reason for s in compat_patches.status("hundred")] == ["opt-in: applied only by its name"]
        """
    )
    project.run_tests(*workers).assert_outcomes(passed=8)


def test_all_is_as_before_after_a_failure_and_a_skip(project: Project) -> None:
    project.tests(
        """
        import pytest
        import victim

        def test_fails(compat_patches):
            compat_patches.apply("hundred")
            assert victim.answer() == 0

        def test_after_the_failure():
            assert victim.answer() == 11

        def test_skips(compat_patches):
            compat_patches.apply("hundred")
            pytest.skip("enough")

        def test_after_the_skip():
            assert victim.answer() == 11

        @pytest.fixture
        def broken(compat_patches):
            compat_patches.apply("hundred")
            raise RuntimeError("in a fixture")

        def test_errs(broken):
            pass

        def test_after_the_error():
            assert victim.answer() == 11
        """
    )
    project.run_tests().assert_outcomes(passed=3, failed=1, skipped=1, errors=1)


@pytest.mark.parametrize("order", ["monkeypatch, compat_patches", "compat_patches, monkeypatch"])
def test_other_fixtures_that_patch_the_same_slot(project: Project, order: str) -> None:
    project.tests(
        f"""
        import victim
        import compat_patches as package

        original = victim.answer.__wrapped__

        def test_both({order}):
            compat_patches.apply("hundred")
            monkeypatch.setattr(victim, "answer", lambda: 7)
            assert victim.answer() == 7

        def test_neither():
            assert victim.answer() == 11
            assert victim.answer.__wrapped__ is original

        def test_without(compat_patches):
            compat_patches.revert("ten")
            assert victim.answer is original
        """
    )
    project.run_tests("--compat-patches-leaks=error").assert_outcomes(passed=3)


def test_wider_scopes_last_longer(project: Project) -> None:
    project.tests(
        """
        import pytest
        import victim

        @pytest.fixture(scope="module", autouse=True)
        def prepared(compat_patches_module):
            compat_patches_module.apply("hundred")

        def test_one():
            assert victim.answer() == 111

        def test_narrower_scopes_have_the_last_word(compat_patches):
            compat_patches.revert("all")
            assert victim.answer() == 1

        def test_again():
            assert victim.answer() == 111
        """
    )
    project.makepyfile(
        test_later="""
        import victim

        def test_session(compat_patches_session):
            assert victim.answer() == 11
            compat_patches_session.revert("ten")

        def test_session_goes_on():
            assert victim.answer() == 1
        """,
        test_latest="""
        import victim

        def test_session_still_goes_on():
            assert victim.answer() == 1
        """,
    )
    result = project.run_tests("--compat-patches-leaks=error", "test_it.py", "test_later.py", "test_latest.py")
    result.assert_outcomes(passed=6)


def test_a_wider_scope_that_begins_later_is_left_alone(project: Project) -> None:
    project.tests(
        """
        import victim

        def test_one(compat_patches, request):
            compat_patches.revert("ten")
            request.getfixturevalue("compat_patches_module").apply("hundred")
            assert victim.answer() == 101

        def test_two():
            assert victim.answer() == 111
        """
    )
    project.run_tests("--compat-patches-leaks=error").assert_outcomes(passed=2)


def test_manifests_are_loaded_and_forgotten(project: Project) -> None:
    project.path.joinpath("further.toml").write_text(
        HEADER.replace("test", "further") + patch("twenty", using="remedies:add_hundred")
    )
    project.tests(
        """
        import pytest
        import victim
        from compat_patches import ManifestError, UnknownPatchError

        def test_from_a_file(compat_patches):
            [status] = compat_patches.load("further.toml")
            assert status.state == "applied" and victim.answer() == 111

        def test_from_text(compat_patches):
            with open("further.toml") as file:
                compat_patches.load(file.read())
            assert victim.answer() == 111
            compat_patches.revert("twenty")
            assert victim.answer() == 11

        def test_nothing_is_left(compat_patches):
            assert victim.answer() == 11
            with pytest.raises(UnknownPatchError, match="twenty"):
                compat_patches.status("twenty")

        def test_what_is_wrong_with_a_text(compat_patches):
            with pytest.raises(ManifestError, match="text of a test's manifest.*key 'summary': missing"):
                compat_patches.load('[manifest]\\nname = "bad"\\nschema = 1\\n[[patch]]\\nid = "x"\\n')
        """
    )
    project.run_tests("--compat-patches-leaks=error").assert_outcomes(passed=4)


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["one-process", "two-workers"])
def test_the_marker(project: Project, workers: tuple[str, ...]) -> None:
    project.tests(
        """
        import pytest
        import victim

        pytestmark = pytest.mark.compat_patches(apply=["hundred"])

        def test_module():
            assert victim.answer() == 111

        @pytest.mark.compat_patches(revert=["all"])
        def test_the_nearest_wins():
            assert victim.answer() == 1

        @pytest.mark.compat_patches(only=["hundred"])
        class TestOnly:
            def test_class(self):
                assert victim.answer() == 101

            @pytest.mark.compat_patches(apply=["ten"])
            def test_method(self, compat_patches):
                assert victim.answer() == 111
                compat_patches.revert("all")
                assert victim.answer() == 1

        @pytest.mark.compat_patches(only=[])
        def test_none_at_all():
            assert victim.answer() == 1

        def test_fixtures_see_it(prepared):
            assert prepared == 111

        @pytest.fixture
        def prepared():
            return victim.answer()
        """
    )
    project.run_tests("--strict-markers", *workers).assert_outcomes(passed=6)


def test_the_marker_imports_the_target(project: Project) -> None:
    project.tests(
        """
        import sys
        import pytest

        @pytest.mark.compat_patches(apply=["hundred"])
        def test_it():
            assert "victim" in sys.modules
            import victim
            assert victim.answer() == 111
        """
    )
    project.run_tests().assert_outcomes(passed=1)


def test_a_patch_that_does_not_apply_skips_with_the_reason(project: Project) -> None:
    project.tests(
        """
        import pytest

        @pytest.mark.compat_patches(apply=["never"])
        def test_it():
            raise AssertionError("is not run")
        """
    )
    result = project.run_tests("-rs")
    result.assert_outcomes(skipped=1)
    reason = "never does not apply here: pytest is .*wanted pytest<1"
    result.stdout.re_match_lines([rf"SKIPPED \[1\] test_it.py:3: {reason}"])
    strict = project.run_tests("--compat-patches-strict")
    strict.assert_outcomes(errors=1)
    strict.stdout.re_match_lines([f".*{reason}"])


def test_a_patch_that_fails_fails_the_test(project: Project) -> None:
    project.manifest(
        patch("bad", using="remedies:explode", enabled=False),
        patch("gone", target="victim:no_such_name"),
    )
    project.tests(
        """
        import pytest

        @pytest.mark.compat_patches(apply=["bad"])
        def test_bad():
            pass

        @pytest.mark.compat_patches(apply=["gone"])
        def test_gone():
            pass

        @pytest.mark.compat_patches(apply=["mistyped"])
        def test_unknown():
            pass

        @pytest.mark.compat_patches(aply=["bad"])
        def test_unknown_argument():
            pass
        """
    )
    result = project.run_tests()
    result.assert_outcomes(errors=4)
    text = result.stdout.str()
    assert "bad failed: ValueError: no good" in text and "in explode" in text
    assert "gone failed: target missing: victim has no 'no_such_name'" in text
    assert "no patch and no group is named 'mistyped'" in text
    assert "expected apply, revert and only, each a list of ids" in text


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["one-process", "two-workers"])
def test_both(project: Project, workers: tuple[str, ...]) -> None:
    project.tests(
        """
        import pytest
        import victim
        from compat_patches.testing import both

        @both("ten")
        def test_one():
            assert victim.answer() == 11

        @both("ten")
        @both("hundred")
        def test_combined(request):
            name = request.node.name
            assert victim.answer() == 1 + 10 * ("with-ten" in name) + 100 * ("with-hundred" in name)

        @pytest.mark.parametrize("x", [1, 2])
        @both("ten", "hundred")
        def test_parametrised(x, request):
            assert victim.answer(x) == (111 if "with-ten+hundred" in request.node.name else 1)

        @both("never")
        def test_skipped():
            raise AssertionError("is not run")
        """
    )
    result = project.run_tests("-v", *workers)
    result.assert_outcomes(passed=9, failed=1, skipped=2)
    text = result.stdout.str()
    for name in (
        "test_one[with-ten]",
        "test_one[without-ten]",
        "test_combined[with-hundred-without-ten]",
        "test_parametrised[without-ten+hundred-2]",
        "test_skipped[without-never]",
    ):
        assert name in text
