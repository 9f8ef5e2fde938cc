"""The suite as pytest sees it: a file of patches, a group of checks for each patch, and the orders of two that meet."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ... import manifest
from ...errors import ManifestError
from ...manifest import Patch
from . import process
from .survey import CHECKS

PROPERTY = "compat_patches.orders"
"""The user property by which a test of orders says how many there were, of how many imports and seconds."""


class ConformanceError(Exception):
    """What is wrong with a patch; the text is all there is to say."""


class ManifestFile(pytest.File):
    """A manifest given by ``--compat-patches-manifest``."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._survey: dict[str, Any] | None = None

    def survey(self, patch: Patch) -> dict[str, Any]:
        """What a fresh process has found of a patch; the first check that asks has it run, for all patches."""
        if self._survey is None:
            self._survey = process.run("survey", path=str(self.path))
        found: dict[str, Any] = self._survey[patch.id]
        return found

    def collect(self) -> Iterator[pytest.Item | pytest.Collector]:
        try:
            declared = manifest.load(self.path)
        except ManifestError as error:
            raise self.CollectError(str(error)) from None
        for patch in declared.patches:
            yield PatchChecks.from_parent(self, name=patch.id, patches=(patch,))
        for pair in itertools.combinations(declared.patches, 2):
            if _places(pair[0]) & _places(pair[1]):
                name = "+".join(patch.id for patch in pair)
                yield PatchChecks.from_parent(self, name=name, patches=pair)


class PatchChecks(pytest.Collector):
    """The checks of one patch, or of two that share a slot."""

    parent: ManifestFile

    def __init__(self, *, patches: tuple[Patch, ...], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.patches = patches

    def collect(self) -> Iterator[pytest.Item]:
        if len(self.patches) == 1:
            for check in CHECKS:
                yield SurveyCheck.from_parent(self, name=check)
            if self.patches[0].affects_compile:
                yield CompileCheck.from_parent(self, name="survives_compile")
        yield OrdersCheck.from_parent(self, name="all_orders")


class _Check(pytest.Item):
    parent: PatchChecks

    @property
    def patches(self) -> tuple[Patch, ...]:
        return self.parent.patches

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, _line(self.path, self.patches[0].id), f"{self.parent.name}: {self.name}"

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *args: Any, **kwargs: Any) -> Any:
        if isinstance(excinfo.value, ConformanceError | process.SuiteError):
            return f"{self.parent.name}: {self.name}\n{excinfo.value}"
        return super().repr_failure(excinfo, *args, **kwargs)

    def conclude(self, problems: list[str], skipped: str | None) -> None:
        """Fail, skip or pass."""
        if problems:
            raise ConformanceError("\n".join(problems))
        if skipped:
            raise pytest.skip.Exception(skipped, _use_item_location=True)


class SurveyCheck(_Check):
    """A check that one process makes together with others."""

    def runtest(self) -> None:
        found = self.parent.parent.survey(self.patches[0])
        self.conclude(found["problems"][self.name], found["skipped"].get(self.name))


class CompileCheck(_Check):
    """Compiled code meets the patch."""

    def runtest(self) -> None:
        _be_in_effect(self)
        found = process.run("compiling", path=str(self.path), patch_id=self.patches[0].id)
        self.conclude(found["problems"], found["skipped"])


class OrdersCheck(_Check):
    """All orders of importing, applying and undoing."""

    def runtest(self) -> None:
        _be_in_effect(self)
        found = process.run("orders", path=str(self.path), patch_ids=[patch.id for patch in self.patches])
        self.user_properties.append((PROPERTY, f"{found['orders']} {found['imports']} {found['seconds']}"))
        self.conclude(found["problems"], None)


def orders_told(reports: Iterable[pytest.TestReport]) -> str | None:
    """How many orders all tests together have run, in words; None where there were none."""
    told = [
        [float(number) for number in str(value).split()]
        for report in reports
        if report.when == "call"
        for name, value in report.user_properties
        if name == PROPERTY
    ]
    if not told:
        return None
    orders, imports, seconds = map(sum, zip(*told, strict=True))
    return (
        f"compat_patches: {orders:.0f} orders of {len(told)} tests, each in a process of its own, with {imports:.0f} "
        f"imports of targets, in {seconds:.0f} s"
    )


def _be_in_effect(check: _Check) -> None:
    """Skip where a patch is not for what is installed, or is not applied for a reason that is reported elsewhere."""
    for patch in check.patches:
        found = check.parent.parent.survey(patch)
        if found["skipped"].get("applies"):
            check.conclude([], found["skipped"]["applies"])
        if found["problems"]["applies"]:
            check.conclude([], f"{patch.id} was not applied, see 'applies'")


def _places(patch: Patch) -> set[str]:
    return {f"{target}[{step.key!r}]" for step in patch.steps for target in step.targets}


def _line(path: Path, patch_id: str) -> int | None:
    """The line of a patch in its manifest, counted from 0."""
    wanted = re.compile(rf"\s*id\s*=\s*[\"']{re.escape(patch_id)}[\"']")
    with open(path, encoding="utf-8") as file:
        return next((number for number, line in enumerate(file) if wanted.match(line)), None)
