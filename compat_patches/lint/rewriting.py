"""Carries out the plan for one file with libcst, which keeps every comment, blank and quote.

Only the top-level statements that hold an edit are parsed and written again; the rest of the file is not
looked at, so that it stays to the byte.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from compat_patches.lint.errors import missing_extra
from compat_patches.lint.planning import ImportEdit, Plan, Position

try:
    import libcst as cst
    from libcst.metadata import MetadataWrapper, PositionProvider
except ImportError as error:
    raise missing_extra("libcst") from error


class CannotRewrite(Exception):
    """The edits of a file could not be placed; nothing of it may be written."""


def rewrite(source: str, lines: list[str], module: ast.Module, plan: Plan) -> str:
    """Return `source` with the edits of `plan` made.

    Args:
        lines: the lines of `source` without their ends.
        module: its syntax tree.

    Raises:
        CannotRewrite: an edit found no place, or the result does not parse.
    """
    if not plan.edits:
        return source
    ends = _line_ends(source, lines)
    rows = sorted({position[0] for edits in _edit_tables(plan) for position in edits})
    parts: list[str] = []
    done = placed = 0
    for first, last in _chunks(module, rows):
        begin, end = ends[first - 1], ends[last]
        parts.append(source[done:begin])
        rewritten, count = _rewrite_chunk(source[begin:end], first - 1, plan)
        parts.append(rewritten)
        done, placed = end, placed + count
    parts.append(source[done:])
    result = "".join(parts)
    if placed != plan.edits:
        raise CannotRewrite(f"{plan.edits - placed} of {plan.edits} edits found no place in the file")
    try:
        ast.parse(result)
    except (SyntaxError, ValueError) as error:
        raise CannotRewrite(f"the result would not parse: {error}") from error
    return result


def _edit_tables(plan: Plan) -> Sequence[dict[Position, object]]:
    return plan.names, plan.arguments, plan.texts, plan.imports  # type: ignore[return-value]  # a dict is invariant


def _line_ends(source: str, lines: list[str]) -> list[int]:
    """Return the offset at which each line begins, and that of the end."""
    offsets = [0]
    for line in lines:
        offset = offsets[-1] + len(line)
        if source.startswith("\r\n", offset):
            offset += 2
        elif offset < len(source):
            offset += 1
        offsets.append(offset)
    return offsets


def _chunks(module: ast.Module, rows: list[int]) -> list[tuple[int, int]]:
    """Return the rows, first and last, of the top-level statements that hold one of `rows`."""
    chunks: list[tuple[int, int]] = []
    for statement in module.body:
        decorators = getattr(statement, "decorator_list", [])
        first = min([statement.lineno, *(decorator.lineno for decorator in decorators)])
        last = statement.end_lineno or statement.lineno
        if not any(first <= row <= last for row in rows):
            continue
        # Statements that share a line can only be parsed together.
        if chunks and first <= chunks[-1][1]:
            chunks[-1] = (chunks[-1][0], max(last, chunks[-1][1]))
        else:
            chunks.append((first, last))
    return chunks


def _rewrite_chunk(text: str, rows_before: int, plan: Plan) -> tuple[str, int]:
    try:
        parsed = cst.parse_module(text)
    except cst.ParserSyntaxError as error:
        raise CannotRewrite(f"libcst cannot parse it: {error.message}") from error
    if parsed.code != text:
        raise CannotRewrite("libcst does not give back the text that it parsed")
    rewriter = _Rewriter(plan, rows_before)
    result = MetadataWrapper(parsed, unsafe_skip_copy=True).visit(rewriter)
    # libcst writes a module without statements as an empty line.
    return result.code if result.body else "", rewriter.placed


class _Rewriter(cst.CSTTransformer):
    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self, plan: Plan, rows_before: int) -> None:
        super().__init__()
        self.plan = plan
        self.rows_before = rows_before
        self.placed = 0

    def _position(self, node: cst.CSTNode) -> Position:
        found = self.get_metadata(PositionProvider, node)
        return (
            found.start.line + self.rows_before,
            found.start.column,
            found.end.line + self.rows_before,
            found.end.column,
        )

    # -- expressions -------------------------------------------------------------------------------------

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.BaseExpression:
        return self._renamed(original_node, updated_node)

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        return self._renamed(original_node, updated_node)

    def _renamed(self, original: cst.Attribute | cst.Name, updated: cst.Attribute | cst.Name) -> cst.BaseExpression:
        code = self.plan.names.get(self._position(original))
        if code is None:
            return updated
        self.placed += 1
        return cst.parse_expression(code).with_changes(lpar=updated.lpar, rpar=updated.rpar)

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        operations = self.plan.arguments.get(self._position(original_node))
        if operations is None:
            return updated_node
        self.placed += 1
        kept = [
            _argument(argument, operation)
            for argument, operation in zip(updated_node.args, operations, strict=True)
            if operation[0] != "drop"
        ]
        if not kept:
            return updated_node.with_changes(args=[], whitespace_before_args=cst.SimpleWhitespace(""))
        last = updated_node.args[-1]
        kept[-1] = kept[-1].with_changes(comma=last.comma, whitespace_after_arg=last.whitespace_after_arg)
        return updated_node.with_changes(args=kept)

    def leave_SimpleString(self, original_node: cst.SimpleString, updated_node: cst.SimpleString) -> cst.BaseExpression:
        position = self._position(original_node)
        replacements = self.plan.texts.get(position)
        if replacements is None:
            return updated_node
        self.placed += 1
        value = updated_node.value
        for start, end, code in sorted(replacements, reverse=True):
            value = value[: start - position[1]] + code + value[end - position[1] :]
        return updated_node.with_changes(value=value)

    # -- imports -----------------------------------------------------------------------------------------

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.BaseStatement | cst.FlattenSentinel[cst.BaseStatement]:
        edit = self.plan.imports.get(self._position(original_node.body[0]))
        statement = updated_node.body[0]
        if edit is None or not isinstance(statement, (cst.Import, cst.ImportFrom)):
            return updated_node
        self.placed += 1
        lines = [_statement(code) for code in edit.add]
        remaining = _without_names(statement, edit)
        if remaining is not None:
            lines.append(updated_node.with_changes(body=[remaining], leading_lines=[]))
        elif not lines:
            if not edit.only_statement:
                return cst.FlattenSentinel([])
            lines.append(_statement("pass"))
        # What stands above and behind the statement stays above the first and behind the last new one.
        lines[0] = lines[0].with_changes(leading_lines=updated_node.leading_lines)
        lines[-1] = lines[-1].with_changes(trailing_whitespace=updated_node.trailing_whitespace)
        return cst.FlattenSentinel(lines)


def _argument(argument: cst.Arg, operation: tuple[str, str]) -> cst.Arg:
    kind, value = operation
    if kind == "keyword":
        equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
        return argument.with_changes(keyword=cst.Name(value), equal=equal)
    if kind in ("positional", "value", "suffix"):
        argument = argument.with_changes(keyword=None, equal=cst.MaybeSentinel.DEFAULT)
    if kind == "value":
        return argument.with_changes(value=cst.parse_expression(value))
    if kind == "suffix":
        return argument.with_changes(value=cst.Attribute(argument.value, cst.Name(value.removeprefix("."))))
    return argument


def _statement(code: str) -> cst.SimpleStatementLine:
    parsed = cst.parse_statement(code)
    assert isinstance(parsed, cst.SimpleStatementLine)
    return parsed


def _without_names(statement: cst.Import | cst.ImportFrom, edit: ImportEdit) -> cst.Import | cst.ImportFrom | None:
    """Return the import without the names that go, or None if none is left."""
    if isinstance(statement.names, cst.ImportStar):
        return statement
    names = [alias for number, alias in enumerate(statement.names) if number not in edit.drop]
    if not names:
        return None
    names[-1] = names[-1].with_changes(comma=statement.names[-1].comma)
    return statement.with_changes(names=names)
