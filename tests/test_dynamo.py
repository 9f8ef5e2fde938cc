"""What Dynamo traces: patches act in compiled code, and break no graph that was whole before."""

from __future__ import annotations

from typing import Any

import pytest
from standins import World

torch = pytest.importorskip("torch")
wrapt = pytest.importorskip("wrapt")

TARGET = """
    import torch
    def f(x): return x * 2
    def g(x): return x * 3
    class Layer(torch.nn.Linear):
        def forward(self, x): return x * 2
        @staticmethod
        def static(x): return x * 2
"""
IMPL = """
    def add_six(original):
        def stand_in(*args, **kwargs):
            return original(*args, **kwargs) + 6
        return stand_in

    def minus(x):
        return -x
"""


@pytest.fixture(autouse=True)
def fresh_dynamo() -> Any:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.fixture
def target(world: World) -> Any:
    world.write("traced", IMPL)
    world.load("traced")
    return world.load("target", TARGET)


def compiled(function: Any) -> Any:
    """Compiled whole: a graph break is an error."""
    return torch.compile(function, fullgraph=True, backend="eager")


ONE = torch.ones(1)


@pytest.mark.parametrize(
    ("action", "worth"),
    [
        ({"action": "wrap", "using": "traced:add_six"}, 8.0),
        ({"action": "replace", "using": "traced:minus"}, -1.0),
        ({"action": "alias", "using": "target:g"}, 3.0),
        ({"action": "noop", "value": 5}, 5),
    ],
    ids=lambda value: value["action"] if isinstance(value, dict) else "",
)
def test_a_patched_function_acts_in_compiled_code_without_a_graph_break(
    world: World, target: Any, action: dict[str, Any], worth: float
) -> None:  # case 15
    def call(x: Any) -> Any:
        return x + target.f(x)

    assert compiled(call)(ONE).item() == 3.0
    world.declare({"id": "p", "target": "target:f", **action})
    torch._dynamo.reset()
    assert call(ONE).item() == compiled(call)(ONE).item() == 1 + worth
    world.engine.revert("p")
    torch._dynamo.reset()
    assert compiled(call)(ONE).item() == 3.0


def test_a_patched_method_of_a_module_acts_where_a_proxy_is_run_past(world: World, target: Any) -> None:  # case 15
    layer = target.Layer(1, 1)
    world.wrap("target:Layer.forward", "traced:add_six")
    assert layer(ONE).item() == compiled(layer)(ONE).item() == 8.0
    world.engine.revert("p")
    torch._dynamo.reset()
    assert compiled(layer)(ONE).item() == 2.0


def test_a_proxy_of_wrapts_on_a_traced_method_is_run_past(monkeypatch: pytest.MonkeyPatch) -> None:
    # Why patches are plain functions. Where this fails, Dynamo has learnt to see proxies.
    def add_six(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
        return wrapped(*args, **kwargs) + 6

    proxy = wrapt.FunctionWrapper(torch.nn.Linear.forward, add_six)
    layer = torch.nn.Linear(1, 1)
    torch.nn.init.ones_(layer.weight)
    torch.nn.init.zeros_(layer.bias)
    monkeypatch.setattr(torch.nn.Linear, "forward", proxy)
    assert (layer(ONE).item(), compiled(layer)(ONE).item()) == (7.0, 1.0)


def test_a_wrap_beside_the_proxy_on_the_same_method_acts(world: World, target: Any) -> None:
    world.wrap("torch.nn.modules.linear:Linear.forward", "traced:add_six")
    layer = torch.nn.Linear(1, 1)
    torch.nn.init.ones_(layer.weight)
    torch.nn.init.zeros_(layer.bias)
    assert (layer(ONE).item(), compiled(layer)(ONE).item()) == (7.0, 7.0)


def test_a_static_method_acts_in_compiled_code(world: World, target: Any) -> None:
    world.wrap("target:Layer.static", "traced:add_six")
    assert compiled(lambda x: target.Layer.static(x))(ONE).item() == 8.0


def test_two_patches_of_one_function_act_in_compiled_code(world: World, target: Any) -> None:
    wrap = {"target": "target:f", "action": "wrap", "using": "traced:add_six"}
    world.declare({"id": "p", **wrap}, {"id": "q", **wrap})
    assert compiled(lambda x: target.f(x))(ONE).item() == 14.0


def test_what_hands_its_calls_through_does_so_in_compiled_code(world: World, target: Any) -> None:
    world.wrap("target:f", "traced:add_six")
    ours = target.f

    def theirs(x: Any) -> Any:
        return ours(x) + 100

    target.f = theirs

    def call(x: Any) -> Any:
        return target.f(x)

    # Dynamo keeps the parameters of what it has traced once, so this is about a function that it has not.
    assert world.engine.revert("p")[0].state == "overlaid"
    assert call(ONE).item() == compiled(call)(ONE).item() == 102.0


def test_two_names_of_torch_that_one_function_answers_have_an_object_each(world: World, target: Any) -> None:
    noop = {"action": "noop"}
    names = ["torch.cuda:synchronize", "torch.cuda:set_stream", "torch.cuda:current_device"]
    world.declare(*({"id": f"p{number}", "target": name, **noop} for number, name in enumerate(names)))
    assert len({torch.cuda.synchronize, torch.cuda.set_stream, torch.cuda.current_device}) == 3

    def call(x: Any) -> Any:
        return x + 1

    assert compiled(call)(ONE).item() == 2.0


def test_a_function_that_went_quiet_beneath_others_is_traced_again(world: World, target: Any) -> None:
    world.declare({"id": "p", "target": "target:f", "action": "wrap", "using": "traced:add_six"})
    ours = target.f

    def theirs(x: Any) -> Any:
        return ours(x) + 100

    theirs.__wrapped__ = ours  # type: ignore[attr-defined]
    target.f = theirs
    for _ in range(2):
        assert compiled(lambda x: target.f(x))(ONE) == 108
        world.engine.revert("p")
        torch._dynamo.reset()
        assert compiled(lambda x: target.f(x))(ONE) == 102
        world.engine.apply("p")
        torch._dynamo.reset()
    target.f = ours
