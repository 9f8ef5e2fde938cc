"""Declared, version-gated, reversible run-time patches for PyTorch.

Importing this package activates it: each patch of the manifests that is for the installed torch is applied when its
target has been imported. ``COMPAT_PATCHES=off`` in the environment keeps the import from doing anything.

Until torch is imported, this costs the import of three small modules and nothing from outside of the package but
``os`` and ``sys``.

A startup file may import it before pytest, which would then warn that it cannot rewrite assertions in it, as it does
for every distribution with a plugin; the word that it looks for is PYTEST_DONT_REWRITE.
"""

from . import env_override

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Mapping
    from contextlib import AbstractContextManager

    from .report import PatchStatus

__version__ = "0.1.0"

__all__ = [
    "CompatPatchesError",
    "ManifestError",
    "MissingTargetError",
    "PatchError",
    "PatchStatus",
    "UnknownPatchError",
    "applied",
    "apply",
    "digest",
    "explain",
    "load_manifest",
    "revert",
    "reverted",
    "selftest",
    "simulate",
    "status",
    "verify",
]


def status(*ids: str) -> "list[PatchStatus]":
    """How patches stand in this process.

    Args:
        ids: ids or groups; all patches where none is given.

    Returns:
        A record for each, with its state and the reason for it.

    Raises:
        UnknownPatchError: nothing has that name.
    """
    return env_override.engine().status(*ids)


def apply(*ids: str, force: bool = False) -> "list[PatchStatus]":
    """Apply patches until they are reverted. Applying twice is applying once.

    A patch whose target is not imported yet is applied as soon as it is.

    Args:
        ids: ids or groups.
        force: pass over predicates, evidence and pins; never over a missing target.

    Returns:
        How they stand now.

    Raises:
        UnknownPatchError: nothing has that name.
        PatchError: a patch failed, and ``COMPAT_PATCHES_STRICT`` is set.
    """
    return env_override.engine().apply(*ids, force=force)


def revert(*ids: str) -> "list[PatchStatus]":
    """Undo patches. One that is pending never fires.

    Args:
        ids: ids or groups.

    Returns:
        How they stand now: ``reverted``, or ``overlaid`` where somebody else's work stands on top and refers to ours,
        which then hands calls through.

    Raises:
        UnknownPatchError: nothing has that name.
    """
    return env_override.engine().revert(*ids)


def applied(*ids: str, force: bool = False) -> "AbstractContextManager[list[PatchStatus]]":
    """Keep patches applied while a ``with`` body is executed; also a decorator.

    The patches are applied for the whole process, other threads included. Contexts nest and overlap, also between
    threads: the last one that is left brings back what was the case before the first.

    Args:
        ids: ids or groups.
        force: as for :func:`apply`.

    Returns:
        A context manager that gives how the patches stand.
    """
    return env_override.engine().holding(*ids, wants=True, force=force)


def reverted(*ids: str) -> "AbstractContextManager[list[PatchStatus]]":
    """Keep patches undone while a ``with`` body is executed; the counterpart of :func:`applied`."""
    return env_override.engine().holding(*ids, wants=False)


def simulate(
    *,
    torch: "str | None" = None,
    build: "str | None" = None,
    python: "str | None" = None,
    accelerator: "str | None" = None,
    versions: "Mapping[str, str] | None" = None,
    markers: "Mapping[str, str] | None" = None,
) -> "AbstractContextManager[list[PatchStatus]]":
    """Judge patches by other circumstances while a ``with`` body is executed, for tests of their windows.

    Only what predicates are asked about changes. Nothing else is faked: evidence is looked for in the code that is
    installed, and a target that is not there is not there. Patches that the simulated circumstances refuse are undone,
    those that they let through are applied, and afterwards reality decides again.

    Args:
        torch: a version of torch, such as ``2.10.0a0+abc.nv25.11``.
        build: what torch is built for: cpu, cuda, rocm or xpu.
        python: a version of Python, ``3.14`` or ``3.14.1``.
        accelerator: the type of the accelerator, for who asks the circumstances for it; no predicate does.
        versions: versions of other distributions, by name.
        markers: values of PEP 508 marker variables, by name, such as ``{"sys_platform": "win32"}``.
            What is left out, here and above, is as it really is.

    Returns:
        A context manager that gives how the patches stand under these circumstances.

    Raises:
        ValueError: a build or a version of Python that there cannot be.
    """
    from .simulation import simulating

    return simulating(
        env_override.engine(),
        torch=torch,
        build=build,
        python=python,
        accelerator=accelerator,
        versions=versions or {},
        markers=markers or {},
    )


def verify(*ids: str) -> "list[PatchStatus]":
    """Look whether what was applied is still in place, and apply what waits for a module that is there already.

    The second is for import hooks that stand before ours and hide from it what they import.

    Args:
        ids: ids or groups; without any, all patches that have something in place or failed.

    Returns:
        A record for each: ``applied``, ``overlaid`` where somebody patched over us, ``lost`` where somebody put the
        original back.

    Raises:
        UnknownPatchError: nothing has that name.
        PatchError: a patch that waited failed, and ``COMPAT_PATCHES_STRICT`` is set.
    """
    return env_override.engine().verify(*ids)


def load_manifest(path: "str | os.PathLike[str]") -> "list[PatchStatus]":
    """Load a manifest of another project and apply what it declares.

    Args:
        path: a TOML file.

    Returns:
        How its patches stand now.

    Raises:
        ManifestError: the manifest has faults; nothing of it is loaded.
    """
    return env_override.engine().load_manifest(path)


def explain(patch_id: str) -> str:
    """Explain a patch: what it is for, how it stands and why, and how to switch it.

    Args:
        patch_id: an id or a group.

    Returns:
        Plain text of several lines.

    Raises:
        UnknownPatchError: nothing has that name.
    """
    from .report import explanation

    engine = env_override.engine()
    pairs = zip(engine.patches(patch_id), engine.status(patch_id), strict=True)
    return "\n\n".join(explanation(patch, status) for patch, status in pairs)


def selftest(*ids: str) -> "list[PatchStatus]":
    """Give each patch's samples to ``torch.compile``, with the patch applied; takes seconds, and is never done unasked.

    Args:
        ids: ids or groups; all patches without any.

    Returns:
        How each patch stands: ``failed``, with Dynamo's error, where a sample can be called and cannot be compiled.

    Raises:
        UnknownPatchError: nothing has that name.
    """
    from .self_test import selftest as compile_samples

    return compile_samples(env_override.engine(), *ids)


def digest() -> str:
    """A hash of what this process has in effect: versions, manifests, and which patches are on, off or out of order.

    Two processes with equal digests treat torch alike. A patch that waits for its target counts like one that is
    applied, so what has been imported so far makes no difference.

    Returns:
        64 hexadecimal digits.
    """
    from .fleet import describe

    return describe(env_override.engine(), "this process").digest


def __getattr__(name: str) -> object:
    # Their modules would bring dataclasses into every process.
    if name == "PatchStatus":
        from . import report

        return report.PatchStatus
    if name.endswith("Error") and name in __all__:
        from . import errors

        return getattr(errors, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


env_override.activate()
