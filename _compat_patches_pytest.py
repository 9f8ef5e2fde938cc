"""The door to compat_patches for pytest: named by the entry point ``pytest11``, so every test run imports it.

It stands outside of the package, as importing anything of the package activates it, and imports nothing of it until a
test or an option asks: a test run that does not is neither patched nor slower. What is done then is in
:mod:`compat_patches.testing.plugin`.
"""

from __future__ import annotations

import sys

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from compat_patches.testing import PatchScope
    from compat_patches.testing.plugin import Plugin

_FIXTURES = frozenset({"compat_patches", "compat_patches_module", "compat_patches_session"})
_NAME = "compat_patches_testing"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("compat-patches", "patches of compat_patches")
    group.addoption(
        "--compat-patches-strict",
        action="store_true",
        help="fail a test whose patches do not apply here, instead of skipping it",
    )
    group.addoption(
        "--compat-patches-leaks",
        choices=("error", "warn"),
        help="compare every slot that a loaded manifest names before and after each test, and report what has changed",
    )
    group.addoption(
        "--compat-patches-report",
        metavar="FILE",
        help="write which patches were active, and what tests did with them, to a JSON file",
    )
    group.addoption(
        "--compat-patches-manifest",
        metavar="FILE",
        action="append",
        default=[],
        help="make tests out of each patch of a manifest; given alone, run no others",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "compat_patches(apply=[], revert=[], only=[]): run with these patches applied and those undone; skip where one "
        "to be applied is not for the installed torch.",
    )
    option = config.option
    if (
        option.compat_patches_strict
        or option.compat_patches_leaks
        or option.compat_patches_report
        or option.compat_patches_manifest
    ):
        _plugin(config)


def _plugin(config: pytest.Config) -> Plugin:
    plugin: Plugin | None = config.pluginmanager.get_plugin(_NAME)
    if plugin is None:
        from compat_patches.testing.plugin import Plugin

        plugin = Plugin(config)
        config.pluginmanager.register(plugin, _NAME)
    return plugin


def pytest_report_header(config: pytest.Config) -> str | None:
    # A startup file may have imported the package, and so activated it, where no option asks for it.
    if config.get_verbosity() < 1 or "compat_patches" not in sys.modules:
        return None
    from compat_patches.testing.summary import header

    return header()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    markers = [m for m in metafunc.definition.iter_markers("compat_patches") if "both" in m.kwargs]
    # The decorator nearest to the function varies fastest, as with pytest.mark.parametrize.
    for number, marker in enumerate(markers):
        # No fixture: the plugin reads the parameter where it sets the test up.
        name = f"_compat_patches_both_{number}"
        metafunc.fixturenames.append(name)
        ids = marker.kwargs["both"]
        called = "+".join(ids)
        metafunc.parametrize(name, [(True, ids), (False, ids)], ids=[f"with-{called}", f"without-{called}"])


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("compat_patches") or not _FIXTURES.isdisjoint(getattr(item, "fixturenames", ())):
            _plugin(config)
            return


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """A worker of pytest-xdist is done; what it has noted goes into this process's report."""
    notes = getattr(node, "workeroutput", {}).get("compat_patches")
    if notes is not None:
        _plugin(node.config).notes.merge(notes)


def _scope() -> Iterator[PatchScope]:
    from compat_patches.testing import PatchScope

    with PatchScope() as scope:
        yield scope


@pytest.fixture
def compat_patches() -> Iterator[PatchScope]:
    """Apply, revert and load patches until the test ends: ``.apply``, ``.revert``, ``.status``, ``.load``."""
    yield from _scope()


@pytest.fixture(scope="module")
def compat_patches_module() -> Iterator[PatchScope]:
    """The same as ``compat_patches``, until the last test of the module ends."""
    yield from _scope()


@pytest.fixture(scope="session")
def compat_patches_session() -> Iterator[PatchScope]:
    """The same as ``compat_patches``, until the test run ends."""
    yield from _scope()
