"""What the installed torch expects of an XPU build's torch._C, and whether the stand-in answers it.

Read from two sources that every wheel ships, whatever it is built for: ``torch/xpu/*.py`` says which names
torch uses, ``torch/_C/__init__.pyi`` with which parameters the C side takes them. Reading imports no torch.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import StandinError

Signatures = dict[str, inspect.Signature]


@dataclass(frozen=True)
class TorchFacts:
    """What one installed torch says of its C side.

    ``used`` and ``used_by_accelerator`` map a name of torch._C to the places in torch/xpu, or in
    torch/accelerator, that use it. ``functions`` and ``classes`` are the declared signatures, of functions by
    name and of methods by class and name; ``attributes`` the declared attributes of each class.
    """

    version: str
    used: dict[str, str]
    used_by_accelerator: dict[str, str]
    functions: Signatures
    classes: dict[str, Signatures]
    attributes: dict[str, tuple[str, ...]]

    def expects(self, name: str) -> bool:
        """Whether this torch's XPU build has the name at all."""
        return name in self.used or name in self.functions or name in self.classes

    def method(self, owner: str, name: str) -> inspect.Signature:
        """The declared signature of a method; StandinError where the stub has none."""
        if name not in self.classes.get(owner, {}):
            raise StandinError(f"the stub of torch {self.version} does not declare torch._C.{owner}.{name}")
        return self.classes[owner][name]


@functools.lru_cache(maxsize=1)
def read_installed_torch() -> TorchFacts:
    """Read the torch that ``import torch`` would import; StandinError if there is none or it has no stub."""
    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        raise StandinError("no torch is installed")
    return read_torch(Path(spec.submodule_search_locations[0]))


def read_torch(root: Path) -> TorchFacts:
    """Read the torch whose package is the folder ``root``."""
    stub = root / "_C" / "__init__.pyi"
    if not stub.is_file():
        raise StandinError(f"{stub} is not there; the stand-in reads the parameters of torch._C from it")
    functions: Signatures = {}
    classes: dict[str, Signatures] = {}
    attributes: dict[str, tuple[str, ...]] = {}
    for node in ast.parse(stub.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and _is_for_xpu(node.name):
            functions[node.name] = _signature(node)
        elif isinstance(node, ast.ClassDef) and _is_for_xpu(node.name):
            classes[node.name], attributes[node.name] = _members(node)
    return TorchFacts(
        version=_version(root / "version.py"),
        used={name: where for name, where in _uses(root / "xpu").items() if _is_for_xpu(name)},
        used_by_accelerator={
            name: where for name, where in _uses(root / "accelerator").items() if "accelerator" in name
        },
        functions=functions,
        classes=classes,
        attributes=attributes,
    )


def missing(used: dict[str, str], provided: dict[str, Any]) -> list[str]:
    """Name each name of torch._C that torch uses and ``provided`` lacks, with the places."""
    return [
        f"torch._C.{name} is used in {where}, and the stand-in has no such name"
        for name, where in sorted(used.items())
        if name not in provided
    ]


def differences(facts: TorchFacts, provided: dict[str, Any]) -> list[str]:
    """Name each respect in which ``provided``, names of torch._C, is not what torch's stub declares.

    Compared are the names of parameters, their order and whether they may be left out, of functions and of
    methods, and the attributes of classes. A name that the stub does not declare is not compared.
    """
    found = []
    for name, value in sorted(provided.items()):
        if name in facts.functions:
            found += _difference(f"torch._C.{name}", facts.functions[name], value)
        for method, declared in facts.classes.get(name, {}).items():
            where = f"torch._C.{name}.{method}"
            if hasattr(value, method):
                found += _difference(where, declared, getattr(value, method))
            else:
                found.append(f"torch declares {where}{declared}, and the stand-in has no such method")
        found += [
            f"torch declares torch._C.{name}.{attribute}, and the stand-in has no such attribute"
            for attribute in facts.attributes.get(name, ())
            if not hasattr(value, attribute)
        ]
    return found


def _difference(what: str, declared: inspect.Signature, value: Any) -> list[str]:
    provided = inspect.signature(value)
    if _shape(declared) == _shape(provided):
        return []
    return [f"torch declares {what}{declared}, and the stand-in knows {provided}"]


def _shape(signature: inspect.Signature) -> list[tuple[str, bool]]:
    return [
        (name, parameter.default is parameter.empty)
        for name, parameter in signature.parameters.items()
        if name not in ("self", "cls")
    ]


def _is_for_xpu(name: str) -> bool:
    return name.lower().startswith("_xpu")


def _members(node: ast.ClassDef) -> tuple[Signatures, tuple[str, ...]]:
    """The declared methods of a class, and the names of its attributes and properties."""
    methods: Signatures = {}
    attributes: list[str] = []
    for item in node.body:
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            attributes.append(item.target.id)
        elif isinstance(item, ast.FunctionDef):
            if any(ast.unparse(decorator) == "property" for decorator in item.decorator_list):
                attributes.append(item.name)
            else:
                methods[item.name] = _signature(item)
    return methods, tuple(attributes)


def _version(path: Path) -> str:
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__version__":
            return ast.literal_eval(node.value)
    raise StandinError(f"{path} has no __version__")


def _signature(node: ast.FunctionDef) -> inspect.Signature:
    """The declared names, order and optionality. What a default is, the stub mostly does not say."""
    arguments = node.args
    if arguments.vararg or arguments.kwarg:
        raise StandinError(f"torch's stub declares {node.name} with * or **; the stand-in cannot compare that")
    positional = [*arguments.posonlyargs, *arguments.args]
    required = len(positional) - len(arguments.defaults)
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [
        inspect.Parameter(argument.arg, kind, default=inspect.Parameter.empty if place < required else ...)
        for place, argument in enumerate(positional)
    ]
    parameters += [
        inspect.Parameter(
            argument.arg,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if default is None else ...,
        )
        for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    ]
    return inspect.Signature(parameters)


def _uses(package: Path) -> dict[str, str]:
    """The names that the files of a package take from torch._C, each with the places."""
    found: dict[str, list[str]] = {}
    for path in sorted(package.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for name in _names_from_c(node):
                found.setdefault(name, []).append(f"torch/{package.name}/{path.name}:{node.lineno}")
    return {name: ", ".join(places) for name, places in found.items()}


def _names_from_c(node: ast.AST) -> list[str]:
    if isinstance(node, ast.ImportFrom) and node.module == "torch._C":
        return [alias.name for alias in node.names]
    if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "torch._C":
        return [node.attr]
    if (
        isinstance(node, ast.Call)
        and ast.unparse(node.func) in ("getattr", "hasattr")
        and ast.unparse(node.args[0]) == "torch._C"
        and isinstance(node.args[1], ast.Constant)
    ):
        return [node.args[1].value]
    if (
        isinstance(node, ast.Subscript)
        and ast.unparse(node.value) == "torch._C.__dict__"
        and isinstance(node.slice, ast.Constant)
    ):
        return [node.slice.value]
    return []
