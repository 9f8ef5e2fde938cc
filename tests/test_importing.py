"""What becomes of imports that somebody waits for: the finder, and the moment at which a patch is applied."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import types
import zipfile
from importlib.machinery import PathFinder
from typing import Any

import pytest
from standins import World, run_all, run_python

from compat_patches import importing

# --- when a patch is applied ---------------------------------------------------------------------------------------


def test_a_target_is_not_imported_for_its_patch(world: World) -> None:
    world.write("target", "def f(): return 1")
    status = world.wrap("target:f")
    assert "target" not in sys.modules
    assert (status.state, status.reason) == ("pending", "waits for target to be imported")


def test_a_module_that_is_imported_later_is_patched(world: World) -> None:
    world.wrap("target:f")
    assert world.load("target", "def f(): return 1").f() == 2
    assert world.state() == "applied"


def test_a_module_that_is_there_already_is_patched_at_once(world: World) -> None:
    target = world.load("target", "def f(): return 1")
    world.wrap("target:f")
    assert target.f() == 2


def test_another_threads_import_is_patched_before_that_thread_uses_it(world: World) -> None:  # case 8
    world.write("target", "def f(): return 1")
    world.wrap("target:f")

    def use() -> int:
        import target

        return target.f()

    assert run_all(*[use] * 8) == [2] * 8
    assert world.layers == 1


def test_nobody_sees_a_module_that_is_executed_but_not_patched(world: World) -> None:  # case 8
    # The implementation gives the other threads all the time they need to see the unpatched function.
    world.write("slow", "import time\ntime.sleep(0.2)\nfrom impl import add_one")
    world.write("target", "def f(): return 1")
    world.wrap("target:f", "slow:add_one")

    def use() -> int:
        import target

        return target.f()

    assert run_all(*[use] * 4) == [2] * 4


def test_a_module_is_not_patched_while_it_is_half_executed(world: World) -> None:  # case 9
    world.write("helper", "import target\nseen = target.f()\nstate = target.hook()")
    world.write("target", "def f(): return 1\nhook = lambda: None\nfrom registry import hook\nimport helper")
    registry = world.load("registry", "def hook(): return None")
    registry.hook = world.state
    world.wrap("target:f")
    import target

    assert (sys.modules["helper"].seen, sys.modules["helper"].state) == (1, "pending")
    assert target.f() == 2


def test_applying_while_the_target_is_half_executed_waits_for_its_end(world: World) -> None:  # case 9
    world.write("target", "def f(): return 1\nimport registry\nregistry.hook()\nseen = f()")
    registry = world.load("registry", "")
    states = []

    def hook() -> None:
        # Nobody has waited for the module when it was found.
        states.append(world.wrap("target:f"))

    registry.hook = hook
    import target

    assert (states[0].state, states[0].reason) == ("pending", "waits for target to finish executing")
    assert (target.seen, target.f()) == (1, 2)
    assert type(target.__spec__) is type(sys.__spec__)


def test_another_thread_that_applies_during_an_import_waits_for_its_end(world: World) -> None:  # case 9
    world.write("target", "def f(): return 1\nimport registry\nregistry.hook()\ndef g(): return f()")
    registry = world.load("registry", "")
    registry.hook = lambda: run_all(lambda: world.wrap("target:g"))
    import target

    assert (target.g(), world.state()) == (2, "applied")


def test_circular_imports_are_patched_each_at_its_own_end(world: World) -> None:  # case 9
    world.write("one", "import two\ndef f(): return 1\nfrom two import g")
    world.write("two", "import one\ndef g(): return 1\nhad = hasattr(one, 'f')")
    world.declare(
        {"id": "p", "target": "one:f", "action": "wrap", "using": "impl:add_one"},
        {"id": "q", "target": "two:g", "action": "wrap", "using": "impl:add_ten"},
    )
    import one
    import two

    assert not two.had
    assert (one.f(), two.g(), one.g()) == (2, 11, 11)


def test_a_patch_of_two_modules_waits_for_both(world: World) -> None:
    world.write("one", "from two import f")
    world.write("two", "def f(): return 1")
    world.wrap("two:f", also_bind=["one:f"])
    import two

    assert (two.f(), world.reason()) == (1, "waits for one to be imported")
    import one

    assert one.f is two.f
    assert one.f() == 2


def test_an_implementation_that_imports_its_own_target_is_no_recursion(world: World) -> None:  # case 29
    world.write("own", "import target\nfrom impl import add_one")
    world.write("target", "def f(): return 1")
    world.wrap("target:f", "own:add_one")
    import target

    assert target.f() == 2


def test_an_implementation_that_needs_its_package_waits_for_the_package(world: World) -> None:  # case 29
    world.write("package.inner", "def f(): return 1")
    world.write("package", "from package import inner\nlate = 1")
    world.write("own", "from package import late\nfrom impl import add_one")
    world.wrap("package.inner:f", "own:add_one")
    import package

    assert (package.inner.f(), world.state()) == (2, "applied")


def test_two_threads_whose_patches_import_each_others_modules_do_not_deadlock(world: World) -> None:  # case 31
    world.write("one", "import time\ntime.sleep(0.1)\ndef f(): return 1")
    world.write("two", "import time\ntime.sleep(0.1)\ndef f(): return 1")
    world.write("impl_one", "import two\nfrom impl import add_one")
    world.write("impl_two", "import one\nfrom impl import add_one")
    world.declare(
        {"id": "p", "target": "one:f", "action": "wrap", "using": "impl_one:add_one"},
        {"id": "q", "target": "two:f", "action": "wrap", "using": "impl_two:add_one"},
    )
    run_all(lambda: importlib.import_module("one"), lambda: importlib.import_module("two"))
    world.engine.apply("p", "q")
    assert (sys.modules["one"].f(), sys.modules["two"].f()) == (2, 2)


def test_a_module_that_puts_another_object_in_its_place_is_patched_there(world: World) -> None:
    world.write(
        "target",
        """
        import sys
        class Facade:
            def f(self): return 1
        facade = Facade()
        facade.g = lambda: 1
        sys.modules[__name__] = facade
        """,
    )
    world.wrap("target:g")
    import target

    assert (type(target).__name__, target.g()) == ("Facade", 2)
    world.engine.revert("p")
    assert target.g() == 1


def test_a_module_that_takes_itself_out_again_leaves_the_patch_pending(world: World) -> None:
    world.write("target", "import sys\ndel sys.modules[__name__]\ndef f(): return 1")
    world.wrap("target:f")
    with pytest.raises((ImportError, KeyError)):
        importlib.import_module("target")
    assert world.state() == "pending"


def test_an_import_that_fails_is_patched_when_it_succeeds(world: World) -> None:
    world.write("target", "def f(): return 1\nraise ValueError('not yet')")
    world.wrap("target:f")
    with pytest.raises(ValueError, match="not yet"):
        importlib.import_module("target")
    assert world.state() == "pending"
    assert world.load("target", "def f(): return 1").f() == 2


def test_a_target_that_is_missing_is_named_to_the_part_that_is_missing(world: World) -> None:  # case 5
    world.declare(
        {"id": "p", "target": "target:Class.inner.f", "action": "wrap", "using": "impl:add_one"},
        {"id": "q", "target": "target:f", "action": "wrap", "using": "impl:add_one"},
    )
    world.load("target", "class Class: pass")
    p, q = world.engine.status("p", "q")
    assert (p.state, q.state) == ("failed", "failed")
    assert p.reason == "target missing: target:Class has no 'inner' (wanted target:Class.inner.f)"
    assert q.reason == "target missing: target has no 'f' (wanted target:f)"


# --- reload --------------------------------------------------------------------------------------------------------


def test_a_reload_is_patched_again_and_once(world: World) -> None:  # case 10
    world.wrap("target:f")
    target = world.load("target", "def f(): return 1")
    for _ in range(3):
        assert importlib.reload(target) is target
        assert (target.f(), world.layers) == (2, 1)
    original = target.f.__wrapped__
    world.engine.revert("p")
    assert target.f is original


def test_a_reload_finds_the_new_class(world: World) -> None:  # case 10
    world.wrap("target:Class.f")
    target = world.load("target", "class Class:\n    def f(self): return 1")
    old = target.Class
    importlib.reload(target)
    assert target.Class is not old
    assert (target.Class().f(), world.layers) == (2, 1)
    world.engine.revert("p")
    assert (target.Class().f(), world.layers) == (1, 0)


@pytest.mark.parametrize("first", ["one", "two"])
def test_a_reload_of_either_of_two_modules_keeps_one_layer_each(world: World, first: str) -> None:  # case 10
    world.wrap("two:f", also_bind=["one:f"])
    world.write("two", "def f(): return 1")
    world.write("one", "from two import f")
    import one
    import two

    second = {"one": "two", "two": "one"}[first]
    importlib.reload(sys.modules[first])
    importlib.reload(sys.modules[second])
    importlib.reload(one)
    assert (one.f(), two.f(), one.f is two.f, world.state(), world.layers) == (2, 2, True, "applied", 2)
    world.engine.revert("p")
    assert (one.f(), two.f(), world.layers) == (1, 1, 0)


def test_a_reload_of_what_was_reverted_is_left_alone(world: World) -> None:
    world.wrap("target:f")
    target = world.load("target", "def f(): return 1")
    world.engine.revert("p")
    importlib.reload(target)
    assert (target.f(), world.state()) == (1, "reverted")


def test_a_reload_that_fails_leaves_the_patch_in_order(world: World) -> None:
    world.wrap("target:f")
    target = world.load("target", "def f(): return 1")
    world.write("target", "def f(): return 3\nraise ValueError")
    with pytest.raises(ValueError):
        importlib.reload(target)
    assert world.state() in ("lost", "overlaid")
    world.write("target", "def f(): return 5")
    importlib.reload(target)
    assert (target.f(), world.state()) == (6, "applied")


def test_a_module_that_is_imported_afresh_is_patched_afresh(world: World) -> None:
    world.wrap("target:f")
    old = world.load("target", "def f(): return 1")
    del sys.modules["target"]
    new = importlib.import_module("target")
    assert new is not old
    assert (new.f(), world.state()) == (2, "applied")
    world.engine.revert("p")
    assert new.f() == 1


# --- kinds of modules ----------------------------------------------------------------------------------------------


def test_a_module_out_of_a_zip_file_is_patched(world: World) -> None:
    archive = world.folder / "archive.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("zipped.py", "def f(): return 1")
    sys.path.insert(0, str(archive))
    try:
        world.wrap("zipped:f")
        import zipped

        assert zipped.f() == 2
        assert type(zipped.__loader__).__name__ == "zipimporter"
    finally:
        sys.path.remove(str(archive))


def test_a_namespace_package_is_a_target(world: World) -> None:
    (world.folder / "space").mkdir()
    world.declare({"id": "p", "target": "space:name", "action": "inject", "value": 5})
    import space

    assert (space.name, world.state()) == (5, "applied")


def test_a_module_within_a_namespace_package_is_patched(world: World) -> None:
    (world.folder / "space").mkdir()
    (world.folder / "space" / "inner.py").write_text("def f(): return 1")
    world.wrap("space.inner:f")
    import space.inner

    assert space.inner.f() == 2


def test_an_extension_module_is_patched_when_it_is_imported(world: World) -> None:
    code = """
        import sys
        from compat_patches import manifest
        from compat_patches.engine import Engine
        from standins import declaration
        del sys.modules["_bisect"]
        engine = Engine()
        engine.open()
        patch = {"id": "p", "target": "_bisect:bisect_right", "action": "wrap", "using": "impl:add_one"}
        engine.add(manifest.parse(declaration("test", [patch]).encode(), "test"))
        engine.start()
        assert engine.status("p")[0].state == "pending", engine.status("p")
        import _bisect
        assert _bisect.bisect_right([1, 2], 1) == 2, engine.status("p")
        engine.revert("p")
        assert _bisect.bisect_right([1, 2], 1) == 1
        assert type(_bisect.bisect_right).__name__ == "builtin_function_or_method"
    """
    done = run_python(code, folder=world.folder)
    assert done.returncode == 0, done.stderr


def test_a_lazy_module_is_patched_when_it_is_executed_and_not_before(world: World) -> None:
    world.write("lazy", "executed = True\ndef f(): return 1")
    world.wrap("lazy:f")
    lazy = lazily("lazy")
    assert world.state() == "pending"
    assert lazy.f() == 2


def test_looking_for_copies_does_not_execute_lazy_modules(world: World) -> None:
    world.write("lazy", "import sys\nsys.executed_lazily = True")
    lazily("lazy")
    world.load("target", "def f(): return 1")
    world.wrap("target:f")
    assert not hasattr(sys, "executed_lazily")


def test_applying_does_not_execute_a_lazy_target(world: World) -> None:
    world.write("lazy", "import sys\nsys.executed_lazily = True\ndef f(): return 1")
    lazy = lazily("lazy")
    try:
        world.wrap("lazy:f")
        assert not hasattr(sys, "executed_lazily")
        assert world.state() == "pending"
        assert (lazy.f(), world.state()) == (2, "applied")
    finally:
        vars(sys).pop("executed_lazily", None)


def lazily(name: str) -> Any:
    spec = importlib.util.find_spec(name)
    assert spec is not None and spec.loader is not None
    spec.loader = importlib.util.LazyLoader(spec.loader)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def test_a_loader_that_knows_load_module_only_is_served(world: World) -> None:
    class Legacy:
        def load_module(self, name: str) -> types.ModuleType:
            module = sys.modules.setdefault(name, types.ModuleType(name))
            module.f = lambda: 1  # type: ignore[attr-defined]
            module.__loader__ = self
            return module

    class Finder:
        @staticmethod
        def find_spec(name: str, path: Any = None, target: Any = None) -> Any:
            return importlib.util.spec_from_loader(name, Legacy()) if name == "legacy" else None  # type: ignore[arg-type]

    if sys.version_info >= (3, 12):
        pytest.skip("the import system calls load_module up to Python 3.11 without complaint")
    sys.meta_path.append(Finder)  # type: ignore[arg-type]
    try:
        world.wrap("legacy:f")
        with pytest.warns(ImportWarning):
            import legacy
        assert legacy.f() == 2
        assert type(legacy.__loader__) is Legacy
    finally:
        sys.meta_path.remove(Finder)  # type: ignore[arg-type]
        sys.modules.pop("legacy", None)


# --- what the finder leaves behind ---------------------------------------------------------------------------------


def test_a_patched_module_shows_no_trace_of_the_finder(world: World) -> None:
    plain = world.load("plain", "")
    world.wrap("target:f")
    target = world.load("target", "def f(): return 1\nloader = __loader__\nspec_loader = __spec__.loader")
    for loader in (target.__loader__, target.__spec__.loader, target.loader, target.spec_loader):
        assert type(loader) is type(plain.__loader__)
    assert type(target.__spec__) is type(plain.__spec__)


def test_a_spec_that_is_found_and_not_imported_answers_as_upstreams_does(world: World) -> None:
    world.write("target", "def f(): return 1")
    world.wrap("target:f")
    spec = importlib.util.find_spec("target")
    assert spec is not None
    assert isinstance(spec.loader, importlib.machinery.SourceFileLoader)
    assert spec.loader.get_source("target") == "def f(): return 1"
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)  # A private copy; nobody registered it.
    assert (module.f(), world.state()) == (1, "pending")


def test_the_finder_is_there_only_while_somebody_waits(world: World) -> None:
    others = [entry for entry in sys.meta_path if entry is not importing.FINDER]
    status = world.wrap("target:f")
    assert status.state == "pending"
    assert importing.FINDER in sys.meta_path
    world.engine.revert("p")
    assert [entry for entry in sys.meta_path if entry is not importing.FINDER] == others


def test_a_finder_that_asks_the_whole_of_the_meta_path_is_no_endless_loop(world: World) -> None:
    class Asking:
        inside = False

        def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
            if name != "target" or self.inside:
                return None
            self.inside = True
            try:
                return importlib.util.find_spec(name)
            finally:
                self.inside = False

    for place in (0, len(sys.meta_path)):
        asking = Asking()
        sys.modules.pop("target", None)
        sys.meta_path.insert(place, asking)  # type: ignore[arg-type]
        try:
            world.write("target", "def f(): return 1")
            if place == 0:
                world.wrap("target:f")
            assert importlib.import_module("target").f() == 2
        finally:
            sys.meta_path.remove(asking)  # type: ignore[arg-type]


def test_wrapts_hooks_and_ours_are_both_called(world: World) -> None:
    wrapt = pytest.importorskip("wrapt")
    called: list[str] = []
    for name, wrapt_first in (("hooked_first", True), ("hooked_second", False)):
        hook = wrapt.when_imported(name)
        if wrapt_first:
            hook(lambda module: called.append(module.__name__))
        world.declare(
            {"id": f"p-{wrapt_first}".lower(), "target": f"{name}:f", "action": "wrap", "using": "impl:add_one"}
        )
        if not wrapt_first:
            hook(lambda module: called.append(module.__name__))
        assert world.load(name, "def f(): return 1").f() == 2
    assert called == ["hooked_first", "hooked_second"]
    sys.meta_path[:] = [entry for entry in sys.meta_path if type(entry).__module__.partition(".")[0] != "wrapt"]


def test_the_callback_for_a_root_comes_once_and_before_the_module_runs(world: World) -> None:
    world.write("root", "import sys\nsys.ran_root = True")
    calls = []
    importing.expect("root", lambda name, origin: calls.append((name, origin, hasattr(sys, "ran_root"))))
    try:
        importlib.import_module("root")
        importlib.reload(sys.modules["root"])
    finally:
        vars(sys).pop("ran_root", None)
        importing.forget("root")
    assert calls == [("root", str(world.folder / "root.py"), False)]


# --- failing -------------------------------------------------------------------------------------------------------

BREAKING = {
    "an exception": "raise RuntimeError('broken')",
    "a missing module": "import no_such_module_anywhere",
    "an exit": "raise SystemExit(3)",
    "sys.exit": "import sys; sys.exit('out')",
    "an exception that is none": "class Odd(BaseException): pass\n{indent}raise Odd",
    "a generator's exit": "raise GeneratorExit",
    "no memory": "raise MemoryError",
}


@pytest.mark.parametrize("breaking", BREAKING)
@pytest.mark.parametrize("where", ["module", "factory"])
def test_a_patch_that_breaks_lets_the_import_and_the_other_patches_through(
    world: World, breaking: str, where: str, caplog: pytest.LogCaptureFixture
) -> None:  # case 28
    code = BREAKING[breaking]
    if where == "module":
        world.write("broken", code.format(indent=""))
    else:
        world.write("broken", "def factory(original):\n    " + code.format(indent="    "))
    world.declare(
        {"id": "p", "target": "target:f", "action": "wrap", "using": "broken:factory"},
        {"id": "q", "target": "target:g", "action": "wrap", "using": "impl:add_one"},
    )
    target = world.load("target", "def f(): return 1\ndef g(): return 1")
    assert (target.f(), target.g()) == (1, 2)
    p = world.engine.status("p")[0]
    assert p.state == "failed"
    assert p.reason
    assert (p.traceback is not None and "broken.py" in p.traceback) or breaking == "a missing module"
    assert "p failed" in caplog.text


def test_what_is_strict_raises_out_of_the_import_and_names_the_culprit(strict_world: World) -> None:  # case 28
    from compat_patches.errors import PatchError

    strict_world.write("target", "def f(): return 1")
    strict_world.wrap("target:f", "impl:fails")
    with pytest.raises(PatchError, match=r"test-1/p failed: RuntimeError: the patch is broken"):
        importlib.import_module("target")
    assert "target" not in sys.modules


def test_an_interrupt_in_a_patchs_code_is_the_users(world: World) -> None:
    world.write("broken", "def factory(original):\n    raise KeyboardInterrupt")
    world.wrap("target:f", "broken:factory")
    world.write("target", "def f(): return 1")
    with pytest.raises(KeyboardInterrupt):
        importlib.import_module("target")
    world.engine.revert("p")
    assert world.load("target").__name__ == "target"


def test_no_warning_comes_from_us(world: World) -> None:  # case 30
    world.write("target", "def f(): return 1\nclass C:\n    def m(self): return 1")
    code = """
        import importlib
        from compat_patches import manifest
        from compat_patches.engine import Engine
        from standins import declaration
        engine = Engine()
        engine.open()
        patches = [
            {"id": "p", "target": "target:f", "action": "wrap", "using": "impl:add_one"},
            {"id": "q", "target": "target:C.m", "action": "wrap", "using": "impl:add_one"},
            {"id": "r", "target": "target:f", "action": "replace", "using": "impl:seven"},
        ]
        engine.add(manifest.parse(declaration("test", patches).encode(), "test"))
        engine.start()
        import target
        importlib.reload(target)
        assert target.f() == 7 and target.C().m() == 2
        engine.close()
        assert target.f() == 1 and target.C().m() == 1
    """
    done = run_python(code, "-W", "error", folder=world.folder)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_module_that_a_finder_before_ours_hides_is_patched_by_verify(world: World) -> None:
    class Finder:
        """One that does not ask the finders behind it, as some import hooks of editable installs do not."""

        def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
            return PathFinder.find_spec(name, [str(world.folder)]) if name == "target" else None

    world.write("target", "def f(): return 1")
    assert world.wrap("target:f").state == "pending"
    finder = Finder()
    sys.meta_path.insert(0, finder)
    try:
        target = world.load("target")
    finally:
        sys.meta_path.remove(finder)
    assert (target.f(), world.state()) == (1, "pending")
    assert [status.state for status in world.engine.verify()] == ["applied"]
    assert target.f() == 2
