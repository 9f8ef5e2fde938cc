"""Static facts: what the files say is what Python makes of them, or None; never anything else.

Each case is imported as well, and the running engine's own facts are the right answer.
"""

from __future__ import annotations

import importlib
import itertools
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from compat_patches import source
from compat_patches.audit.facts import StaticFacts
from compat_patches.audit.trees import Folder, UnreadableSource
from compat_patches.evidence import LiveFacts
from compat_patches.manifest import Target

Facts = tuple[StaticFacts, LiveFacts, str]
_numbers = itertools.count()


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[dict[str, str]], Facts]]:
    """Makes a package out of files, imports it, and gives both kinds of facts about it."""
    made = []

    def make(files: dict[str, str]) -> Facts:
        name = f"subject{next(_numbers)}"
        made.append(name)
        for path, text in {"__init__.py": "", **files}.items():
            where = tmp_path / name / path
            where.parent.mkdir(parents=True, exist_ok=True)
            where.write_text(textwrap.dedent(text).replace("PACKAGE", name), encoding="utf-8")
        monkeypatch.syspath_prepend(str(tmp_path))
        for path in ["__init__.py", *files]:
            importlib.import_module(".".join([name, *path.removesuffix(".py").split("/")]).removesuffix(".__init__"))
        return StaticFacts(Folder(str(tmp_path))), LiveFacts(), name

    yield make
    for module in list(sys.modules):
        if module.partition(".")[0] in made:
            del sys.modules[module]


def answers(facts: StaticFacts | LiveFacts, target: Target) -> tuple[object, object, object]:
    node = facts.definition(target)
    return facts.exists(target), facts.parameters(target), node and source.tree_hash(node)


SAME = {
    "a function": ({"__init__.py": "def f(a, /, b, *c, d, **e): pass"}, "f"),
    "a re-export": ({"__init__.py": "from .inner import f", "inner.py": "def f(x): return x"}, "f"),
    "a re-export of a re-export, renamed": (
        {"__init__.py": "from .a import g as h", "a.py": "from PACKAGE.b import f as g", "b.py": "def f(x): pass"},
        "h",
    ),
    "an import in a list": (
        {"__init__.py": "from .inner import (\n  e,\n  f,\n)", "inner.py": "def f(): pass\ne=1"},
        "f",
    ),
    "an alias": ({"__init__.py": "def _f(x): pass\nf = _f"}, "f"),
    "an alias through a module": (
        {"__init__.py": "from . import inner\nf = inner.f", "inner.py": "def f(x): pass"},
        "f",
    ),
    "a star import": ({"__init__.py": "from .inner import *", "inner.py": "def f(x): pass"}, "f"),
    "a star import with __all__": (
        {"__init__.py": "from .inner import *", "inner.py": "__all__ = ['f']\ndef f(x): pass\ndef g(y): pass"},
        "g",
    ),
    "a private name behind a star": ({"__init__.py": "from .inner import *", "inner.py": "def _f(x): pass"}, "_f"),
    "a method": ({"__init__.py": "class C:\n    def f(self, x): pass"}, "C.f"),
    "a static method": ({"__init__.py": "class C:\n    @staticmethod\n    def f(x): pass"}, "C.f"),
    "a class method": ({"__init__.py": "class C:\n    @classmethod\n    def f(cls, x): pass"}, "C.f"),
    "__new__": ({"__init__.py": "class C:\n    def __new__(cls, x): pass"}, "C.__new__"),
    "a property": ({"__init__.py": "class C:\n    @property\n    def f(self): return 1"}, "C.f"),
    "a property with a setter": (
        {
            "__init__.py": """
                class C:
                    @property
                    def f(self): return 1
                    @f.setter
                    def f(self, value): pass
                """
        },
        "C.f",
    ),
    "a cached property": (
        {"__init__.py": "import functools\nclass C:\n    @functools.cached_property\n    def f(self): return 1"},
        "C.f",
    ),
    "an inherited method": (
        {"__init__.py": "from .base import B\nclass C(B): pass", "base.py": "class B:\n    def f(self, x): pass"},
        "C.f",
    ),
    "the order of bases": (
        {
            "__init__.py": """
                class A:
                    def f(self, a): pass
                class B(A): pass
                class C(A):
                    def f(self, c): pass
                class D(B, C): pass
                """
        },
        "D.f",
    ),
    "a class with __init__": ({"__init__.py": "class C:\n    def __init__(self, a, *, b=1): pass"}, "C"),
    "a class with an inherited __init__": (
        {"__init__.py": "class B:\n    def __init__(self, a): pass\nclass C(B): pass"},
        "C",
    ),
    "a plain class": ({"__init__.py": "class C: pass"}, "C"),
    "a dataclass": (
        {
            "__init__.py": """
                from dataclasses import dataclass, field
                from typing import ClassVar
                @dataclass
                class B:
                    a: int
                    b: list = field(default_factory=list)
                    hidden: int = field(default=1, init=False)
                    shared: ClassVar[int] = 3
                """
        },
        "B",
    ),
    "a field without a default": (
        {
            "__init__.py": """
                from dataclasses import dataclass, field
                @dataclass
                class C:
                    a: list = field(default_factory=list)
                """
        },
        "C.a",
    ),
    "a field with a default": (
        {"__init__.py": "from dataclasses import dataclass\n@dataclass\nclass C:\n    a: int = 1"},
        "C.a",
    ),
    "a dataclass with keyword fields": (
        {
            "__init__.py": """
                from dataclasses import dataclass, field
                @dataclass
                class B:
                    a: int
                    k: int = field(default=1, kw_only=True)
                @dataclass
                class C(B):
                    z: int = 2
                """
        },
        "C",
    ),
    "a definition in try": (
        {"__init__.py": "try:\n    import no_such_module\nexcept ImportError:\n    pass\ndef f(x): pass"},
        "f",
    ),
    "a name bound in each branch": (
        {"__init__.py": "import sys\nif sys.platform:\n    def f(x): pass\nelse:\n    def f(x): pass"},
        "f",
    ),
    "a later definition": ({"__init__.py": "def f(a): pass\ndef f(b): pass"}, "f"),
    "a deleted name": ({"__init__.py": "def f(a): pass\ndel f"}, "f"),
    "type checkers' code": (
        {"__init__.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    def f(a): pass"},
        "f",
    ),
    "type checkers' code, and what runs": (
        {"__init__.py": "import typing\nif not typing.TYPE_CHECKING:\n    def f(a): pass\nelse:\n    def f(b): pass"},
        "f",
    ),
    "overloads": (
        {
            "__init__.py": """
                from typing import overload
                @overload
                def f(a: int) -> int: ...
                @overload
                def f(a: str) -> str: ...
                def f(a, b=None): return a
                """
        },
        "f",
    ),
    "a decorator that wraps": (
        {
            "__init__.py": """
                import functools
                def deco(fn):
                    @functools.wraps(fn)
                    def inner(*args): return fn(*args)
                    return inner
                @deco
                def f(a, b): pass
                """
        },
        "f",
    ),
    "a decorator that hands back": ({"__init__.py": "def deco(fn):\n    return fn\n@deco\ndef f(a, b): pass"}, "f"),
    "a context manager": (
        {"__init__.py": "import contextlib\n@contextlib.contextmanager\ndef f(a):\n    yield"},
        "f",
    ),
    "strings that look indented": (
        {"__init__.py": 'class C:\n    def f(self):\n        return """\n  text\n"""'},
        "C.f",
    ),
    "nothing of that name": ({"__init__.py": "def g(): pass"}, "f"),
    "nothing of that name in a class": ({"__init__.py": "class C: pass"}, "C.f"),
    "nothing of that name in a class with a standard base": (
        {"__init__.py": "import pickle\nclass C(pickle.Pickler): pass"},
        "C.dumps",
    ),
    "a name from a built-in base": ({"__init__.py": "class C(dict): pass"}, "C.update"),
    "a class that hides a module": (
        {"__init__.py": "from .inner import inner", "inner.py": "def inner(x): pass"},
        "inner",
    ),
    "a slot": ({"__init__.py": "class C:\n    __slots__ = ('a',)"}, "C.a"),
    "an asynchronous function": ({"__init__.py": "async def f(a): pass"}, "f"),
    "a value": ({"__init__.py": "f = 3"}, "f"),
    "a tuple of values": ({"__init__.py": "e, f = 1, 2"}, "f"),
    "an annotation alone": ({"__init__.py": "f: int"}, "f"),
    "a nested class": ({"__init__.py": "class C:\n    class D:\n        def f(self, x): pass"}, "C.D.f"),
    "an alias in a class": ({"__init__.py": "class C:\n    def g(self, x): pass\n    f = g"}, "C.f"),
    "a global made by a function": ({"__init__.py": "f = None\ndef make():\n    global f\n    f = 1"}, "f"),
}


@pytest.mark.parametrize("files, name", SAME.values(), ids=SAME.keys())
def test_files_say_what_python_makes_of_them(files: dict[str, str], name: str, package: Callable[..., Facts]) -> None:
    static, live, root = package(files)
    target = Target(root, name)
    assert answers(static, target) == answers(live, target)


UNCLEAR = {
    "a name made with globals()": ({"__init__.py": "globals()['f'] = lambda x: x"}, "f", "globals"),
    "a name made with exec": ({"__init__.py": "exec('def f(): pass')"}, "f", "exec"),
    "a name that a condition binds": (
        {"__init__.py": "import sys\nif sys.argv:\n    def f(x): pass"},
        "f",
        "condition",
    ),
    "a module that answers by __getattr__": (
        {"__init__.py": "def __getattr__(name): raise AttributeError"},
        "f",
        "__getattr__",
    ),
    "a base class in C": ({"__init__.py": "import _socket\nclass C(_socket.socket): pass"}, "C.f", "no source here"),
    "a module that replaces itself": (
        {"inner.py": "import sys, types\ndef g(): pass\nsys.modules[__name__] = types.ModuleType(__name__)"},
        "inner:g",
        "sys.modules",
    ),
    "an attribute of an instance": (
        {"__init__.py": "import types\nspace = types.SimpleNamespace(f=1)"},
        "space.f",
        "running code",
    ),
    "a submodule that somebody imports": ({"inner.py": ""}, "inner", "is a module"),
}


@pytest.mark.parametrize("files, name, why", UNCLEAR.values(), ids=UNCLEAR.keys())
def test_what_files_cannot_say_is_none_with_a_reason(
    files: dict[str, str], name: str, why: str, package: Callable[..., Facts]
) -> None:
    static, _, root = package(files)
    module, _, qualname = name.rpartition(":")
    look = static.look(Target(f"{root}.{module}" if module else root, qualname))
    assert look.there is None
    assert why in look.why


HIDDEN = {
    "two definitions that differ": (
        {"__init__.py": "import sys\nif sys.platform:\n    def f(a): pass\nelse:\n    def f(b): pass"},
        "condition decides",
    ),
    "a decorator that may do anything": (
        {"__init__.py": "def deco(fn):\n    return lambda *a: fn(*a)\n@deco\ndef f(a): pass"},
        "decorator deco",
    ),
}


@pytest.mark.parametrize("files, why", HIDDEN.values(), ids=HIDDEN.keys())
def test_a_definition_that_may_be_another_one_is_not_taken(
    files: dict[str, str], why: str, package: Callable[..., Facts]
) -> None:
    static, _, root = package(files)
    target = Target(root, "f")
    assert static.exists(target) is True
    assert static.definition(target) is None
    assert static.parameters(target) is None
    assert why in static.look(target).why


def test_a_look_says_where_the_definition_is(package: Callable[..., Facts]) -> None:
    static, _, root = package(
        {"__init__.py": "from .inner import f", "inner.py": "\n\n@staticmethod\ndef f(x):\n    pass\n"}
    )
    look = static.look(Target(root, "f"))
    assert (look.path, look.line, look.name) == (f"{root}/inner.py", 3, f"{root}.inner:f")


def test_the_missing_part_is_named(package: Callable[..., Facts]) -> None:
    static, _, root = package({"__init__.py": "class C: pass"})
    assert static.look(Target(root, "D.f")).missing == "D"
    assert static.look(Target(root, "C.f")).missing == "f"
    assert static.look(Target(f"{root}.nothing", "f")).missing == f"{root}.nothing"


def test_another_package_is_not_looked_for(package: Callable[..., Facts]) -> None:
    static, _, _ = package({})
    assert static.look(Target("os", "environ")).there is None
    assert "standard library" in static.look(Target("os", "environ")).why
    assert static.look(Target("no_such_package_here", "f")).there is None


def test_a_file_that_this_python_cannot_parse_says_so(tmp_path: Path) -> None:
    (tmp_path / "subject.py").write_text("def f(:\n")
    with pytest.raises(UnreadableSource, match=r"subject.py line 1 .* cannot be parsed by Python 3\.\d+"):
        StaticFacts(Folder(str(tmp_path))).exists(Target("subject", "f"))


def test_names_that_import_each_other_end(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("from two import f\n")
    (tmp_path / "two.py").write_text("from one import f\n")
    assert StaticFacts(Folder(str(tmp_path))).exists(Target("one", "f")) is False


def test_nothing_is_imported(tmp_path: Path) -> None:
    (tmp_path / "bomb_under_audit.py").write_text("raise SystemExit\ndef f(x): pass\n")
    facts = StaticFacts(Folder(str(tmp_path)))
    assert facts.exists(Target("bomb_under_audit", "f")) is False  # What comes after a raise is never bound.
    assert "bomb_under_audit" not in sys.modules
