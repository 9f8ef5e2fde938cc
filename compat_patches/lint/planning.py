"""What `fix` does to one file: the verdict on each finding, and the edits that follow, imports included."""

from __future__ import annotations

import ast
import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from compat_patches.lint.analysis import Analysis, Use
from compat_patches.lint.resolving import MODULE
from compat_patches.lint.safety import Refused, Rewrite, decide
from compat_patches.lint.scopes import Binding, Scope

Position = tuple[int, int, int, int]

_TORCH = "torch"
# What only a torch.cuda.Event has; a file that reads one needs its events to stay what they are.
_EVENT_INTERNALS = frozenset({"cuda_event", "_as_parameter_", "ipc_handle"})
_NOT_SEEN = "what it means is known, but not how it comes to mean it"
_REFUSED_EVENT = "line {row} reads {attribute}, which a torch.Event does not have"


@dataclass(frozen=True)
class Verdict:
    """Whether one finding is rewritten; `reason` says why not, and is empty if it is."""

    position: Position
    name: str
    reason: str

    @property
    def rewritten(self) -> bool:
        return not self.reason


@dataclass
class ImportEdit:
    """What happens to one import statement: which of its names go, and which imports come before it."""

    drop: set[int] = field(default_factory=set)
    add: list[str] = field(default_factory=list)
    only_statement: bool = False

    def import_from(self, module: str, name: str) -> None:
        """Add a name to the imports that come before, to the statement for its module if there is one."""
        start = f"from {module} import "
        for number, line in enumerate(self.add):
            if line.startswith(start):
                self.add[number] = f"{line}, {name}"
                return
        self.add.append(start + name)


@dataclass
class Plan:
    """The edits of a file, each by the position of what it changes.

    Attributes:
        verdicts: one for each finding, in order of the source.
        names: an expression to the dotted name that replaces it.
        arguments: a call to what happens to each of its arguments.
        texts: a string literal to the (start, end, name) that are replaced in it, columns in the file.
        imports: an import statement to what happens to it.
    """

    verdicts: list[Verdict]
    names: dict[Position, str] = field(default_factory=dict)
    arguments: dict[Position, list[tuple[str, str]]] = field(default_factory=dict)
    texts: dict[Position, list[tuple[int, int, str]]] = field(default_factory=dict)
    imports: dict[Position, ImportEdit] = field(default_factory=dict)

    @property
    def edits(self) -> int:
        return len(self.names) + len(self.arguments) + len(self.texts) + len(self.imports)


def plan(analysis: Analysis, path: str, wanted: Mapping[Position, str]) -> Plan:
    """Decide on the findings of a module and plan its edits.

    Args:
        wanted: where the findings stand that are to be decided on, and the names that were found there. What
            a comment allows is not among them.
    """
    return _Planner(analysis, path, wanted).plan()


class _Planner:
    def __init__(self, analysis: Analysis, path: str, wanted: Mapping[Position, str]) -> None:
        self.analysis = analysis
        self.wanted = wanted
        self.is_package = os.path.basename(path) == "__init__.py"
        self.uses = [use for use in analysis.uses if _position(use) in wanted and use.name != MODULE]
        self.rewrites: dict[Use, Rewrite] = {}
        self.refused: dict[Use, str] = {}
        self.codes: dict[Use, str] = {}
        self.edits: dict[int, tuple[ast.stmt, ImportEdit]] = {}
        self.exported = _exported(analysis.tree.module)

    def plan(self) -> Plan:
        replaced = {self._canonical(use): use.row for use in self.analysis.uses if use.via == "patch"}
        for use in self.uses:
            if use.via == "import":
                continue
            if self._canonical(use) in replaced:
                row = replaced[self._canonical(use)]
                self.refused[use] = f"line {row} puts something else in its place, which would be passed by"
                continue
            try:
                self.rewrites[use] = decide(use, self.analysis)
            except Refused as refusal:
                self.refused[use] = str(refusal)
        self._keep_events_alike()
        renamed = self._imported_names()
        for use in list(self.rewrites):
            if use not in renamed and use.via != "import":
                self._name_in_place(use)
        self._imported_modules()
        return self._edits()

    def _canonical(self, use: Use) -> str:
        return self.analysis.table.by_name[use.name].name if use.name != MODULE else MODULE

    # -- events ------------------------------------------------------------------------------------------

    def _keep_events_alike(self) -> None:
        """Refuse events that would meet an event of the other class, or somebody who needs the CUDA one."""
        makers = [use for use, rewrite in self.rewrites.items() if self._is_event(use) and rewrite.call is not None]
        if not makers:
            return
        attributes = {
            node.attr: node.lineno for node in ast.walk(self.analysis.tree.module) if isinstance(node, ast.Attribute)
        }
        internals = sorted(_EVENT_INTERNALS & attributes.keys())
        if internals:
            reason = _REFUSED_EVENT.format(row=attributes[internals[0]], attribute=internals[0])
            for use in makers:
                self._refuse(use, reason)
            return
        staying = [
            use
            for use in self.analysis.uses
            if use.name != MODULE
            and use.via not in ("import", "patch")
            and self._is_event(use)
            and use not in self.rewrites
        ]
        if staying and "elapsed_time" in attributes:
            row = staying[0].row
            for use in makers:
                if self.rewrites[use].timing:
                    self._refuse(
                        use,
                        f"line {row} stays a torch.cuda.Event, and elapsed_time wants two of one class "
                        "without checking for it",
                    )

    def _is_event(self, use: Use) -> bool:
        return self.analysis.table.by_name[use.name].rewrite == "event"

    def _refuse(self, use: Use, reason: str) -> None:
        self.rewrites.pop(use, None)
        self.refused[use] = reason

    # -- `from torch.cuda import Event` ------------------------------------------------------------------

    def _imported_names(self) -> set[Use]:
        """Decide on imports of a name itself, and return the uses that keep their local name."""
        keeping: set[Use] = set()
        for use in self.uses:
            if use.via != "import" or use.binding is None:
                continue
            binding = use.binding
            users = [other for other in self.analysis.uses if other.via == "from" and other.binding is binding]
            reason = self._why_import_stays(use, binding, users)
            if reason:
                self.refused[use] = reason
                continue
            parent, _, leaf = self._replacement(use).rpartition(".")
            local = binding.name
            edit = self._edit(binding)
            edit.import_from(parent, leaf if local == leaf else f"{leaf} as {local}")
            edit.drop.add(self._alias_index(binding))
            self.rewrites[use] = Rewrite()
            keeping.update(users)
        return keeping

    def _why_import_stays(self, use: Use, binding: Binding, users: list[Use]) -> str:
        migration = self.analysis.table.by_name[use.name]
        if migration.rewrite == "never" or not self._replacement(use).startswith(f"{_TORCH}."):
            return migration.differs or "it is to be rewritten by hand"
        if len(binding.scope.bindings[binding.name]) > 1:
            return f"{binding.name} is bound elsewhere as well"
        if not users or self.is_package or binding.name in self.exported:
            return "what is done with it by those who import it from here is not known"
        staying = [user for user in users if user not in self.rewrites]
        if staying:
            return f"line {staying[0].row} still needs it"
        return self._why_statement_stays(binding)

    # -- `torch.cuda.Event`, `cuda.Event`, `tc.Event` ----------------------------------------------------

    def _name_in_place(self, use: Use) -> None:
        """Choose the dotted name that is written for a use, or refuse it for want of one."""
        replacement = self._replacement(use)
        if not replacement.startswith(f"{_TORCH}."):
            self._refuse(use, f"{replacement} is no name of torch, and its import is to be written by hand")
            return
        root = self._torch_name(use)
        if root is None:
            binding = use.binding
            reason = self._why_torch_cannot_be_imported(use, binding)
            if reason or binding is None:
                self._refuse(use, reason or "what binds its first name is not known")
                return
            edit = self._edit(binding)
            if f"import {_TORCH}" not in edit.add:
                edit.add.insert(0, f"import {_TORCH}")
            root = _TORCH
        self.codes[use] = root + replacement.removeprefix(_TORCH)

    def _torch_name(self, use: Use) -> str | None:
        """Return a name that means torch where `use` stands: its own first one, or one of the module's."""
        candidates: list[str] = []
        if use.binding is not None:
            candidates.append(use.binding.name)
        scope: Scope | None = use.scope
        while scope is not None:
            for bindings in scope.bindings.values():
                candidates += [
                    binding.name for binding in bindings if binding.qualified == _TORCH and self._is_there(binding, use)
                ]
            scope = scope.parent
        for candidate in candidates:
            if self.analysis.meanings(candidate, use.scope) == {_TORCH}:
                return candidate
        return None

    def _is_there(self, binding: Binding, use: Use) -> bool:
        """Return whether an import has certainly run where `use` stands: unconditional, and further up."""
        parent = self.analysis.tree.parent(binding.statement)
        unconditional = isinstance(parent, (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef))
        return unconditional and getattr(binding.statement, "lineno", use.row + 1) < use.row

    def _why_torch_cannot_be_imported(self, use: Use, binding: Binding | None) -> str:
        if use.scope.lookup(_TORCH) or (binding is not None and _TORCH in binding.scope.bindings):
            return f"the name {_TORCH} means something else here, or is not there for certain"
        names = self.analysis.tree.names
        if any(name.id == _TORCH and not scope.lookup(_TORCH) for name, scope in names):
            return f"{_TORCH} is read in this file, and nothing there binds it"
        if binding is not None and binding.elsewhere:
            return f"{_TORCH} is not imported, and {binding.name} comes from a function that sets a global"
        return self._why_statement_stays(binding) if binding is not None else ""

    def _imported_modules(self) -> None:
        """Drop `from torch import cuda` and `import torch.cuda as tc` where nothing needs them any more."""
        readers: dict[int, list[ast.Name]] = {}
        bindings: dict[int, Binding] = {}
        rewritten = {id(_root(use.node)) for use in self.codes}
        for name, scope in [*self.analysis.tree.names, *self.analysis.quoted]:
            for binding in scope.lookup(name.id):
                if binding.kind == "import" and self._is_cuda_module(binding):
                    bindings[id(binding)] = binding
                    readers.setdefault(id(binding), []).append(name)
        for key, binding in bindings.items():
            gone = all(id(name) in rewritten for name in readers[key])
            shared = len(binding.scope.bindings[binding.name]) > 1
            if not gone or shared or self.is_package or binding.name in self.exported:
                continue
            if not self._why_statement_stays(binding):
                self._edit(binding).drop.add(self._alias_index(binding))

    def _is_cuda_module(self, binding: Binding) -> bool:
        return binding.qualified is not None and (
            binding.qualified == MODULE or binding.qualified.startswith(f"{MODULE}.")
        )

    # -- statements --------------------------------------------------------------------------------------

    def _why_statement_stays(self, binding: Binding) -> str:
        statement = binding.statement
        assert isinstance(statement, (ast.Import, ast.ImportFrom))
        rows = range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)
        if len(rows) > 1 and any("#" in self.analysis.lines[row - 1] for row in rows):
            return "its import statement has comments inside"
        line = self.analysis.lines[statement.lineno - 1]
        tail = self.analysis.lines[rows[-1] - 1][self.analysis.position(statement)[3] :].strip()
        before = line[: self.analysis.position(statement)[1]].strip()
        if before or (tail and not tail.startswith("#")):
            return "its import statement shares its line with another"
        return ""

    def _takes_comment_along(self, statement: ast.stmt, edit: ImportEdit) -> bool:
        """Return whether a statement would go for good, and leave or take a comment that may be about it."""
        assert isinstance(statement, (ast.Import, ast.ImportFrom))
        if edit.add or len(edit.drop) < len(statement.names):
            return False
        above = self.analysis.lines[statement.lineno - 2].strip() if statement.lineno > 1 else ""
        return above.startswith("#") or "#" in self.analysis.lines[(statement.end_lineno or 1) - 1]

    def _edit(self, binding: Binding) -> ImportEdit:
        statement = binding.statement
        assert isinstance(statement, (ast.Import, ast.ImportFrom))
        if id(statement) not in self.edits:
            siblings = _block_of(statement, self.analysis.tree.parent(statement))
            self.edits[id(statement)] = (statement, ImportEdit(only_statement=len(siblings) == 1))
        return self.edits[id(statement)][1]

    def _alias_index(self, binding: Binding) -> int:
        statement = binding.statement
        assert isinstance(statement, (ast.Import, ast.ImportFrom)) and binding.alias is not None
        return statement.names.index(binding.alias)

    def _replacement(self, use: Use) -> str:
        replacement = self.analysis.table.by_name[use.name].replacement
        assert replacement is not None
        return replacement

    # -- the result --------------------------------------------------------------------------------------

    def _edits(self) -> Plan:
        result = Plan([])
        known = {_position(use) for use in self.uses}
        for position, name in self.wanted.items():
            if position not in known:
                result.verdicts.append(Verdict(position, name, _NOT_SEEN))
        for use in self.uses:
            reason = self.refused.get(use, "")
            assert reason or use in self.rewrites
            result.verdicts.append(Verdict(_position(use), use.name, reason))
            if reason:
                continue
            rewrite = self.rewrites[use]
            if rewrite.call is not None and any(operation != ("keep", "") for operation in rewrite.arguments):
                result.arguments[self.analysis.position(rewrite.call)] = rewrite.arguments
            if use not in self.codes:
                continue
            if use.text is None:
                result.names[_position(use)] = self.codes[use]
            else:
                literal = result.texts.setdefault(self.analysis.position(use.text), [])
                literal.append((use.column, use.end_column, self.codes[use]))
        result.verdicts.sort(key=lambda verdict: verdict.position)
        for statement, edit in self.edits.values():
            if self._takes_comment_along(statement, edit):
                edit.drop.clear()
            if edit.add or edit.drop:
                result.imports[self.analysis.position(statement)] = edit
        return result


def _position(use: Use) -> Position:
    return use.row, use.column, use.end_row, use.end_column


def _root(node: ast.AST) -> ast.AST:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node


def _exported(module: ast.Module) -> frozenset[str]:
    """Return the names in `__all__`."""
    names: set[str] = set()
    for statement in module.body:
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
            names |= {
                node.value
                for node in ast.walk(statement)
                if isinstance(node, ast.Constant) and isinstance(node.value, str)
            }
    return frozenset(names)


def _block_of(statement: ast.stmt, parent: ast.AST | None) -> list[ast.stmt]:
    for _, value in ast.iter_fields(parent) if parent is not None else ():
        if isinstance(value, list) and statement in value:
            return value
    return [statement]
