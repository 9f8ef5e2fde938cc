"""Whether the defect is really in the code that is installed: yes, no, or it cannot be told, and why."""

import ast
import sys
import types

import pytest

from compat_patches import evidence, source
from compat_patches.evidence import LiveFacts, decide
from compat_patches.fields import EVIDENCE_KINDS
from compat_patches.manifest import Target
from compat_patches.verdict import Verdict

TEXT = '''
import pickle

def takes(a, b=1, *args, c, **kwargs):
    """Mentions cuda."""
    return "cpu"

def catches():
    try:
        pass
    except (TypeError, pickle.PicklingError):
        pass

class Event:
    def __new__(cls, enable_timing=False):
        return super().__new__(cls)

    @staticmethod
    def static(x): return "static"

    @property
    def prop(self): return "prop"

class Derived(Event):
    pass

native = len
'''


@pytest.fixture
def module(tmp_path, monkeypatch) -> types.ModuleType:
    """A module that is loaded from a file."""
    (tmp_path / "made_for_evidence.py").write_text(TEXT)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "made_for_evidence", raising=False)
    imported = __import__("made_for_evidence")
    yield imported
    sys.modules.pop("made_for_evidence", None)


def asked(qualname: str, **needed_if) -> Verdict:
    return decide(needed_if, Target("made_for_evidence", qualname), LiveFacts())


def test_each_kind_of_a_manifest_can_be_decided():
    assert evidence._KINDS.keys() == EVIDENCE_KINDS.keys()


@pytest.mark.parametrize(
    ("qualname", "needed_if", "verdict"),
    [
        ("takes", {"lacks_parameter": "d"}, (True, "takes (a, b, *args, c, **kwargs), not d")),
        ("takes", {"lacks_parameter": ["b", "d", "e"]}, (True, "takes (a, b, *args, c, **kwargs), not d nor e")),
        ("takes", {"lacks_parameter": ["b", "c"]}, (False, "takes (a, b, *args, c, **kwargs), b and c included")),
        ("takes", {"lacks_parameter": "**kwargs"}, (False, "takes (a, b, *args, c, **kwargs), **kwargs included")),
        ("Event.__new__", {"lacks_parameter": "blocking"}, (True, "takes (cls, enable_timing), not blocking")),
        ("Derived.__new__", {"lacks_parameter": "blocking"}, (True, "takes (cls, enable_timing), not blocking")),
        ("Event", {"lacks_parameter": "enable_timing"}, (False, "takes (enable_timing), enable_timing included")),
        ("Event.static", {"lacks_parameter": "y"}, (True, "takes (x), not y")),
        ("takes", {"has_parameter": ["b", "c"]}, (True, "takes (a, b, *args, c, **kwargs), b and c included")),
        ("takes", {"has_parameter": ["b", "d"]}, (False, "takes (a, b, *args, c, **kwargs), not d")),
        ("takes", {"lacks_constant": "xpu"}, (True, "does not mention 'xpu'")),
        ("takes", {"lacks_constant": "cuda"}, (True, "does not mention 'cuda'")),
        ("takes", {"lacks_constant": "cpu"}, (False, "mentions 'cpu'")),
        ("takes", {"lacks_constant": ["cpu", "xpu"]}, (True, "does not mention 'xpu'")),
        ("Event.prop", {"lacks_constant": "prop"}, (False, "mentions 'prop'")),
        ("catches", {"does_not_catch": "ValueError"}, (True, "catches TypeError, PicklingError, not ValueError")),
        ("catches", {"does_not_catch": "TypeError"}, (False, "catches TypeError, PicklingError, and so TypeError")),
        ("takes", {"does_not_catch": ["A", "B"]}, (True, "catches nothing, not A nor B")),
    ],
)
def test_the_defect_is_there_or_it_is_not(module, qualname, needed_if, verdict):
    ok, reason = verdict
    assert asked(qualname, **needed_if) == Verdict(ok, f"made_for_evidence:{qualname} {reason}")


@pytest.mark.parametrize(
    ("qualname", "name", "ok", "reason"),
    [
        ("takes", "other", True, "there is no made_for_evidence:other"),
        ("takes", "catches", False, "made_for_evidence:catches is there"),
        ("takes", ["catches", "other"], True, "there is no made_for_evidence:other"),
        ("takes", ["catches", "Event"], False, "made_for_evidence:catches and made_for_evidence:Event is there"),
        ("Event.__new__", "static", False, "made_for_evidence:Event.static is there"),
        ("Event.__new__", "other", True, "there is no made_for_evidence:Event.other"),
        ("Derived.__new__", "static", False, "made_for_evidence:Derived.static is there"),
        ("takes", "Event.static", False, "made_for_evidence:Event.static is there"),
        ("takes", "Nothing.static", True, "there is no made_for_evidence:Nothing.static"),
        ("takes", "sys:version", False, "sys:version is there"),
        ("takes", "sys:no_version", True, "there is no sys:no_version"),
    ],
)
def test_a_name_is_sought_where_the_target_stands_or_where_it_says(module, qualname, name, ok, reason):
    assert asked(qualname, lacks_attribute=name) == Verdict(ok, reason)


def test_what_a_module_that_is_not_imported_has_cannot_be_told(module):
    assert asked("takes", lacks_attribute="no.such.module:name") == Verdict(
        None, "cannot tell whether no.such.module:name is there"
    )


def test_the_hash_of_the_source_is_compared_from_its_beginning(module):
    found = source.tree_hash(source.find_definition(ast.parse(TEXT), "catches"))
    reason = f"the source of made_for_evidence:catches is the one with the defect ({found})"
    assert asked("catches", source_hash=found) == Verdict(True, reason)
    assert asked("catches", source_hash=["0" * 32, found[:16]]) == Verdict(True, reason)
    assert asked("catches", source_hash="0" * 32) == Verdict(
        False, f"the source of made_for_evidence:catches is {found}, the defect is in {'0' * 32}"
    )


@pytest.mark.parametrize("qualname", ["native", "missing", "Event.missing", "missing.name"])
@pytest.mark.parametrize(
    "needed_if", [{"does_not_catch": "ValueError"}, {"lacks_constant": "x"}, {"source_hash": "0" * 32}]
)
def test_what_cannot_be_read_cannot_be_told(module, qualname, needed_if):
    assert asked(qualname, **needed_if) == Verdict(None, f"cannot read the source of made_for_evidence:{qualname}")


@pytest.mark.parametrize("qualname", ["missing", "Event.prop"])
def test_parameters_that_cannot_be_read_cannot_be_told(module, qualname):
    assert asked(qualname, lacks_parameter="x") == Verdict(
        None, f"cannot read the parameters of made_for_evidence:{qualname}"
    )


def test_evidence_is_about_what_upstream_wrote_even_if_somebody_wrapped_it(module):
    original = module.catches

    def stand_in():
        try:
            return original()
        except ValueError:
            return None

    stand_in.__wrapped__ = original
    module.catches = stand_in
    assert asked("catches", does_not_catch="ValueError").ok is True


# --- several -------------------------------------------------------------------------------------------------------


def test_all_evidence_has_to_hold(module):
    verdict = asked("takes", lacks_parameter="d", lacks_constant="xpu")
    assert verdict.ok is True
    assert verdict.reason.endswith("not d; made_for_evidence:takes does not mention 'xpu'")


def test_what_is_not_there_decides_over_what_cannot_be_told(module):
    needed_if = {"does_not_catch": "ValueError", "lacks_parameter": "obj"}
    assert asked("native", **needed_if).ok is False
    assert asked("native", **dict(reversed(needed_if.items()))).ok is False


def test_what_cannot_be_told_decides_over_what_is_there(module):
    assert asked("native", does_not_catch="ValueError", lacks_parameter="d") == Verdict(
        None, "cannot read the source of made_for_evidence:native"
    )


# --- probes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        (True, Verdict(True, "the probe made_for_evidence:Event.probe says True")),
        (0, Verdict(False, "the probe made_for_evidence:Event.probe says False")),
        ((True, "because"), Verdict(True, "because")),
        ((False, "because"), Verdict(False, "because")),
        (Verdict(False, "because"), Verdict(False, "because")),
        (Verdict(None, "because"), Verdict(None, "because")),
        (None, Verdict(None, "the probe made_for_evidence:Event.probe cannot tell")),
    ],
)
def test_a_probe_answers_alone_or_with_a_reason(module, answer, verdict):
    module.Event.probe = staticmethod(lambda: answer)
    assert asked("takes", probe="made_for_evidence:Event.probe") == verdict


def test_a_probe_is_not_asked_where_the_defect_is_known_not_to_be_there(module):
    assert asked("takes", probe="no.such.module:probe", lacks_parameter="a").ok is False


def test_what_a_probe_raises_goes_through(module):
    def probe():
        raise OSError("no answer")

    module.probe = probe
    with pytest.raises(OSError, match="no answer"):
        asked("takes", probe="made_for_evidence:probe")


# --- facts ---------------------------------------------------------------------------------------------------------


def test_facts_are_gathered_without_importing_anything():
    name = "colorsys"
    sys.modules.pop(name, None)
    facts = LiveFacts()
    target = Target(name, "rgb_to_yiq")
    assert (facts.parameters(target), facts.exists(target), facts.definition(target)) == (None, None, None)
    assert name not in sys.modules


@pytest.mark.skipif(sys.version_info < (3, 14), reason="annotations are computed early")
def test_annotations_that_name_what_is_not_imported_do_not_matter(module):
    exec("def annotated(a: not_imported, b): pass", vars(module))
    assert LiveFacts().parameters(Target("made_for_evidence", "annotated")) == ("a", "b")
