"""What has to hold for every module: made-up ones, from imports, scopes and uses in any combination."""

from __future__ import annotations

import ast
import tempfile
from pathlib import Path

import pytest

pytest.importorskip("ruff")
pytest.importorskip("libcst")

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compat_patches.lint import fixing, running
from compat_patches.lint.analysis import Analysis
from compat_patches.lint.planning import plan
from compat_patches.lint.resolving import MODULE, Ruff
from compat_patches.lint.rewriting import rewrite
from compat_patches.lint.table import load_table

TABLE = load_table()

IMPORTS = [
    "import torch",
    "import torch as th",
    "import torch.cuda",
    "import torch.nn, os",
    "import torch.cuda as tc",
    "import torch.cuda as tc, os  # two",
    "from torch import cuda",
    "from torch import cuda as c, nn",
    "from torch.cuda import Event",
    "from torch.cuda import Event as E, synchronize",
    "from torch.cuda import (\n{i}    Event, current_device, # why\n{i}    nvtx,\n{i})",
    "from torch.cuda import (\n{i}    Event,\n{i}    current_device,\n{i})",
    "from torch.cuda import memory",
    "cuda = torch.cuda",
    "E = torch.cuda.Event",
    "torch = None",
    "try:\n{i}    import torch\n{i}except ImportError:\n{i}    torch = None",
    "global torch, Event",
]
ROOTS = ["torch.cuda", "th.cuda", "tc", "cuda", "c", "memory", 'getattr(torch, "cuda")', "(torch).cuda"]
CALLS = [
    "{r}.Event()",
    "{r}.Event(True)",
    "{r}.Event(enable_timing=True, blocking=False)",
    "{r}.Event(blocking=x)",
    "{r}.synchronize(device=x)",
    "{r}.synchronize({r}.current_device())",
    "{r}.mem_get_info(  device = x , )",
    "{r}.device(0)",
    "{r}.device(x)",
    "{r}.empty_cache",
    "{r} . \\\n{i}  memory_allocated()",
    "Event(False, False)",
    "E(True)",
    "Event",
    "synchronize()",
    "current_device()",
    "{r}.nvtx.range('x')",
    "{r}.current_stream().synchronize()",
    "f'{{{r}.device_count()}} é'",
]
SHAPES = [
    "{e}",
    "x = {e}",
    "with {e} as y: pass",
    "'é'; {e}; {e}",
    "y: {e} = None",
    "y: '{q}' = None",
    "isinstance(x, {e})",
    "x = [{e} for z in y if {e}]",
    "lambda torch: {e}",
    "print({e},  # comment\n{i}    *y)",
]
BLOCKS = ["def f(x):", "class A:", "if x:", "async def g(torch=x):", "for torch in y:", "while x:"]


@st.composite
def statements(draw: st.DrawFn, depth: int = 0) -> str:
    """A few statements of a block, without its indentation in the first line."""
    indent = "    " * depth
    lines = []
    for _ in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(["import", "use", "use", "block"]))
        if kind == "import":
            lines.append(draw(st.sampled_from(IMPORTS)).replace("{i}", indent))
        elif kind == "use" or depth >= 3:
            root = draw(st.sampled_from(ROOTS))
            call = draw(st.sampled_from(CALLS)).format(r=root, i=indent)
            shape = draw(st.sampled_from(SHAPES))
            quoted = call.replace("'", "").replace('"', "").replace("\\\n", "")
            lines.append(shape.format(e=call, q=quoted, i=indent))
        else:
            header = draw(st.sampled_from(BLOCKS))
            lines.append(f"{header}\n{indent}    {draw(statements(depth + 1))}")
    return f"\n{indent}".join(lines)


modules = statements().map(lambda text: text + "\n").filter(lambda text: _compiles(text) and "torch" in text)


def _compiles(text: str) -> bool:
    try:
        compile(text, "made-up", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(modules)
def test_fix_keeps_code_code_and_comes_to_rest(source: str) -> None:
    def fixed(text: str) -> tuple[str, list[tuple[str, bool]], int]:
        analysis = Analysis(text, TABLE)
        wanted = {
            (use.row, use.column, use.end_row, use.end_column): use.name
            for use in analysis.uses
            if use.name != MODULE and use.via != "patch" and TABLE.by_name[use.name].level == "finding"
        }
        planned = plan(analysis, "a.py", wanted)
        assert {verdict.position for verdict in planned.verdicts} == set(wanted)
        result = rewrite(text, analysis.lines, analysis.tree.module, planned)
        return result, [(verdict.name, verdict.rewritten) for verdict in planned.verdicts], planned.edits

    once, verdicts, edits = fixed(source)
    assert _compiles(once)
    assert (once == source) == (edits == 0)
    twice, verdicts_afterwards, _ = fixed(once)
    assert twice == once
    # What was rewritten is gone, what was refused is still there, and nothing has come up.
    refused = sorted(name for name, rewritten in verdicts if not rewritten)
    assert sorted(name for name, _ in verdicts_afterwards) == refused
    assert not any(rewritten for _, rewritten in verdicts_afterwards)
    assert _comments(once) == _comments(source)


def _comments(text: str) -> int:
    return sum("#" in line for line in text.split("\n"))


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(modules, min_size=20, max_size=20))
def test_lint_finds_what_our_own_analysis_finds(sources: list[str]) -> None:
    """Whether ruff's result is enough for a file is a shortcut, and may not cost a finding."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number, source in enumerate(sources):
            (folder / f"m{number:02}.py").write_text(source, encoding="utf-8")
        report = running.run(running.Options((folder,), (2, 15), everything=True))
        assert not report.problems
        for number, source in enumerate(sources):
            path = str(folder / f"m{number:02}.py")
            found = {
                (finding.name, finding.row, finding.column)
                for _, finding in report.shown
                if finding.path == path and finding.name != MODULE
            }
            analysed = {(use.name, use.row, use.column) for use in Analysis(source, TABLE).uses if use.name != MODULE}
            assert analysed <= found, source
            # ruff takes the binding that comes last for the one that counts.
            assert found - analysed <= _found_by_ruff(path), source


def _found_by_ruff(path: str) -> set[tuple[str, int, int]]:
    with Ruff([path], TABLE) as ruff:
        places = ruff.result().resolved.get(path, [])
    return {(place.name, place.row, place.column) for place in places}


def test_all_fixes_of_a_folder_are_the_fixes_of_its_files(tmp_path: Path) -> None:
    source = "import torch\ntorch.cuda.synchronize()\n"
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text(source)
    (first, second) = fixing.fix(running.run(running.Options((tmp_path,), (2, 15))))
    assert isinstance(first, fixing.Fixed) and isinstance(second, fixing.Fixed)
    assert first.text == second.text
    assert ast.dump(ast.parse(first.text)) != ast.dump(ast.parse(source))
