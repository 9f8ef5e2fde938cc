"""Puts the stand-in into a process: for a time where torch is imported already, for good where it is not."""

from __future__ import annotations

import contextlib
import importlib
import importlib.abc
import re
import sys
import types
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any

from .accelerator import OUT_OF_REACH, accelerator_names, dynamo_names
from .cnames import modelled_names, refused_names
from .errors import StandinError
from .runtime import StandinXpu
from .signatures import TorchFacts, differences, missing, read_installed_torch

XPU_VERSION = "20250301"
# What torch._C of a CUDA build has and that of a CPU build has not.
_CUDA_NAME = re.compile(
    r"_(cuda|Cuda|CUDA|cudnn|cusparselt|nccl|nvtx|StaticCuda|FastCuda|construct_CUDA|MemPool$|graph_pool_handle$)"
)
_ABSENT = object()
_current: StandinXpu | None = None


def current() -> StandinXpu:
    """The stand-in that is in this process; StandinError if there is none."""
    if _current is None:
        raise StandinError("no stand-in XPU is in this process; installed() or run_program() put one there")
    return _current


@contextlib.contextmanager
def installed(*, device_count: int = 2, as_accelerator: bool = False) -> Iterator[StandinXpu]:
    """Give this process, whose torch is imported, an XPU for the time of a with statement.

    torch.xpu and its submodules are imported afresh over the stand-in's torch._C, so that torch's own code
    runs as on an XPU build; the modules that were there are set aside, untouched, and come back at the end,
    with torch._C, torch.version.xpu and sys.modules as they were. ``as_accelerator`` makes torch.accelerator
    say xpu too.

    Patches of torch.xpu that compat_patches has in place are undone meanwhile; they can be applied inside, and
    have to be undone before the end. Who copied torch.xpu's objects earlier, as Dynamo does when it is imported,
    does not see the stand-in, and a CUDA build keeps its CUDA, which Dynamo asserts no XPU build has: what
    compiles needs ``run_program``.

    Raises StandinError where torch is not the one that the stand-in knows, where it has an XPU already, and
    at the end where an object of the stand-in was left behind in a module of torch.
    """
    global _current
    import torch

    if torch._C._has_xpu:
        raise StandinError("this torch has an XPU, a real one or a stand-in that is there already")
    standin = StandinXpu(device_count)
    names = _names(standin, read_installed_torch(), as_accelerator)
    torch_modules = {name: sys.modules[name] for name in list(sys.modules) if _is_torch_xpu(name)}
    patches_left: list[str] = []
    with (
        _without_patches_of_torch_xpu(),
        _replaced(vars(torch._C), names),
        _replaced(vars(torch._C._dynamo.utils), dynamo_names(names) if as_accelerator else {}),
        _replaced(vars(torch.version), {"xpu": XPU_VERSION}),
        # pyzes would count the devices of the machine instead of asking torch._C.
        _replaced(sys.modules, {"pyzes": None}),
        _replaced(vars(torch), {"xpu": torch.xpu}),
    ):
        fresh: dict[str, types.ModuleType] = {}
        try:
            for name in torch_modules:
                del sys.modules[name]
            importlib.import_module("torch.xpu")
            _current = standin
            yield standin
            patches_left = _patches_of_torch_xpu()
        finally:
            _current = None
            for name in [name for name in sys.modules if _is_torch_xpu(name)]:
                fresh[name] = sys.modules.pop(name)
            sys.modules.update(torch_modules)
    if patches_left:
        raise StandinError(f"revert {', '.join(patches_left)} before the stand-in XPU goes: its torch.xpu is gone")
    _refuse_leftovers(fresh, names)


def install_before_torch(*, device_count: int = 2, as_accelerator: bool = False) -> StandinXpu:
    """Make the torch that this process will import an XPU build: with the stand-in, and without CUDA.

    For the rest of the life of the process. StandinError if torch is imported already, and at the import of
    torch if it is not one that the stand-in knows.
    """
    global _current
    if "torch" in sys.modules:
        raise StandinError("torch is imported already; use installed()")
    _current = standin = StandinXpu(device_count)
    sys.modules["pyzes"] = None  # type: ignore[assignment]  # as in installed()
    sys.meta_path.insert(0, _WhileTorchIsImported(standin, read_installed_torch(), as_accelerator))
    return standin


class _WhileTorchIsImported(importlib.abc.MetaPathFinder):
    """Finds nothing, but changes torch._C before torch.cuda and torch.xpu look at it, and then is gone."""

    def __init__(self, standin: StandinXpu, facts: TorchFacts, as_accelerator: bool) -> None:
        self._standin = standin
        self._facts = facts
        self._as_accelerator = as_accelerator

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> None:
        if fullname == "torch.cuda":
            _hide_cuda(vars(sys.modules["torch._C"]))
        elif fullname == "torch.xpu":
            sys.meta_path.remove(self)
            torch_c = sys.modules["torch._C"]
            if torch_c._has_xpu:
                raise StandinError("this torch has a real XPU")
            names = _names(self._standin, self._facts, self._as_accelerator)
            vars(torch_c).update(names)
            if self._as_accelerator:
                vars(torch_c._dynamo.utils).update(dynamo_names(names))
            importlib.import_module("torch.version").xpu = XPU_VERSION


def _hide_cuda(torch_c: dict[str, Any]) -> None:
    """Make a CUDA build one without CUDA, since torch asserts that no build has both."""
    for name in [name for name in torch_c if _CUDA_NAME.match(name)]:
        del torch_c[name]
    torch_c.update(_has_cuda=False, _has_cudnn=False, _has_cusparselt=False)
    importlib.import_module("torch.version").cuda = None


def _names(standin: StandinXpu, facts: TorchFacts, as_accelerator: bool) -> dict[str, Any]:
    """All that goes onto torch._C; StandinError with every difference to what the installed torch expects."""
    modelled = modelled_names(standin, facts)
    names = {"_has_xpu": True, **refused_names(facts), **modelled}
    found = missing(facts.used, names) + differences(facts, modelled)
    if as_accelerator:
        names |= accelerator_names(standin, facts, modelled["_XpuStreamBase"])
        reached = facts.used_by_accelerator.keys() - set(OUT_OF_REACH)
        found += missing({name: facts.used_by_accelerator[name] for name in reached}, names)
    if found:
        raise StandinError(
            f"torch {facts.version} is not the torch that the stand-in XPU knows; teach it, in tests/standin:"
            + "".join(f"\n  {difference}" for difference in found)
        )
    return names


def _without_patches_of_torch_xpu() -> contextlib.AbstractContextManager[Any]:
    """Undo, for a time, what compat_patches did to the modules that are set aside.

    It would otherwise take the fresh ones for a reload, and patch these instead, for good.
    """
    patches = _patches_of_torch_xpu()
    return sys.modules["compat_patches"].reverted(*patches) if patches else contextlib.nullcontext()


def _patches_of_torch_xpu() -> list[str]:
    """The ids of the patches of torch.xpu that compat_patches has in place."""
    if "compat_patches" not in sys.modules:
        return []
    return [
        patch.id
        for patch in sys.modules["compat_patches"].status()
        if patch.state in ("applied", "overlaid") and _is_torch_xpu(patch.target.partition(":")[0])
    ]


def _is_torch_xpu(name: str) -> bool:
    return name == "torch.xpu" or name.startswith("torch.xpu.")


@contextlib.contextmanager
def _replaced(owner: MutableMapping[str, Any], values: Mapping[str, Any]) -> Iterator[None]:
    """Put the values into the mapping, and put back what was there, or nothing, at the end."""
    previous = {name: owner.get(name, _ABSENT) for name in values}
    owner.update(values)
    try:
        yield
    finally:
        for name, value in previous.items():
            if value is _ABSENT:
                owner.pop(name, None)
            else:
                owner[name] = value


def _refuse_leftovers(fresh: Mapping[str, types.ModuleType], names: Mapping[str, Any]) -> None:
    """Raise where a module of torch, or a class in one, still holds an object of the stand-in."""
    ours = {id(value) for value in names.values() if value is not True}
    for module in fresh.values():
        ours |= {id(value) for value in vars(module).values() if _is_torch_xpu(_module_of(value))}
    left = []
    for name, module in list(sys.modules.items()):
        if name != "torch" and not name.startswith("torch."):
            continue
        for attribute, value in list(getattr(module, "__dict__", {}).items()):
            if id(value) in ours:
                left.append(f"{name}:{attribute}")
            # Not isinstance, which asks the value for its class, and torch has values that warn when asked.
            elif issubclass(type(value), type) and value.__module__ == name:
                left += [
                    f"{name}:{attribute}.{inner}"
                    for inner, member in vars(value).items()
                    if id(getattr(member, "__func__", member)) in ours
                ]
    if left:
        raise StandinError(
            f"objects of the stand-in XPU were left in {', '.join(sorted(left))}; undo what put them there, "
            "or use run_program() where an import inside the stand-in did"
        )


def _module_of(value: Any) -> str:
    return getattr(value, "__module__", None) or ""
