"""Upstream source as syntax trees: finding a definition, and hashing it so that only its meaning counts.

Used on the source of loaded objects by the engine and on source files that nobody imports by the audit.
"""

from __future__ import annotations

import ast
import builtins
import functools
import hashlib
import inspect
import tokenize
from collections.abc import Iterator
from typing import Any

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_NOT_MEANING = frozenset({"ctx", "type_comment", "kind", "type_ignores"})


def find_definition(tree: ast.AST, qualname: str) -> Definition | None:
    """Find ``Class.method`` or ``function`` in the tree of a module, also inside of ``if`` and ``try``.

    Returns:
        The last such definition, as it is the one that stands when the module has been executed; None if there is
        none.
    """
    scope: ast.AST = tree
    for name in qualname.split("."):
        found = [node for node in _definitions(scope) if node.name == name]
        if not found:
            return None
        scope = found[-1]
    return scope if isinstance(scope, Definition) else None


def _definitions(scope: ast.AST) -> Iterator[Definition]:
    for child in ast.iter_child_nodes(scope):
        if isinstance(child, Definition):
            if not any(map(_is_accessor, child.decorator_list)):
                yield child
        elif isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
            yield from _definitions(child)


def _is_accessor(decorator: ast.expr) -> bool:
    """``@name.setter`` and the like define a name again, but what counts of a property is how it is read."""
    return isinstance(decorator, ast.Attribute) and decorator.attr in ("setter", "deleter")


def definition_of(value: Any) -> Definition | None:
    """The syntax tree of a loaded function or class, or None where it has no Python source.

    What others wrapped around a function (``__wrapped__``) is looked through: the question is always about the
    code that upstream wrote.
    """
    if isinstance(value, staticmethod | classmethod):
        value = value.__func__
    elif isinstance(value, property):
        value = value.fget
    elif isinstance(value, functools.cached_property):
        value = value.func
    try:
        text = inspect.getsource(inspect.unwrap(value))
    except (OSError, TypeError, ValueError, SyntaxError, tokenize.TokenError):
        return None
    return parse_definition(text)


def parse_definition(text: str) -> Definition | None:
    """The syntax tree of a definition that was cut out of its file, as it stood there.

    Returns:
        None where the text holds no definition.
    """
    # A method is indented. Dedenting would change the strings in it; a block around it does not.
    indented = text[:1].isspace()
    try:
        tree = ast.parse("if 1:\n" + text if indented else text)
    except (SyntaxError, ValueError, RecursionError):
        return None
    return next(_definitions(tree), None)


def tree_hash(node: ast.AST) -> str:
    """Hash a syntax tree: comments and formatting do not matter, anything else does.

    Fields that are empty are left out, so that a Python that adds an optional field to the grammar (3.12 did)
    hashes the same source to the same value.

    Returns:
        32 hexadecimal digits.
    """
    digest = hashlib.sha256()
    for part in _flatten(node):
        digest.update(part.encode("ascii"))
        digest.update(b"\0")
    return digest.hexdigest()[:32]


def _flatten(tree: ast.AST) -> Iterator[str]:
    """A tree as texts: of each node its kind and which fields it has, and then what is in these fields."""
    waiting: list[Any] = [tree]
    while waiting:
        value = waiting.pop()
        if isinstance(value, ast.AST):
            fields = list(_meaning(value))
            yield f"{type(value).__name__}({', '.join(name for name, _ in fields)})"
            waiting.extend(child for _, child in reversed(fields))
        elif isinstance(value, list):
            yield f"[{len(value)}]"
            waiting.extend(reversed(value))
        else:
            # Not repr, which writes a character as it is once Python's tables know it, so with each Python others.
            yield f"{type(value).__name__} {value!a}"


def _meaning(node: ast.AST) -> Iterator[tuple[str, Any]]:
    for name, child in ast.iter_fields(node):
        if isinstance(node, ast.JoinedStr):
            # Python 3.12 puts an empty text behind the last field of some format specifications.
            child = [part for part in child if not (isinstance(part, ast.Constant) and part.value == "")]
        if name not in _NOT_MEANING and child is not None and child != []:
            yield name, child


def parameters(node: Definition) -> tuple[str, ...] | None:
    """The names of a function's parameters; ``*args`` and ``**kwargs`` keep their stars.

    Returns:
        Those that a call takes, for a class; None where it has no ``__new__`` or ``__init__`` of its own.
    """
    if isinstance(node, ast.ClassDef):
        for name in ("__new__", "__init__"):
            inner = find_definition(node, name)
            if inner is not None and not isinstance(inner, ast.ClassDef):
                return _parameters(inner.args)[1:]
        return None
    return _parameters(node.args)


def _parameters(arguments: ast.arguments) -> tuple[str, ...]:
    names = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
    names += [f"*{arguments.vararg.arg}"] if arguments.vararg else []
    names += [a.arg for a in arguments.kwonlyargs]
    names += [f"**{arguments.kwarg.arg}"] if arguments.kwarg else []
    return tuple(names)


def constants(node: ast.AST) -> frozenset[Any]:
    """The constants in the code of a definition, its documentation and its annotations left out."""
    found: set[Any] = set()
    waiting: list[ast.AST] = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, ast.Constant):
            found.add(part.value)
        for name, child in ast.iter_fields(part):
            if name in ("annotation", "returns", "type_params"):
                continue
            children = child if isinstance(child, list) else [child]
            if name == "body" and children and _is_docstring(children[0]) and isinstance(part, Definition | ast.Module):
                children = children[1:]
            waiting.extend(item for item in children if isinstance(item, ast.AST))
    return frozenset(found)


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def caught(node: ast.AST) -> tuple[str, ...]:
    """The names of the exceptions that the ``except`` clauses of a definition catch, without their modules.

    A bare ``except`` is ``BaseException``.
    """
    names: list[str] = []
    for handler in ast.walk(node):
        if not isinstance(handler, ast.ExceptHandler):
            continue
        kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
        for kind in kinds:
            if kind is None:
                names.append("BaseException")
            elif isinstance(kind, ast.Attribute):
                names.append(kind.attr)
            elif isinstance(kind, ast.Name):
                names.append(kind.id)
    return tuple(dict.fromkeys(names))


def catches(names: tuple[str, ...], wanted: str) -> bool:
    """Whether an ``except`` that names ``names`` catches an exception called ``wanted``.

    Built-in exceptions are compared as classes, so that ``except Exception`` catches a ValueError; others by name,
    and by the built-in bases that the standard library gives them.
    """
    bases = _STANDARD_BASES.get(wanted, ())
    wanted_class = _exception(wanted)
    for name in names:
        if name == wanted or name in bases:
            return True
        handler = _exception(name)
        if handler is None:
            continue
        if wanted_class is not None and issubclass(wanted_class, handler):
            return True
        if wanted_class is None and handler in (Exception, BaseException):
            return True
    return False


_STANDARD_BASES = {
    # pickle.PicklingError derives from pickle.PickleError, and that from Exception.
    "PicklingError": ("PickleError",),
    "UnpicklingError": ("PickleError",),
}


def _exception(name: str) -> type[BaseException] | None:
    found = getattr(builtins, name, None)
    return found if isinstance(found, type) and issubclass(found, BaseException) else None
