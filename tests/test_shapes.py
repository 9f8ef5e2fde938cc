"""Shapes of patches (docs/shapes.md): functions, methods and classes."""

from __future__ import annotations

import pickle
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from standins import World
from support import put_back

from compat_patches import source

IMPLEMENTATION = '''
    """Implementations of the shapes."""


    def doubled(original):
        def stand_in(*args, **kwargs):
            return original(*args, **kwargs) * 2

        return stand_in


    def listed(original):
        def stand_in(*args, **kwargs):
            return [original(*args, **kwargs)]

        return stand_in


    def forward(self, input):
        return "a full copy"


    def seven(*args, **kwargs):
        return 7


    def tagged(original):
        def __init__(self, *args, **kwargs):
            original(self, *args, **kwargs)
            self.tag = "patched"

        return __init__


    def tagged_new(original):
        def __new__(cls, *args, **kwargs):
            made = original(cls, *args, **kwargs)
            made.tag = "patched"
            return made

        return __new__


    def factory(original):
        """A factory: what it makes depends on the arguments that a call gets."""
        makers = {"double": lambda value: value * 2}

        def make(kind, *args, **kwargs):
            return makers[kind] if kind in makers else original(kind, *args, **kwargs)

        return make
'''


@pytest.fixture(scope="module")
def torch() -> Any:
    # Of the module's scope, as an import of torch changes what a `world` looks at.
    return pytest.importorskip("torch")


@pytest.fixture
def shapes(world: World) -> World:
    world.write("shapes", IMPLEMENTATION)
    return world


def test_wrap_a_method(shapes: World, torch: Any) -> None:
    layer, ones = torch.nn.Identity(), torch.ones(2)
    with put_back(torch.nn.Identity):
        assert shapes.wrap("torch.nn.modules.linear:Identity.forward", "shapes:doubled").state == "applied"
        assert layer(ones).tolist() == [2, 2]
        shapes.engine.revert("p")
    assert layer(ones).tolist() == [1, 1]


def test_replace_a_method_by_a_pinned_full_copy(shapes: World, torch: Any) -> None:
    from torch.nn.modules import linear

    pin = source.tree_hash(source.definition_of(linear.Identity.forward))
    declared = {
        "target": "torch.nn.modules.linear:Identity.forward",
        "action": "replace",
        "using": "shapes:forward",
    }
    with put_back(linear.Identity):
        drifted, applied = shapes.declare(
            {"id": "drifted", **declared, "pins": {"2.1.0": "0" * 16}},
            {"id": "p", **declared, "pins": {torch.__version__: pin}},
        )
        assert (drifted.state, applied.state) == ("skipped", "applied")
        assert drifted.reason.startswith("drifted: ")
        assert torch.nn.Identity()(1) == "a full copy"
        shapes.engine.revert("p")
    assert torch.nn.Identity()(1) == 1


def test_replace_a_function_of_a_module(shapes: World, torch: Any) -> None:
    with put_back(torch):
        shapes.declare({"id": "p", "target": "torch:is_tensor", "action": "replace", "using": "shapes:seven"})
        assert torch.is_tensor(None) == 7
        shapes.engine.revert("p")
    assert torch.is_tensor(None) is False


def test_put_a_factory_in_the_place_of_a_function(shapes: World, torch: Any) -> None:
    from torch.nn.modules import transformer

    with put_back(transformer):
        shapes.wrap("torch.nn.modules.transformer:_get_activation_fn", "shapes:factory")
        assert transformer._get_activation_fn("double")(4) == 8
        assert transformer._get_activation_fn("relu") is torch.nn.functional.relu
        shapes.engine.revert("p")
    with pytest.raises(RuntimeError):
        transformer._get_activation_fn("double")


def test_replace_a_class(shapes: World, torch: Any) -> None:
    shapes.write(
        "replacing",
        """
        from torch.nn.modules.linear import Identity as Original

        class Identity(Original):
            def forward(self, input):
                return "replaced"
        """,
    )
    old = torch.nn.Identity()
    with put_back(torch.nn, torch.nn.modules, torch.nn.modules.linear):
        twins = ["torch.nn.modules:Identity", "torch.nn:Identity"]
        declared = {"target": "torch.nn.modules.linear:Identity", "also_bind": twins}
        shapes.declare({"id": "p", **declared, "action": "replace", "using": "replacing:Identity"})
        assert torch.nn.Identity()(1) == "replaced"
        assert isinstance(torch.nn.Identity(), type(old))
        shapes.engine.revert("p")
    assert type(old) is torch.nn.Identity


def test_replace_an_immutable_c_type_by_a_subclass(shapes: World, torch: Any) -> None:
    shapes.write(
        "replacing",
        """
        from compat_patches.patches.stand_in_class import stand_in_metaclass

        def seeded(original):
            class Generator(original, metaclass=stand_in_metaclass(type(original), original)):
                _stands_in = True

                def seed(self):
                    return 42

            return Generator
        """,
    )
    old = torch.Generator()
    with pytest.raises(TypeError):
        torch.Generator.seed = None
    with put_back(torch, torch._C):
        shapes.declare(
            {
                "id": "p",
                "target": "torch:Generator",
                "also_bind": ["torch._C:Generator"],
                "action": "wrap",
                "using": "replacing:seeded",
            }
        )
        assert torch.Generator().seed() == 42
        # What was made before, and what C goes on to make, is an instance still.
        assert isinstance(old, torch.Generator) and isinstance(torch.default_generator, torch.Generator)
        assert torch.rand(1, generator=torch.Generator()).shape == (1,)
        shapes.engine.revert("p")
    assert torch.Generator is type(old)


def test_rebind_copies_made_by_from_import(shapes: World, torch: Any) -> None:
    copier = shapes.load("copier", "from torch import is_tensor as imported\n")
    with put_back(copier, torch):
        told = {"id": "p", "target": "torch:is_tensor", "action": "replace", "using": "shapes:seven", "rebind": True}
        shapes.declare(told)
        assert copier.imported(None) == 7
        shapes.engine.revert("p")
    assert copier.imported is torch.is_tensor


def test_inject_a_missing_name(shapes: World, torch: Any) -> None:
    from torch import accelerator

    with put_back(accelerator), put_back(accelerator.__all__):
        told = {"id": "p", "target": "torch.accelerator:seven", "action": "inject", "using": "shapes:seven"}
        shapes.declare(told)
        assert accelerator.seven() == 7 and "seven" in accelerator.__all__
        shapes.engine.revert("p")
    assert not hasattr(accelerator, "seven")


def test_alias_to_another_namespace(shapes: World, torch: Any) -> None:
    with put_back(torch.cuda):
        told = {"target": "torch.cuda:device_count", "action": "alias", "using": "torch.cpu:device_count"}
        shapes.declare({"id": "p", **told})
        assert torch.cuda.device_count() == torch.cpu.device_count()
        assert torch.cuda.device_count is not torch.cpu.device_count
        shapes.engine.revert("p")


def test_each_noop_is_one_of_its_own(shapes: World, torch: Any) -> None:
    with put_back(torch.cuda):
        shapes.declare(
            {"id": "one", "target": "torch.cuda:synchronize", "action": "noop"},
            {"id": "two", "target": "torch.cuda:set_stream", "action": "noop"},
        )
        assert torch.cuda.synchronize() is None and torch.cuda.set_stream(1) is None
        assert torch.cuda.synchronize is not torch.cuda.set_stream
        shapes.engine.revert("one", "two")


def test_wrap_init(shapes: World, torch: Any) -> None:
    with put_back(torch.nn.Identity):
        shapes.wrap("torch.nn.modules.linear:Identity.__init__", "shapes:tagged")
        assert torch.nn.Identity().tag == "patched"
        shapes.engine.revert("p")
    assert not hasattr(torch.nn.Identity(), "tag")


def test_wrap_new(shapes: World, torch: Any) -> None:
    owner = torch.nn.Parameter
    with put_back(owner):
        shapes.wrap("torch.nn.parameter:Parameter.__new__", "shapes:tagged_new")
        assert torch.nn.Parameter(torch.ones(1)).tag == "patched"
        assert isinstance(vars(owner)["__new__"], staticmethod)
        shapes.engine.revert("p")
    assert not hasattr(torch.nn.Parameter(torch.ones(1)), "tag")


def test_wrap_post_init(shapes: World) -> None:
    module = shapes.load(
        "target",
        """
        import dataclasses

        @dataclasses.dataclass
        class Settings:
            size: int = 1
            def __post_init__(self):
                self.twice = 2 * self.size
        """,
    )
    with put_back(module.Settings):
        shapes.wrap("target:Settings.__post_init__", "shapes:tagged")
        assert (module.Settings().tag, module.Settings().twice) == ("patched", 2)
        shapes.engine.revert("p")
    assert not hasattr(module.Settings(), "tag")


@pytest.mark.parametrize(
    ("target", "kind", "read"),
    [
        ("transformer:Transformer.generate_square_subsequent_mask", staticmethod, lambda static: static(1)),
        ("sparse:Embedding.from_pretrained", classmethod, lambda bound: bound(sys.modules["torch"].ones(1, 1))),
        ("rnn:RNNBase.all_weights", property, lambda value: value),
    ],
    ids=["staticmethod", "classmethod", "property"],
)
def test_wrap_what_stays_of_its_kind(shapes: World, torch: Any, target: str, kind: type, read: Any) -> None:
    module, class_name, name = re.split("[:.]", target)
    owner = getattr(sys.modules[f"torch.nn.modules.{module}"], class_name)
    asked = torch.nn.RNN(1, 1) if kind is property else owner
    with put_back(owner):
        shapes.wrap(f"torch.nn.modules.{target}", "shapes:listed")
        assert type(vars(owner)[name]) is kind
        assert type(read(getattr(asked, name))) is list and len(read(getattr(asked, name))) == 1
        shapes.engine.revert("p")


def test_wrap_a_method_that_is_inherited_from_a_c_type(shapes: World, torch: Any) -> None:
    with put_back(torch.Tensor):
        shapes.wrap("torch:Tensor.numel", "shapes:listed")
        assert torch.ones(3).numel() == [3]
        shapes.engine.revert("p")
    assert "numel" not in vars(torch.Tensor) and torch.ones(3).numel() == 3


def test_what_stands_in_is_pickled_by_reference(shapes: World, torch: Any) -> None:
    shapes.wrap("torch:is_tensor", "shapes:doubled")
    assert pickle.loads(pickle.dumps(torch.is_tensor)) is torch.is_tensor


def test_the_page_of_shapes_names_tests_that_are_there() -> None:
    tests = Path(__file__).resolve().parent
    page = (tests.parent / "docs" / "shapes.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(test_\w+)`", page))
    files = [*tests.glob("test_shapes*.py"), tests / "test_registrations.py"]
    texts = [path.read_text(encoding="utf-8") for path in files]
    written = {name for text in texts for name in re.findall(r"^def (test_\w+)", text, re.MULTILINE)}
    assert len(named) > 30 and named <= written
