"""Living with others that have patched already: a mark of theirs, and another copy of compat_patches."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from declared import patch, problems
from standins import ROOT, World, declaration, run_python

from compat_patches import claims

# --- a mark of somebody else's -------------------------------------------------------------------------------------


@pytest.fixture
def target(world: World) -> Any:
    return world.load(
        "target",
        """
        patched = False
        class Class:
            def m(self): return 1
            @staticmethod
            def s(): return 1
            @property
            def p(self): return 1
        def f(): return 1
        """,
    )


def test_a_function_that_bears_the_mark_is_left_alone(world: World, target: Any) -> None:
    target.f._acme_patched = True
    before = target.f
    status = world.wrap("target:f", skip_if_marked="_acme_patched")
    assert (status.state, target.f) == ("skipped", before)
    assert status.reason == "marked: target:f has a true '_acme_patched', so another tool has patched it"


@pytest.mark.parametrize("name", ["m", "s", "p"])
def test_a_mark_is_seen_through_descriptors(world: World, target: Any, name: str) -> None:
    raw = vars(target.Class)[name]
    function = raw.fget if isinstance(raw, property) else getattr(raw, "__func__", raw)
    function._acme_patched = True
    assert world.wrap(f"target:Class.{name}", skip_if_marked=["_other", "_acme_patched"]).state == "skipped"


def test_a_class_can_bear_the_mark(world: World, target: Any) -> None:
    target.Class._acme_patched = True
    world.write("sub", "def factory(original):\n    return type('Class', (original,), {})")
    assert world.wrap("target:Class", "sub:factory", skip_if_marked="_acme_patched").state == "skipped"


def test_a_mark_can_lie_anywhere(world: World, target: Any) -> None:
    target.patched = True
    status = world.wrap("target:f", skip_if_marked="target:patched")
    assert (status.state, target.f()) == ("skipped", 1)
    assert status.reason == "marked: target:patched is there and true, so another tool has patched target:f"


@pytest.mark.parametrize("mark", ["_acme_patched", "target:patched", "target:absent", "target:Absent.x", "absent:x"])
def test_without_the_mark_or_where_it_is_false_the_patch_is_applied(world: World, target: Any, mark: str) -> None:
    target.f._acme_patched = False
    assert world.wrap("target:f", skip_if_marked=mark).state == "applied"
    assert target.f() == 2


def test_what_a_mock_makes_up_is_no_mark(world: World, target: Any) -> None:
    from unittest.mock import Mock

    target.f = Mock(return_value=1)
    assert world.wrap("target:f", skip_if_marked="_acme_patched").state == "applied"


def test_one_marked_slot_keeps_the_whole_patch_away(world: World, target: Any) -> None:
    target.f._acme_patched = True
    step = {"action": "wrap", "using": "impl:add_one"}
    steps = [{"target": "target:Class.m", **step}, {"target": "target:f", **step}]
    world.declare({"id": "p", "step": steps, "skip_if_marked": "_acme_patched"})
    assert (world.state(), target.Class().m(), world.layers) == ("skipped", 1, 0)


def test_force_passes_over_a_mark(world: World, target: Any) -> None:
    target.f._acme_patched = True
    world.wrap("target:f", skip_if_marked="_acme_patched")
    assert world.engine.apply("p", force=True)[0].state == "applied"
    assert target.f() == 2


def test_the_record_and_the_faults_of_a_mark() -> None:
    assert patch(skip_if_marked="_a.b").skip_if_marked == ("_a.b",)
    assert patch(skip_if_marked=["_a", "b.c:d"]).skip_if_marked == ("_a", "b.c:d")
    assert patch().skip_if_marked == ()
    (problem,) = problems(skip_if_marked=1)
    assert "key 'skip_if_marked': found the number 1; expected a name beside the target" in problem


# --- another copy of compat_patches --------------------------------------------------------------------------------


def test_who_has_claimed_a_patch_is_known_to_all_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    assert claims.claim("m/p") is None
    assert claims.claim("m/p") is None
    monkeypatch.setattr(claims, "_ME", object())
    assert claims.claim("m/p") == claims.holder("m/p") == str(ROOT / "compat_patches")
    claims.release("m/p")
    assert claims.holder("m/p") is not None
    monkeypatch.undo()
    claims.release("m/p")
    claims.release("m/p")
    assert claims.holder("m/p") is None


TWICE = """
import importlib, json, sys
from pathlib import Path
import target

def engine_of(package):
    engine = importlib.import_module(f"{package}.engine").Engine()
    engine.open()
    manifest = importlib.import_module(f"{package}.manifest")
    engine.add(manifest.load(Path(target.__file__).parent / "m.toml"))
    return engine

one = engine_of("compat_patches")
SECOND
original = target.f
one.start()
two.start()
assert target.f() == 2, target.f()
status, = two.status("p")
print(status.state, "|", status.reason)
# Whoever has it, has to undo it; then the other can have it.
two.revert("p")
assert target.f() == 2
one.revert("p")
assert target.f is original
assert two.apply("p")[0].state == "applied"
assert one.apply("p")[0].state == "skipped"
assert target.f() == 2
# Beneath somebody else's work, it hands calls through for the one that had it, and so may the other come on top.
ours = target.f
target.f = lambda: ours() + 100
two.revert("p")
assert (two.status("p")[0].state, target.f()) == ("overlaid", 101)
assert one.apply("p")[0].state == "applied"
assert two.apply("p")[0].state == "skipped"
assert target.f() == 102
one.revert("p")
# It is woken up where it lingered, beneath what may or may not call it.
assert two.apply("p")[0].state == "overlaid"
assert target.f() == 102
for _ in range(100):
    one.apply("p"), two.apply("p")
    assert target.f() == 102
# What is imported later is patched once, though both wait for it.
one.apply("late"), two.apply("late")
import late
assert late.f() == 2
sys.modules.pop("late")
import late
assert late.f() == 2
"""


@pytest.mark.parametrize("way", ["under another name", "after sys.modules was cleared"])
def test_another_copy_of_us_makes_no_second_layer(tmp_path: Path, way: str) -> None:
    (tmp_path / "target.py").write_text("def f(): return 1")
    (tmp_path / "late.py").write_text("def f(): return 1")
    (tmp_path / "impl.py").write_text("def add_one(original):\n    return lambda: original() + 1")
    wrap = {"action": "wrap", "using": "impl:add_one"}
    patches = [{"id": "p", "target": "target:f", **wrap}, {"id": "late", "target": "late:f", **wrap}]
    (tmp_path / "m.toml").write_text(declaration("shared", patches))
    if way == "under another name":
        shutil.copytree(ROOT / "compat_patches", tmp_path / "vendored_patches")
        second = 'two = engine_of("vendored_patches")'
    else:
        second = (
            'for name in [name for name in sys.modules if name.partition(".")[0] == "compat_patches"]:\n'
            "    del sys.modules[name]\n"
            'two = engine_of("compat_patches")\n'
            "assert type(one) is not type(two)"
        )
    done = run_python(TWICE.replace("SECOND", second), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    state, reason = done.stdout.strip().split(" | ")
    assert state == "skipped"
    assert reason.startswith("applied already by another copy of compat_patches in this process, from ")


def test_a_claim_goes_with_what_failed_to_be_written(
    world: World, target: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from compat_patches.target import ModuleSlot

    def broken(self: ModuleSlot, entry: Any) -> None:
        raise MemoryError

    before = dict(vars(sys)["_compat_patches_claims"])
    with monkeypatch.context() as patched:
        patched.setattr(ModuleSlot, "put", broken)
        assert world.wrap("target:f").state == "failed"
    assert vars(sys)["_compat_patches_claims"] == before
