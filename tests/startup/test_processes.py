"""Every way in which a job starts Python: the patches are there, once, and torch is not imported for them.

The whole table is slow, as each cell is a real run that imports torch, often in several processes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipapp
from pathlib import Path
from typing import Any

import pytest
from environments import Environment

HERE = Path(__file__).resolve().parent
ONCE = {"early": False, "state": "applied", "most": 1, "wrappers": 1}
ONCE_WITH_TORCH = {**ONCE, "early": True}

PROGRAMS = {
    "subprocess": """
import subprocess, sys
done = subprocess.run([sys.executable, "-c", "import looking; looking.main()"], stdout=-1, text=True, check=True)
print(done.stdout)
""",
    "spawn": """
import multiprocessing
with multiprocessing.get_context("spawn").Pool(1) as pool:
    print(json.dumps(pool.apply(looking.look)))
""",
    "fork": """
import multiprocessing
with multiprocessing.get_context("fork").Pool(1) as pool:
    print(json.dumps(pool.apply(looking.look)))
""",
    "fork after torch": """
import multiprocessing, torch
with multiprocessing.get_context("fork").Pool(1) as pool:
    print(json.dumps(pool.apply(looking.look)))
""",
    "forkserver": """
import multiprocessing
with multiprocessing.get_context("forkserver").Pool(1) as pool:
    print(json.dumps(pool.apply(looking.look)))
""",
    "forkserver with torch": """
import multiprocessing
context = multiprocessing.get_context("forkserver")
context.set_forkserver_preload(["torch"])
with context.Pool(1) as pool:
    print(json.dumps(pool.apply(looking.look)))
""",
    "concurrent.futures": """
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
    print(json.dumps(pool.submit(looking.look).result()))
""",
    "DataLoader, fork": """
from torch.utils.data import DataLoader
import dataset
print(json.dumps(list(DataLoader(dataset.Looks(), batch_size=None, num_workers=1, multiprocessing_context="fork"))[0]))
""",
    "DataLoader, spawn": """
from torch.utils.data import DataLoader
import dataset
print(json.dumps(list(DataLoader(dataset.Looks(), batch_size=None, num_workers=1, multiprocessing_context="spawn"))[0]))
""",
    "inductor": """
from torch._inductor.compile_worker.subproc_pool import SubprocPool
pool = SubprocPool(1)
print(json.dumps(pool.submit(looking.look).result()))
pool.shutdown()
""",
}
DATASET = """
import looking
class Looks:
    def __len__(self):
        return 1
    def __getitem__(self, index):
        return looking.look()
"""
BRINGS_TORCH = {"fork after torch", "forkserver with torch", "DataLoader, fork", "DataLoader, spawn", "inductor"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of programs, for ``PYTHONPATH``."""
    (tmp_path / "looking.py").write_bytes((HERE / "looking.py").read_bytes())
    (tmp_path / "dataset.py").write_text(DATASET)
    for number, (name, text) in enumerate(PROGRAMS.items()):
        indented = text.replace("\n", "\n    ")
        source = f'import json, looking\nif __name__ == "__main__":\n    {indented}\n'
        (tmp_path / f"program{number}.py").write_text(source)
        assert name
    return tmp_path


def program(folder: Path, kind: str) -> str:
    return str(folder / f"program{list(PROGRAMS).index(kind)}.py")


def answer(done: subprocess.CompletedProcess[str]) -> Any:
    return json.loads(done.stdout.strip().splitlines()[-1])


@pytest.mark.slow
@pytest.mark.parametrize("kind", PROGRAMS)
def test_a_child_is_patched_once(environment: Environment, folder: Path, kind: str) -> None:
    done = environment.run(program(folder, kind), COMPAT_PATCHES="on", PYTHONPATH=str(folder))
    found = answer(done)
    print(f"\n{environment.folder.name:<12} {kind:<22} {json.dumps(found)}")
    # Where the parent's kind brings torch into the child, it is there already, and patched.
    expected = ONCE_WITH_TORCH if kind in BRINGS_TORCH else ONCE
    assert {**found, "early": expected["early"]} == expected
    assert found["early"] is False or kind in BRINGS_TORCH


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["subprocess", "spawn", "forkserver"])
def test_a_child_of_a_program_that_is_run_is_patched_once(environment: Environment, folder: Path, kind: str) -> None:
    done = environment.run("-m", "compat_patches", "run", program(folder, kind), PYTHONPATH=str(folder))
    assert answer(done) == ONCE


@pytest.mark.slow
def test_what_is_chosen_for_a_program_that_is_run_reaches_its_children(installed: Environment, folder: Path) -> None:
    arguments = ["-m", "compat_patches", "run", "--disable", "xpu", program(folder, "spawn")]
    assert answer(installed.run(*arguments, PYTHONPATH=str(folder)))["state"] == "skipped"
    arguments[3:5] = ["--only", "cpu"]
    assert answer(installed.run(*arguments, PYTHONPATH=str(folder)))["state"] == "skipped"
    arguments[3:5] = ["--only", "xpu"]
    assert answer(installed.run(*arguments, PYTHONPATH=str(folder)))["state"] == "applied"
    (folder / "fails.toml").write_text("nonsense")
    variables = {"PYTHONPATH": str(folder), "COMPAT_PATCHES_MANIFEST": str(folder / "fails.toml")}
    arguments[3:5] = []
    assert answer(installed.run(*arguments, **variables))["state"] == "applied"
    arguments[3:3] = ["--strict"]
    done = installed.run(*arguments, check=False, **variables)
    assert done.returncode != 0
    assert "fails.toml: is not valid TOML" in done.stderr


@pytest.mark.slow
def test_each_rank_of_torchrun_is_patched_once(environment: Environment, folder: Path) -> None:
    (folder / "rank.py").write_text(
        "import json, os, looking\n"
        f"with open(os.path.join({str(folder)!r}, 'rank' + os.environ['RANK']), 'w') as file:\n"
        "    json.dump(looking.look(), file)\n"
    )
    arguments = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone", str(folder / "rank.py")]
    environment.run(*arguments, COMPAT_PATCHES="on", PYTHONPATH=str(folder))
    found = [json.loads((folder / f"rank{rank}").read_text()) for rank in range(2)]
    print(f"\n{environment.folder.name:<12} {'torchrun, 2 ranks':<22} {json.dumps(found)}")
    assert found == [ONCE, ONCE]


FLAGS = {
    "-I": (["-I"], ONCE),
    "-E": (["-E"], ONCE),
    "-s": (["-s"], ONCE),
    # Python reads no startup file, and does not find site-packages either.
    "-S": (["-S"], None),
}


@pytest.mark.slow
@pytest.mark.parametrize("flag", FLAGS)
def test_flags(environment: Environment, folder: Path, flag: str) -> None:
    flags, expected = FLAGS[flag]
    code = f"import sys; sys.path.insert(0, {str(folder)!r}); import looking; looking.main()"
    done = environment.run(*flags, "-c", code, check=False, COMPAT_PATCHES="on")
    print(f"\n{environment.folder.name:<12} {flag:<22} {done.stdout.strip() or done.stderr.strip().splitlines()[-1]}")
    if expected is None:
        assert "No module named 'torch'" in done.stderr
    else:
        assert answer(done) == expected


@pytest.mark.slow
def test_without_site_a_program_can_import_it(installed: Environment, folder: Path) -> None:
    path = [str(installed.site_packages), *filter(None, sys.path)]
    variables = {"COMPAT_PATCHES": "on", "PYTHONPATH": os.pathsep.join([str(folder), *path])}
    done = installed.run("-S", "-c", "import looking; looking.main()", **variables)
    assert answer(done)["state"] == "not active"
    done = installed.run("-S", "-c", "import compat_patches, looking; looking.main()", **variables)
    assert answer(done) == ONCE


@pytest.mark.slow
def test_python_m(environment: Environment, folder: Path) -> None:
    (folder / "as_module.py").write_text("import looking; looking.main()")
    done = environment.run("-m", "as_module", COMPAT_PATCHES="on", PYTHONPATH=str(folder))
    print(f"\n{environment.folder.name:<12} {'python -m':<22} {done.stdout.strip()}")
    assert answer(done) == ONCE


@pytest.mark.slow
def test_a_zipapp(environment: Environment, folder: Path) -> None:
    application = folder / "application"
    application.mkdir()
    (application / "looking.py").write_bytes((HERE / "looking.py").read_bytes())
    zipapp.create_archive(application, folder / "application.pyz", main="looking:main")
    done = environment.run(str(folder / "application.pyz"), COMPAT_PATCHES="on")
    print(f"\n{environment.folder.name:<12} {'zipapp':<22} {done.stdout.strip()}")
    assert answer(done) == ONCE


@pytest.mark.slow
def test_a_zipapp_that_brings_compat_patches_along(bare: Environment, wheel: Path, folder: Path) -> None:
    """Nothing is installed: the application imports the package, and hands it on to its children."""
    application = folder / "application"
    command = [sys.executable, "-m", "pip", "--quiet", "install", "--no-deps", "--no-index", "--target"]
    subprocess.run([*command, str(application), str(wheel)], check=True, capture_output=True)
    (application / "looking.py").write_bytes((HERE / "looking.py").read_bytes())
    (application / "application.py").write_text(
        "import json, os, subprocess, sys\n"
        "import compat_patches, looking\n"
        "from compat_patches.launch import child_environment\n"
        "def main():\n"
        "    code = 'import sys; sys.path.append(sys.argv[1]); import looking; looking.main()'\n"
        "    command = [sys.executable, '-c', code, sys.argv[0]]\n"
        "    environment = child_environment(os.environ)\n"
        "    child = subprocess.run(command, env=environment, stdout=-1, check=True, text=True)\n"
        "    print(json.dumps([looking.look(), json.loads(child.stdout)]))\n"
    )
    zipapp.create_archive(application, folder / "application.pyz", main="application:main")
    assert answer(bare.run(str(folder / "application.pyz"))) == [ONCE, ONCE]


def test_a_python_of_another_environment_is_left_alone(installed: Environment, bare: Environment) -> None:
    """Neither the variables nor the sitecustomize folder that a parent hands on make ours appear there."""
    code = f"""
import os, subprocess
from compat_patches.launch import child_environment
code = "import sys; print([name for name in sys.modules if 'compat_patches' in name], sys.path)"
for environment in (os.environ, child_environment(os.environ)):
    environment = dict(environment, PYTHONWARNINGS="error")
    print(subprocess.run([{bare.python!r}, "-c", code], env=environment, capture_output=True, text=True))
"""
    done = installed.run("-c", code, COMPAT_PATCHES="on")
    for line in done.stdout.splitlines():
        assert 'returncode=0, stdout="[] [' in line
        assert "stderr=''" in line
        assert "compat_patches" not in line.partition("stdout=")[2]


@pytest.mark.parametrize("lock", ["importing._lock", "records.lock", "compile_cache._lock"])
def test_a_child_finds_our_locks_free(installed: Environment, lock: str) -> None:
    code = f"""
import os, signal, threading, time
from compat_patches import {lock.partition(".")[0]}
lock = {lock}
taken = threading.Event()

def hold():
    with lock:
        taken.set()
        time.sleep(0.5)

thread = threading.Thread(target=hold)
thread.start()
taken.wait()
child = os.fork()
if child == 0:
    signal.alarm(20)
    os._exit(0 if lock.acquire(timeout=5) else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
thread.join()
"""
    assert installed.run("-W", "ignore", "-c", code).stdout == "0\n"


def test_a_fork_while_another_thread_is_importing(installed: Environment, tmp_path: Path) -> None:
    """The child does not hang on a lock of ours, and its state is right: it applies and reverts."""
    (tmp_path / "slow_target.py").write_text(
        "import time\nfor _ in range(200):\n    time.sleep(0.01)\ndef function():\n    return 1\n"
    )
    manifest = tmp_path / "slow.toml"
    manifest.write_text("""
[manifest]
name = "slow"
schema = 1

[[patch]]
id = "slow"
summary = "s"
why = "w"
upstream = ["u"]
remove_when = "r"
target = "slow_target:function"
action = "noop"
value = 2

[[patch]]
id = "quick"
summary = "s"
why = "w"
upstream = ["u"]
remove_when = "r"
target = "quick_target:function"
action = "noop"
value = 2
""")
    (tmp_path / "quick_target.py").write_text("def function():\n    return 1\n")
    code = f"""
import os, signal, sys, threading, time
import compat_patches
compat_patches.load_manifest({str(manifest)!r})
stop = False

def churn():
    while not stop:
        compat_patches.apply("quick")
        compat_patches.revert("quick")

threads = [threading.Thread(target=__import__, args=("slow_target",)), threading.Thread(target=churn)]
import quick_target
for thread in threads:
    thread.start()
time.sleep(0.1)
children = []
for number in range(40):
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        compat_patches.apply("quick")
        applied = quick_target.function()
        compat_patches.revert("quick")
        os._exit(0 if (applied, quick_target.function()) == (2, 1) else 1)
    children.append(child)
codes = sorted({{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children}})
stop = True
for thread in threads:
    thread.join()
import slow_target
print(codes, slow_target.function())
"""
    done = installed.run("-W", "ignore", "-c", code, timeout=120, PYTHONPATH=str(tmp_path))
    assert done.stdout == "[0] 2\n"
