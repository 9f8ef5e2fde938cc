"""A hash means the same on every Python: pins are written on one and compared on another."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from compat_patches import source

_PROGRAM = """
import ast, sys, warnings
warnings.simplefilter("ignore")
sys.path.insert(0, sys.argv[1])
from compat_patches import source
for path in sys.argv[2:]:
    tree = ast.parse(open(path, "rb").read())
    for node in ast.walk(tree):
        if isinstance(node, source.Definition):
            print(path, node.name, node.lineno, source.tree_hash(node))
"""

SNIPPETS = '''
def quotes(): return "a" + 'b' + """c""" + f"{x!r:>{width}}" + f'{x:{y}}'
def numbers(): return 1_000, 0xff, 1e3, 1j, True, None, ..., b"\\0", "\\ud800"
def generic(x: "int" = 3, /, *a, y: int, **k) -> None: pass
async def later():
    async with a as b, c: await d
    async for i in j: yield i
class C(B, metaclass=M):
    """Documented."""
    x: int = 1
    @property
    def p(self): return lambda *, k=1: k
def matching(x):
    match x:
        case {"a": 1, **rest} | [1, *_] if y: pass
        case C(a=b): pass
def trying():
    try: pass
    except (A, B) as e: raise X from e
    else: pass
    finally: del q
    global g
    assert x, "m"
    return [i for i in range(3) if i] or {k: v for k, v in x} or (yield) or x[1:2, ...] or (y := 3)
'''


def _pythons() -> list[str]:
    others = [minor for minor in range(10, 16) if minor != sys.version_info.minor]
    found = [shutil.which(f"python3.{minor}") for minor in others]
    return [path for path in found if path and _runs(path)]


def _runs(python: str) -> bool:
    # A version manager's stand-in is there for versions that are not installed, too.
    return subprocess.run([python, "-c", ""], capture_output=True).returncode == 0


@pytest.mark.parametrize("python", _pythons(), ids=os.path.basename)
def test_hashes_are_the_same_on_another_python(python: str, tmp_path: Path) -> None:
    (tmp_path / "snippets.py").write_text(SNIPPETS)
    files = [tmp_path / "snippets.py"]
    import importlib.util

    spec = importlib.util.find_spec("torch")
    if spec is not None and spec.origin is not None:
        root = Path(spec.origin).parent
        files += [root / "_inductor/codecache.py", root / "xpu/streams.py", root / "accelerator/__init__.py"]
        files += [root / "accelerator/memory.py", root / "_dynamo/symbolic_convert.py", root / "nn/modules/module.py"]
    package = Path(source.__file__).parents[1]

    def hashes(interpreter: str) -> str:
        command = [interpreter, "-c", _PROGRAM, str(package), *[str(file) for file in files if file.exists()]]
        done = subprocess.run(
            command, env={**os.environ, "COMPAT_PATCHES": "off"}, capture_output=True, text=True, check=True
        )
        return done.stdout

    mine = hashes(sys.executable)
    assert len(mine.splitlines()) > 5
    assert mine == hashes(python)


def test_hashes_stay_what_they_are() -> None:
    # Manifests of other projects have them in their pins. A change of these values breaks every one of them.
    def hash_of(text: str) -> str:
        node = source.parse_definition(text)
        assert node is not None
        return source.tree_hash(node)

    assert hash_of("def f(a, *, b=1): return f'{a!r:>{b}} x'") == "f706250e910093897f36f469c0336170"
    assert hash_of("class C(B):\n    x: int = 1") == "e685db82403814e2a0f76cbd252e609f"
