"""Signatures: the parameters of a function or a class, as ``inspect.signature`` would tell them, from source."""

from __future__ import annotations

import ast
from typing import Any

from .. import source
from .objects import HARMLESS_DECORATORS, Code, Looker, Opaque, dataclass_decorator
from .scopes import dotted

Parameters = tuple[str, ...]

# Decorators that leave a function's signature to be seen, by the last part of their names. Others are looked into.
_TRANSPARENT = frozenset(
    {
        *("staticmethod", "classmethod", "abstractmethod", "override", "final", "no_type_check", "wraps"),
        *("lru_cache", "cache", "contextmanager", "asynccontextmanager", "deprecated"),
        *("no_grad", "enable_grad", "inference_mode"),
    }
)
_PROPERTIES = frozenset({"property", "cached_property", "abstractproperty"})


def parameters_of(code: Code, looker: Looker) -> tuple[Parameters | None, str]:
    """The parameter names of a function or a class.

    Returns:
        The names, ``*args`` and ``**kwargs`` with their stars, and "" — or None, and why they cannot be told.
    """
    if not isinstance(code.node, ast.ClassDef):
        if any(_last_name(decorator) in _PROPERTIES for decorator in code.node.decorator_list):
            return None, f"{code.qualname} is a property"
        hidden = what_hides(code, looker)
        return (None, hidden) if hidden else (source.parameters(code.node), "")
    if any(keyword.arg == "metaclass" and dotted(keyword.value) != ("ABCMeta",) for keyword in code.node.keywords):
        return None, f"{code.qualname} has a metaclass"
    return _of_class(code, looker)


def _of_class(code: Code, looker: Looker) -> tuple[Parameters | None, str]:
    for base in looker.linearize(code):
        if base is object:
            return (), ""
        if isinstance(base, Opaque):
            if base.only_special_names and "Protocol" not in base.why:
                continue
            return None, base.why
        if not isinstance(base, Code):
            return None, f"{code.qualname} derives from {base.__name__}, which is built in"
        assert isinstance(base.node, ast.ClassDef)
        decorator = dataclass_decorator(base.node)
        # Python prefers __new__ where a class has both.
        for name in ("__new__", "__init__"):
            inner = source.find_definition(base.node, name)
            if inner is not None:
                found, why = parameters_of(Code(base.module, f"{base.qualname}.{name}", inner), looker)
                return (None if found is None else found[1:]), why
        if decorator is not None:
            return _of_dataclass(base, looker)
        unknown = [each for each in base.node.decorator_list if _last_name(each) not in HARMLESS_DECORATORS]
        if unknown:
            return None, f"the decorator {ast.unparse(unknown[0])} of {base.qualname} may add an __init__"
    return (), ""


def _of_dataclass(code: Code, looker: Looker) -> tuple[Parameters | None, str]:
    """The parameters of the ``__init__`` that ``@dataclass`` makes: fields of the bases first, keywords last."""
    fields: dict[str, bool] = {}
    for base in reversed(looker.linearize(code)):
        if isinstance(base, Opaque) and not base.only_special_names:
            return None, base.why
        if not isinstance(base, Code) or not isinstance(base.node, ast.ClassDef):
            continue
        decorator = dataclass_decorator(base.node)
        if decorator is None:
            continue
        options = _options(decorator)
        if options.get("init", True) is not True and base.key == code.key:
            return None, f"{code.qualname} is a dataclass that makes no __init__"
        keyword_only = options.get("kw_only", False) is True
        for statement in base.node.body:
            if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
                continue
            annotation = ast.unparse(statement.annotation).strip("'\"")
            if annotation.split("[")[0].rpartition(".")[2] == "ClassVar":
                continue
            if annotation.rpartition(".")[2] == "KW_ONLY":
                keyword_only = True
                continue
            own = _options(statement.value) if _last_name(statement.value) == "field" else {}
            name = statement.target.id
            fields.pop(name, None) if own.get("init", True) is not True else None
            if own.get("init", True) is True:
                fields[name] = own.get("kw_only", keyword_only) is True
    plain = [name for name, is_keyword in fields.items() if not is_keyword]
    return (*plain, *(name for name, is_keyword in fields.items() if is_keyword)), ""


def _options(node: ast.expr | None) -> dict[str | None, Any]:
    if not isinstance(node, ast.Call):
        return {}
    return {k.arg: k.value.value for k in node.keywords if isinstance(k.value, ast.Constant)}


def what_hides(code: Code, looker: Looker) -> str:
    """Why the definition may not be what the name leads to: a decorator that may put anything there. "" if none is."""
    for decorator in code.node.decorator_list:
        name = _last_name(decorator)
        if name in _TRANSPARENT or name in _PROPERTIES:
            continue
        if isinstance(code.node, ast.ClassDef):
            continue  # inspect.getsource finds a class by its name.
        if not _wraps(decorator, code.module, looker):
            return f"the decorator {ast.unparse(decorator)} of {code.qualname} may put another object in its place"
    return ""


def _wraps(decorator: ast.expr, module: str, looker: Looker) -> bool:
    """Whether a decorator's own source says that it hands the function back, or wraps it in the usual way."""
    parts = dotted(decorator.func if isinstance(decorator, ast.Call) else decorator)
    if parts is None:
        return False
    found = looker.expression(parts, module)
    if len(found.objects) != 1 or not found.there:
        return False
    (made,) = found.objects
    if not isinstance(made, Code) or isinstance(made.node, ast.ClassDef):
        return False
    return _hands_back(made.node)


def _hands_back(node: ast.AST) -> bool:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Call) and _last_name(inner) in ("wraps", "update_wrapper"):
            return True
        if isinstance(inner, ast.FunctionDef) and inner.args.args:
            first = inner.args.args[0].arg
            returned = [s for s in inner.body if isinstance(s, ast.Return)]
            if returned and all(isinstance(r.value, ast.Name) and r.value.id == first for r in returned):
                return True
    return False


def _last_name(node: ast.expr | None) -> str:
    parts = dotted(node.func if isinstance(node, ast.Call) else node)
    return parts[-1] if parts else ""
