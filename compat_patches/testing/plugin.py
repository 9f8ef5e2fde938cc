"""The pytest plugin, once it is asked for: sets tests up as their markers say, watches for leaks, keeps the report.

Registered by ``_compat_patches_pytest``, which is all that a test run without it imports.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import pytest

from .. import env_override
from .conformance.collect import ManifestFile, orders_told
from .leaks import Leak, LeakWatch
from .scope import DoesNotApply, PatchScope, require
from .scope import enter as enter_patches
from .summary import Notes

_BOTH = "_compat_patches_both_"
_MARKER_ARGUMENTS = ("apply", "revert", "only", "both")


class LeakWarning(pytest.PytestWarning):
    """A test has left behind a change of a slot that a manifest names."""


class Plugin:
    """The hooks. One is registered for each test run that asks for it.

    Attributes:
        notes: what goes into the report.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._leaks: str | None = config.option.compat_patches_leaks
        self._watch = LeakWatch() if self._leaks else None
        self._marked = _Marked(config.option.compat_patches_strict)
        config.pluginmanager.register(self._marked, "compat_patches_marker")
        self._manifests = [Path(os.path.abspath(path)) for path in config.option.compat_patches_manifest]
        self.notes = Notes(config)
        self._name_manifests(config)

    # --- conformance -------------------------------------------------------------------------------------------

    def _name_manifests(self, config: pytest.Config) -> None:
        """Have the manifests collected: alone, or beside what is named on the command line."""
        if not self._manifests:
            return
        if config.args_source is not pytest.Config.ArgsSource.ARGS:
            config.args[:] = []
        named = {os.path.abspath(argument.partition("::")[0]) for argument in config.args}
        config.args += [str(path) for path in self._manifests if str(path) not in named]

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> ManifestFile | None:
        if any(file_path == path or file_path == path.resolve() for path in self._manifests):
            return ManifestFile.from_parent(parent, path=file_path)
        return None

    # --- each test ---------------------------------------------------------------------------------------------

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, None, None]:
        if self._watch is not None:
            self._watch.start()
        yield

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, None, None]:
        failed = True
        try:
            yield
            failed = False
        finally:
            leaks = self._tear_down()
            if leaks:
                self._report(item, leaks, failed)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
    ) -> Generator[None, Any, Any]:
        if self._watch is None or fixturedef.scope == "function":
            return (yield)
        before = self._watch.fixture_begins()
        try:
            return (yield)
        finally:
            self._watch.fixture_ready(fixturedef, before)

    def pytest_fixture_post_finalizer(self, fixturedef: pytest.FixtureDef[Any]) -> None:
        if self._watch is not None:
            self._watch.fixture_done(fixturedef)

    def _tear_down(self) -> list[Leak]:
        self._marked.close()
        # What was undone while something of the test's stood on top, as a monkeypatch that is torn down later.
        env_override.engine().verify()
        return self._watch.finish() if self._watch is not None else []

    def _report(self, item: pytest.Item, leaks: list[Leak], failed: bool) -> None:
        item.user_properties += [("compat_patches.leak", str(leak)) for leak in leaks]
        text = f"{item.nodeid} has left changes behind:\n" + "\n".join(f"  {leak}" for leak in leaks)
        if self._leaks == "warn":
            item.warn(LeakWarning(text))
        elif failed:
            # The test's own failure comes first.
            item.add_report_section("teardown", "compat_patches", text)
        else:
            pytest.fail(text, pytrace=False)

    # --- the report --------------------------------------------------------------------------------------------

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.notes.add(report)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        told = orders_told(terminalreporter.getreports("passed") + terminalreporter.getreports("failed"))
        if told:
            terminalreporter.write_line(told)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        self.notes.publish()

    def pytest_unconfigure(self) -> None:
        if self._watch is not None:
            self._watch.close()


class _Marked:
    """Sets tests up as their markers say: before their fixtures, which shall find the patches already.

    No wrapper around other hooks, as :class:`Plugin` is: those that were not entered yet when a test is skipped would
    be missed when it is torn down.
    """

    def __init__(self, strict: bool) -> None:
        self._strict = strict
        self._scope: PatchScope | None = None

    def close(self) -> None:
        """The test is over."""
        scope, self._scope = self._scope, None
        if scope is not None:
            scope.close()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        markers = list(item.iter_markers("compat_patches"))
        if not markers:
            return
        scope = self._scope = PatchScope()
        try:
            # The marker nearest to the test has the last word.
            for marker in reversed(markers):
                arguments = _arguments(item, marker)
                enter_patches(scope, **arguments)
                for verb, ids in arguments.items():
                    item.user_properties.append((f"compat_patches.{verb}", ", ".join(ids)))
            for wanted, ids in _variants(item):
                # Also without them: what the test shows of a defect is not there where the patches do not apply.
                require(scope, *ids)
                if not wanted:
                    scope.revert(*ids)
                item.user_properties.append(
                    (f"compat_patches.{'apply' if wanted else 'revert'}", ", ".join(ids)),
                )
        except DoesNotApply as reason:
            item.user_properties.append(("compat_patches.does_not_apply", str(reason)))
            if self._strict:
                pytest.fail(f"{reason} (--compat-patches-strict)", pytrace=False)
            # Reported where the test stands, as a skip by a marker is.
            raise pytest.skip.Exception(str(reason), _use_item_location=True) from None


def _arguments(item: pytest.Item, marker: pytest.Mark) -> dict[str, Sequence[str]]:
    """What a marker asks for, :func:`both` apart."""
    unknown = [name for name in marker.kwargs if name not in _MARKER_ARGUMENTS]
    lists = [value for value in marker.kwargs.values() if isinstance(value, list | tuple)]
    strings = all(isinstance(name, str) for value in lists for name in value)
    if marker.args or unknown or len(lists) != len(marker.kwargs) or not strings:
        raise pytest.UsageError(
            f"{item.nodeid}: found the marker compat_patches with {marker.args or ''}{marker.kwargs}; expected "
            "apply, revert and only, each a list of ids"
        )
    return {name: value for name, value in marker.kwargs.items() if name != "both"}


def _variants(item: pytest.Item) -> list[tuple[bool, Sequence[str]]]:
    """What the parameters of :func:`both` say for this test."""
    callspec = getattr(item, "callspec", None)
    if callspec is None:
        if any("both" in marker.kwargs for marker in item.iter_markers("compat_patches")):
            raise pytest.UsageError(
                f"{item.nodeid}: both() is for test functions; a unittest test case asks for patches by the attributes "
                "of compat_patches.testing.PatchedTestCase"
            )
        return []
    return [value for name, value in callspec.params.items() if name.startswith(_BOTH)]
