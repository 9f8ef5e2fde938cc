"""Whether one use may be rewritten, and how: the verdict of `fix`.

A rewrite is safe if the program does the same with a CUDA device as before, for every argument that the
source lets through. Whatever is not known counts against it, and the reason is told.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field

from compat_patches.lint.analysis import Analysis, Use
from compat_patches.lint.kinds import DEVICE, INDEX, STREAM, kind_of, literal_device
from compat_patches.lint.scopes import last_name
from compat_patches.lint.table import Migration

# What happens to one argument of a call: nothing; it goes; it gets or loses a keyword; its value changes.
KEEP = ("keep", "")
DROP = ("drop", "")
POSITIONAL = ("positional", "")

# Subscripted, they are types, wherever that stands.
_GENERIC_BUILTINS = frozenset({"dict", "frozenset", "list", "set", "tuple", "type"})
_GENERIC_MODULES = ("collections.", "typing.", "typing_extensions.")
_COMPILED_BY_NAME = frozenset({"torch.jit.script", "torch.jit.script_method", "torch.jit.export"})
_EVENT_PARAMETERS = ("enable_timing", "blocking", "interprocess", "external")
_EVENT_REASONS = {
    "blocking": "torch.Event takes blocking and ignores it, so that waiting would spin instead of sleep",
    "interprocess": "torch.Event takes interprocess and ignores it, so that it cannot be shared",
    "external": "torch.Event has no external",
}
# What both kinds of stream have and do alike.
_STREAM_METHODS = frozenset({"synchronize", "query", "wait_stream"})


class Refused(Exception):
    """The use has to stay; the text says why."""


@dataclass
class Rewrite:
    """How a use is rewritten: by its replacement's name, and what becomes of the arguments of its call.

    Attributes:
        call: the call whose function it is, if that has arguments to change.
        arguments: for each argument of the call, positional ones first, what happens to it.
        timing: it makes an event that may measure time.
    """

    call: ast.Call | None = None
    arguments: list[tuple[str, str]] = field(default_factory=list)
    timing: bool = False


def decide(use: Use, analysis: Analysis) -> Rewrite:
    """Return how `use` is rewritten.

    Raises:
        Refused: it cannot be, or it is not known whether it can.
    """
    migration = analysis.table.by_name[use.name]
    if use.via == "getattr":
        raise Refused("it is reached by the text of its name (getattr, import_module)")
    if use.via == "variable":
        raise Refused(_through_variable(use))
    if use.via == "either":
        raise Refused("its first name may mean something else as well, depending on how the program runs")
    if migration.rewrite == "never":
        raise Refused(migration.differs or f"{migration.replacement} is to be written by hand")
    node = use.node
    assert isinstance(node, (ast.Name, ast.Attribute))
    parent = analysis.tree.parent(node)
    if isinstance(parent, ast.Attribute):
        raise Refused(f"its attribute {parent.attr} is used, which the replacement may not have")
    if use.text is not None and isinstance(parent, ast.Call):
        raise Refused("it is called inside a text")
    if not _stands_there(node, use, analysis):
        raise Refused("this Python does not know exactly where in its f-string it stands")
    if _has_comment(node, analysis):
        raise Refused("there is a comment inside the name")
    if _is_scripted(use, analysis):
        raise Refused("torch.jit compiles this function, and knows torch.cuda by name")
    return _DECIDE[migration.rewrite](use, analysis, migration)


def _decide_name(use: Use, analysis: Analysis, migration: Migration) -> Rewrite:
    return Rewrite()


def _decide_call(use: Use, analysis: Analysis, migration: Migration) -> Rewrite:
    call = _call_of(use, analysis)
    if call is None:
        raise Refused("it is handed on as a value, and whoever calls it may say device=")
    return Rewrite(call, _device_argument(call))


def _decide_event(use: Use, analysis: Analysis, migration: Migration) -> Rewrite:
    call = _call_of(use, analysis)
    if call is None:
        if is_annotation(use, analysis) or _is_instance_check(use, analysis):
            return Rewrite()
        raise Refused(_class_as_value(use, analysis))
    return _event_call(call)


def _decide_class(use: Use, analysis: Analysis, migration: Migration) -> Rewrite:
    if is_annotation(use, analysis):
        return Rewrite()
    if _call_of(use, analysis) is not None:
        raise Refused(migration.differs)
    raise Refused(_class_as_value(use, analysis))


def _decide_stream(use: Use, analysis: Analysis, migration: Migration) -> Rewrite:
    rewrite = _decide_call(use, analysis, migration)
    assert rewrite.call is not None
    attribute = analysis.tree.parent(rewrite.call)
    if isinstance(attribute, ast.Attribute):
        caller = analysis.tree.parent(attribute)
        called = isinstance(caller, ast.Call) and caller.func is attribute
        if attribute.attr in _STREAM_METHODS and called:
            return rewrite
        if attribute.attr == "cuda_stream":
            raise Refused("cuda_stream is read, which a torch.Stream does not have")
        raise Refused(f"{attribute.attr} is used: {migration.differs}")
    raise Refused(f"what becomes of the stream is not known: {migration.differs}")


def _decide_set_stream(use: Use, analysis: Analysis, migration: Migration) -> Rewrite:
    call = _call_of(use, analysis)
    if call is None:
        raise Refused(f"it is handed on as a value: {migration.differs}")
    argument = _only_argument(call, "stream")
    if argument is None or kind_of(argument, use.scope, analysis) != STREAM:
        raise Refused(f"its argument may be None: {migration.differs}")
    return Rewrite(call, [KEEP])


def _decide_device_guard(use: Use, analysis: Analysis, migration: Migration) -> Rewrite:
    call = _call_of(use, analysis)
    if call is None:
        raise Refused(_class_as_value(use, analysis))
    argument = _only_argument(call, "device")
    if argument is None:
        raise Refused("it is not called with one plain argument")
    index = literal_device(argument, use.scope, analysis)
    if index is not None:
        return Rewrite(call, [("value", str(index))])
    kind = kind_of(argument, use.scope, analysis)
    if kind == INDEX:
        return Rewrite(call, [POSITIONAL])
    if kind == DEVICE and isinstance(argument, (ast.Name, ast.Attribute)):
        return Rewrite(call, [("suffix", ".index")])
    raise Refused(f"what its argument is is not known: {migration.differs}")


def _decide_statistics(use: Use, analysis: Analysis, migration: Migration) -> Rewrite:
    rewrite = _decide_call(use, analysis, migration)
    assert rewrite.call is not None and migration.keys is not None
    parent = analysis.tree.parent(rewrite.call)
    key: ast.expr | None = None
    if isinstance(parent, ast.Subscript):
        key = parent.slice
    elif isinstance(parent, ast.Attribute) and parent.attr == "get":
        caller = analysis.tree.parent(parent)
        key = caller.args[0] if isinstance(caller, ast.Call) and caller.args else None
    if isinstance(key, ast.Constant) and isinstance(key.value, str) and migration.keys.fullmatch(key.value):
        return rewrite
    raise Refused(f"which of its keys are read is not known: {migration.differs}")


_DECIDE: dict[str, Callable[[Use, Analysis, Migration], Rewrite]] = {
    "name": _decide_name,
    "call": _decide_call,
    "event": _decide_event,
    "class": _decide_class,
    "stream": _decide_stream,
    "set-stream": _decide_set_stream,
    "device-guard": _decide_device_guard,
    "statistics": _decide_statistics,
}


# -- arguments -----------------------------------------------------------------------------------------


def _event_call(call: ast.Call) -> Rewrite:
    """Turn the arguments of torch.cuda.Event into those of torch.Event, whose first is a device."""
    operations: list[tuple[str, str]] = []
    timing = False
    for position, argument in enumerate(call.args):
        if isinstance(argument, ast.Starred) or position >= len(_EVENT_PARAMETERS):
            raise Refused("what is in its *arguments is not known")
        parameter = _EVENT_PARAMETERS[position]
        if parameter == "enable_timing":
            timing = not _is_false(argument)
            operations.append(("keyword", parameter))
        else:
            operations.append(_dropped_flag(parameter, argument))
    for keyword in call.keywords:
        if keyword.arg == "enable_timing":
            timing = not _is_false(keyword.value)
            operations.append(KEEP)
        elif keyword.arg in _EVENT_REASONS:
            operations.append(_dropped_flag(keyword.arg, keyword.value))
        elif keyword.arg is None:
            raise Refused("what is in its **arguments is not known")
        else:
            raise Refused(f"torch.cuda.Event has no {keyword.arg}")
    return Rewrite(call, operations, timing)


def _dropped_flag(parameter: str, value: ast.expr) -> tuple[str, str]:
    if _is_false(value):
        return DROP
    reason = _EVENT_REASONS[parameter]
    if isinstance(value, ast.Constant):
        raise Refused(f"{parameter}={value.value!r}: {reason}")
    raise Refused(f"{parameter} may be true: {reason}")


def _device_argument(call: ast.Call) -> list[tuple[str, str]]:
    if not call.args and not call.keywords:
        return []
    argument = _only_argument(call, "device")
    if argument is None:
        raise Refused("it is not called with one plain device")
    if isinstance(argument, ast.UnaryOp):
        raise Refused("its device is negative, which torch.cuda takes for the current one")
    return [POSITIONAL]


def _only_argument(call: ast.Call, parameter: str) -> ast.expr | None:
    if len(call.args) == 1 and not call.keywords and not isinstance(call.args[0], ast.Starred):
        return call.args[0]
    if not call.args and len(call.keywords) == 1 and call.keywords[0].arg == parameter:
        return call.keywords[0].value
    return None


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and (node.value is False or node.value is None or node.value == 0)


# -- where a use stands --------------------------------------------------------------------------------


def is_annotation(use: Use, analysis: Analysis) -> bool:
    """Return whether a use is only the name of a type: in an annotation, or in a generic type anywhere."""
    if use.text is not None:
        return True
    child: ast.AST = use.node
    generic = False
    for parent in analysis.tree.ancestors(use.node):
        if isinstance(parent, ast.arg):
            return True
        if isinstance(parent, ast.AnnAssign):
            return parent.annotation is child
        if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return parent.returns is child
        if type(parent).__name__ == "TypeAlias":
            return True
        if isinstance(parent, ast.Subscript):
            if child is parent.value:
                return False
            generic = generic or _is_generic(parent.value, use, analysis)
        elif not isinstance(parent, (ast.BinOp, ast.Tuple, ast.List)) or (
            isinstance(parent, ast.BinOp) and not isinstance(parent.op, ast.BitOr)
        ):
            return generic
        child = parent
    return False


def _is_generic(node: ast.expr, use: Use, analysis: Analysis) -> bool:
    if isinstance(node, ast.Name) and node.id in _GENERIC_BUILTINS:
        return True
    return any(meaning.startswith(_GENERIC_MODULES) for meaning in analysis.value_of(node, use.scope))


def _is_instance_check(use: Use, analysis: Analysis) -> bool:
    child: ast.AST = use.node
    parent = analysis.tree.parent(child)
    while isinstance(parent, (ast.Tuple, ast.BinOp)):
        child, parent = parent, analysis.tree.parent(parent)
    return (
        isinstance(parent, ast.Call)
        and last_name(parent.func) in ("isinstance", "issubclass")
        and len(parent.args) == 2
        and parent.args[1] is child
    )


def _call_of(use: Use, analysis: Analysis) -> ast.Call | None:
    parent = analysis.tree.parent(use.node)
    return parent if isinstance(parent, ast.Call) and parent.func is use.node else None


def _class_as_value(use: Use, analysis: Analysis) -> str:
    parent = analysis.tree.parent(use.node)
    if isinstance(parent, ast.ClassDef):
        return "it is the base of a class, which would get another constructor"
    if isinstance(parent, (ast.Assign, ast.AnnAssign, ast.NamedExpr)):
        return "it gets another name here, and what is called by that name is not followed"
    if _is_instance_check(use, analysis):
        return "the replacement is its base class, and lets more objects through"
    return "the class is handed on as a value, and how it is called is not known"


def _through_variable(use: Use) -> str:
    binding = use.binding
    if binding is None:
        return "it is reached through a variable"
    row = getattr(binding.statement, "lineno", 0)
    return f"it is reached through the variable {binding.name}, which line {row} sets"


def _is_scripted(use: Use, analysis: Analysis) -> bool:
    for parent in analysis.tree.ancestors(use.node):
        if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            for decorator in parent.decorator_list:
                function = decorator.func if isinstance(decorator, ast.Call) else decorator
                if analysis.value_of(function, use.scope) & _COMPILED_BY_NAME:
                    return True
    return False


def _stands_there(node: ast.Name | ast.Attribute, use: Use, analysis: Analysis) -> bool:
    """Return whether the text at a node's position is its own, which old releases get wrong in f-strings."""
    ends_with = node.attr if isinstance(node, ast.Attribute) else node.id
    root: ast.expr = node
    while isinstance(root, ast.Attribute):
        root = root.value
    begins_with = root.id if isinstance(root, ast.Name) else ""
    first, last = analysis.lines[use.row - 1], analysis.lines[use.end_row - 1]
    return first[use.column :].startswith((begins_with, "(")) and last[: use.end_column].endswith(ends_with)


def _has_comment(node: ast.expr, analysis: Analysis) -> bool:
    if node.end_lineno == node.lineno:
        return False
    return any("#" in line for line in analysis.lines[node.lineno - 1 : node.end_lineno])
