"""Objects: what a name stands for, followed through imports, aliases and base classes over several files."""

from __future__ import annotations

import ast
import builtins
import importlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..source import Definition
from .modules import Modules
from .scopes import VALUE, Alias, Bindings, Defined, Imported, Scope, Value, dotted, scope_of_class


@dataclass(frozen=True, slots=True)
class ModuleObject:
    """A module."""

    name: str


@dataclass(frozen=True, slots=True)
class Code:
    """A function or a class whose definition stands in a file."""

    module: str
    qualname: str
    node: Definition

    @property
    def key(self) -> tuple[str, str, int]:
        return self.module, self.qualname, self.node.lineno


@dataclass(frozen=True, slots=True)
class Other:
    """An object that the files do not define. ``known`` is the class, where it is one of Python's own."""

    why: str
    known: type | None = None


Object = ModuleObject | Code | Other


@dataclass(frozen=True, slots=True)
class Result:
    """What a name stands for.

    Attributes:
        there: whether there is something; None where that cannot be told.
        objects: what it may be; several where a condition decides.
        why: the reason for a None.
    """

    there: bool | None
    objects: tuple[Object, ...] = ()
    why: str = ""


MISSING = Result(False)


@dataclass(frozen=True, slots=True)
class Opaque:
    """A base class that cannot be looked into."""

    why: str
    only_special_names: bool = False


Base = Code | Opaque | type

# Modules of the standard library that torch derives classes from. They are this interpreter's own, so these, unlike
# what is audited, can be imported. Not enum and typing: their metaclasses add names.
_STANDARD = frozenset(
    {"abc", "ast", "collections", "contextlib", "io", "json", "logging", "pickle", "queue", "threading", "types"}
)

# Bases that add nothing but names that begin with an underscore.
_BARE_BASES = frozenset({"Generic", "Protocol", "ABC"})
HARMLESS_DECORATORS = frozenset({"dataclass", "final", "total_ordering", "runtime_checkable", "compatibility"})


_SOMETIMES_MADE = frozenset({"__annotations__", "__cached__", "__builtins__", "__dict__", "__path__", "__weakref__"})
_OF_EVERY_MODULE = frozenset({"__name__", "__doc__", "__file__", "__loader__", "__package__", "__spec__"})


class Looker:
    """Looks names up in the modules of one tree."""

    def __init__(self, modules: Modules) -> None:
        self.modules = modules
        self._trail: list[tuple[str, str]] = []

    # --- modules ---

    def in_module(self, module: str, name: str) -> Result:
        """What a name of a module stands for."""
        if (module, name) in self._trail:
            return MISSING
        loaded = self.modules.load(module)
        if loaded is None:
            return Result(None, why=self.modules.why_not_read(module))
        scope = loaded.scope
        if scope.replaced is not None:
            return Result(None, why=f"{module} is not what its statements say: {scope.replaced}")
        self._trail.append((module, name))
        try:
            found = self._bound(scope.names.get(name, ()), module, None)
            for star in scope.stars:
                if found.there is not False:
                    break
                found = self._in_star(star, name)
        finally:
            self._trail.pop()
        if found.there is False and name in _OF_EVERY_MODULE:
            return Result(True, (Other(f"{name} is made by Python"),))
        if found.there is False and name in _SOMETIMES_MADE:
            return Result(None, why=f"{name} is made by Python where it is needed")
        if found.there is False and scope.open is not None:
            return Result(None, why=scope.open)
        if found.there is False and loaded.is_package and self.modules.has(f"{module}.{name}"):
            return Result(None, why=f"{module}.{name} is a module, and who imports it is not known")
        return found

    def _in_star(self, module: str, name: str) -> Result:
        loaded = self.modules.load(module)
        if loaded is None:
            if name.startswith("_"):
                return MISSING
            return Result(None, why=f"all names of {module} are imported, and {self.modules.why_not_read(module)}")
        exports = loaded.scope.exports
        if exports is None and "__all__" in loaded.scope.names:
            return Result(None, why=f"__all__ of {module} is made by running code")
        if name not in exports if exports is not None else name.startswith("_"):
            return MISSING
        return self.in_module(module, name)

    def _bound(self, bindings: Bindings, module: str, scope: Scope | None, owner: str = "") -> Result:
        """What bindings stand for; ``scope`` is that of the class ``owner`` they are in."""
        results = [self._binding(binding, module, scope, owner) for binding in bindings]
        return combine(results) if results else MISSING

    def _binding(self, binding: object, module: str, scope: Scope | None, owner: str) -> Result:
        match binding:
            case Defined(node):
                qualname = f"{owner}.{node.name}" if owner else node.name
                return Result(True, (Code(module, qualname, node),))
            case Imported(name, None):
                return Result(True, (ModuleObject(name),))
            case Imported(source, name):
                return self._imported(source, str(name))
            case Alias(parts):
                return self.expression(parts, module, scope, owner)
            case Value():
                return Result(True, (Other("what it is, only running code can tell"),))
        return MISSING

    def _imported(self, module: str, name: str) -> Result:
        submodule = f"{module}.{name}"
        if self.modules.load(module) is None:
            if self.modules.has(submodule):
                return Result(True, (ModuleObject(submodule),))
            why = f"it comes from {module}: {self.modules.why_not_read(module)}"
            return Result(True, (Other(why, self._standard_class(module, name)),))
        found = self.in_module(module, name)
        if found.there is not True and self.modules.has(submodule):
            return Result(True, (*found.objects, ModuleObject(submodule)))
        return found

    def _standard_class(self, module: str, name: str) -> type | None:
        if module not in _STANDARD or self.modules.has(module):
            return None
        found = getattr(importlib.import_module(module), name, None)
        return found if type(found) is type else None

    def expression(self, parts: Sequence[str], module: str, scope: Scope | None = None, owner: str = "") -> Result:
        """What ``a.b.c`` stands for in the body of a module or a class."""
        first = parts[0]
        inner = scope.names.get(first) if scope is not None else None
        if inner is not None and (f"{module}:{owner}", first) not in self._trail:
            self._trail.append((f"{module}:{owner}", first))
            try:
                found = self._bound(inner, module, scope, owner)
            finally:
                self._trail.pop()
        else:
            found = self.in_module(module, first)
        if found.there is False and hasattr(builtins, first):
            value = getattr(builtins, first)
            found = Result(True, (Other(f"{first} is built in", value if isinstance(value, type) else None),))
        for part in parts[1:]:
            found = self.attribute(found, part)
        return found

    # --- attributes ---

    def attribute(self, owner: Result, name: str) -> Result:
        """What ``owner.name`` stands for."""
        if not owner.objects:
            return owner
        found = combine([self._attribute(each, name) for each in owner.objects])
        if owner.there is None and found.there:
            return Result(None, found.objects, owner.why)
        return found

    def _attribute(self, owner: Object, name: str) -> Result:
        if isinstance(owner, ModuleObject):
            # Before the package is read: torch/__init__.py is long, and torch._C is what it seems.
            if self.modules.is_native(f"{owner.name}.{name}"):
                return Result(True, (ModuleObject(f"{owner.name}.{name}"),))
            standard = self._standard_class(owner.name, name)
            if standard is not None:
                return Result(True, (Other(f"it comes from {owner.name}, a standard library", standard),))
            return self.in_module(owner.name, name)
        if isinstance(owner, Code) and isinstance(owner.node, ast.ClassDef):
            return self.in_class(owner, name)
        if isinstance(owner, Code):
            return Result(None, why=f"{owner.qualname} is a function, and attributes of functions are not read")
        return Result(None, why=owner.why)

    def in_class(self, code: Code, name: str) -> Result:
        """What a name of a class stands for, inherited ones included."""
        objects: list[Object] = []
        why = ""
        for base in self.linearize(code):
            if isinstance(base, type):
                if name in vars(base):
                    objects.append(Other(f"{base.__name__}.{name} is built in"))
                    return Result(None if why else True, tuple(objects), why)
            elif isinstance(base, Opaque):
                if name.startswith("_") or not base.only_special_names:
                    why = why or base.why
            else:
                found = self._in_body(base, name)
                objects += found.objects
                if found.there:
                    return Result(None if why else True, tuple(objects), why)
                why = why or found.why
        if name in ("__module__", "__doc__"):
            return Result(True, (Other(f"{name} is made by Python"),))
        if name in _SOMETIMES_MADE:
            return Result(None, why=f"{name} is made by Python where it is needed")
        maybe = bool(why or objects)
        return Result(None if maybe else False, tuple(objects), why or ("a condition decides" if objects else ""))

    def _in_body(self, code: Code, name: str) -> Result:
        assert isinstance(code.node, ast.ClassDef)
        loaded = self.modules.load(code.module)
        scope = scope_of_class(code.node, code.module, loaded is not None and loaded.is_package)
        bindings = scope.names.get(name, ())
        if bindings == (VALUE,) and is_dataclass(code.node) and is_field_without_default(code.node, name):
            return MISSING
        found = self._bound(bindings, code.module, scope, code.qualname)
        if found.there is False and name in _slots(code.node):
            return Result(True, (Other(f"{name} is a slot"),))
        if found.there is not False:
            return found
        for decorator in code.node.decorator_list:
            parts = dotted(decorator.func if isinstance(decorator, ast.Call) else decorator)
            if parts is None or parts[-1] not in HARMLESS_DECORATORS:
                return Result(None, why=f"a decorator of {code.qualname} may add names")
            if parts[-1] in ("dataclass", "total_ordering") and name.startswith("__"):
                return Result(None, why=f"a decorator of {code.qualname} adds special methods")
        return found

    # --- base classes ---

    def linearize(self, code: Code) -> list[Base]:
        """The method resolution order of a class, as far as it can be known."""
        return self._linearize(code, ())

    def _linearize(self, code: Code, below: tuple[tuple[str, str, int], ...]) -> list[Base]:
        assert isinstance(code.node, ast.ClassDef)
        if code.key in below:
            return [code, Opaque(f"{code.qualname} derives from itself")]
        bases = [self._base(expression, code) for expression in code.node.bases]
        lines: list[list[Base]] = []
        for base in bases:
            if isinstance(base, Code):
                lines.append(self._linearize(base, (*below, code.key)))
            elif isinstance(base, type):
                lines.append(list(base.__mro__))
            else:
                lines.append([base, object])
        merged = _merge_orders([*lines, bases] if bases else [[object]])
        return [code, *merged] if merged is not None else [code, Opaque(f"the bases of {code.qualname} do not agree")]

    def _base(self, expression: ast.expr, code: Code) -> Base:
        if isinstance(expression, ast.Subscript):
            expression = expression.value
        parts = dotted(expression)
        if parts is None:
            return Opaque(f"a base of {code.qualname} is made by running code")
        name = ".".join(parts)
        found = self.expression(parts, code.module)
        if len(found.objects) == 1 and found.there:
            (only,) = found.objects
            if isinstance(only, Code) and isinstance(only.node, ast.ClassDef):
                return only
            if isinstance(only, Other) and isinstance(only.known, type):
                return only.known
        return Opaque(f"{code.qualname} derives from {name}, which has no source here", parts[-1] in _BARE_BASES)


def combine(results: Iterable[Result]) -> Result:
    """What is known where several ways are possible."""
    results = list(results)
    objects: dict[object, Object] = {}
    for result in results:
        for each in result.objects:
            objects.setdefault(each.key if isinstance(each, Code) else each, each)
    answers = {result.there for result in results}
    there = answers.pop() if len(answers) == 1 else None
    why = next((result.why for result in results if result.why), "")
    return Result(there, tuple(objects.values()), "" if there is not None else why or "a condition decides")


def _merge_orders(lines: list[list[Base]]) -> list[Base] | None:
    """The C3 merge, which is what Python does."""
    merged: list[Base] = []
    lines = [list(line) for line in lines if line]
    while lines:
        for line in lines:
            head = line[0]
            if not any(_same(head, other) for rest in lines for other in rest[1:]):
                break
        else:
            return None
        merged.append(head)
        lines = [rest[1:] if _same(rest[0], head) else rest for rest in lines]
        lines = [rest for rest in lines if rest]
    return merged


def _same(one: Base, other: Base) -> bool:
    if isinstance(one, Code) and isinstance(other, Code):
        return one.key == other.key
    return one == other


def is_dataclass(node: ast.ClassDef) -> bool:
    return dataclass_decorator(node) is not None


def dataclass_decorator(node: ast.ClassDef) -> ast.expr | None:
    """The ``@dataclass`` of a class, None where it has none."""
    for decorator in node.decorator_list:
        parts = dotted(decorator.func if isinstance(decorator, ast.Call) else decorator)
        if parts is not None and parts[-1] == "dataclass":
            return decorator
    return None


def is_field_without_default(node: ast.ClassDef, name: str) -> bool:
    """Whether ``name: T = field(default_factory=…)``: the decorator takes such a name out of the class."""
    for statement in node.body:
        if not isinstance(statement, ast.AnnAssign) or dotted(statement.target) != (name,):
            continue
        if isinstance(statement.value, ast.Call):
            parts = dotted(statement.value.func)
            keywords = {keyword.arg for keyword in statement.value.keywords}
            return parts is not None and parts[-1] == "field" and "default" not in keywords
    return False


def _slots(node: ast.ClassDef) -> tuple[str, ...]:
    decorator = dataclass_decorator(node)
    if isinstance(decorator, ast.Call) and any(
        keyword.arg == "slots" and isinstance(keyword.value, ast.Constant) and keyword.value.value is True
        for keyword in decorator.keywords
    ):
        annotated = [statement.target for statement in node.body if isinstance(statement, ast.AnnAssign)]
        return tuple(target.id for target in annotated if isinstance(target, ast.Name))
    for statement in node.body:
        if isinstance(statement, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == "__slots__" for target in statement.targets
        ):
            items = statement.value.elts if isinstance(statement.value, ast.Tuple | ast.List) else [statement.value]
            return tuple(item.value for item in items if isinstance(item, ast.Constant) and isinstance(item.value, str))
    return ()
