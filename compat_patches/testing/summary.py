"""What a test run tells of patches: the header line, the JSON report, the properties in the JUnit file."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from .. import __version__, env_override
from ..report import as_document

_SHOWN = ("applied", "overlaid", "lost", "failed", "pending")
# Of two workers that differ, the one that got further with a patch is reported.
_FURTHEST = ("failed", "lost", "overlaid", "applied", "reverted", "pending", "skipped")
_PREFIX = "compat_patches."


def header() -> str:
    """One line: the versions, and which patches are in effect or will be."""
    engine = env_override.engine()
    torch = engine.circumstances.torch or "not installed"
    groups: dict[str, list[str]] = {}
    for status in engine.status():
        groups.setdefault(status.state, []).append(status.id)
    shown = [f"{state}: {', '.join(groups[state])}" for state in _SHOWN if state in groups]
    if engine.settings.off:
        shown.insert(0, "switched off by COMPAT_PATCHES=off")
    return (
        f"compat_patches {__version__}: torch {torch}, Python {platform.python_version()}; "
        f"{'; '.join(shown) or 'no patch is active'}"
    )


class Notes:
    """What a test run did with patches, collected from its reports and, under pytest-xdist, from its workers."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._tests: dict[str, dict[str, Any]] = {}
        self._from_workers: list[dict[str, Any]] = []

    def add(self, report: pytest.TestReport) -> None:
        """Note what a phase of a test did; tests that had nothing to do with patches are left out."""
        properties = [
            (name.removeprefix(_PREFIX), str(value))
            for name, value in report.user_properties
            if name.startswith(_PREFIX)
        ]
        test = self._tests.get(report.nodeid)
        if test is None:
            if not properties:
                return
            test = self._tests[report.nodeid] = {"nodeid": report.nodeid, "outcome": "passed"}
        if report.outcome == "failed" or test["outcome"] == "passed":
            test["outcome"] = report.outcome
        # Each phase repeats what the phases before it have noted.
        test.update({name: [value for other, value in properties if other == name] for name, _ in properties})

    def merge(self, text: str) -> None:
        """Take in what a worker has noted."""
        self._from_workers.append(json.loads(text))

    def publish(self) -> None:
        """Write the report, or hand it to the process that does."""
        output = getattr(self._config, "workeroutput", None)
        if output is not None:
            output["compat_patches"] = json.dumps(self._own())
            return
        document = self._document()
        self._add_to_junit(document)
        path = self._config.option.compat_patches_report
        if path:
            document["tests"] = [self._tests[nodeid] for nodeid in sorted(self._tests)]
            target = Path(os.path.abspath(path))
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")

    def _own(self) -> dict[str, Any]:
        engine = env_override.engine()
        document = as_document(engine.status(), engine.circumstances.torch)
        return {**document, "compat_patches": __version__, "pytest": pytest.__version__}

    def _document(self) -> dict[str, Any]:
        if not self._from_workers:
            return self._own()
        patches = (patch for document in self._from_workers for patch in document["patches"])
        return {**self._from_workers[0], "pid": os.getpid(), "patches": _furthest(patches)}

    def _add_to_junit(self, document: dict[str, Any]) -> None:
        # The public fixture for this, record_testsuite_property, does nothing under pytest-xdist.
        if not self._config.pluginmanager.has_plugin("junitxml"):
            return
        from _pytest.junitxml import xml_key

        xml = self._config.stash.get(xml_key, None)
        if xml is None:
            return
        for name in ("compat_patches", "python", "torch"):
            xml.add_global_property(f"{_PREFIX}version.{name}", str(document[name]))
        for patch in document["patches"]:
            xml.add_global_property(f"{_PREFIX}patch.{patch['id']}", f"{patch['state']}: {patch['reason']}")


def _furthest(patches: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for patch in patches:
        key = (patch["manifest"], patch["id"])
        known = found.setdefault(key, patch)
        if _FURTHEST.index(patch["state"]) < _FURTHEST.index(known["state"]):
            found[key] = patch
    return list(found.values())
