"""Builds the scopes and bindings of a module from the standard library's syntax tree."""

from __future__ import annotations

import ast
import gc
import sys
from collections.abc import Callable
from typing import Any

from compat_patches.lint.scopes import Binding, Scope, Tree, last_name

_DEPTH = 5_000

# Fields that hold an operator or a context, which has no names in it.
_NO_CHILDREN = frozenset({"ctx", "kind", "op", "ops", "type_comment"})


def build(source: str, package: str = "") -> Tree:
    """Parse `source` and return its tree.

    Args:
        package: the dotted name of the package that the module is in, for its relative imports.

    Raises:
        SyntaxError: it does not parse; also for null bytes and for nesting that is too deep.
    """
    # A syntax tree is a hundred thousand objects at once and no garbage: collecting takes as long as parsing.
    collecting = gc.isenabled()
    gc.disable()
    limit = sys.getrecursionlimit()
    try:
        module = ast.parse(source)
        tree = Tree(module, Scope("module", None))
        # Each level of code takes two calls here, and a sum nests as deeply as it is long. The parser itself
        # would take a higher limit as leave to overflow its stack.
        sys.setrecursionlimit(max(limit, _DEPTH))
        _Builder(tree, package).body(module, module.body, tree.scope)
    except (RecursionError, MemoryError) as error:
        raise SyntaxError("it is nested too deeply") from error
    except ValueError as error:
        raise SyntaxError(str(error)) from error
    finally:
        sys.setrecursionlimit(limit)
        if collecting:
            gc.enable()
    return tree


class _Builder:
    def __init__(self, tree: Tree, package: str) -> None:
        self.tree = tree
        self.parents = tree.parents
        self.handlers: dict[type[ast.AST], Callable[[Any, Scope], None]] = {}
        self.package = package.split(".") if package else []
        self.fallback = 0

    def body(self, parent: ast.AST, statements: list[ast.stmt], scope: Scope) -> None:
        for statement in statements:
            self.visit(statement, parent, scope)

    def visit(self, node: ast.AST, parent: ast.AST, scope: Scope) -> None:
        self.parents[id(node)] = parent
        kind = type(node)
        try:
            handler = self.handlers[kind]
        except KeyError:
            handler = self.handlers[kind] = getattr(self, f"_{kind.__name__}", self.children)
        handler(node, scope)

    def children(self, node: ast.AST, scope: Scope) -> None:
        # As ast.iter_child_nodes, which would take half of the time that a whole module takes.
        for name in node._fields:
            if name in _NO_CHILDREN:
                continue
            value = getattr(node, name, None)
            if isinstance(value, ast.AST):
                self.visit(value, node, scope)
            elif isinstance(value, list):
                for item in value:
                    if isinstance(item, ast.AST):
                        self.visit(item, node, scope)

    def visit_all(self, nodes: list[ast.expr], parent: ast.AST, scope: Scope) -> None:
        for node in nodes:
            self.visit(node, parent, scope)

    def bind(
        self,
        scope: Scope,
        name: str,
        kind: str,
        statement: ast.AST,
        qualified: str | None = None,
        value: ast.expr | None = None,
        alias: ast.alias | None = None,
    ) -> None:
        while scope.kind == "comprehension" and kind == "assign" and scope.parent is not None:
            scope = scope.parent
        target = scope.redirected.get(name) or scope
        nothing = isinstance(value, ast.Constant) and value.value is None
        binding = Binding(
            name,
            kind,
            target,
            statement,
            qualified,
            value,
            alias,
            fallback=self.fallback > 0 or nothing,
            elsewhere=target is not scope,
        )
        target.bindings.setdefault(name, []).append(binding)
        if kind == "import":
            self.tree.imports.append(binding)

    # -- statements that bind ----------------------------------------------------------------------------

    def _Import(self, node: ast.Import, scope: Scope) -> None:
        for alias in node.names:
            self.tree.parents[id(alias)] = node
            if alias.asname:
                self.bind(scope, alias.asname, "import", node, alias.name, alias=alias)
            else:
                top = alias.name.split(".")[0]
                self.bind(scope, top, "import", node, top, alias=alias)

    def _ImportFrom(self, node: ast.ImportFrom, scope: Scope) -> None:
        # Beyond the topmost package there is nothing to import from; what is unknown keeps its dots.
        above = len(self.package) - node.level + 1
        known = node.level > 0 and 0 < above <= len(self.package)
        base = self.package[:above] if known else ["." * node.level] if node.level else []
        module = ".".join([*base, *([node.module] if node.module else [])])
        for alias in node.names:
            self.tree.parents[id(alias)] = node
            if alias.name == "*":
                self.tree.star_imports.append(node)
            else:
                qualified = f"{module}.{alias.name}"
                self.bind(scope, alias.asname or alias.name, "import", node, qualified, alias=alias)

    def _Assign(self, node: ast.Assign, scope: Scope) -> None:
        for target in node.targets:
            if isinstance(target, ast.Name):
                self.tree.parents[id(target)] = node
                self.bind(scope, target.id, "assign", node, value=node.value)
            else:
                self.visit(target, node, scope)
        self.visit(node.value, node, scope)

    def _AnnAssign(self, node: ast.AnnAssign, scope: Scope) -> None:
        self.annotation(node.annotation, node, scope)
        if isinstance(node.target, ast.Name):
            self.tree.parents[id(node.target)] = node
            if node.value is not None:
                self.bind(scope, node.target.id, "assign", node, value=node.value)
        else:
            self.visit(node.target, node, scope)
        if node.value is not None:
            self.visit(node.value, node, scope)

    def _NamedExpr(self, node: ast.NamedExpr, scope: Scope) -> None:
        self.tree.parents[id(node.target)] = node
        self.bind(scope, node.target.id, "assign", node, value=node.value)
        self.visit(node.value, node, scope)

    def _For(self, node: ast.For | ast.AsyncFor, scope: Scope) -> None:
        if isinstance(node.target, ast.Name):
            self.tree.parents[id(node.target)] = node
            self.bind(scope, node.target.id, "loop", node, value=node.iter)
        else:
            self.visit(node.target, node, scope)
        self.visit(node.iter, node, scope)
        self.body(node, [*node.body, *node.orelse], scope)

    _AsyncFor = _For

    def _Global(self, node: ast.Global, scope: Scope) -> None:
        if scope.parent is None:
            return
        for name in node.names:
            scope.redirected[name] = scope.module()

    def _Nonlocal(self, node: ast.Nonlocal, scope: Scope) -> None:
        for name in node.names:
            scope.redirected[name] = scope.enclosing_function()

    def _ExceptHandler(self, node: ast.ExceptHandler, scope: Scope) -> None:
        if node.type is not None:
            self.visit(node.type, node, scope)
        if node.name:
            self.bind(scope, node.name, "other", node)
        self.fallback += 1
        self.body(node, node.body, scope)
        self.fallback -= 1

    def _If(self, node: ast.If, scope: Scope) -> None:
        self.visit(node.test, node, scope)
        self.body(node, node.body, scope)
        checking = last_name(node.test) == "TYPE_CHECKING"
        self.fallback += checking
        self.body(node, node.orelse, scope)
        self.fallback -= checking

    def _MatchAs(self, node: ast.MatchAs | ast.MatchStar, scope: Scope) -> None:
        if node.name:
            self.bind(scope, node.name, "other", node)
        self.children(node, scope)

    _MatchStar = _MatchAs

    def _MatchMapping(self, node: ast.MatchMapping, scope: Scope) -> None:
        if node.rest:
            self.bind(scope, node.rest, "other", node)
        self.children(node, scope)

    # -- new scopes --------------------------------------------------------------------------------------

    def _FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> None:
        self.bind(scope, node.name, "other", node)
        self.visit_all(node.decorator_list, node, scope)
        inner = Scope("function", scope)
        self.parameters(node, node.args, scope, inner)
        if node.returns is not None:
            self.annotation(node.returns, node, scope)
        self.body(node, node.body, inner)

    _AsyncFunctionDef = _FunctionDef

    def _Lambda(self, node: ast.Lambda, scope: Scope) -> None:
        inner = Scope("function", scope)
        self.parameters(node, node.args, scope, inner)
        self.visit(node.body, node, inner)

    def parameters(self, owner: ast.AST, arguments: ast.arguments, scope: Scope, inner: Scope) -> None:
        self.tree.parents[id(arguments)] = owner
        defaults = [default for default in arguments.kw_defaults if default is not None]
        self.visit_all([*arguments.defaults, *defaults], arguments, scope)
        stars = [argument for argument in (arguments.vararg, arguments.kwarg) if argument is not None]
        for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *stars]:
            self.tree.parents[id(argument)] = arguments
            kind = "other" if argument in stars else "parameter"
            self.bind(inner, argument.arg, kind, argument, value=argument.annotation)
            if argument.annotation is not None:
                self.annotation(argument.annotation, argument, scope)

    def _ClassDef(self, node: ast.ClassDef, scope: Scope) -> None:
        self.bind(scope, node.name, "other", node)
        self.visit_all([*node.decorator_list, *node.bases], node, scope)
        for keyword in node.keywords:
            self.visit(keyword, node, scope)
        self.body(node, node.body, Scope("class", scope))

    def comprehension(self, node: ast.expr, scope: Scope) -> None:
        inner = Scope("comprehension", scope)
        for number, generator in enumerate(node.generators):  # type: ignore[attr-defined]  # a comprehension
            self.tree.parents[id(generator)] = node
            self.visit(generator.iter, generator, inner if number else scope)
            if isinstance(generator.target, ast.Name):
                self.bind(inner, generator.target.id, "loop", generator, value=generator.iter)
            else:
                self.visit(generator.target, generator, inner)
            self.visit_all(generator.ifs, generator, inner)
        values = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]  # type: ignore[attr-defined]
        self.visit_all(values, node, inner)

    _ListComp = _SetComp = _DictComp = _GeneratorExp = comprehension

    # -- what is read ------------------------------------------------------------------------------------

    def _Name(self, node: ast.Name, scope: Scope) -> None:
        if isinstance(node.ctx, ast.Load):
            self.tree.names.append((node, scope))
        elif isinstance(node.ctx, ast.Store):
            self.bind(scope, node.id, "other", node)

    def _Call(self, node: ast.Call, scope: Scope) -> None:
        self.tree.calls.append((node, scope))
        self.children(node, scope)
        if last_name(node.func) == "cast" and node.args:
            self.texts_of(node.args[0], scope)

    def annotation(self, node: ast.expr, parent: ast.AST, scope: Scope) -> None:
        self.visit(node, parent, scope)
        self.texts_of(node, scope)

    def texts_of(self, node: ast.expr, scope: Scope) -> None:
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str):
                self.tree.texts.append((node, scope))
            return
        if isinstance(node, ast.Subscript):
            special = last_name(node.value)
            if special == "Literal":
                return
            if special == "Annotated" and isinstance(node.slice, ast.Tuple):
                self.texts_of(node.slice.elts[0], scope)
                return
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.texts_of(child, scope)
