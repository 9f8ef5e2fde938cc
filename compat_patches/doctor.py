"""Why the patches are active in a process, or are not, and what to do about it.

Each check is a function that yields findings: what was found, and a remedy where something is amiss.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import _compat_patches_startup as startup

from . import __version__, activation, foreign, launch
from .engine import Engine

OK, NOTE, PROBLEM = "ok", "note", "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found.

    Attributes:
        check: which check.
        verdict: ``ok``, ``note`` (nothing is wrong, but it may surprise) or ``problem``.
        found: what is the case.
        remedy: what to do; empty where there is nothing to do.
    """

    check: str
    verdict: str
    found: str
    remedy: str = ""


def examine(engine: Engine) -> list[Finding]:
    """Make all checks of this process, and of a new one."""
    checks: list[Callable[[], Iterator[Finding]]] = [
        _flags,
        _switch,
        _startup_files,
        _new_process,
        _copies,
        _sitecustomize,
        lambda: _settings(engine),
        lambda: _patches(engine),
        lambda: _others(engine),
    ]
    return [finding for check in checks for finding in check()]


def _flags() -> Iterator[Finding]:
    flags = sys.flags
    if flags.no_site:
        yield Finding(
            "flags", PROBLEM, "-S: Python reads no startup file", "start without -S, or import compat_patches"
        )
    if flags.ignore_environment:
        flag = "-I" if flags.isolated else "-E"
        found = f"{flag}: the sitecustomize folder on PYTHONPATH and COMPAT_PATCHES_MANIFEST are ignored"
        yield Finding("flags", NOTE, found, "let `compat-patches enable` or COMPAT_PATCHES=on activate it")
    if flags.no_user_site and not flags.isolated:
        yield Finding("flags", NOTE, "-s: a startup file and a marker in the user's site are not read")
    if not (flags.no_site or flags.ignore_environment or flags.no_user_site):
        yield Finding("flags", OK, "no flag keeps startup files or PYTHONPATH from being read")


def _switch() -> Iterator[Finding]:
    said = startup.switch()
    enabled = [place for place in activation.places() if place.enabled]
    if said is not None:
        found = f"COMPAT_PATCHES={os.environ['COMPAT_PATCHES'].strip()}"
        if said is False and enabled:
            found += f"; it wins over {enabled[0].marker}"
        yield Finding("switch", OK if said else NOTE, found, "" if said else "unset COMPAT_PATCHES to have it active")
    elif enabled:
        yield Finding("switch", OK, f"enabled for {' and '.join(place.title for place in enabled)}")
    else:
        found = "neither COMPAT_PATCHES nor `compat-patches enable` says on: only programs that import it are patched"
        yield Finding("switch", NOTE, found, "compat-patches enable, or COMPAT_PATCHES=on")


def _startup_files() -> Iterator[Finding]:
    files = activation.startup_files()
    if not files:
        found = "no folder that this Python reads at its start has a startup file of compat_patches"
        remedy = "install compat-patches into this environment with pip, or use `compat-patches sitecustomize`"
        yield Finding("startup files", PROBLEM, found, remedy)
    for path in files:
        fault = _fault_of(path)
        remedy = f"delete {path}, or install compat-patches there again" if fault else ""
        yield Finding("startup files", PROBLEM if fault else OK, f"{path}{fault}", remedy)
    if len(files) > 1:
        found = "there are several; they do no harm, as the first one that fires does all"
        yield Finding("startup files", NOTE, found, "uninstall compat-patches where it is not wanted")
    if startup.fired:
        yield Finding("startup files", OK, f"fired in this process: {', '.join(startup.fired)}")
    elif files and not sys.flags.no_site:
        found = "none fired in this process, though it read that folder"
        yield Finding("startup files", PROBLEM, found, "start Python with -v and look for compat_patches.pth")
    if startup.failure is not None:
        failure = f"{type(startup.failure).__name__}: {startup.failure}"
        yield Finding("startup files", PROBLEM, f"activating failed: {failure}", "set COMPAT_PATCHES_LOG=debug")


def _fault_of(path: str) -> str:
    """What is wrong with a startup file, as something to put after its name."""
    folder = os.path.dirname(path)
    try:
        with open(path, encoding="utf-8") as file:
            if "_compat_patches_startup" not in file.read():
                return " is of another release, or not ours: it does not call _compat_patches_startup"
        names = os.listdir(folder)
    except (OSError, UnicodeDecodeError) as error:
        return f" cannot be read: {error}"
    if not any(name.startswith("compat_patches-") and name.endswith(".dist-info") for name in names):
        return " was left behind: compat-patches is not installed in that folder any more"
    return ""


_PROBE = """
import json, sys
startup = sys.modules.get("_compat_patches_startup")
waiting = any("compat_patches" in type(finder).__module__ for finder in sys.meta_path)
print(json.dumps([getattr(startup, "fired", []), waiting]))
"""


def _new_process() -> Iterator[Finding]:
    """Nothing is as sure as a try: what the environment of this process does to the next one."""
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]  # as multiprocessing uses it
    wanted = startup.wanted()
    try:
        # Not in the working directory, which may be a checkout.
        done = subprocess.run(
            [sys.executable, *flags, "-c", _PROBE], cwd=sys.prefix, capture_output=True, text=True, timeout=60
        )
        fired, waiting = json.loads(done.stdout.splitlines()[-1])
    except (OSError, ValueError, IndexError, subprocess.SubprocessError) as error:
        found = f"a new process of {sys.executable} could not be tried: {error}"
        yield Finding("new processes", PROBLEM, found, f"run {sys.executable} by hand")
        return
    by = f", by {', '.join(fired)}" if fired and waiting else ""
    found = f"a new process is {'active' if waiting else 'not active'}{by}"
    if waiting or not wanted:
        yield Finding("new processes", OK if waiting else NOTE, found)
    else:
        yield Finding("new processes", PROBLEM, f"{found}, though it is switched on", "see the findings above")


def _copies() -> Iterator[Finding]:
    from importlib import metadata

    package = os.path.dirname(os.path.abspath(__file__))
    yield Finding("copies", OK, f"compat_patches {__version__} in {package}")
    found = {}
    for folder in dict.fromkeys(map(os.path.abspath, sys.path)):
        other = os.path.join(folder, "compat_patches")
        if os.path.isfile(os.path.join(other, "__init__.py")) and not os.path.samefile(other, package):
            found[other] = "shadows this one" if _comes_first(folder, package) else "is shadowed by this one"
    for other, how in found.items():
        remedy = "uninstall one of them; startup file and package may be of different releases"
        yield Finding("copies", PROBLEM, f"another copy, {other}, {how}", remedy)
    versions = {d.version for d in metadata.distributions() if (d.name or "").replace("_", "-") == "compat-patches"}
    if versions - {__version__}:
        found_versions = ", ".join(sorted(versions - {__version__}))
        found_text = f"installed as release {found_versions}, while {__version__} is what is imported"
        yield Finding("copies", PROBLEM, found_text, "install compat-patches again")


def _comes_first(folder: str, package: str) -> bool:
    order = list(map(os.path.abspath, sys.path))
    ours = os.path.dirname(package)
    return ours not in order or order.index(folder) < order.index(ours)


def _sitecustomize() -> Iterator[Finding]:
    folder = launch.sitecustomize_folder()
    named = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    if folder not in map(os.path.abspath, named):
        return
    before = named[: list(map(os.path.abspath, named)).index(folder)]
    hiding = [path for path in before if os.path.exists(os.path.join(path, "sitecustomize.py"))]
    if hiding:
        found = f"ours on PYTHONPATH is shadowed by {os.path.join(hiding[0], 'sitecustomize.py')}"
        remedy = "put our folder first, or write `import compat_patches` into the other"
        yield Finding("sitecustomize", NOTE if activation.startup_files() else PROBLEM, found, remedy)
    else:
        yield Finding("sitecustomize", OK, f"ours comes first on PYTHONPATH: {folder}")


def _settings(engine: Engine) -> Iterator[Finding]:
    for complaint in engine.complaints:
        yield Finding("settings", PROBLEM, complaint, "correct it")
    if sys.flags.ignore_environment and engine.settings.manifests:
        found = f"ignored, as Python ignores its environment: {os.pathsep.join(engine.settings.manifests)}"
        yield Finding("settings", NOTE, found, "start without -I and -E")
    for declared in engine.manifests:
        yield Finding("manifests", OK, f"{declared.name}: {len(declared.patches)} patches in {declared.source}")


def _patches(engine: Engine) -> Iterator[Finding]:
    torch = engine.circumstances.torch
    if torch is None:
        yield Finding("torch", NOTE, "torch is not installed here; there is nothing to patch")
    else:
        yield Finding("torch", OK, f"torch {torch}, built for {engine.circumstances.build or 'what it does not say'}")
    remedies = {
        "failed": "compat-patches explain {id} shows where; COMPAT_PATCHES_DISABLE={id} leaves it out",
        "lost": "call compat_patches.apply({id!r}) after whoever put the original back",
        "overlaid": "nothing, as long as what is on top calls what is beneath it",
    }
    for status in engine.status():
        if status.state in remedies:
            verdict = NOTE if status.state == "overlaid" else PROBLEM
            remedy = remedies[status.state].format(id=status.id)
            yield Finding("patches", verdict, f"{status.id} is {status.state}: {status.reason}", remedy)


def compile_samples(engine: Engine) -> Iterator[Finding]:
    """Compile code that uses what is patched. It takes seconds, so it is not among what :func:`examine` does."""
    from .self_test import selftest

    applied = [status.id for status in engine.status() if status.state == "applied"]
    for status in selftest(engine, *applied) if applied else []:
        failed = status.state == "failed"
        remedy = f"COMPAT_PATCHES_DISABLE={status.id} leaves it out; please report it" if failed else ""
        yield Finding("torch.compile", PROBLEM if failed else OK, f"{status.id}: {status.reason}", remedy)


def _others(engine: Engine) -> Iterator[Finding]:
    seen = set()
    for patch in engine.patches():
        for target, what in foreign.changes(patch):
            if (target, what) not in seen:
                seen.add((target, what))
                found = f"{target} holds {what}"
                yield Finding("other tools", NOTE, found, f"compat-patches explain {patch.id} says whether both act")
    for name, version, imported in foreign.installed_tools():
        if not imported:
            found = f"{name} {version} is installed and changes torch when it is imported"
            yield Finding("other tools", NOTE, found, f"compat-patches doctor --import {foreign.TOOLS[name]}")
