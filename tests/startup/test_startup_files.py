"""What the ``.pth`` and ``.start`` files do in a process, and that they never get in anybody's way."""

from __future__ import annotations

import pkgutil
import sys
from pathlib import Path

import pytest
from environments import CHECKOUT, Environment

# Active: whoever waits for torch is on sys.meta_path.
ACTIVE = """
import json, sys
print(json.dumps(any("compat_patches" in type(finder).__module__ for finder in sys.meta_path)))
"""


@pytest.mark.parametrize("word", ["on", "1", "true", "yes", " ON "])
def test_the_environment_turns_it_on(environment: Environment, word: str) -> None:
    assert environment.ask(ACTIVE, COMPAT_PATCHES=word) is True


@pytest.mark.parametrize("word", ["off", "0", "false", "no", "", "perhaps"])
def test_it_stays_out_where_nobody_says_on(environment: Environment, word: str) -> None:
    assert environment.ask(ACTIVE, COMPAT_PATCHES=word) is False


def test_it_stays_out_where_nothing_is_said(environment: Environment) -> None:
    assert environment.ask(ACTIVE) is False


@pytest.mark.parametrize("flags", [["-I"], ["-E"], ["-s"], ["-P"], ["-W", "error"], ["-X", "utf8"]], ids=" ".join)
def test_it_is_active_under_flags(environment: Environment, flags: list[str]) -> None:
    if flags == ["-P"] and sys.version_info < (3, 11):
        pytest.skip("-P starts with Python 3.11")
    assert environment.ask(ACTIVE, *flags, COMPAT_PATCHES="on") is True


def test_without_site_there_is_no_startup_file(environment: Environment) -> None:
    assert environment.ask(ACTIVE, "-S", COMPAT_PATCHES="on") is False


def test_one_module_of_ours_is_imported_and_nothing_else(installed: Environment, bare: Environment) -> None:
    code = "import json, sys; print(json.dumps(sorted(sys.modules)))"
    for word in ("on", "off"):
        found, without = (set(environment.ask(code, COMPAT_PATCHES=word)) for environment in (installed, bare))
        assert found - without == {"_compat_patches_startup"}
        assert without <= found


def test_the_start_file_names_what_the_pth_line_calls(installed: Environment) -> None:
    (line,) = [
        line
        for line in (installed.site_packages / "compat_patches.start").read_text().splitlines()
        if line and not line.startswith("#")
    ]
    # As site.py of Python 3.15 does it (PEP 829), in a Python that has read no .pth file.
    code = f"""
import json, pkgutil, sys
sys.path.insert(0, {str(installed.site_packages)!r})
pkgutil.resolve_name({line!r})()
import _compat_patches_startup
print(json.dumps([_compat_patches_startup._finder in sys.meta_path, _compat_patches_startup.fired]))
"""
    assert installed.ask(code, "-S", COMPAT_PATCHES="on") == [True, ["compat_patches.start"]]
    assert installed.ask(code, "-S") == [False, ["compat_patches.start"]]
    assert callable(pkgutil.resolve_name("site:main"))


def test_a_startup_file_that_is_left_behind_stays_silent(disposable: Environment) -> None:
    left = (disposable.site_packages / "compat_patches.pth").read_text()
    disposable.pip("uninstall", "--yes", "compat-patches")
    (disposable.site_packages / "compat_patches.pth").write_text(left)
    done = disposable.run("-c", "print('started')", COMPAT_PATCHES="on", COMPAT_PATCHES_LOG="debug")
    assert (done.stdout, done.stderr) == ("started\n", "")


@pytest.fixture
def broken(disposable: Environment) -> Environment:
    """Where importing compat_patches ends the process, and importing torch is quick."""
    (disposable.site_packages / "compat_patches" / "env_override.py").write_text("raise SystemExit(7)\n")
    (disposable.site_packages / "torch.py").write_text("__version__ = '2.13.0'\n")
    return disposable


@pytest.mark.parametrize("fault", ["raise SystemExit(7)", "raise ValueError", "import no_such_module", "1 +"])
@pytest.mark.parametrize("manifest", ["", "/nowhere.toml"], ids=["for torch", "at once"])
def test_what_goes_wrong_reaches_nobody(broken: Environment, fault: str, manifest: str) -> None:
    (broken.site_packages / "compat_patches" / "env_override.py").write_text(f"{fault}\n")
    done = broken.run(
        "-c", "import torch; print(torch.__version__)", COMPAT_PATCHES="on", COMPAT_PATCHES_MANIFEST=manifest
    )
    assert (done.stdout, done.stderr) == ("2.13.0\n", "")


def test_what_goes_wrong_is_told_to_who_asks(broken: Environment) -> None:
    done = broken.run("-c", "import torch", COMPAT_PATCHES="on", COMPAT_PATCHES_LOG="debug")
    assert done.stderr == "compat_patches: could not be activated by compat_patches.pth: SystemExit: 7\n"


def test_a_closed_standard_error_does_no_harm(broken: Environment) -> None:
    code = """
import os, subprocess, sys
environment = dict(os.environ, COMPAT_PATCHES="on", COMPAT_PATCHES_LOG="debug")
code = "import torch; print(torch.__version__)"
done = subprocess.run(
    [sys.executable, "-c", code], preexec_fn=lambda: os.close(2), stdout=subprocess.PIPE, text=True, env=environment
)
print(done.returncode, done.stdout)
"""
    assert broken.run("-c", code).stdout.split() == ["0", "2.13.0"]


def test_a_manifest_of_the_environment_is_read_before_the_users_program(disposable: Environment) -> None:
    """It may be about any package, so nobody waits for torch; and what later .pth files bring is on the path."""
    manifest = disposable.folder / "other.toml"
    manifest.write_text("""
[manifest]
name = "other"
schema = 1

[[patch]]
id = "threads"
summary = "One thread"
why = "A test of what is done at the start."
upstream = ["https://example.org/1"]
remove_when = "never"
action = "env"
key = "OTHER_THREADS"
value = "1"
""")
    code = "import json, os, sys; print(json.dumps([os.environ.get('OTHER_THREADS'), 'torch' in sys.modules]))"
    variables = {"COMPAT_PATCHES": "on", "COMPAT_PATCHES_MANIFEST": str(manifest)}
    assert disposable.ask(code, **variables) == ["1", False]
    assert disposable.ask(code, "-I", **variables) == [None, False]


def test_who_asks_for_strictness_gets_the_error_when_torch_is_imported(disposable: Environment) -> None:
    (disposable.site_packages / "torch.py").write_text("__version__ = '2.13.0'\n")
    variables = {"COMPAT_PATCHES": "on", "COMPAT_PATCHES_STRICT": "1", "COMPAT_PATCHES_MANIFEST": "/nowhere.toml"}
    assert disposable.run("-c", "print('started')", **variables).stderr == ""
    done = disposable.run("-c", "import torch", check=False, **variables)
    assert done.returncode == 1
    assert "/nowhere.toml: cannot be read: No such file or directory" in done.stderr.splitlines()[-1]


def test_a_checkout_on_the_path_has_the_module_that_the_startup_files_call(installed: Environment) -> None:
    code = "import json, _compat_patches_startup as s; print(json.dumps(s.__file__))"
    assert installed.ask(code, PYTHONPATH=str(CHECKOUT)) == str(CHECKOUT / "_compat_patches_startup.py")


def test_a_virtual_environment_made_from_a_virtual_environment(installed: Environment, tmp_path: Path) -> None:
    """It has what its own site-packages have, and those are empty: nothing of ours is there to be turned on."""
    installed.run("-m", "venv", "--without-pip", str(tmp_path / "inner"))
    inner = tmp_path / "inner" / "bin" / "python"
    code = f"""
import subprocess
print(subprocess.run([{str(inner)!r}, "-c", {ACTIVE!r}], capture_output=True, text=True))
"""
    done = installed.run("-c", code, COMPAT_PATCHES="on")
    assert "returncode=0, stdout='false\\n', stderr=''" in done.stdout
