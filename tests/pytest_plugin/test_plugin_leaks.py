"""Leak detection: the test and the slot are named, however the leak was made, and nobody else is blamed."""

from __future__ import annotations

import pytest
from inner_project import Project, patch

LEAKS = {
    "setattr": "victim.answer = lambda: 7",
    "monkeypatch": "pytest.MonkeyPatch().setattr(victim, 'answer', lambda: 7)",
    "mock": "mock.patch('victim.answer').start()",
    "delattr": "del victim.answer",
    "class": "victim.Derived.inherited = lambda self: 7",
    "item": "victim.options['level'] = 3",
    "element": "victim.names.remove('b')",
    "environment": "os.environ['VICTIM_LEVEL'] = '3'",
    "the-original": "victim.answer = victim.answer.__wrapped__",
    "apply": "package.apply('hundred')",
    "revert": "package.revert('ten')",
    "context": "victim.context = package.applied('hundred'); victim.context.__enter__()",
}
FOUND = {
    "class": "victim:Derived.inherited: held nothing, now function",
    "item": "victim:options['level']: held 1, now 3",
    "element": "victim:names['b']: held 'b', now nothing",
    "environment": "os:environ['VICTIM_LEVEL']: held nothing, now '3'",
    "the-original": "victim:answer: the patch test/ten was applied; now function answer",
    "delattr": "now nothing",
    "apply": "patch test/hundred: was not wanted before the test, and is left applied",
    "revert": "patch test/ten: was wanted before the test, and is left undone",
    "context": "patch test/hundred: was not wanted before the test, and is left applied",
}


@pytest.fixture
def leaky(project: Project) -> Project:
    """A project whose manifest names slots of every kind."""
    project.manifest(
        patch("ten"),
        patch("hundred", using="remedies:add_hundred", enabled=False),
        patch("derived", target="victim:Derived.inherited", enabled=False),
        patch("level", target="victim:options", action="set_item", key="level", value=2, enabled=False),
        patch("without-b", target="victim:names", action="discard_item", key="b", enabled=False),
        patch("variable", action="env", key="VICTIM_LEVEL", value="2", enabled=False, target="os:environ"),
    )
    return project


@pytest.mark.parametrize("leak", LEAKS)
def test_a_leak_fails_its_test_and_no_other(leaky: Project, leak: str) -> None:
    leaky.tests(
        f"""
        import os
        from unittest import mock
        import pytest
        import compat_patches as package
        import victim

        def test_before():
            victim.names

        def test_leaks():
            {LEAKS[leak]}

        def test_after():
            victim.names
        """
    )
    result = leaky.run_tests("--compat-patches-leaks=error")
    result.assert_outcomes(passed=3, errors=1)
    text = result.stdout.str()
    assert "ERROR at teardown of test_leaks" in text
    assert "test_it.py::test_leaks has left changes behind:" in text
    assert FOUND.get(leak, "victim:answer: held function answer") in text


def test_warn_only_warns(leaky: Project) -> None:
    leaky.tests("import victim\n\ndef test_leaks():\n    victim.answer = None\n")
    result = leaky.run_tests("--compat-patches-leaks=warn")
    result.assert_outcomes(passed=1, warnings=1)
    assert "LeakWarning: test_it.py::test_leaks has left changes behind:" in result.stdout.str()


def test_nothing_is_watched_without_the_option(leaky: Project) -> None:
    leaky.tests("import victim\n\ndef test_leaks(compat_patches):\n    victim.answer = None\n")
    leaky.run_tests().assert_outcomes(passed=1)


TIDY = """
    import pytest
    from unittest import mock
    import compat_patches as package

    def test_imports():
        import victim
        assert victim.answer() == 11

    def test_monkeypatch(monkeypatch):
        import victim
        monkeypatch.setattr(victim, "answer", lambda: 7)

    @mock.patch("victim.answer")
    def test_mock(answer):
        pass

    def test_context():
        with package.applied("hundred"), package.reverted("ten"):
            pass

    @pytest.mark.compat_patches(apply=["hundred"])
    def test_marker(compat_patches):
        compat_patches.revert("ten")

    class TestClass:
        @pytest.fixture(scope="class", autouse=True)
        def of_the_class(self):
            import victim
            with mock.patch.object(victim, "answer", lambda: 7):
                yield

        def test_one(self):
            pass

        def test_two(self):
            pass

    @pytest.fixture(scope="module")
    def of_the_module():
        with package.applied("hundred"):
            yield

    def test_module_one(of_the_module):
        pass

    def test_module_two(of_the_module):
        pass
"""


@pytest.mark.parametrize(
    "arguments",
    [(), ("-n", "2"), ("-p", "no:xdist"), ("-p", "no:unittest", "-p", "no:logging", "-p", "no:junitxml")],
    ids=["plain", "two-workers", "no-xdist", "fewer-plugins"],
)
def test_what_is_put_back_is_no_leak(leaky: Project, arguments: tuple[str, ...]) -> None:
    leaky.tests(TIDY)
    leaky.run_tests("--compat-patches-leaks=error", *arguments).assert_outcomes(passed=9)


@pytest.mark.parametrize("seed", ["1", "2", "3"])
def test_any_order_of_tests(leaky: Project, seed: str) -> None:
    pytest.importorskip("pytest_randomly", reason="pytest-randomly is not installed")
    leaky.tests(
        TIDY + "\n    def test_leaks():\n        import victim\n        victim.other = 1\n        victim.answer = 1\n"
    )
    result = leaky.run_tests("--compat-patches-leaks=error", f"--randomly-seed={seed}")
    result.assert_outcomes(passed=10, errors=1)
    assert "ERROR at teardown of test_leaks" in result.stdout.str()


def test_tests_in_forked_processes(leaky: Project) -> None:
    # What pytest-forked does, without its plugin: each test's protocol in a child that reports to its parent.
    leaky.makeconftest(
        """
        import os, pickle
        import pytest
        from _pytest.runner import runtestprotocol

        def pytest_runtest_protocol(item):
            reading, writing = os.pipe()
            if not (child := os.fork()):
                with open(writing, "wb") as pipe:
                    data = [item.config.hook.pytest_report_to_serializable(config=item.config, report=r)
                            for r in runtestprotocol(item, log=False)]
                    pickle.dump(data, pipe)
                os._exit(0)
            os.close(writing)
            with open(reading, "rb") as pipe:
                data = pickle.load(pipe)
            os.waitpid(child, 0)
            for report in data:
                item.ihook.pytest_runtest_logreport(
                    report=item.config.hook.pytest_report_from_serializable(config=item.config, data=report))
            return True
        """
    )
    leaky.tests(
        """
        import victim

        def test_leaks():
            victim.answer = 1

        def test_after(compat_patches):
            assert victim.answer() == 11
            compat_patches.apply("hundred")
        """
    )
    result = leaky.run_tests("--compat-patches-leaks=error")
    result.assert_outcomes(passed=2, errors=1)
    assert "test_it.py::test_leaks has left changes behind:" in result.stdout.str()


def test_a_fixture_of_a_module_that_does_not_clean_up(leaky: Project) -> None:
    leaky.tests(
        """
        import pytest
        import victim

        @pytest.fixture(scope="module")
        def untidy():
            victim.answer = None

        def test_one(untidy):
            pass

        def test_last(untidy):
            pass
        """
    )
    result = leaky.run_tests("--compat-patches-leaks=error")
    result.assert_outcomes(passed=2, errors=1)
    assert "ERROR at teardown of test_last" in result.stdout.str()


def test_a_leak_in_a_module_that_the_test_is_the_first_to_import(leaky: Project) -> None:
    leaky.tests("def test_leaks():\n    import victim\n    victim.answer = None\n")
    result = leaky.run_tests("--compat-patches-leaks=error")
    result.assert_outcomes(passed=1, errors=1)


def test_a_failing_teardown_is_not_hidden_by_a_leak(leaky: Project) -> None:
    leaky.tests(
        """
        import pytest
        import victim

        @pytest.fixture
        def broken():
            yield
            victim.answer = None
            raise RuntimeError("the fixture's own trouble")

        def test_it(broken):
            pass
        """
    )
    result = leaky.run_tests("--compat-patches-leaks=error")
    result.assert_outcomes(passed=1, errors=1)
    text = result.stdout.str()
    assert "the fixture's own trouble" in text and "has left changes behind" in text
