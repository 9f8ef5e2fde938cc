"""Who else changes what our patches change: found by looking at the objects that stand in their targets."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Iterator
from types import FunctionType, MethodType
from typing import Any

from .manifest import Patch, Target
from .target import MISSING, find

TOOLS = {
    "vllm": "vllm",
    "vllm-ascend": "vllm_ascend",
    "torch-npu": "torch_npu",
    "unsloth": "unsloth",
    "intel-extension-for-pytorch": "intel_extension_for_pytorch",
}
"""Projects that are known to change torch when they are imported, and the packages that do it."""


def changes(patch: Patch) -> list[tuple[str, str]]:
    """Who else stands in the targets of a patch, as far as their modules are imported.

    Returns:
        The target and a description of what was found there, for each foreign object. What does not say of itself that
        it wraps something hides what is beneath it.
    """
    ours = {step.using.partition(":")[0].partition(".")[0] for step in patch.steps if step.using} | {"compat_patches"}
    found = []
    for target in dict.fromkeys(target for step in patch.steps for target in step.targets):
        if target.module not in sys.modules:
            continue
        known = ours | {target.root} | sys.stdlib_module_names - {"unittest"}
        for link in _links(_value(target)):
            maker = _maker(link)
            if maker.partition(".")[0] not in known:
                found.append((str(target), _describe(link, maker)))
    return found


def installed_tools() -> list[tuple[str, str, bool]]:
    """The projects of :data:`TOOLS` that are installed: name, version, and whether they have been imported."""
    from importlib import metadata

    found = []
    for name, package in TOOLS.items():
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
        found.append((name, version, package in sys.modules))
    return found


def _value(target: Target) -> Any:
    try:
        return find(target).value()
    except LookupError:
        return MISSING


def _links(value: Any) -> Iterator[Any]:
    """An object, what it wraps, what that wraps, and so on."""
    seen: set[int] = set()
    while value is not MISSING and value is not None and id(value) not in seen:
        seen.add(id(value))
        if isinstance(value, staticmethod | classmethod | MethodType):
            value = value.__func__
        elif isinstance(value, property):
            value = value.fget
        elif type(value) is functools.partial:
            value = value.func
        else:
            yield value
            value = _wrapped(value)


def _wrapped(value: Any) -> Any:
    try:
        return value.__wrapped__
    except Exception:  # Attributes of foreign objects do as they like.
        return None


def _is_wrapt_proxy(value: Any) -> bool:
    return any(base.__module__.partition(".")[0] in ("wrapt", "_wrappers") for base in type(value).__mro__)


def _maker(value: Any) -> str:
    """The module whose code made an object. Its ``__module__`` is often that of what it wraps."""
    if _is_wrapt_proxy(value):
        wrapper = getattr(value, "_self_wrapper", None)
        return _maker(wrapper) if isinstance(wrapper, FunctionType) else type(value).__module__
    if isinstance(value, FunctionType):
        name = value.__globals__.get("__name__")
        return name if isinstance(name, str) else "?"
    if isinstance(value, type):
        return value.__module__
    if type(value).__module__.startswith("unittest."):
        return type(value).__module__
    name = getattr(value, "__module__", None)
    return name if isinstance(name, str) else type(value).__module__


def _describe(value: Any, maker: str) -> str:
    if _is_wrapt_proxy(value):
        return f"a wrapt proxy of {maker}"
    if isinstance(value, FunctionType):
        return f"a function of {maker} ({os.path.basename(value.__code__.co_filename)}:{value.__code__.co_firstlineno})"
    return f"{'a class' if isinstance(value, type) else f'a {type(value).__name__}'} of {maker}"
