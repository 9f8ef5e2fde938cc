"""What the names of a module mean: every use of a name of the table, however it was reached.

Goes beyond what ruff resolves: `from torch.cuda import Event as E` and then `E(...)`, `cuda = torch.cuda`,
`getattr(torch, "cuda")`, `torch = pytest.importorskip("torch")`, `torch = None` where the import failed,
`global torch`, and the texts that mock.patch takes. A name that is bound to something unknown as well means
nothing.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from compat_patches.lint.building import build
from compat_patches.lint.resolving import MODULE
from compat_patches.lint.scopes import Binding, Scope, Tree, last_name
from compat_patches.lint.table import Table

# Functions that give the module that their text names.
_IMPORTERS = frozenset({"import_module", "importorskip", "__import__", "LazyLoader"})
# Functions that put something in the place of what their text, or their object and text, name.
_PATCHERS = frozenset({"patch", "object", "setattr", "delattr", "multiple"})
_PROBES = frozenset({"hasattr"})
_MAX_DEPTH = 20
LINE_END = re.compile(r"\r\n|\r|\n")


@dataclass(eq=False)
class Use:
    """One place that means a name of the table, or the module torch.cuda as a whole.

    Attributes:
        name: the dotted name, as the table spells it; MODULE for the module itself.
        node: the expression, the part of an import, or the text that names it.
        row, column, end_row, end_column: rows from 1, columns from 0 in characters, the end exclusive.
        via: "direct" (an attribute reached through imports alone), "from" (a name that was imported from
            torch.cuda), "import" (that import itself), "variable", "either" (it may be something else as
            well), "getattr", "patch" (something is put in its place).
        binding: what binds the name at the beginning of the expression.
        scope: where it stands.
        text: the string that holds it, for a quoted annotation.
    """

    name: str
    node: ast.AST
    row: int
    column: int
    end_row: int
    end_column: int
    via: str
    binding: Binding | None
    scope: Scope
    text: ast.Constant | None = None


class Analysis:
    """The uses in one module.

    Attributes:
        tree: the syntax tree with its scopes.
        uses: in order of the source.
        quoted: each name in a quoted annotation, with its scope.
    """

    def __init__(self, source: str, table: Table, package: str = "") -> None:
        """Parse and resolve `source`.

        Args:
            package: the dotted name of the package that the module is in, for its relative imports.

        Raises:
            SyntaxError: it does not parse.
        """
        self.table = table
        self.source = source
        self.lines = LINE_END.split(source)
        self.tree: Tree = build(source, package)
        self.uses: list[Use] = []
        self.quoted: list[tuple[ast.Name, Scope]] = []
        self._text_of: dict[int, ast.Constant] = {}
        self._shared = frozenset({MODULE}) | table.prefixes
        for text, scope in self.tree.texts:
            self._quoted_annotation(text, scope)
        for name, scope in [*self.tree.names, *self.quoted]:
            self._name(name, scope)
        for call, scope in self.tree.calls:
            self._call(call, scope)
        for binding in self.tree.imports:
            self._imported(binding)
        for statement in self.tree.star_imports:
            if statement.module in (MODULE, f"{MODULE}.memory", f"{MODULE}.streams"):
                self._add(MODULE, statement, self.tree.scope, "import", None)
        self.uses.sort(key=lambda use: (use.row, use.column, use.end_row, use.end_column))

    # -- what a name means -------------------------------------------------------------------------------

    def meanings(self, name: str, scope: Scope) -> frozenset[str]:
        """Return the dotted names that `name` may mean in `scope`; empty where that is not known."""
        return self._meanings(name, scope, _MAX_DEPTH)

    def value_of(self, node: ast.expr, scope: Scope) -> frozenset[str]:
        """Return the dotted names that an expression may mean in `scope`; empty where that is not known."""
        return self._value(node, scope, _MAX_DEPTH)

    def _meanings(self, name: str, scope: Scope, depth: int) -> frozenset[str]:
        bindings = scope.lookup(name)
        meant = [binding for binding in bindings if not binding.fallback] or bindings
        found: set[str] = set()
        for binding in meant:
            if binding.kind == "import" and binding.qualified is not None:
                found.add(binding.qualified)
            elif binding.kind == "assign" and binding.value is not None:
                values = self._value(binding.value, binding.scope, depth - 1)
                if not values:
                    return frozenset()
                found |= values
            else:
                return frozenset()
        return frozenset(found)

    def _value(self, node: ast.expr, scope: Scope, depth: int) -> frozenset[str]:
        if depth <= 0:
            return frozenset()
        if isinstance(node, ast.Name):
            return self._meanings(node.id, scope, depth)
        if isinstance(node, ast.Attribute):
            return frozenset(f"{value}.{node.attr}" for value in self._value(node.value, scope, depth - 1))
        if isinstance(node, ast.NamedExpr):
            return self._value(node.value, scope, depth - 1)
        if isinstance(node, ast.IfExp):
            return self._value(node.body, scope, depth - 1) | self._value(node.orelse, scope, depth - 1)
        if isinstance(node, ast.Call):
            taken = _getattr_of(node)
            if taken is not None:
                return frozenset(f"{value}.{taken[1]}" for value in self._value(taken[0], scope, depth - 1))
            module = _imported_by_call(node)
            if module is not None:
                return frozenset({module})
        return frozenset()

    # -- finding uses ------------------------------------------------------------------------------------

    def _name(self, node: ast.Name, scope: Scope) -> None:
        bindings = scope.lookup(node.id)
        if id(node) not in self._text_of and all(_comes_later(binding, node, scope) for binding in bindings):
            return
        meanings = self.meanings(node.id, scope)
        relevant = meanings & self._shared
        if not relevant:
            return
        meant = [binding for binding in bindings if not binding.fallback] or bindings
        via = "direct" if all(binding.kind == "import" for binding in meant) else "variable"
        if len(meanings) > 1 or any(self._differs(other, meanings) for other in bindings if other.fallback):
            via = "either"
        for meaning in sorted(relevant):
            self._climb(node, meaning, scope, via, meant[0])

    def _differs(self, fallback: Binding, meanings: frozenset[str]) -> bool:
        """Return whether a fallback gives a name another meaning, and not the same or None."""
        if isinstance(fallback.value, ast.Constant) and fallback.value.value is None:
            return False
        if fallback.kind == "import":
            return fallback.qualified not in meanings
        if fallback.kind != "assign" or fallback.value is None:
            return True
        return self.value_of(fallback.value, fallback.scope) != meanings

    def _call(self, node: ast.Call, scope: Scope) -> None:
        module = _imported_by_call(node)
        if module is not None and module in self._shared:
            self._climb(node, module, scope, "getattr", None)
        if last_name(node.func) not in _PATCHERS:
            return
        targets = [*node.args, *(keyword.value for keyword in node.keywords if keyword.arg == "target")]
        if not targets:
            return
        first = targets[0]
        if isinstance(first, ast.Constant) and isinstance(first.value, str):
            named = first.value
            if named in self.table.by_name:
                self._add(named, first, scope, "patch", None)
            return
        second = node.args[1] if len(node.args) > 1 else None
        if isinstance(second, ast.Constant) and isinstance(second.value, str):
            for value in self.value_of(first, scope):
                named = f"{value}.{second.value}"
                if named in self.table.by_name:
                    self._add(named, second, scope, "patch", None)

    def _climb(self, node: ast.expr, meaning: str, scope: Scope, via: str, binding: Binding | None) -> None:
        """Follow the attributes upwards from `node` for as long as they may lead to a name of the table."""
        best: tuple[str, ast.expr, str] | None = None
        if meaning in self.table.by_name:
            best = (meaning, node, "from" if via == "direct" else via)
        while meaning in self._shared:
            step = self._step(node)
            if step is None:
                if meaning == MODULE and best is None:
                    self._whole_module(node, scope, via, binding)
                break
            node, attribute, through_getattr = step
            via = "getattr" if through_getattr else via
            meaning = f"{meaning}.{attribute}"
            if meaning in self.table.by_name:
                best = (meaning, node, via)
        if best is not None:
            name, found, via = best
            if isinstance(found, ast.Attribute) and not isinstance(found.ctx, ast.Load):
                via = "patch"
            self._add(name, found, scope, via, binding)

    def _step(self, node: ast.expr) -> tuple[ast.expr, str, bool] | None:
        parent = self.tree.parent(node)
        if isinstance(parent, ast.Attribute) and parent.value is node:
            return parent, parent.attr, False
        if isinstance(parent, ast.Call):
            taken = _getattr_of(parent)
            if taken is not None and taken[0] is node:
                return parent, taken[1], True
        return None

    def _whole_module(self, node: ast.expr, scope: Scope, via: str, binding: Binding | None) -> None:
        parent = self.tree.parent(node)
        if isinstance(parent, (ast.Assign, ast.AnnAssign, ast.NamedExpr)):
            targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
            # What is reached through a plain variable is found where it is used.
            if all(isinstance(target, ast.Name) for target in targets):
                return
        if isinstance(parent, ast.Call) and node in parent.args:
            function = last_name(parent.func)
            if function in _PROBES:
                return
            if function in _PATCHERS and len(parent.args) > 1 and isinstance(parent.args[1], ast.Constant):
                return
        if isinstance(parent, ast.Expr):
            return
        self._add(MODULE, node, scope, via, binding)

    def _imported(self, binding: Binding) -> None:
        if binding.qualified in self.table.by_name and binding.alias is not None:
            self._add(binding.qualified, binding.alias, binding.scope, "import", binding)

    def _quoted_annotation(self, text: ast.Constant, scope: Scope) -> None:
        """Parse an annotation in quotes, and put its nodes where its text stands in the file."""
        if text.end_lineno != text.lineno or not isinstance(text.value, str):
            return
        line = self.lines[text.lineno - 1].encode()
        literal = line[text.col_offset : text.end_col_offset]
        value = text.value.encode()
        # A prefix, an escape or a joined literal shifts the columns: only a plain one is followed.
        if literal[1:-1] != value or literal[:1] not in (b'"', b"'"):
            return
        try:
            parsed = ast.parse(text.value, mode="eval")
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return
        for node in ast.walk(parsed):
            for child in ast.iter_child_nodes(node):
                self.tree.parents[id(child)] = node
            if isinstance(node, ast.expr):
                shift = text.col_offset + 1
                node.lineno = node.end_lineno = text.lineno
                node.col_offset += shift
                node.end_col_offset = (node.end_col_offset or 0) + shift
                self._text_of[id(node)] = text
            if isinstance(node, ast.Name):
                self.quoted.append((node, scope))
        self.tree.parents[id(parsed.body)] = text

    def _add(self, name: str, node: ast.AST, scope: Scope, via: str, binding: Binding | None) -> None:
        row, column, end_row, end_column = self.position(node)
        text = self._text_of.get(id(node))
        self.uses.append(Use(name, node, row, column, end_row, end_column, via, binding, scope, text))

    def position(self, node: ast.AST) -> tuple[int, int, int, int]:
        """Return where `node` stands: rows from 1, columns from 0 in characters, the end exclusive."""
        row, end_row = node.lineno, node.end_lineno  # type: ignore[attr-defined]  # nodes with a place
        return (
            row,
            self._characters(row, node.col_offset),  # type: ignore[attr-defined]  # nodes with a place
            end_row,
            self._characters(end_row, node.end_col_offset),  # type: ignore[attr-defined]  # nodes with a place
        )

    def _characters(self, row: int, offset: int) -> int:
        line = self.lines[row - 1]
        return offset if line.isascii() else len(line.encode()[:offset].decode(errors="replace"))


def _comes_later(binding: Binding, node: ast.Name, scope: Scope) -> bool:
    """Return whether a name is read before a binding can have run. What a function reads, it reads later."""
    current: Scope | None = scope
    while current is not None and current is not binding.scope:
        if current.kind == "function":
            return False
        current = current.parent
    return getattr(binding.statement, "lineno", 0) > node.lineno


def _getattr_of(node: ast.Call) -> tuple[ast.expr, str] | None:
    """Return the object and the name of a getattr whose name is known."""
    if isinstance(node.func, ast.Name) and node.func.id == "getattr" and len(node.args) in (2, 3):
        name = node.args[1]
        if isinstance(name, ast.Constant) and isinstance(name.value, str) and name.value.isidentifier():
            return node.args[0], name.value
    return None


def _imported_by_call(node: ast.Call) -> str | None:
    """Return the module that a call like importlib.import_module("torch.cuda") gives."""
    function = last_name(node.func)
    if function not in _IMPORTERS or not node.args:
        return None
    named = node.args[-1 if function == "LazyLoader" else 0]
    if not isinstance(named, ast.Constant) or not isinstance(named.value, str):
        return None
    return named.value.split(".")[0] if function == "__import__" else named.value
