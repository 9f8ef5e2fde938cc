"""Scopes and bindings of a module: records, and how a name is looked up in them.

Only what ruff does not follow needs them: names bound by assignment (`cuda = torch.cuda`), names taken out of a
module by `from torch.cuda import Event`, `torch = None` where torch is missing. `safety` asks them, too, whether a
name means torch at the place where a rewrite would write it. `building` makes them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(eq=False)
class Binding:
    """One place that gives a name its value.

    Attributes:
        kind: "import", "assign", "loop", "parameter" or "other".
        qualified: for an import, the dotted name of what is imported.
        value: for an assignment the expression, for a loop what is iterated, for a parameter its annotation.
        statement: the statement, or the parameter.
        alias: for an import, its part of the statement.
        fallback: it stands where an import failed, or where a type checker does not go, so that the other
            bindings say what the name is meant to be.
        elsewhere: a `global` or `nonlocal` puts the name into another scope than the statement's own.
    """

    name: str
    kind: str
    scope: Scope
    statement: ast.AST
    qualified: str | None = None
    value: ast.expr | None = None
    alias: ast.alias | None = None
    fallback: bool = False
    elsewhere: bool = False


@dataclass(eq=False)
class Scope:
    """A module, class, function or comprehension, and the names that are bound in it."""

    kind: str
    parent: Scope | None
    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    redirected: dict[str, Scope | None] = field(default_factory=dict)

    def module(self) -> Scope:
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope

    def enclosing_function(self) -> Scope | None:
        scope = self.parent
        while scope is not None and scope.kind == "class":
            scope = scope.parent
        return scope

    def lookup(self, name: str) -> list[Binding]:
        """Return the bindings that `name` may have when it is read here; none for a builtin or an unknown."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.redirected:
                target = scope.redirected[name]
                return target.lookup(name) if target is not None else []
            if name in scope.bindings:
                return scope.bindings[name]
            scope = scope.enclosing_function()
        return []


@dataclass(eq=False)
class Tree:
    """A parsed module with its scopes.

    Attributes:
        names: each name that is read, with its scope, in order of the source.
        calls: each call, with its scope.
        texts: each string constant in an annotation, with its scope.
        parents: each node's parent, by the node's id.
        imports: each name that is bound by an import.
        star_imports: the `from module import *` statements.
    """

    module: ast.Module
    scope: Scope
    names: list[tuple[ast.Name, Scope]] = field(default_factory=list)
    calls: list[tuple[ast.Call, Scope]] = field(default_factory=list)
    texts: list[tuple[ast.Constant, Scope]] = field(default_factory=list)
    parents: dict[int, ast.AST] = field(default_factory=dict)
    imports: list[Binding] = field(default_factory=list)
    star_imports: list[ast.ImportFrom] = field(default_factory=list)

    def parent(self, node: ast.AST) -> ast.AST | None:
        return self.parents.get(id(node))

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        current = self.parent(node)
        while current is not None:
            yield current
            current = self.parent(current)


def last_name(node: ast.expr) -> str | None:
    """Return the `c` of `a.b.c` or of `c`, and None for any other expression."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None
