"""Patches on the engines on which people run torch: vLLM's plugins, torch.distributed, and inductor's caches."""

from __future__ import annotations

import importlib.metadata
import json
import os
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from environments import Environment

import compat_patches
from compat_patches import compile_cache, fleet, manifest
from compat_patches.engine import Engine
from compat_patches.fleet import Member
from compat_patches.predicates import Circumstances

# --- vLLM ----------------------------------------------------------------------------------------------------------

# What vLLM's own loader does (vllm/plugins/__init__.py of 0.24.0): each entry point of the group that VLLM_PLUGINS
# allows is loaded; load_general_plugins calls each without arguments, once for all by a flag of that module, which a
# second copy of the module or another process does not have.
LOADER = """
import os
from importlib.metadata import entry_points

def load_general_plugins():
    allowed = os.environ.get("VLLM_PLUGINS")
    for plugin in entry_points(group="vllm.general_plugins"):
        if allowed is None or plugin.name in allowed.split(","):
            plugin.load()()
"""


def test_vllm_finds_the_plugin(installed: Environment) -> None:
    code = """
import json
from importlib.metadata import entry_points
print(json.dumps([(e.name, e.value) for e in entry_points(group="vllm.general_plugins")]))
"""
    assert ["compat_patches", "compat_patches.integrations.vllm:register"] in installed.ask(code)


@pytest.mark.parametrize("order", ["before torch", "after torch", "around torch"])
def test_vllms_loader_activates_once_before_or_after_torch(environment: Environment, order: str) -> None:
    load, torch = "load_general_plugins()\n", "import torch\n"
    calls = {"before torch": load * 3 + torch, "after torch": torch + load * 3, "around torch": load + torch + load * 2}
    report = """
import json, sys
waiting = [finder for finder in sys.meta_path if type(finder).__module__ == "compat_patches.importing"]
import looking
print(json.dumps([len(waiting), looking.look()]))
"""
    waiting, found = environment.ask(LOADER + calls[order] + report, PYTHONPATH=str(Path(__file__).parent))
    assert waiting == 1
    assert found == {"early": True, "state": "applied", "most": 1, "wrappers": 1}


def test_the_plugin_respects_off_and_the_users_choice(installed: Environment) -> None:
    # Not imported to be looked at, as importing it activates it.
    report = (
        "import json, sys; ours = sys.modules.get('compat_patches.importing')\n"
        "print(json.dumps(ours is not None and 'torch' in ours._roots))"
    )
    code = f"{LOADER}\nload_general_plugins()\n{report}"
    assert installed.ask(code) is True
    assert installed.ask(code, COMPAT_PATCHES="off") is False
    assert installed.ask(code, VLLM_PLUGINS="others") is False
    assert installed.ask(code, VLLM_PLUGINS="others,compat_patches") is True


VLLM = Path(os.environ.get("COMPAT_PATCHES_VLLM_TREE") or os.devnull)


@pytest.mark.skipif(not VLLM.is_dir(), reason="COMPAT_PATCHES_VLLM_TREE names no folder; the contract stands above")
def test_vllms_own_loading_code(installed: Environment, tmp_path: Path) -> None:
    """vLLM's own file, beside stand-ins for the two modules that it imports."""
    package = tmp_path / "vllm"
    (package / "plugins").mkdir(parents=True)
    (package / "plugins" / "__init__.py").write_bytes((VLLM / "vllm" / "plugins" / "__init__.py").read_bytes())
    (package / "__init__.py").write_text("")
    (package / "envs.py").write_text("VLLM_PLUGINS = None\n")
    (package / "logger.py").write_text("import logging\ninit_logger = logging.getLogger\n")
    code = """
import json, sys
from vllm.plugins import load_general_plugins
load_general_plugins()
load_general_plugins()
import torch, compat_patches
print(json.dumps({s.id: s.state for s in compat_patches.status()}["xpu-event-blocking"]))
"""
    assert installed.ask(code, PYTHONPATH=str(tmp_path)) == "applied"


# --- torch.distributed ---------------------------------------------------------------------------------------------

RANK = """
import json, os, sys
rank = int(sys.argv[1])
if rank in json.loads(sys.argv[3]):
    os.environ["COMPAT_PATCHES_DISABLE"] = "xpu-event-blocking"
import torch.distributed as dist
from compat_patches.integrations.distributed import assert_same
dist.init_process_group("gloo", init_method=f"file://{sys.argv[2]}", rank=rank, world_size=3)
try:
    print(json.dumps(assert_same()))
except Exception as error:
    print(json.dumps(f"{type(error).__name__}: {error}"))
dist.destroy_process_group()
"""


def ranks(environment: Environment, folder: Path, odd: list[int]) -> list[str]:
    code = f"""
import json, subprocess, sys
arguments = [{str(folder / "store")!r}, {json.dumps(odd)!r}]
started = [
    subprocess.Popen([sys.executable, "-c", {RANK!r}, str(rank), *arguments], stdout=subprocess.PIPE, text=True)
    for rank in range(3)
]
print(json.dumps([json.loads(process.communicate()[0]) for process in started]))
"""
    answers: list[str] = json.loads(environment.run("-c", code, COMPAT_PATCHES="on").stdout)
    return answers


def test_ranks_that_are_the_same(installed: Environment, tmp_path: Path) -> None:
    first, *others = ranks(installed, tmp_path, [])
    assert len(first) == 64
    assert others == [first, first]


def test_the_rank_that_differs_is_named_on_every_rank(installed: Environment, tmp_path: Path) -> None:
    first, *others = ranks(installed, tmp_path, [1])
    assert others == [first, first]
    head, line = first.splitlines()
    assert head == "DifferentPatchesError: not all of the 3 processes have the same patches in effect:"
    assert line.startswith("  rank 1 (")
    assert line.endswith(
        "): compat-patches/xpu-event-blocking is off, and on at rank 0 (skipped: disabled by COMPAT_PATCHES_DISABLE)"
    )


# --- digests -------------------------------------------------------------------------------------------------------


def member(title: str, patches: dict[str, str], **versions: str | None) -> Member:
    return Member(title, "host", 1, fleet._hash([versions, patches]), dict(versions), patches)


def test_all_the_same() -> None:
    assert fleet.compare([member("a", {"m/p": "on"}), member("b", {"m/p": "on"})]) == []
    assert fleet.compare([]) == []


def test_the_minority_is_the_odd_one() -> None:
    on, off = {"m/p": "on"}, {"m/p": "off"}
    lines = fleet.compare([member("a", off), member("b", on), member("c", on)])
    assert lines == ["a (host, pid 1): m/p is off, and on at b"]


def test_versions_and_missing_patches_are_named() -> None:
    usual = [member(title, {"m/p": "on", "m/q": "on"}, torch="2.13.0") for title in "ab"]
    (line,) = fleet.compare([*usual, member("c", {"m/p": "failed"}, torch=None)])
    assert (
        line
        == "c (host, pid 1): torch is none, and 2.13.0 at a; m/p is failed, and on at a; m/q is missing, and on at a"
    )


def test_who_does_not_answer_is_named() -> None:
    lines = fleet.compare([member("a", {}), Member("b", error="did not answer in time")])
    assert lines == ["b: did not answer in time"]
    assert fleet.compare([Member("b", error="did not answer in time")]) == ["b: did not answer in time"]


def test_the_digest_is_the_same_before_and_after_the_targets_are_imported(installed: Environment) -> None:
    code = """
import json, compat_patches
digests = [compat_patches.digest()]
import torch
digests.append(compat_patches.digest())
import torch._inductor.codecache
digests.append(compat_patches.digest())
compat_patches.revert("cpu-memory-info")
digests.append(compat_patches.digest())
compat_patches.apply("cpu-memory-info")
digests.append(compat_patches.digest())
print(json.dumps(digests))
"""
    before, torch, inductor, reverted, applied = installed.ask(code, COMPAT_PATCHES="on")
    assert before == torch == inductor == applied != reverted
    assert installed.ask(code, COMPAT_PATCHES_DISABLE="cpu-memory-info")[0] == reverted


def test_digest_is_a_function_whatever_has_been_imported() -> None:
    assert callable(compat_patches.digest)
    assert len(compat_patches.digest()) == 64
    assert callable(compat_patches.digest)


# --- inductor's caches ---------------------------------------------------------------------------------------------

MANIFEST = """
[manifest]
name = "compiling"
schema = 1
"""
PATCH = """
[[patch]]
id = "{name}"
summary = "s"
why = "w"
upstream = ["u"]
remove_when = "r"
target = "compiled_target:{name}"
action = "noop"
affects_compile = {affects}
"""


@pytest.fixture
def config() -> Iterator[Any]:
    """torch's configuration, with a tag of the user's own."""
    import torch.compiler.config

    before = torch.compiler.config.cache_key_tag
    torch.compiler.config.cache_key_tag = "mine"
    yield torch.compiler.config
    torch.compiler.config.cache_key_tag = before


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    """An engine with two patches that change what is compiled, and one that does not."""
    module = types.ModuleType("compiled_target")
    text = MANIFEST
    for name, affects in (("first", "true"), ("second", "true"), ("plain", "false")):
        setattr(module, name, types.FunctionType((lambda: 1).__code__, {}, name))
        text += PATCH.format(name=name, affects=affects)
    monkeypatch.setitem(sys.modules, "compiled_target", module)
    engine = Engine()
    engine.add(manifest.parse(text.encode(), "compiling.toml"))
    engine.simulate(Circumstances("2.13.0", "cpu"))
    engine.open()
    yield engine
    engine.close()


def test_the_tag_follows_what_is_applied_and_keeps_the_users(engine: Engine, config: Any) -> None:
    tags = []
    for action, name in ((engine.apply, "first"), (engine.apply, "second"), (engine.revert, "first")):
        (status,) = action(name)
        assert status.state in ("applied", "reverted")
        tags.append(config.cache_key_tag)
        assert tags[-1].startswith("mine compat_patches:")
    assert len(set(tags)) == 3
    engine.revert("second")
    assert config.cache_key_tag == "mine"


def test_the_same_patches_have_the_same_tag(engine: Engine, config: Any) -> None:
    engine.apply("first", "second")
    both = config.cache_key_tag
    engine.revert("first", "second")
    engine.apply("second")
    engine.apply("first")
    assert config.cache_key_tag == both


def test_a_patch_that_does_not_change_what_is_compiled_leaves_the_tag(engine: Engine, config: Any) -> None:
    engine.apply("plain")
    assert config.cache_key_tag == "mine"


def test_what_the_user_sets_meanwhile_stays(engine: Engine, config: Any) -> None:
    engine.apply("first")
    config.cache_key_tag = "another"
    engine.apply("second")
    assert config.cache_key_tag.startswith("another compat_patches:")
    engine.revert("first", "second")
    assert config.cache_key_tag == "another"


def test_a_context_brings_the_tag_back(engine: Engine, config: Any) -> None:
    with engine.holding("first", wants=True):
        assert config.cache_key_tag.startswith("mine compat_patches:")
    assert config.cache_key_tag == "mine"


def test_a_torch_without_the_tag_is_left_alone(engine: Engine, config: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, compile_cache.CONFIG, types.ModuleType(compile_cache.CONFIG))
    (status,) = engine.apply("first")
    assert status.state == "applied"
    assert not hasattr(sys.modules[compile_cache.CONFIG], "cache_key_tag")


def test_the_tag_is_set_once_torch_is_there_and_is_part_of_inductors_key(disposable: Environment) -> None:
    """A patch of the environment is applied before torch is imported."""
    path = disposable.folder / "compiling.toml"
    path.write_text(
        MANIFEST
        + PATCH.format(name="x", affects="true").replace(
            'target = "compiled_target:x"\naction = "noop"', 'action = "env"\nkey = "SOME_SETTING"\nvalue = "1"'
        )
    )
    code = """
import json, os, torch, compat_patches
from torch._inductor.codecache import FxGraphHashDetails
import torch.compiler.config as config
tags = [config.cache_key_tag]
compat_patches.revert("x")
tags.append(config.cache_key_tag)
compat_patches.apply("x")
tags.append(config.cache_key_tag)
graph = torch.fx.symbolic_trace(torch.nn.Linear(1, 1))
details = FxGraphHashDetails(graph, [], {}, [])
print(json.dumps([tags, any(tags[2] == value for value in vars(details).values())]))
"""
    done = disposable.run(
        "-c", code, COMPAT_PATCHES="on", COMPAT_PATCHES_MANIFEST=str(path), TORCH_COMPILE_CACHE_KEY_TAG="mine"
    )
    (before, reverted, applied), part_of_the_key = json.loads(done.stdout)
    assert before == applied
    assert before.startswith("mine compat_patches:")
    assert reverted == "mine"
    assert part_of_the_key


def test_the_plugin_of_this_very_checkout_is_declared() -> None:
    import configparser

    parser = configparser.ConfigParser()
    parser.read(Path(compat_patches.__file__).parents[1] / "setup.cfg")
    declared = parser["options.entry_points"]["vllm.general_plugins"].strip()
    point = importlib.metadata.EntryPoint(*declared.split(" = "), "vllm.general_plugins")
    assert callable(point.load())
