"""Shapes of patches (docs/shapes.md): values, mappings, lists, the environment, and modules as a whole."""

from __future__ import annotations

import builtins
import os
import sys
from contextvars import ContextVar
from typing import Any

import pytest
from standins import World
from support import put_back


@pytest.fixture(scope="module")
def torch() -> Any:
    # Of the module's scope, as an import of torch changes what a `world` looks at.
    return pytest.importorskip("torch")


def test_set_a_constant_of_a_module(world: World, torch: Any) -> None:
    from torch.utils import checkpoint

    with put_back(checkpoint):
        told = {"target": "torch.utils.checkpoint:_DEFAULT_DETERMINISM_MODE", "action": "set", "value": "none"}
        world.declare({"id": "p", **told})
        assert checkpoint._DEFAULT_DETERMINISM_MODE == "none"
        world.engine.revert("p")
    assert checkpoint._DEFAULT_DETERMINISM_MODE == "default"


def test_insert_change_and_delete_a_key_of_a_mapping(world: World) -> None:
    module = world.load("target", "table = {'kept': 0, 'changed': 1, 'deleted': 2}\n")
    with put_back(module.table):
        world.declare(
            {"id": "one", "target": "target:table", "action": "set_item", "key": "new", "value": 3},
            {"id": "two", "target": "target:table", "action": "set_item", "key": "changed", "value": 4},
            {"id": "three", "target": "target:table", "action": "discard_item", "key": "deleted"},
        )
        assert module.table == {"kept": 0, "changed": 4, "new": 3}
        module.table["meanwhile"] = 5
        world.engine.revert("one", "two", "three")
        # The keys were undone, not the whole.
        assert module.table.pop("meanwhile") == 5


def test_discard_an_element_of_a_list_and_of_a_set(world: World, torch: Any) -> None:
    module = world.load("target", "names = {'a', 'b'}\n")
    exported = torch.accelerator.__all__
    with put_back(exported, module.names):
        world.declare(
            {"id": "one", "target": "torch.accelerator:__all__", "action": "discard_item", "key": "is_available"},
            {"id": "two", "target": "target:names", "action": "discard_item", "key": "a"},
        )
        assert "is_available" not in exported and module.names == {"b"}
        world.engine.revert("one", "two")


def test_change_the_builtins(world: World) -> None:
    world.write(
        "shouting",
        """
        def shout(text):
            return text.upper()

        def louder(original):
            return lambda value: original(value).upper()
        """,
    )
    with put_back(builtins):
        world.declare(
            {"id": "one", "target": "builtins:shout", "action": "inject", "using": "shouting:shout"},
            {"id": "two", "target": "builtins:ascii", "action": "wrap", "using": "shouting:louder"},
        )
        assert eval("shout('a') + ascii('b')") == "A'B'"
        world.engine.revert("one", "two")
    assert ascii("b") == "'b'" and not hasattr(builtins, "shout")


def test_set_and_prepend_variables_of_the_environment(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHAPES_PATH", "/theirs")
    monkeypatch.setenv("SHAPES_SET", "old")
    monkeypatch.delenv("SHAPES_DEFAULT", raising=False)
    with put_back(os.environ):
        world.declare(
            {"id": "one", "action": "env", "key": "SHAPES_DEFAULT", "value": "1"},
            {"id": "two", "action": "env", "key": "SHAPES_SET", "value": "new", "mode": "set"},
            {"id": "three", "action": "env", "key": "SHAPES_PATH", "value": "/ours", "mode": "prepend"},
        )
        found = [os.environ[name] for name in ("SHAPES_DEFAULT", "SHAPES_SET", "SHAPES_PATH")]
        assert found == ["1", "new", f"/ours{os.pathsep}/theirs"]
        world.engine.revert("one", "two", "three")


def test_lay_a_module_over_another(world: World) -> None:
    world.write("package.inner", "what = 'theirs'\n")
    world.write("overlay", "import types\n\nmodule = types.ModuleType('package.inner')\nmodule.what = 'ours'\n")
    package = world.load("package")
    theirs = world.load("package.inner")
    with put_back(package):
        modules = {"target": "sys:modules", "action": "set_item", "key": "package.inner", "using": "overlay:module"}
        parent = {"target": "package:inner", "action": "set", "using": "overlay:module"}
        world.declare({"id": "p", "step": [modules, parent]})
        from package import inner

        assert (inner.what, sys.modules["package.inner"].what) == ("ours", "ours")
        world.engine.revert("p")
        assert sys.modules["package.inner"] is theirs


def test_block_an_import(world: World, torch: Any) -> None:
    world.write("optional", "")
    world.write("blocking", "blocked = None  # what Python finds in sys.modules for a module that is not to be had\n")
    world.declare(
        {"id": "p", "target": "sys:modules", "action": "set_item", "key": "optional", "using": "blocking:blocked"}
    )
    with pytest.raises(ImportError, match="optional"):
        world.load("optional")
    world.engine.revert("p")
    assert "optional" not in sys.modules
    assert world.load("optional").__name__ == "optional"


def test_put_a_stub_in_the_place_of_a_module(world: World) -> None:
    stub = "import types\n\nmodule = types.ModuleType('not_to_be_had')\nmodule.version = 'a stub'\n"
    world.write("stubs", stub)
    world.declare(
        {"id": "p", "target": "sys:modules", "action": "set_item", "key": "not_to_be_had", "using": "stubs:module"}
    )
    import not_to_be_had

    assert not_to_be_had.version == "a stub"
    world.engine.revert("p")
    with pytest.raises(ImportError):
        world.load("not_to_be_had")


def test_defer_until_a_module_is_imported(world: World) -> None:
    world.write("target", "def f():\n    return 1\n")
    status = world.wrap("target:f")
    assert (status.state, "target" in sys.modules) == ("pending", False)
    module = world.load("target")
    assert (world.state(), module.f()) == ("applied", 2)
    world.engine.revert("p")
    assert module.f() == 1


def test_apply_at_first_use(world: World) -> None:
    module = world.load("target", "def f():\n    return 1\n")
    world.write(
        "lazily",
        """
        import functools

        def at_first_use(original):
            @functools.cache
            def made():
                import impl  # what takes long to import, or needs a device

                return impl.add_one(original)

            @functools.wraps(original)
            def stand_in(*args, **kwargs):
                return made()(*args, **kwargs)

            return stand_in
        """,
    )
    with put_back(module):
        assert world.wrap("target:f", "lazily:at_first_use").state == "applied"
        assert "impl" not in sys.modules
        assert module.f() == 2
        assert "impl" in sys.modules
        world.engine.revert("p")


def test_a_group_applies_several_patches(world: World) -> None:
    module = world.load("target", "def f():\n    return 1\n\ndef g():\n    return 2\n")
    told = {"action": "wrap", "using": "impl:add_one", "scope": "context", "groups": ["both"]}
    with put_back(module):
        world.declare({"id": "one", "target": "target:f", **told}, {"id": "two", "target": "target:g", **told})
        assert [status.state for status in world.engine.apply("both")] == ["applied", "applied"]
        assert (module.f(), module.g()) == (2, 3)
        world.engine.revert("both")


def test_swap_for_a_while(world: World, torch: Any) -> None:
    told = {"target": "torch:is_tensor", "action": "replace", "using": "impl:seven", "scope": "context"}
    with put_back(torch):
        world.declare({"id": "p", **told})
        with world.engine.holding("p", wants=True):
            assert torch.is_tensor(None) == 7
        assert torch.is_tensor(None) is False


def test_insert_an_element_into_a_list_and_into_a_set(world: World, torch: Any) -> None:
    from torch.nn import utils

    module = world.load("target", "names = {'a'}\n")
    exported = torch.accelerator.__all__
    with put_back(exported, module.names, utils):
        world.declare(
            {"id": "one", "target": "torch.accelerator:__all__", "action": "insert_item", "key": 0, "value": "ours"},
            {"id": "two", "target": "target:names", "action": "insert_item", "value": "b"},
        )
        assert exported[0] == "ours" and module.names == {"a", "b"}
        world.engine.revert("one", "two")


def test_change_an_element_of_a_list(world: World) -> None:
    module = world.load("target", "names = ['a', 'b', 'c']\n")
    told = {"target": "target:names", "action": "set_item", "key": 1}
    with put_back(module.names):
        world.declare({"id": "one", **told, "value": "ours"}, {"id": "two", **told, "value": "over it"})
        assert module.names == ["a", "over it", "c"]
        module.names.insert(0, "theirs")
        # In any order, and where it stands by now.
        world.engine.revert("one")
        assert module.names == ["theirs", "a", "over it", "c"]
        world.engine.revert("two")
        assert module.names.pop(0) == "theirs"
    assert "expected `key` to be an index of it" in world.declare({"id": "p", **told, "key": 3, "value": 1})[0].reason


def test_set_an_option_of_a_config_module(world: World, torch: Any) -> None:
    from torch._inductor import config

    def set_by_users() -> dict[str, Any]:
        held = {name: option.user_override for name, option in config._config.items()}
        return {name: id(value.get() if isinstance(value, ContextVar) else value) for name, value in held.items()}

    # To read an option whose default can be changed is to set it, to a copy.
    hash_before, before, told = config.get_hash(), set_by_users(), {"action": "set", "value": 7}
    world.declare(
        {"id": "one", "target": "torch._inductor.config:triton.max_tiles", **told},
        {"id": "two", "target": "torch._inductor.config:compile_threads", **told},
    )
    assert (config.triton.max_tiles, config.compile_threads) == (7, 7)
    assert config.get_hash() != hash_before
    with config.patch("triton.max_tiles", 8):
        assert world.state("one") == "overlaid"
    world.engine.revert("one", "two")
    assert set_by_users() == before
    assert config.get_hash() == hash_before


def test_what_a_user_sets_later_of_a_config_module_stays(world: World, torch: Any) -> None:
    from torch._inductor import config

    told = {"target": "torch._inductor.config:triton.max_tiles", "action": "set", "value": 7}
    world.declare({"id": "p", **told})
    with config.patch("max_fusion_size", 3):
        world.engine.revert("p")
        assert config.max_fusion_size == 3


def test_set_a_reducer_of_copyreg(world: World, torch: Any) -> None:
    import copyreg
    import pickle

    world.write(
        "reducing",
        """
        import torch

        def reduce_device(device):
            return torch.device, ("meta",)
        """,
    )
    with put_back(copyreg.dispatch_table):
        world.declare(
            {
                "id": "p",
                "target": "copyreg:dispatch_table",
                "action": "set_item",
                "key_object": "torch:device",
                "using": "reducing:reduce_device",
            }
        )
        assert pickle.loads(pickle.dumps(torch.device("cpu"))) == torch.device("meta")
        world.engine.revert("p")
    assert pickle.loads(pickle.dumps(torch.device("cpu"))) == torch.device("cpu")


def test_wrap_a_method_of_one_instance(world: World, torch: Any) -> None:
    import gc
    import weakref

    world.write("doubling", "def doubled(original):\n    return lambda self, input: original(self, input) * 2\n")
    module = world.load("target", "import torch\n\nmodel = torch.nn.Identity()\nother = torch.nn.Identity()\n")
    with put_back(torch.nn.Identity, module.model):
        assert world.wrap("target:model.forward", "doubling:doubled").state == "applied"
        assert (module.model(1), module.other(1)) == (2, 1)
        held = module.model.forward
        world.engine.revert("p")
        assert (module.model(1), held(1)) == (1, 1)
        world.engine.apply("p")
        assert module.model(1) == 2
        world.engine.revert("p")
    world.engine.apply("p")
    reference = weakref.ref(module.model)
    del module.model
    gc.collect()
    assert reference() is None, "the patch keeps the instance alive"
    assert (world.state(), world.engine.revert("p")[0].state) == ("lost", "reverted")
