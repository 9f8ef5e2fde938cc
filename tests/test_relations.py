"""`after`, `before` and `conflicts`: in which order patches are applied, and which are not applied together."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from declared import document, problems, table, toml
from standins import World

from compat_patches import manifest
from compat_patches.manifest import Patch
from compat_patches.relations import Relations

ADD, TIMES = "impl:add_one", "times:ten"


def patches(name: str = "m", **fields: dict[str, Any]) -> dict[str, Patch]:
    tables = [table(id=identifier, **more) for identifier, more in fields.items()]
    declared = manifest.parse(toml(document(*tables, name=name)), "a test")
    return {patch.qualified_id: patch for patch in declared.patches}


@pytest.fixture
def target(world: World) -> Any:
    world.write("times", "def ten(original):\n    return lambda: original() * 10")
    return world.load("target", "def f(): return 1\ndef g(): return 1")


def wrap(identifier: str, using: str = ADD, target: str = "target:f", **fields: Any) -> dict[str, Any]:
    return {"id": identifier, "target": target, "action": "wrap", "using": using, **fields}


# --- the order -----------------------------------------------------------------------------------------------------


def test_without_relations_the_order_stays():
    assert Relations(patches(a={}, b={})).order(["m/b", "m/a"]) == ["m/b", "m/a"]


@pytest.mark.parametrize("name", ["b", "m/b"])
def test_a_patch_comes_after_those_that_it_names(name):
    assert Relations(patches(a={"after": [name]}, b={}, c={})).order(["m/a", "m/b", "m/c"]) == ["m/b", "m/a", "m/c"]


def test_a_patch_comes_before_those_that_it_names():
    assert Relations(patches(a={}, b={}, c={"before": ["a"]})).order(["m/a", "m/b", "m/c"]) == ["m/c", "m/a", "m/b"]


def test_who_is_not_among_them_is_not_added():
    assert Relations(patches(a={"after": ["b"]}, b={})).order(["m/a"]) == ["m/a"]


def test_an_id_is_rather_the_manifests_own():
    both = {**patches("m", a={"after": ["b"]}, b={}), **patches("n", b={})}
    made = Relations(both)
    assert made.order(["m/a", "m/b", "n/b"]) == ["m/b", "m/a", "n/b"]
    assert made.remarks("m/a") == []


def test_a_chain_may_be_long():
    chain = {f"p{number}": {"after": [f"p{number + 1}"]} for number in range(3000)}
    made = Relations(patches(**chain, p3000={}))
    assert made.order(f"m/p{number}" for number in range(3001)) == [f"m/p{number}" for number in range(3000, -1, -1)]
    assert made.circles == []


def test_one_after_many_and_many_after_one():
    many = [f"p{number}" for number in range(2000)]
    made = Relations(patches(last={"after": many}, first={"before": many}, **{name: {} for name in many}))
    ids = ["m/last", *(f"m/{name}" for name in many), "m/first"]
    assert made.order(ids) == ["m/first", *ids[1:-1], "m/last"]


def test_layers_stand_in_the_declared_order_and_go_whole(world: World, target: Any) -> None:
    original = target.f
    world.declare(wrap("last", TIMES, after=["first"]), wrap("first"))
    assert target.f() == (1 + 1) * 10
    world.engine.revert()
    world.engine.revert("first", "last")
    assert (target.f, world.layers) == (original, 0)
    world.engine.apply("last", "first")
    assert target.f() == (1 + 1) * 10
    with world.engine.holding("last", "first", wants=False):
        assert target.f is original
    assert target.f() == (1 + 1) * 10


def test_the_order_holds_over_manifests(world: World, target: Any) -> None:
    world.declare(wrap("ours", TIMES, after=["test-2/theirs"]), start=False)
    world.declare(wrap("theirs"), start=False)
    world.engine.start()
    assert target.f() == (1 + 1) * 10


def test_the_order_holds_for_what_waits_for_one_module(world: World) -> None:
    world.write("times", "def ten(original):\n    return lambda: original() * 10")
    world.declare(wrap("last", TIMES, "late:f", after=["first"]), wrap("first", target="late:f"))
    assert world.load("late", "def f(): return 1").f() == (1 + 1) * 10


def test_nobody_waits_for_a_patch_that_is_not_ready(world: World, target: Any) -> None:
    world.declare(wrap("early", after=["late"]), wrap("late", target="absent:f"))
    assert (world.state("early"), world.state("late"), target.f()) == ("applied", "pending", 2)


# --- names and circles ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["after", "before", "conflicts"])
def test_an_unknown_name_is_reported_and_breaks_nothing(world: World, target: Any, key: str) -> None:
    world.declare(wrap("p", **{key: ["not-there"]}))
    assert target.f() == 2
    assert world.reason().endswith(f"{key} 'not-there': no such patch is loaded")


def test_a_name_of_several_is_reported():
    three = {**patches("m", a={"after": ["b"]}), **patches("n", b={}), **patches("o", b={})}
    assert Relations(three).remarks("m/a") == ["after 'b': several patches have this id; say n/b or o/b"]


def test_a_circle_is_reported_and_breaks_nothing(world: World, target: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "compat_patches"):
        world.declare(wrap("a", after=["b"]), wrap("b", TIMES, after=["c"]), wrap("c", before=["b"], after=["a"]))
        world.engine.start()
    text = "after and before go round in a circle (test-1/c, test-1/b, test-1/a); one of them is passed over"
    assert [record.message for record in caplog.records] == [text]
    assert all(status.reason.endswith(text) for status in world.engine.status())
    assert [status.state for status in world.engine.status()] == ["applied"] * 3
    world.engine.revert("a", "b", "c")
    assert (target.f(), world.layers) == (1, 0)


def test_everybody_after_everybody_has_an_order():
    names = [f"p{number}" for number in range(60)]
    made = Relations(patches(**{name: {"after": [other for other in names if other != name]} for name in names}))
    assert sorted(made.order(f"m/{name}" for name in names)) == sorted(f"m/{name}" for name in names)
    assert len(made.circles) == 20


@pytest.mark.parametrize("key", ["after", "before", "conflicts"])
def test_what_is_no_name_of_another_patch_is_refused(key):
    (problem,) = problems(**{key: ["a/b/c"]})
    assert (
        problem
        == f"patch 'a-patch': key {key!r}: found the string 'a/b/c'; expected the id of a patch, or 'manifest/id'"
    )
    (problem,) = problems(**{key: ["a-patch"]})
    assert problem == f"patch 'a-patch': key {key!r}: names the patch itself; expected others"


# --- conflicts -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("declares", ["first", "second"])
def test_of_two_that_conflict_the_later_is_skipped(world: World, target: Any, declares: str) -> None:
    conflicts = {declares: {"conflicts": ["second" if declares == "first" else "first"]}}
    world.declare(wrap("first", **conflicts.get("first", {})), wrap("second", TIMES, **conflicts.get("second", {})))
    assert (world.state("first"), target.f()) == ("applied", 2)
    assert world.state("second") == "skipped"
    assert world.reason("second") == "conflicts with test-1/first, which is applied; revert that first to have this one"
    assert world.engine.apply("second", force=True)[0].state == "skipped"
    world.engine.revert("first")
    assert world.engine.apply("second")[0].state == "applied"
    assert (target.f(), world.state("first"), world.layers) == (10, "reverted", 1)


def test_which_is_the_later_is_known_when_they_are_applied(world: World, target: Any) -> None:
    world.declare(wrap("first", target="late:f", conflicts=["second"]), wrap("second"))
    assert (world.state("first"), world.state("second")) == ("pending", "applied")
    assert world.load("late", "def f(): return 1").f() == 1
    assert (world.state("first"), world.state("second")) == ("skipped", "applied")


def test_one_that_is_skipped_or_fails_keeps_nobody_away(world: World, target: Any) -> None:
    world.declare(
        wrap("skipped", requires=["no-such-distribution>=1"], conflicts=["p"]),
        wrap("failed", "impl:fails", conflicts=["p"]),
        wrap("p"),
    )
    assert (world.state("p"), target.f()) == ("applied", 2)


def test_one_that_lingers_beneath_somebody_elses_work_is_not_woken_up_beside_its_rival(
    world: World, target: Any
) -> None:
    world.declare(wrap("first", conflicts=["second"]), wrap("second", TIMES))
    ours = target.f
    target.f = lambda: ours() + 100
    world.engine.revert("first")
    assert world.state("first") == "overlaid"
    world.engine.apply("second")
    assert target.f() == (1 + 100) * 10
    assert world.engine.apply("first")[0].state == "skipped"
    assert target.f() == (1 + 100) * 10


def test_a_rival_that_comes_while_this_one_is_planned_wins(world: World, target: Any) -> None:
    world.write(
        "meanwhile",
        """
        import target
        engine = None
        def factory(original):
            engine.apply("second")
            return lambda: original() + 100
        """,
    )
    world.load("meanwhile").engine = world.engine
    world.declare(wrap("first", "meanwhile:factory", conflicts=["second"]), wrap("second", enabled=False))
    assert (world.state("first"), world.state("second"), target.f()) == ("skipped", "applied", 2)
