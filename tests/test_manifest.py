"""A manifest is loaded whole, or refused with all of its faults."""

import hashlib
import os
import pickle
import random
import re
import socket
import tempfile
from pathlib import Path

import pytest
from declared import CORRECT, ROOT, document, patch, problems, table, toml
from hypothesis import given, settings
from hypothesis import strategies as st

from compat_patches import manifest
from compat_patches.errors import CompatPatchesError, ManifestError
from compat_patches.fields import ACTIONS, problems_of
from compat_patches.manifest import Manifest, Step, Target

BUILT_IN = (ROOT / "patches.toml").read_bytes()


def refused(data: bytes) -> list[str]:
    with pytest.raises(ManifestError) as caught:
        manifest.parse(data, "some.toml")
    return caught.value.problems


# --- what is loaded ------------------------------------------------------------------------------------------------


def test_the_built_in_manifest_is_correct():
    loaded = manifest.load(ROOT / "patches.toml")
    assert loaded.name == "compat-patches"
    assert loaded.patches[0].id == "xpu-event-blocking"


def test_a_manifest_knows_where_it_came_from_and_what_its_bytes_were(tmp_path):
    path = tmp_path / "some.toml"
    path.write_bytes(toml(document(table())))
    loaded = manifest.load(path)
    assert loaded.source == str(path)
    assert loaded.digest == hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_manifest_may_declare_nothing():
    assert manifest.parse(b'[manifest]\nname = "a"\nschema = 1\n', "test").patches == ()


def test_a_patch_has_what_was_declared_and_defaults_for_the_rest():
    loaded = patch(groups=["a", "b"], requires=["torch>=2.10"], needed_if={"lacks_parameter": ["x"]})
    assert loaded.qualified_id == "some-manifest/a-patch"
    assert loaded.summary == CORRECT["summary"]
    assert loaded.groups == ("a", "b")
    assert loaded.requires == ("torch>=2.10",)
    assert loaded.needed_if == {"lacks_parameter": ["x"]}
    assert (loaded.marker, loaded.build, loaded.scope) == (None, (), "process")
    assert (loaded.enabled, loaded.irreversible, loaded.affects_compile) == (True, False, False)
    assert loaded.steps == (Step(loaded.target, "wrap", using="some.implementation:wrap"),)


def test_a_patch_without_steps_has_one_step_which_does_not_repeat_its_requirements():
    (step,) = patch(requires=["torch<2.10"], rebind=True, pins={"2.10": "0" * 32}).steps
    assert step.requires == ()
    assert step.rebind
    assert step.pins == {"2.10": ("0" * 32,)}


def test_steps_keep_their_order_and_their_own_requirements():
    steps = [
        {"target": "torch:first", "action": "noop", "value": 3},
        {"target": "torch:second", "action": "alias", "using": "torch:third", "requires": ["torch>=2.9"]},
    ]
    loaded = patch(target=None, action=None, using=None, step=steps)
    assert loaded.steps == (
        Step(Target("torch", "first"), "noop", value=3),
        Step(Target("torch", "second"), "alias", using="torch:third", requires=("torch>=2.9",)),
    )
    assert loaded.target == Target("torch", "first")


def test_the_environment_need_not_be_named_as_the_target_of_env():
    (step,) = patch(target=None, using=None, action="env", key="A", value="1", mode="prepend").steps
    assert step == Step(Target("os", "environ"), "env", key="A", value="1", mode="prepend")


def test_records_cannot_be_changed():
    loaded = patch()
    for record, name in ((loaded, "id"), (loaded.steps[0], "action"), (loaded.target, "module")):
        with pytest.raises(AttributeError):
            setattr(record, name, "other")


def test_roots_are_the_packages_that_have_to_be_imported_first():
    steps = [{"target": "torch.cuda:Event", "action": "noop"}, {"target": "vllm.utils:f", "action": "noop"}]
    assert patch(target=None, action=None, using=None, step=steps).roots == {"torch", "vllm"}


@pytest.mark.parametrize(
    ("text", "root", "name"),
    [
        ("torch:Tensor", "torch", "Tensor"),
        ("torch._C:_XpuEventBase.__new__", "torch", "__new__"),
        ("a.b.c:D.E.f", "a", "f"),
        ("größe.maß:Straße.öffnen", "größe", "öffnen"),
        ("_a.__b__:_", "_a", "_"),
    ],
)
def test_a_target_is_a_module_and_a_name_in_it(text, root, name):
    target = patch(target=text).target
    assert str(target) == text
    assert (target.root, target.name) == (root, name)


# --- what a file can be --------------------------------------------------------------------------------------------


def test_an_empty_file_is_refused():
    assert refused(b"") == ["is empty; expected [manifest] and [[patch]] tables"]
    assert refused(b" \r\n\t\n") == ["is empty; expected [manifest] and [[patch]] tables"]
    assert refused(b"# only a comment\n") == ["[manifest]: missing; expected a table with name and schema"]


def test_a_byte_order_mark_is_named():
    assert refused(b"\xef\xbb\xbf" + BUILT_IN) == ["starts with a byte-order mark; save it as UTF-8 without one"]


def test_other_encodings_are_refused_with_the_place():
    assert refused("[manifest]".encode("utf-16")) == ["is not UTF-8: byte 0 is 0xff"]
    assert refused(b'a = "\xe9"') == ["is not UTF-8: byte 5 is 0xe9"]


def test_text_that_is_no_toml_is_refused_with_the_place():
    (problem,) = refused(b"[manifest]\nname = \n")
    assert problem.startswith("is not valid TOML: ")
    assert "line 2" in problem


def test_windows_line_ends_are_read():
    assert manifest.parse(BUILT_IN.replace(b"\n", b"\r\n"), "test").name == "compat-patches"


def make_nothing(path: Path) -> None:
    pass


def make_zero(path: Path) -> None:
    path.symlink_to("/dev/zero")


def make_loop(path: Path) -> None:
    path.symlink_to(path)


def make_socket(path: Path) -> None:
    # The address of a socket must be short, so it is made elsewhere.
    with tempfile.TemporaryDirectory(dir="/tmp") as folder, socket.socket(socket.AF_UNIX) as bound:
        bound.bind(os.path.join(folder, "s"))
        os.rename(os.path.join(folder, "s"), path)


def make_large(path: Path) -> None:
    with open(path, "wb") as file:
        file.truncate(100 * 1024 * 1024)


def make_unreadable(path: Path) -> None:
    if not os.path.exists("/proc/self/mem"):
        pytest.skip("needs a file that is regular and fails when it is read")
    path.symlink_to("/proc/self/mem")


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (make_nothing, "cannot be read: No such file or directory"),
        (Path.mkdir, "is a directory; expected a TOML file"),
        (os.mkfifo, "is not a regular file; expected a TOML file"),
        (make_socket, "cannot be read: No such device or address"),
        (make_zero, "is not a regular file; expected a TOML file"),
        (make_loop, "cannot be read: Too many levels of symbolic links"),
        (make_large, f"has 104857600 bytes; a manifest has at most {manifest.LARGEST_MANIFEST}"),
        (make_unreadable, "cannot be read: Input/output error"),
    ],
)
def test_what_is_no_readable_file_is_refused_at_once(tmp_path, make, problem):
    path = tmp_path / "some.toml"
    make(path)
    before = os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else []
    with pytest.raises(ManifestError) as caught:
        manifest.load(path)
    assert caught.value.problems == [problem]
    assert caught.value.source == str(path)
    assert before == [] or len(os.listdir("/proc/self/fd")) == len(before)


@pytest.mark.parametrize("path", ["a\0b", "", "x" * 5000, "some.toml/inside"])
def test_a_path_that_cannot_be_one_is_refused(path):
    with pytest.raises(ManifestError, match="cannot be read: "):
        manifest.load(path)


def test_a_path_may_be_bytes(tmp_path):
    path = tmp_path / "some.toml"
    path.write_bytes(BUILT_IN)
    assert manifest.load(os.fsencode(path)).source == str(path)


def test_a_file_without_permission_is_refused(tmp_path):
    path = tmp_path / "some.toml"
    path.write_bytes(BUILT_IN)
    path.chmod(0)
    user = os.geteuid()
    try:
        if user == 0:  # Who may read everything.
            os.seteuid(65534)
        with pytest.raises(ManifestError, match="cannot be read: Permission denied"):
            manifest.load(path)
    finally:
        os.seteuid(user)


# --- what a field can be -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["id", "summary", "why", "upstream", "remove_when", "action", "target", "using"])
def test_a_patch_that_lacks_what_it_must_say_is_refused(key):
    (problem,) = problems(**{key: None})
    assert f"key '{key}': missing; " in problem


@pytest.mark.parametrize(
    ("key", "nearest"),
    [("requries", "requires"), ("need_if", "needed_if"), ("removed_when", "remove_when"), ("alsobind", "also_bind")],
)
def test_a_misspelt_key_is_told_its_nearest_neighbour(key, nearest):
    assert problems(**{key: "x"}) == [f"patch 'a-patch': key {key!r}: unknown; did you mean {nearest!r}?"]


def test_an_unknown_key_without_a_neighbour_is_just_unknown():
    assert problems(zzzzzz=1) == ["patch 'a-patch': key 'zzzzzz': unknown"]
    assert problems_of({**document(), "zzzzzz": 1}) == ["key 'zzzzzz': unknown"]
    assert problems_of({**document(), "patches": []}) == ["key 'patches': unknown; did you mean 'patch'?"]


WRONG = [
    ("id", "", "the string ''", "lower-case letters"),
    ("id", "A-Patch", "the string 'A-Patch'", "lower-case letters"),
    ("id", "a/b", "the string 'a/b'", "lower-case letters"),
    ("id", "a\n", "the string 'a\\n'", "lower-case letters"),
    ("id", 5, "the number 5", "lower-case letters"),
    ("summary", " \t", "the string ' \\t'", "a string"),
    ("why", ["x"], "a list", "a string"),
    ("upstream", "https://example.org", "the string 'https://example.org'", "a list of at least one link"),
    ("upstream", [], "an empty list", "a list of at least one link"),
    ("upstream", ["https://example.org", ""], "the string ''", "a string"),
    ("groups", "inductor", "the string 'inductor'", "a list of group names"),
    ("groups", [["x"]], "a list", "lower-case letters"),
    ("requires", "torch>=2.10", "the string 'torch>=2.10'", "a list of PEP 508 requirements"),
    ("requires", [2.1], "the number 2.1", "a PEP 508 requirement such as"),
    ("build", ["gpu"], "the string 'gpu'", "one of cpu, cuda, rocm, xpu"),
    ("build", [], "an empty list", "a list out of cpu, cuda, rocm, xpu"),
    ("target", "torch.cuda.Event", "the string 'torch.cuda.Event'", "'package.module:Qualified.name'"),
    ("target", "torch:", "the string 'torch:'", "'package.module:Qualified.name'"),
    ("target", ":Event", "the string ':Event'", "'package.module:Qualified.name'"),
    ("target", "torch:a:b", "the string 'torch:a:b'", "'package.module:Qualified.name'"),
    ("target", "torch:f.<locals>.g", "the string 'torch:f.<locals>.g'", "'package.module:Qualified.name'"),
    ("target", "torch..cuda:Event", "the string 'torch..cuda:Event'", "'package.module:Qualified.name'"),
    ("target", "torch.2:Event", "the string 'torch.2:Event'", "'package.module:Qualified.name'"),
    ("target", "torch:Event\n", "the string 'torch:Event\\n'", "'package.module:Qualified.name'"),
    ("also_bind", ["torch"], "the string 'torch'", "'package.module:Qualified.name'"),
    ("action", "warp", "the string 'warp'", "one of wrap, replace, inject"),
    ("action", ["wrap"], "a list", "one of wrap, replace, inject"),
    ("using", "f", "the string 'f'", "'package.module:Qualified.name'"),
    ("rebind", "true", "the string 'true'", "true or false"),
    ("enabled", 1, "the number 1", "true or false"),
    ("scope", True, "the boolean true", "one of process, context"),
    ("scope", "thread", "the string 'thread'", "one of process, context"),
    ("pins", {}, "an empty table", "a table of releases"),
    ("pins", "0" * 32, f"the string '{'0' * 32}'", "a table of releases"),
    ("pins", {"2.10": "xyz"}, "the string 'xyz'", "a hash of a syntax tree"),
    ("pins", {"2": {"10": "0" * 32}}, "a table", "a hash of a syntax tree"),
    ("needed_if", {}, "an empty table", "a table of evidence"),
    ("needed_if", "lacks_parameter", "the string 'lacks_parameter'", "a table of evidence"),
    ("needed_if", {"lacks_parameter": []}, "an empty list", "the name of a parameter, or a list of such"),
    ("needed_if", {"lacks_parameter": "a b"}, "the string 'a b'", "the name of a parameter"),
    ("needed_if", {"lacks_attribute": "torch:"}, "the string 'torch:'", "a name beside the target, or"),
    (
        "needed_if",
        {"does_not_catch": "pickle.PicklingError"},
        "the string 'pickle.PicklingError'",
        "the name of an exception",
    ),
    ("needed_if", {"source_hash": "0" * 15}, "the string '000000000000000'", "a hash of a syntax tree"),
    ("needed_if", {"probe": ["a:b"]}, "a list", "'package.module:Qualified.name'"),
    ("step", [], "an empty list", "an array of tables, written [[patch.step]]"),
    ("step", {"target": "a:b"}, "a table", "an array of tables, written [[patch.step]]"),
    ("step", ["x"], "the string 'x'", "a table"),
]


@pytest.mark.parametrize(("key", "value", "found", "expected"), WRONG)
def test_a_wrong_value_is_told_what_was_found_and_what_was_expected(key, value, found, expected):
    told = [line for line in problems(**{key: value}) if f"key {key!r}: " in line and "stands beside" not in line]
    assert len(told) == 1
    assert f"found {found}" in told[0]
    assert f"expected {expected}" in told[0]


def test_unknown_evidence_is_told_its_nearest_neighbour():
    (problem,) = problems(needed_if={"lacks_parameters": "x"})
    assert "key 'needed_if': 'lacks_parameters': unknown kind; did you mean 'lacks_parameter'?; expected" in problem


def test_all_faults_of_all_patches_are_told_in_one_pass():
    wrong = document(
        table(id="one", requires=["torch>=x", "torch[y]"], needed_if={"nonsense": 1, "lacks_parameter": 2}),
        table(id="two", summary=None, scope="thread"),
        name="Wrong",
    )
    told = problems_of(wrong)
    assert [line.partition(": found")[0].partition(": unknown")[0].partition(": missing")[0] for line in told] == [
        "[manifest]: key 'name'",
        "patch 'one': key 'requires'",
        "patch 'one': key 'requires'",
        "patch 'one': key 'needed_if': 'nonsense'",
        "patch 'one': key 'needed_if': 'lacks_parameter'",
        "patch 'two': key 'scope'",
        "patch 'two': key 'summary'",
    ]


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        (None, "[manifest]: missing; expected a table with name and schema"),
        ([], "[manifest]: found an empty list; expected a table with name and schema"),
        ({"name": "a"}, "[manifest]: key 'schema': missing; expected the number 1"),
        ({"name": "a", "schema": 2}, "[manifest]: key 'schema': found the number 2; expected the number 1"),
        ({"name": "a", "schema": True}, "[manifest]: key 'schema': found the boolean true; expected the number 1"),
        ({"name": "a", "schema": 1.0}, "[manifest]: key 'schema': found the number 1.0; expected the number 1"),
        ({"name": "a", "schema": 1, "nmae": "b"}, "[manifest]: key 'nmae': unknown; did you mean 'name'?"),
    ],
)
def test_a_wrong_header_is_told(header, problem):
    assert problems_of({} if header is None else {"manifest": header}) == [problem]


@pytest.mark.parametrize("patches", [table(), "x", ["x"], 3])
def test_patches_that_are_no_array_of_tables_are_told_how_it_is_written(patches):
    (problem,) = problems_of({**document(), "patch": patches})
    assert problem.startswith("key 'patch': found ")
    assert problem.endswith("; expected an array of tables, written [[patch]]")


def test_the_same_id_twice_is_refused():
    assert problems_of(document(table(), table(id="b"), table())) == [
        "patch 'a-patch': key 'id': patches number 1 and 3 have the same id; expected each to have its own"
    ]


def test_a_group_must_not_be_called_like_a_patch():
    assert problems_of(document(table(id="b", groups=["a"]), table(id="a"))) == [
        "group 'a': is the id of a patch too; expected different names"
    ]


def test_what_is_long_is_cut_short():
    for line in problems(id="x" * 100_000, summary=["y" * 100_000], **{"z" * 100_000: 1}, scope="s" * 100_000):
        assert len(line) < 400


@pytest.mark.parametrize("value", ["0x" + "f" * 5000, "[" * 150 + "]" * 150])
def test_values_that_python_cannot_write_out_are_told_all_the_same(value):
    (problem,) = refused(f"[manifest]\nname = 'a'\nschema = {value}\n".encode())
    assert problem.startswith("[manifest]: key 'schema': found a ")


def test_nesting_without_end_is_refused():
    (problem,) = refused(b"a = " + b"[" * 100_000 + b"]" * 100_000)
    assert problem.startswith("is not valid TOML: ")


# --- requirements and markers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "requirement",
    [
        "torch",
        "torch>=2.10,<2.11",
        "Torch ~= 2.10.0",
        "torch==2.10.*",
        "torch!=2.10.1,>=2.10",
        "torch (>=2.10)",
        "torch>=1!2.0",
        "torch>=2.10.0a0",
        "torch<2.10.0.post1",
        "torch>=2.10; sys_platform == 'linux' and python_version < '3.13'",
        "torch>=2.10; platform_release >= '5.0'",
    ],
)
def test_requirements_follow_pep_508(requirement):
    assert problems(requires=[requirement]) == []


@pytest.mark.parametrize(
    ("requirement", "reason"),
    [
        ("", "Expected package name"),
        ("torch>=x", "Expected "),
        ("torch>=2.*", "'==' or '!=' operators|`==` or `!=` operators|Expected "),
        ("torch==2.10+cu128", "a local part never decides; use `build`"),
        ("torch!=2.10+xpu", "a local part never decides; use `build`"),
        ("torch===parrots", "`===` compares texts, not versions"),
        ("torch[opt]>=2", "a URL or an extra says nothing about an installed version"),
        ("torch @ https://example.org/torch.whl", "a URL or an extra says nothing about an installed version"),
        ("torch>=" + "9" * 5000, "digits"),
        ("torch; extra == 'cuda'", "an extra or a dependency group is of an installation, not of a process"),
        ("torch; " + "(" * 5000 + "os_name == 'a'" + ")" * 5000, "recursion|nested"),
    ],
)
def test_a_requirement_that_cannot_be_decided_is_refused(requirement, reason):
    (problem,) = problems(requires=[requirement])
    assert problem.startswith("patch 'a-patch': key 'requires': found the string ")
    assert re.search(reason, problem), problem


@pytest.mark.parametrize(
    "marker",
    ["sys_platform == 'linux'", "os.name != 'nt'", "platform_release >= '5.0' or 'Ubuntu' in platform_version"],
)
def test_markers_follow_pep_508(marker):
    assert problems(marker=marker) == []


@pytest.mark.parametrize(
    "marker",
    [
        "",
        "sys_platform",
        "sys_platform = 'linux'",
        "platform == 'linux'",
        "'a' == 'b'",
        "sys_platform ~= '1'",
        "extra == 'cuda'",
        "'cuda' in extras",
    ],
)
def test_a_marker_that_cannot_be_decided_is_refused(marker):
    (problem,) = problems(marker=marker)
    assert problem.startswith("patch 'a-patch': key 'marker': found the string ")
    assert problem.endswith("expected a PEP 508 marker such as \"sys_platform == 'linux'\"")


def test_whether_a_marker_is_correct_does_not_depend_on_the_machine(monkeypatch):
    monkeypatch.setattr("platform.release", lambda: "6.1.0-custom")
    assert problems(marker="platform_release >= '5.1'") == []


# --- actions -------------------------------------------------------------------------------------------------------

LEAST = {
    "wrap": {"using": "a:b"},
    "replace": {"using": "a:b"},
    "inject": {"value": 1},
    "alias": {"using": "a:b"},
    "noop": {},
    "set": {"value": False},
    "set_item": {"key": 1, "value": 2},
    "proxy": {"using": "a:b"},
    "insert_item": {"value": 1},
    "discard_item": {"key": "x"},
    "register": {"using": "p:Q"},
    "env": {"target": None, "key": "A", "value": ""},
}


def test_there_is_an_example_of_each_action():
    assert LEAST.keys() == ACTIONS.keys()


@pytest.mark.parametrize("action", LEAST)
def test_an_action_takes_the_least_it_needs(action):
    assert problems(**{"using": None, "action": action, **LEAST[action]}) == []


@pytest.mark.parametrize(("action", "key"), [(a, key) for a, action in ACTIONS.items() for key in action.needs])
def test_an_action_without_what_it_needs_is_refused(action, key):
    told = problems(**{"using": None, "action": action, **LEAST[action], key: None})
    assert f"patch 'a-patch': key {key!r}: missing; action {action!r} needs it" in told


@pytest.mark.parametrize("action", [a for a in ACTIONS if ("using", "value") in ACTIONS[a].one_of])
def test_an_action_takes_a_value_or_an_implementation_and_not_both(action):
    wanted = f"patch 'a-patch': action {action!r} needs exactly one of using and value"
    others = {"key": LEAST[action].get("key"), "action": action}
    assert problems(**others, using=None, value=None) == [wanted]
    assert problems(**others, using="a:b", value=1) == [wanted]
    assert problems(**others, using="a:b", value=None) == []


@pytest.mark.parametrize("action", [a for a in ACTIONS if ("key", "key_object") in ACTIONS[a].one_of])
def test_an_action_takes_a_key_or_an_object_that_is_the_key_and_not_both(action):
    wanted = f"patch 'a-patch': action {action!r} needs exactly one of key and key_object"
    others = {**LEAST[action], "action": action, "using": None}
    assert problems(**{**others, "key": None}) == [wanted]
    assert problems(**others, key_object="a:b") == [wanted]
    assert problems(**{**others, "key": None}, key_object="a:b") == []


@pytest.mark.parametrize("key", [-1, 1.0, True, "1"])
def test_where_an_element_is_inserted_is_an_index(key):
    (problem,) = problems(using=None, action="insert_item", value=1, key=key)
    assert problem.endswith("; expected a number that is not negative")


@pytest.mark.parametrize(
    ("action", "key", "value"),
    [
        ("wrap", "value", 1),
        ("insert_item", "key_object", "a:b"),
        ("wrap", "mode", "set"),
        ("wrap", "key", "x"),
        ("noop", "using", "a:b"),
        ("inject", "rebind", True),
        ("set_item", "also_bind", ["a:b"]),
        ("discard_item", "value", 1),
        ("env", "also_bind", ["a:b"]),
        ("env", "rebind", True),
    ],
)
def test_a_key_that_an_action_would_ignore_is_refused(action, key, value):
    (problem,) = problems(**{"using": None, "action": action, **LEAST[action], key: value})
    assert problem.startswith(
        f"patch 'a-patch': key {key!r}: action {action!r} has no use for it; expected only target"
    )


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"target": "torch:x"}, "key 'target': found the string 'torch:x'; expected 'os:environ'"),
        ({"key": ""}, "key 'key': found the string ''; expected the name of an environment variable"),
        ({"key": "A=B"}, "key 'key': found the string 'A=B'; expected the name of an environment variable"),
        ({"key": "A\0"}, "key 'key': found the string 'A\\x00'; expected the name of an environment variable"),
        ({"key": 1}, "key 'key': found the number 1; expected the name of an environment variable"),
        ({"value": 1}, "key 'value': found the number 1; expected a string without NUL"),
        ({"value": "\0"}, "key 'value': found the string '\\x00'; expected a string without NUL"),
        ({"mode": "append"}, "key 'mode': found the string 'append'; expected one of setdefault, set, prepend"),
    ],
)
def test_env_takes_what_the_environment_can_hold(changes, found):
    wrong = {"using": None, "action": "env", **LEAST["env"], **changes}
    assert problems(**wrong) == [f"patch 'a-patch': {found}"]


@pytest.mark.parametrize("action", ["set_item", "discard_item"])
@pytest.mark.parametrize("key", [[], {"a": 1}])
def test_the_key_of_an_item_can_be_one(action, key):
    (problem,) = problems(**{"using": None, "action": action, **LEAST[action], "key": key})
    assert "expected a string, a number, a boolean or a date" in problem


def test_what_belongs_into_a_step_does_not_stand_beside_the_steps():
    told = problems(using=None, step=[{"target": "a:b", "action": "noop"}])
    assert told == [
        f"patch 'a-patch': key {key!r}: stands beside 'step'; expected it inside of a [[patch.step]]"
        for key in ("target", "action")
    ]


def test_the_faults_of_each_step_are_told_with_its_number():
    steps = [{"target": "a:b", "action": "noop"}, {"action": "wrap", "needed_if": {"probe": "a:b"}}]
    assert problems(target=None, action=None, using=None, step=steps) == [
        "patch 'a-patch': step 2: key 'needed_if': unknown",
        "patch 'a-patch': step 2: key 'target': missing; expected 'package.module:Qualified.name'",
        "patch 'a-patch': step 2: key 'using': missing; action 'wrap' needs it",
    ]


# --- the error -----------------------------------------------------------------------------------------------------


def test_the_error_says_the_file_in_each_line():
    error = ManifestError("some.toml", ["first", "second"])
    assert str(error) == "some.toml: first\nsome.toml: second"
    assert isinstance(error, CompatPatchesError)


def test_the_error_can_be_pickled():
    error = pickle.loads(pickle.dumps(ManifestError("some.toml", ["first"])))
    assert (error.source, error.problems) == ("some.toml", ["first"])


# --- whatever it is given ------------------------------------------------------------------------------------------


def loaded_or_refused(data: bytes) -> None:
    try:
        assert isinstance(manifest.parse(data, "some.toml"), Manifest)
    except ManifestError as error:
        assert error.problems
        assert all(error.problems)


@settings(deadline=None)
@given(st.binary())
def test_any_bytes_give_a_manifest_or_its_faults(data):
    loaded_or_refused(data)


@settings(deadline=None)
@given(st.text())
def test_any_text_gives_a_manifest_or_its_faults(text):
    loaded_or_refused(text.encode("utf-8", "surrogatepass"))


@settings(max_examples=300, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(1, 5))
def test_a_damaged_manifest_gives_a_manifest_or_its_faults(randomness: random.Random, times: int):
    data = bytearray(BUILT_IN)
    for _ in range(times):
        start = randomness.randrange(len(data))
        stop = start + randomness.choice((0, 1, 1, 2, 10, 200))
        source = randomness.randrange(len(data))
        data[start:stop] = randomness.choice((b"", b'"', b"[", b"\n", b"=", data[source : source + 40]))
    loaded_or_refused(bytes(data))


VALUES = st.recursive(
    st.text() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(sorted(table())), VALUES, max_size=4), VALUES)
def test_any_values_in_known_fields_give_a_manifest_or_its_faults(changes, header):
    loaded_or_refused(toml({**document(table(**changes)), "manifest": header}))
    loaded_or_refused(toml(document(table(**changes), {"step": header})))


def test_a_patch_without_an_id_is_told_by_its_number():
    told = problems_of(document(table(), table(id=None)))
    assert told == [
        "patch number 2: key 'id': missing; expected lower-case letters and digits, joined by '-', '_' or '.'"
    ]


def test_the_faults_of_many_patches_are_all_told():
    told = problems_of(document(*(table(id=f"patch-{number}", summry="x") for number in range(3000))))
    assert len(told) == 3000
