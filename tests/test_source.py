"""Upstream source as syntax trees: found by name, hashed by meaning, asked what it takes, mentions and catches."""

import ast
import functools
import inspect
import sys
import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compat_patches.source import catches, caught, constants, definition_of, find_definition, parameters, tree_hash


def tree(text: str) -> ast.Module:
    return ast.parse(textwrap.dedent(text))


def found(text: str, qualname: str) -> str | None:
    node = find_definition(tree(text), qualname)
    return None if node is None else ast.unparse(node.body[-1])


# --- finding -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "qualname", "last"),
    [
        ("def f(): return 1", "f", "return 1"),
        ("async def f(): return 1", "f", "return 1"),
        ("class C:\n  def f(self): return 1", "C.f", "return 1"),
        ("class C:\n  class D:\n    def f(self): return 1", "C.D.f", "return 1"),
        ("def f(): return 1\ndef f(): return 2", "f", "return 2"),
        ("if A:\n  def f(): return 1\nelse:\n  def f(): return 2", "f", "return 2"),
        ("try:\n  import x\nexcept E:\n  def f(): return 1", "f", "return 1"),
        ("with x:\n  for y in z:\n    while a:\n      def f(): return 1", "f", "return 1"),
        ("match x:\n  case 1:\n    def f(): return 1", "f", "return 1"),
        ("class C:\n  @property\n  def f(self): return 1\n  @f.setter\n  def f(self, v): return 2", "C.f", "return 1"),
        ("class C:\n  @property\n  def f(self): return 1\n  @f.deleter\n  def f(self): return 2", "C.f", "return 1"),
        ("@overload\ndef f(a): ...\ndef f(a): return 2", "f", "return 2"),
        ("def g():\n  def f(): return 1", "f", None),
        ("f = 1", "f", None),
        ("class C: pass", "C.f", None),
        ("", "f", None),
    ],
)
def test_a_definition_is_found_by_its_qualified_name(text, qualname, last):
    assert found(text, qualname) == last


def decorator(function):
    @functools.wraps(function)
    def stand_in(*args):
        return function(*args)

    return stand_in


class Everything:
    def method(self):
        """A text with
        an odd indentation."""
        return "method"

    @staticmethod
    def static():
        return "static"

    @classmethod
    def of_class(cls):
        return "of_class"

    @property
    def prop(self):
        return "prop"

    @functools.cached_property
    def cached(self):
        return "cached"

    @decorator
    def wrapped(self):
        return "wrapped"


@pytest.mark.parametrize("name", ["method", "static", "of_class", "prop", "cached", "wrapped"])
def test_the_definition_of_what_a_class_holds_is_what_upstream_wrote(name):
    node = definition_of(vars(Everything)[name])
    assert node.name == name
    assert name in constants(node)
    with open(__file__, encoding="utf-8") as file:
        assert tree_hash(node) == tree_hash(find_definition(ast.parse(file.read()), f"Everything.{name}"))


def test_the_definition_of_a_class_is_its_whole_body():
    assert isinstance(definition_of(Everything), ast.ClassDef)


def made_up():
    namespace: dict = {}
    exec("def nowhere(): pass", namespace)
    return namespace["nowhere"]


def in_a_circle():
    function = made_up()
    function.__wrapped__ = function
    return function


@pytest.mark.parametrize(
    "value", [len, dict.get, 3, None, functools.partial(print), made_up(), in_a_circle(), property(), lambda: 0]
)
def test_what_has_no_python_source_has_no_definition(value):
    assert definition_of(value) is None


# --- hashing -------------------------------------------------------------------------------------------------------

BASE = "def f(a, b=1):\n    if a:\n        return b + 'x'\n"


@pytest.mark.parametrize(
    "same",
    [
        'def f(a, b = 1):  # a comment\n\n    if (a):\n        return (b +\n            "x")\n',
        "def f(\n    a,\n    b=0x1,\n):\n\tif a: return b + u'x'\n",
        "def f(a, b=1):\n    if a:\n        return b + 'x'  # type: ignore\n",
        "def f(a, b=1):\n    if a:\n        return b + '' 'x'\n",
    ],
)
def test_comments_and_formatting_do_not_matter(same):
    assert tree_hash(tree(same)) == tree_hash(tree(BASE))


@pytest.mark.parametrize(
    "other",
    [
        "def g(a, b=1):\n    if a:\n        return b + 'x'\n",
        "def f(a, b=2):\n    if a:\n        return b + 'x'\n",
        "def f(a, b=True):\n    if a:\n        return b + 'x'\n",
        "def f(a, b=1.0):\n    if a:\n        return b + 'x'\n",
        "def f(a, b=1):\n    if a:\n        return b + b'x'\n",
        "def f(a, b=1):\n    if a:\n        return b - 'x'\n",
        "def f(a, b=1):\n    if a:\n        return b + 'y'\n",
        "def f(a, *, b=1):\n    if a:\n        return b + 'x'\n",
        "def f(a, b=1, /):\n    if a:\n        return b + 'x'\n",
        "def f(a, b: int = 1):\n    if a:\n        return b + 'x'\n",
        "async def f(a, b=1):\n    if a:\n        return b + 'x'\n",
        "def f(a, b=1):\n    'docs'\n    if a:\n        return b + 'x'\n",
        "def f(a, b=1):\n    if a:\n        pass\n    return b + 'x'\n",
        "@d\ndef f(a, b=1):\n    if a:\n        return b + 'x'\n",
    ],
)
def test_everything_else_matters(other):
    assert tree_hash(tree(other)) != tree_hash(tree(BASE))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("return_ = [[a], b]", "return_ = [[a, b]]"),
        ("def f(): return", "def f(): return None"),
        ("x = {**a}", "x = {None: a}"),
        ("x[:]", "x[None:]"),
        ("f(a, b)", "f((a, b))"),
        ("global_ = 'a b'", "global_ = 'a', 'b'"),
        ("x = f'{a}'", "x = f'{a!s}'"),
        ("x = f'{a:b}'", "x = f'{a}b'"),
        ("from . import a", "from .. import a"),
    ],
)
def test_trees_of_another_shape_have_another_hash(one, other):
    assert tree_hash(tree(one)) != tree_hash(tree(other))


NAMES = st.sampled_from(["a", "b", "größe"])
CONSTANTS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5) | st.binary()
EXPRESSIONS = st.recursive(
    NAMES | CONSTANTS.map(repr),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "@", "and", "or", "<", "is", "not in"]), inner).map(
            lambda parts: f"({parts[0]} {parts[1]} {parts[2]})"
        ),
        st.lists(inner, max_size=3).map(lambda parts: f"[{', '.join(parts)}]"),
        st.tuples(inner, inner).map(lambda parts: f"f({parts[0]}, x={parts[1]})"),
        inner.map(lambda part: f"(lambda a, /, *b: {part})"),
    ),
    max_leaves=12,
)


@settings(deadline=None)
@given(EXPRESSIONS)
def test_a_tree_written_anew_has_the_hash_it_had(expression):
    original = ast.parse(f"x = {expression}")
    assert tree_hash(ast.parse(ast.unparse(original))) == tree_hash(original)
    spaced = f"x = (  # comment\n\n  {expression}\n\n)  # {expression.encode()!r}"
    assert tree_hash(ast.parse(spaced)) == tree_hash(original)


@settings(deadline=None)
@given(EXPRESSIONS, EXPRESSIONS)
def test_trees_have_the_same_hash_only_where_they_say_the_same(one, other):
    trees = ast.parse(one, mode="eval"), ast.parse(other, mode="eval")
    assert (tree_hash(trees[0]) == tree_hash(trees[1])) == (ast.dump(trees[0]) == ast.dump(trees[1]))


@pytest.mark.parametrize(
    ("text", "known"),
    [
        (BASE, "ea6d5911d7f06dd57a1890605d760849"),
        ("x = '\U0001fae8\U0001fadf é'", "1414239d71817188a4df2e887dafb70e"),
        ("x = f' {h:{w}} {h:>{w}.{p}f} {{}} {h=}'", "dd20ea3a914df1f543e43b0e5f670c54"),
    ],
)
def test_each_python_computes_the_same_hash(text, known):
    """Each known one was computed by Python 3.10, 3.11, 3.12 and 3.13.

    They differ in which characters `repr` writes as they are, and in how they parse format specifications.
    """
    assert tree_hash(tree(text)) == known


def test_a_hash_is_32_hexadecimal_digits():
    assert len(tree_hash(tree(BASE))) == 32
    assert set(tree_hash(tree(BASE))) <= set("0123456789abcdef")


def test_long_expressions_are_no_matter_of_recursion():
    long = tree("x = 'first'" + " + y" * 500)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + 100)
    try:
        assert len(tree_hash(long)) == 32
        assert constants(long) == {"first"}
    finally:
        sys.setrecursionlimit(limit)


# --- asking --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("def f(): pass", ()),
        ("def f(a, /, b, *args, c, d=1, **kwargs): pass", ("a", "b", "*args", "c", "d", "**kwargs")),
        ("async def f(a, *, b): pass", ("a", "b")),
        ("class f:\n  def __init__(self, a): pass", ("a",)),
        ("class f:\n  def __init__(self, a): pass\n  def __new__(cls, b): pass", ("b",)),
        ("class f: pass", None),
        ("class f:\n  class __init__: pass", None),
    ],
)
def test_the_parameters_of_a_call(text, names):
    assert parameters(find_definition(tree(text), "f")) == names


def test_constants_are_those_of_the_code():
    node = tree(
        """
        @decorated('in a decorator')
        def f(a: 'in an annotation', b='in a default') -> 'in what is returned':
            'in the documentation'
            x: 'in an annotation too' = 1
            def g():
                'in the documentation too'
                return f'in a {x} text', None, b'bytes', 2.5
            'an expression of its own'
        """
    )
    assert constants(node) == {
        *("in a decorator", "in a default", 1, "in a ", " text", None, b"bytes", 2.5, "an expression of its own")
    }


@pytest.mark.parametrize(
    ("handlers", "names"),
    [
        ("except ValueError: pass", ("ValueError",)),
        ("except (TypeError, pickle.PicklingError) as e: pass", ("TypeError", "PicklingError")),
        ("except a.b.C: pass", ("C",)),
        ("except: pass", ("BaseException",)),
        ("except ValueError: pass\nexcept ValueError: pass\nexcept KeyError: pass", ("ValueError", "KeyError")),
        ("finally: pass", ()),
        ("except make(): pass", ()),
    ],
)
def test_what_is_caught(handlers, names):
    assert caught(tree(f"try: pass\n{handlers}")) == names


def test_what_is_caught_inside_counts():
    assert caught(tree("def f():\n  with x:\n    try: pass\n    except OSError: pass")) == ("OSError",)


@pytest.mark.parametrize(
    ("names", "wanted", "answer"),
    [
        (("ValueError",), "ValueError", True),
        (("Exception",), "ValueError", True),
        (("BaseException",), "KeyboardInterrupt", True),
        (("Exception",), "KeyboardInterrupt", False),
        (("LookupError",), "KeyError", True),
        (("KeyError",), "LookupError", False),
        (("IOError",), "OSError", True),
        (("Exception",), "PicklingError", True),
        (("PickleError",), "PicklingError", True),
        (("PicklingError",), "PicklingError", True),
        (("ValueError", "TypeError"), "PicklingError", False),
        (("BypassFxGraphCache",), "ValueError", False),
        ((), "ValueError", False),
        (("print",), "ValueError", False),
    ],
)
def test_an_exception_is_caught_by_its_name_and_its_bases(names, wanted, answer):
    assert catches(names, wanted) is answer
