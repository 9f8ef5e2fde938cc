"""Predicates: is a patch for this torch, this build, this platform? Each answers with a verdict.

None of them imports torch or touches a device: initialising CUDA before a fork would break the child.
"""

from __future__ import annotations

import ast
import functools
import os
import re
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from . import answers
from .frozen import Frozen
from .manifest import Patch
from .verdict import Verdict

if TYPE_CHECKING:
    from packaging.markers import Marker
    from packaging.requirements import Requirement
    from packaging.version import Version


_NONE: Mapping[str, str] = {}


class Circumstances(Frozen):
    """What predicates are asked about: this process, or one that a test simulates.

    Attributes:
        torch: the version that torch reports, None where there is none.
        build: torch's own build: cpu, cuda, rocm or xpu; None without torch, and where torch does not say.
        versions: versions of other distributions, by their normalised names, which win over what is installed.
        markers: values of PEP 508 marker variables, which win over this interpreter's.
        accelerator: the type that a simulation says is there; nothing of the process's own is ever asked here.
    """

    torch: str | None
    build: str | None
    versions: Mapping[str, str] = _NONE
    markers: Mapping[str, str] = _NONE
    accelerator: str | None = None

    @classmethod
    def current(cls, torch_init: str | None = None) -> Circumstances:
        """The circumstances of this process.

        Args:
            torch_init: the path of ``torch/__init__.py`` where the import system has just found it.
        """
        facts = torch_facts(torch_init)
        version = facts.get("__version__")
        if version is None:
            return cls(None, None)
        return cls(str(version), build_of(facts))

    def version(self, distribution: str) -> str | None:
        """The version of a distribution, None where it is not installed."""
        # As PEP 503 normalises names; packaging would have to be imported for it.
        name = distribution if distribution == "torch" else re.sub(r"[-_.]+", "-", distribution).lower()
        if name in self.versions:
            return self.versions[name]
        if name == "torch":
            return self.torch
        from importlib import metadata

        try:
            # Not `metadata.version`: where no version is written it warns, and `python -W error` makes that an error.
            message: Any = metadata.distribution(name).metadata
            version: str | None = message.get("Version")
        except Exception:
            # What is left of a broken installation raises as it likes; it has no version to tell.
            return None
        return version


def torch_facts(torch_init: str | None = None) -> dict[str, Any]:
    """What ``torch/version.py`` says, from the loaded module or else from the file, which is read, not run.

    The distribution's metadata is not asked: a torch built from source under a vendor's name has none, and the
    file beside the torch that will be imported cannot be somebody else's.

    Returns:
        Names and values; empty where there is no torch.
    """
    loaded = sys.modules.get("torch.version")
    if loaded is not None and hasattr(loaded, "__version__"):
        return vars(loaded)
    package = sys.modules.get("torch")
    if package is not None and isinstance(getattr(package, "__version__", None), str):
        return {"__version__": package.__version__}
    path = torch_init or _find_torch()
    if path is None:
        return {}
    unknown = {"__version__": "unknown"}
    try:
        with open(os.path.join(os.path.dirname(path), "version.py"), "rb") as file:
            return unknown | read_version_file(file.read())
    except (OSError, ValueError, SyntaxError, RecursionError):
        return unknown


def _find_torch() -> str | None:
    from importlib.util import find_spec

    try:
        spec = find_spec("torch")
    except (ImportError, ValueError):
        return None
    return spec.origin if spec is not None and spec.has_location else None


def read_version_file(text: bytes) -> dict[str, Any]:
    """The names, and the literal values, that the text of a ``torch/version.py`` assigns.

    Raises:
        SyntaxError, ValueError, RecursionError: it is no Python.
    """
    found: dict[str, Any] = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, value = node.targets[0], node.value
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            target, value = node.target, node.value
        else:
            continue
        if isinstance(target, ast.Name):
            try:
                found[target.id] = ast.literal_eval(value)
            except (ValueError, TypeError, RecursionError):
                continue
    return found


_BUILD_BY_NAME = {"hip": "rocm", "xpu": "xpu", "cuda": "cuda"}


def build_of(facts: Mapping[str, Any]) -> str | None:
    """What a torch is built for, from what its ``version.py`` says: cpu, cuda, rocm or xpu; None where it says none."""
    for name, build in _BUILD_BY_NAME.items():
        if facts.get(name):
            return build
    return "cpu" if facts.keys() & _BUILD_BY_NAME.keys() else None


def gate(patch: Patch, circumstances: Circumstances) -> Verdict:
    """Whether a patch is for these circumstances, evidence apart.

    Returns:
        A verdict. Where ``needs_evidence`` is set, the torch is a pre-release and only evidence may let it through.
    """
    reasons = []
    needs_evidence = False
    for verdict in _verdicts(patch, circumstances):
        if not verdict.ok:
            return verdict
        needs_evidence = needs_evidence or verdict.needs_evidence
        reasons.append(verdict.reason)
    if needs_evidence and not patch.needed_if:
        return Verdict(False, f"unproven on a pre-release: {'; '.join(reasons)}, and the patch has no needed_if")
    return Verdict(True, "; ".join(reasons) or "for every version and platform", needs_evidence)


def _verdicts(patch: Patch, circumstances: Circumstances) -> Iterable[Verdict]:
    for requirement in patch.requires:
        yield requirement_verdict(requirement, circumstances)
    if patch.marker is not None:
        yield marker_verdict(patch.marker, circumstances)
    if patch.build:
        yield build_verdict(patch.build, circumstances)


def requirement_verdict(text: str, circumstances: Circumstances) -> Verdict:
    """Whether the installed version satisfies a PEP 508 requirement.

    A local part (``+cu128``) never decides. A development or pre-release build counts as its release number, and so
    does one that is on its way to a version that the specifier excludes from above (``2.11.0.dev…`` for ``<2.11``):
    whether the change is in already, only evidence can tell. A specifier that itself names a pre-release is compared
    by PEP 440 to the letter.
    """
    known = answers.about(circumstances.torch, circumstances.markers)
    if known is None:
        return _decide_requirement(text, circumstances)
    return known.about_requirement(
        text, circumstances.version, lambda it: _requirement(it).name, lambda: _decide_requirement(text, circumstances)
    )


def _decide_requirement(text: str, circumstances: Circumstances) -> Verdict:
    requirement = _requirement(text)
    if requirement.marker is not None:
        verdict = _decide_marker(str(requirement.marker), circumstances)
        if not verdict.ok:
            return Verdict(True, f"{text} does not count here ({verdict.reason})")
    name = requirement.name
    wanted = text.partition(";")[0].strip()
    found = circumstances.version(name)
    if found is None:
        return Verdict(False, f"{name} is not installed, wanted {wanted}")
    try:
        answer = _satisfies(found, requirement)
    except (ValueError, TypeError):
        return Verdict(False, f"{name} reports the version {found!r}, which PEP 440 cannot read, wanted {wanted}")
    if isinstance(answer, bool):
        return Verdict(answer, f"{name} is {found}, wanted {wanted}")
    return Verdict(True, f"{name} is {found}, a pre-release of {answer}, wanted {wanted}", True)


def _satisfies(found: str, requirement: Requirement) -> bool | Version:
    """Whether a version satisfies the specifiers; where only evidence can tell, the release that it counts as.

    Raises:
        ValueError: PEP 440 cannot read the version.
    """
    from packaging.version import Version

    version = Version(found)
    public = Version(version.public)
    specifiers = requirement.specifier
    if not version.is_prerelease or any(_names_prerelease(s.version) for s in specifiers):
        return specifiers.contains(public, prereleases=True)
    release = Version(version.base_version)
    if all(s.contains(release) or (s.operator == "<" and public < Version(s.version)) for s in specifiers):
        return release
    return False


def _names_prerelease(text: str) -> bool:
    from packaging.version import Version

    return Version(text.removesuffix(".*")).is_prerelease


def marker_verdict(text: str, circumstances: Circumstances) -> Verdict:
    """Whether a PEP 508 marker holds."""
    known = answers.about(circumstances.torch, circumstances.markers)
    if known is None:
        return _decide_marker(text, circumstances)
    return known.about_marker(text, lambda: _decide_marker(text, circumstances))


def _decide_marker(text: str, circumstances: Circumstances) -> Verdict:
    marker = _marker(text)
    environment = {**_environment(), **circumstances.markers}
    # As packaging writes it: it has a second name for some variables.
    found = ", ".join(f"{name} is {value!r}" for name, value in environment.items() if name in str(marker))
    try:
        holds = marker.evaluate(environment)
    except ValueError as error:
        # Some releases of packaging cannot compare what is no version, such as the release of most Linux kernels.
        return Verdict(False, f"{found}, which cannot be compared ({error}), wanted {text}")
    return Verdict(holds, f"{found}, wanted {text}")


# Many patches say the same, and reading a requirement takes longer than answering it.
@functools.lru_cache(maxsize=1024)
def _requirement(text: str) -> Requirement:
    from packaging.requirements import Requirement

    return Requirement(text)


@functools.lru_cache(maxsize=1024)
def _marker(text: str) -> Marker:
    from packaging.markers import Marker

    return Marker(text)


@functools.lru_cache(maxsize=1)
def _environment() -> dict[str, str]:
    from packaging.markers import default_environment

    return {**default_environment()}  # type: ignore[dict-item]  # a TypedDict of strings


def build_verdict(builds: tuple[str, ...], circumstances: Circumstances) -> Verdict:
    """Whether torch was built for one of these."""
    if circumstances.build is None:
        found = "is not installed" if circumstances.torch is None else "does not say what it was built for"
        return Verdict(False, f"torch {found}, wanted a build for {' or '.join(builds)}")
    found = f"torch is built for {circumstances.build}, wanted {' or '.join(builds)}"
    return Verdict(circumstances.build in builds, found)
