"""What is known about the kind of an argument: an index, a torch.device, a stream.

Only what the module itself says plainly counts: a literal, an annotation that is exactly that class, a call
that can give nothing else, a variable whose every assignment is one of these. Everything else is unknown.
"""

from __future__ import annotations

import ast

from compat_patches.lint.analysis import Analysis
from compat_patches.lint.scopes import Binding, Scope

INDEX = "index"
DEVICE = "device"
STREAM = "stream"
TENSOR = "tensor"

_MAX_DEPTH = 8

# Called, they give this; as an annotation, they mean it.
_CLASSES = {
    "torch.device": DEVICE,
    "torch.Tensor": TENSOR,
    "torch.Stream": STREAM,
    "torch.cuda.Stream": STREAM,
    "torch.cuda.streams.Stream": STREAM,
}
_CALLS = _CLASSES | {
    "torch.accelerator.current_device_index": INDEX,
    "torch.accelerator.current_stream": STREAM,
    "torch.accelerator.device_count": INDEX,
    "torch.cuda.current_device": INDEX,
    "torch.cuda.current_stream": STREAM,
    "torch.cuda.default_stream": STREAM,
    "torch.cuda.device_count": INDEX,
}
_BUILTIN_INDEX_CALLS = frozenset({"int", "len"})
_INDEX_OPERATORS = (ast.Add, ast.Mult, ast.FloorDiv, ast.Mod)


def kind_of(node: ast.expr, scope: Scope, analysis: Analysis) -> str | None:
    """Return INDEX, DEVICE, STREAM or TENSOR, or None where nothing is known."""
    return _kind(node, scope, analysis, _MAX_DEPTH)


def literal_device(node: ast.expr, scope: Scope, analysis: Analysis) -> int | None:
    """Return the index in "cuda:1", torch.device("cuda:1") or torch.device("cuda", 1), or None."""
    if isinstance(node, ast.Call) and analysis.value_of(node.func, scope) == frozenset({"torch.device"}):
        if len(node.args) == 2 and not node.keywords and _is_text(node.args[0], "cuda"):
            return _index_literal(node.args[1])
        if len(node.args) == 1 and not node.keywords:
            return literal_device(node.args[0], scope, analysis)
        return None
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        kind, _, index = node.value.partition(":")
        if kind == "cuda" and index.isascii() and index.isdigit():
            return int(index)
    return None


def _kind(node: ast.expr, scope: Scope, analysis: Analysis, depth: int) -> str | None:
    if depth <= 0:
        return None
    if _index_literal(node) is not None:
        return INDEX
    if isinstance(node, ast.Name):
        kinds = {_kind_of_binding(binding, analysis, depth - 1) for binding in scope.lookup(node.id)}
        return kinds.pop() if len(kinds) == 1 else None
    if isinstance(node, ast.Call):
        name = node.func.id if isinstance(node.func, ast.Name) else None
        if name in _BUILTIN_INDEX_CALLS and not scope.lookup(name):
            return INDEX
        return _among(analysis.value_of(node.func, scope), _CALLS)
    if isinstance(node, ast.Attribute) and node.attr == "device":
        owner = _kind(node.value, scope, analysis, depth - 1)
        return DEVICE if owner in (TENSOR, STREAM) else None
    if isinstance(node, ast.Attribute) and node.attr == "index":
        # A torch.device's index may be None, which both guards take for "stay where you are".
        return INDEX if _kind(node.value, scope, analysis, depth - 1) == DEVICE else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, _INDEX_OPERATORS):
        sides = {_kind(side, scope, analysis, depth - 1) for side in (node.left, node.right)}
        return INDEX if sides == {INDEX} else None
    return None


def _kind_of_binding(binding: Binding, analysis: Analysis, depth: int) -> str | None:
    if binding.value is None:
        return None
    if binding.kind == "assign":
        return _kind(binding.value, binding.scope, analysis, depth)
    if binding.kind == "parameter":
        return _annotated(binding.value, binding.scope, analysis)
    if binding.kind == "loop":
        iterated = binding.value
        is_range = isinstance(iterated, ast.Call) and isinstance(iterated.func, ast.Name)
        if is_range and iterated.func.id == "range" and not binding.scope.lookup("range"):  # type: ignore[attr-defined]
            # range(n) counts from 0. Another beginning may be negative: torch.cuda.device then does nothing.
            return INDEX if len(iterated.args) == 1 else None  # type: ignore[attr-defined]  # is_range says so
    return None


def _annotated(annotation: ast.expr, scope: Scope, analysis: Analysis) -> str | None:
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            annotation = ast.parse(annotation.value, mode="eval").body
        except (SyntaxError, ValueError):
            return None
    if isinstance(annotation, ast.Name) and annotation.id == "int" and not scope.lookup("int"):
        return INDEX
    return _among(analysis.value_of(annotation, scope), _CLASSES)


def _among(meanings: frozenset[str], kinds: dict[str, str]) -> str | None:
    found = {kinds.get(meaning) for meaning in meanings}
    return found.pop() if len(found) == 1 else None


def _index_literal(node: ast.expr) -> int | None:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    return None


def _is_text(node: ast.expr, text: str) -> bool:
    return isinstance(node, ast.Constant) and node.value == text
