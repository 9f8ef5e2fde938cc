"""Scopes: which names the body of a module or of a class binds, and to what, without running it.

Statements are followed in order. Where a condition cannot be decided, both ways are, so that a name may have several
bindings; :data:`UNBOUND` among them means that it may also be missing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ..source import Definition


@dataclass(frozen=True, slots=True)
class Defined:
    """``def`` or ``class``."""

    node: Definition


@dataclass(frozen=True, slots=True)
class Imported:
    """``import module`` where ``name`` is None, else ``from module import name``."""

    module: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Alias:
    """``name = other.name``."""

    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Value:
    """Any other object."""


@dataclass(frozen=True, slots=True)
class Unbound:
    """The name is not there."""


Binding = Defined | Imported | Alias | Value | Unbound
UNBOUND = Unbound()
VALUE = Value()
Bindings = tuple[Binding, ...]
Names = dict[str, Bindings]


@dataclass(slots=True)
class Scope:
    """The names of a body.

    Attributes:
        names: what each name may be bound to.
        stars: the modules of ``from … import *``, the last one first.
        open: why there may be names that no statement binds; None where there are none.
        replaced: why no statement says what the module is: it puts another object in its place.
        exports: ``__all__``, None where it is not a plain list.
    """

    names: Names = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    open: str | None = None
    replaced: str | None = None
    exports: tuple[str, ...] | None = None


def scope_of_module(tree: ast.Module, text: str, name: str, is_package: bool) -> Scope:
    """The scope of a module.

    Args:
        tree: its syntax tree.
        text: its source, in which what makes names at run time is looked for.
        name: its dotted name.
        is_package: whether it is an ``__init__.py``.
    """
    scope = _Reader(name, is_package).read(tree.body)
    if _MAKES_NAMES.search(text):
        _find_what_makes_names(tree, scope)
    if "__getattr__" in scope.names:
        scope.open = scope.open or f"{name} answers for names by __getattr__"
    return scope


def scope_of_class(node: ast.ClassDef, module: str, is_package: bool) -> Scope:
    """The scope of a class's body; what its bases and decorators add is not in it."""
    return _Reader(module, is_package).read(node.body)


class _Reader:
    """Follows the statements of one body."""

    def __init__(self, module: str, is_package: bool) -> None:
        self._module = module
        self._package = module if is_package else module.rpartition(".")[0]
        self._is_package = is_package
        self._scope = Scope()

    def read(self, body: Sequence[ast.stmt]) -> Scope:
        self._follow(body, self._scope.names)
        return self._scope

    def _follow(self, body: Iterable[ast.stmt], names: Names) -> bool:
        """Returns whether the end of the body can be reached."""
        return all(self._statement(statement, names) for statement in body)

    def _statement(self, node: ast.stmt, names: Names) -> bool:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                if not _completes_property(node):
                    names[node.name] = (Defined(node),)
            case ast.Import():
                for alias in node.names:
                    self._import(alias, names)
            case ast.ImportFrom():
                self._import_from(node, names)
            case ast.Assign():
                for target in node.targets:
                    self._assign(target, node.value, names)
            case ast.AnnAssign(target=target, value=value) if value is not None:
                self._assign(target, value, names)
            case ast.AugAssign(target=ast.Name(id=name)):
                names[name] = (VALUE,)
                if name == "__all__":
                    self._scope.exports = None
            case ast.Delete():
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        names[target.id] = (UNBOUND,)
            case ast.If():
                return self._if(node, names)
            case ast.Try():
                return self._try(node, names)
            case ast.With() | ast.AsyncWith():
                for item in node.items:
                    if item.optional_vars is not None:
                        self._assign(item.optional_vars, None, names)
                return self._follow(node.body, names)
            case ast.For() | ast.AsyncFor() | ast.While():
                self._branches(names, [node.body, []])
                if not isinstance(node, ast.While):
                    self._branches(names, [[ast.Assign([node.target], ast.Constant(None))], []])
                return self._follow(node.orelse, names)
            case ast.Match():
                self._branches(names, [[], *(case.body for case in node.cases)])
            case ast.Raise() | ast.Return():
                return False
            case _ if type(node).__name__ == "TypeAlias" and isinstance(name := node.name, ast.Name):  # type: ignore[attr-defined]
                names[name.id] = (VALUE,)  # Python 3.12
            case _ if type(node).__name__ == "TryStar":  # Python 3.11
                return self._try(node, names)  # type: ignore[arg-type]
        return True

    # --- assignments and imports ---

    def _assign(self, target: ast.expr, value: ast.expr | None, names: Names) -> None:
        if isinstance(target, ast.Name):
            parts = dotted(value) if value is not None else None
            names[target.id] = (Alias(parts) if parts else VALUE,)
            if target.id == "__all__":
                self._scope.exports = _strings(value)
        elif isinstance(target, ast.Tuple | ast.List):
            values: Sequence[ast.expr | None] = [None] * len(target.elts)
            if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts):
                values = value.elts
            for inner, its_value in zip(target.elts, values, strict=True):
                self._assign(inner, its_value, names)
        elif isinstance(target, ast.Starred):
            self._assign(target.value, None, names)

    def _import(self, alias: ast.alias, names: Names) -> None:
        self._note_submodule(alias.name, names)
        if alias.asname is not None:
            names[alias.asname] = (Imported(alias.name),)
        else:
            root = alias.name.partition(".")[0]
            names[root] = (Imported(root),)

    def _import_from(self, node: ast.ImportFrom, names: Names) -> None:
        module = node.module or ""
        if node.level:
            parts = self._package.split(".")
            parts = parts[: len(parts) - (node.level - 1)]
            module = ".".join([*parts, module] if module else parts)
        self._note_submodule(module, names)
        for alias in node.names:
            if alias.name == "*":
                self._scope.stars.insert(0, module)
            else:
                names[alias.asname or alias.name] = (Imported(module, alias.name),)

    def _note_submodule(self, module: str, names: Names) -> None:
        """A package gets a name for each of its submodules that is imported."""
        if self._is_package and module.startswith(self._module + "."):
            name = module[len(self._module) + 1 :].partition(".")[0]
            names.setdefault(name, (Imported(f"{self._module}.{name}"),))

    # --- conditions ---

    def _if(self, node: ast.If, names: Names) -> bool:
        known = _truth(node.test)
        if known is not None:
            return self._follow(node.body if known else node.orelse, names)
        return self._branches(names, [node.body, node.orelse])

    def _try(self, node: ast.Try, names: Names) -> bool:
        # Where an exception strikes is not known: a handler starts from any point of the body.
        partly = dict(names)
        self._branches(partly, [node.body, []])
        reached = dict(names)
        ways = [reached] if self._follow([*node.body, *node.orelse], reached) else []
        for handler in node.handlers:
            handled = dict(partly)
            if handler.name is not None:
                handled.pop(handler.name, None)
            if self._follow(handler.body, handled):
                ways.append(handled)
        _merge(names, ways or [partly])
        return self._follow(node.finalbody, names) and bool(ways)

    def _branches(self, names: Names, bodies: Sequence[Sequence[ast.stmt]]) -> bool:
        ways = []
        for body in bodies:
            branch = dict(names)
            if self._follow(body, branch):
                ways.append(branch)
        if ways:
            _merge(names, ways)
        return bool(ways)


def _merge(names: Names, ways: Sequence[Names]) -> None:
    if len(ways) == 1:
        names.clear()
        names.update(ways[0])
        return
    merged = {
        name: tuple(dict.fromkeys(binding for way in ways for binding in way.get(name, (UNBOUND,))))
        for name in dict.fromkeys(name for way in ways for name in way)
    }
    names.clear()
    names.update(merged)


def dotted(node: ast.expr | None) -> tuple[str, ...] | None:
    """The parts of ``a.b.c``, None for any other expression."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return (node.id, *reversed(parts))


def _truth(test: ast.expr) -> bool | None:
    """What a condition is known to be: type checkers' code never runs."""
    if isinstance(test, ast.Constant):
        return bool(test.value)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = _truth(test.operand)
        return None if inner is None else not inner
    parts = dotted(test)
    return False if parts is not None and parts[-1] == "TYPE_CHECKING" else None


def _completes_property(node: Definition) -> bool:
    """``@name.setter def name``: the property stays what its getter made it."""
    for decorator in node.decorator_list:
        parts = dotted(decorator)
        if parts in ((node.name, "setter"), (node.name, "deleter"), (node.name, "getter")):
            return True
    return False


def _strings(node: ast.expr | None) -> tuple[str, ...] | None:
    if not isinstance(node, ast.List | ast.Tuple):
        return None
    values = [item.value for item in node.elts if isinstance(item, ast.Constant)]
    strings = [value for value in values if isinstance(value, str)]
    return tuple(strings) if len(strings) == len(node.elts) else None


# --- what makes names at run time ----------------------------------------------------------------------------------

# The whole tree is walked only where the text has one of these.
_HARMLESS = frozenset({"getattr", "hasattr", "setattr", "delattr", "dir", "vars"})  # setattr adds; that is `open`
_MAKES_NAMES = re.compile(r"\b(?:globals|locals|vars|exec)\(|\bglobal\s|\bmodules\s*\[\s*__name__")


def _find_what_makes_names(tree: ast.Module, scope: Scope) -> None:
    """Walk the whole tree once, and note in the scope what makes names that no statement binds."""
    reading: set[int] = set()
    waiting: list[tuple[ast.AST, bool]] = [(tree, False)]
    while waiting:
        node, in_function = waiting.pop()
        match node:
            case ast.Subscript(ctx=ast.Load()):
                reading.add(id(node.value))
                _note_own_module(node, scope)
            case ast.Subscript():
                _note_own_module(node, scope)
            case ast.Attribute(attr="get" | "items" | "keys" | "values" | "copy"):
                reading.add(id(node.value))
            case ast.Global():
                for name in node.names:
                    scope.names[name] = (*scope.names.get(name, (UNBOUND,)), VALUE)
            case ast.Assign() if any(map(_is_own_module, node.targets)):
                scope.replaced = "it puts another object in its place in sys.modules"
            case ast.Call():
                _note_call(node, scope, in_function, id(node) in reading)
        inside = in_function or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for name in node._fields:
            child = getattr(node, name, None)
            if isinstance(child, ast.AST):
                waiting.append((child, inside))
            elif isinstance(child, list):
                waiting.extend((item, inside) for item in child if isinstance(item, ast.AST))


def _note_call(node: ast.Call, scope: Scope, in_function: bool, is_read: bool) -> None:
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    if name == "globals" and not is_read:
        scope.open = "names are made with globals()"
    elif name in ("vars", "locals", "exec") and not in_function and len(node.args) <= (name == "exec"):
        # In a function these make local names; with a namespace, names of that.
        scope.open = scope.open or f"names are made with {name}()"
    if name not in _HARMLESS and any(map(_is_own_module, node.args)):
        scope.replaced = "it hands itself to a function that may change it"


def _note_own_module(node: ast.Subscript, scope: Scope) -> None:
    if _is_own_module(node):
        scope.open = scope.open or "it looks itself up in sys.modules"


def _is_own_module(node: ast.AST) -> bool:
    if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Name):
        return False
    parts = dotted(node.value)
    return parts is not None and parts[-1] == "modules" and node.slice.id == "__name__"
