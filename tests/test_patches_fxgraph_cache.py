"""The FX graph cache patches, on the torch that is installed."""

from __future__ import annotations

import logging
import pickle
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from support import python  # noqa: E402  # behind the importorskip on purpose
from torch._inductor.codecache import BypassFxGraphCache, FxGraphCachePickler  # noqa: E402

import compat_patches  # noqa: E402

VALUE_ERROR = "fxgraph-cache-value-error"
PICKLING_ERRORS = "fxgraph-cache-pickling-errors"
PYBIND11_ERROR = "fxgraph-cache-pybind11-error"
RELEASE = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])

in_a_window = pytest.mark.skipif(
    not (2, 8) <= RELEASE < (2, 11),
    reason="none of the patches is for this release, whose pickler works in another way",
)

PROGRAM = """
import torch
from torch._dynamo.utils import counters
from torch._inductor.custom_graph_pass import CustomGraphPass

class Pass(CustomGraphPass):
    def __call__(self, graph):
        pass

    def uuid(self):
        cyclic = {}
        cyclic["self"] = cyclic
        return cyclic

torch._inductor.config.post_grad_custom_post_pass = Pass()
print(torch.compile(lambda x: x + 1)(torch.ones(2)).tolist(), counters["inductor"]["fxgraph_cache_bypass"])
"""


class RaisesWhenPickled:
    """An object whose pickling raises what it was given."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __reduce__(self) -> Any:
        raise self.error


class SubclassThatInherits(FxGraphCachePickler):
    pass


def pickler(kind: type = FxGraphCachePickler) -> Any:
    return kind(torch.fx.GraphModule(torch.nn.Module(), torch.fx.Graph()))


def test_a_program_that_fails_in_a_plain_process_works_in_one_that_imports_us_first() -> None:
    plain = python("-c", PROGRAM)
    patched = python("-c", "import compat_patches\n" + PROGRAM)
    if (2, 8) <= RELEASE < (2, 11):
        assert plain.returncode == 1
        assert "BackendCompilerFailed" in plain.stderr
        assert "can't pickle cyclic objects" in plain.stderr
    else:
        assert plain.stdout.split() == ["[2.0,", "2.0]", "1"], plain.stderr
    assert patched.stdout.split() == ["[2.0,", "2.0]", "1"], patched.stderr


@in_a_window
@pytest.mark.parametrize(
    ("patch", "error"),
    [
        (VALUE_ERROR, ValueError("a reason")),
        (PICKLING_ERRORS, ValueError("a reason")),
        (PICKLING_ERRORS, pickle.PicklingError("a reason")),
        (PYBIND11_ERROR, RuntimeError("<pybind11_builtins.pybind11_object object at 0x7f> is not pickleable.")),
    ],
)
@pytest.mark.parametrize("kind", [FxGraphCachePickler, SubclassThatInherits])
def test_the_error_bypasses_the_cache_and_stays_the_cause(
    patch: str, error: Exception, kind: type, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        compat_patches.applied(patch, force=True),
        caplog.at_level(logging.WARNING, "torch._inductor.codecache"),
        pytest.raises(BypassFxGraphCache, match="Failed to pickle cache key") as raised,
    ):
        pickler(kind).dumps(RaisesWhenPickled(error))
    assert raised.value.__cause__ is error
    assert [record.message for record in caplog.records] == ["Failed to pickle cache key"]


@in_a_window
@pytest.mark.parametrize("patch", [VALUE_ERROR, PICKLING_ERRORS, PYBIND11_ERROR])
@pytest.mark.parametrize(
    "error", [KeyError("a key"), RuntimeError("<Thing object at 0x7f> is not pickleable."), OSError()]
)
def test_any_other_error_goes_through(patch: str, error: Exception) -> None:
    with compat_patches.applied(patch, force=True), pytest.raises(type(error)) as raised:
        pickler().dumps(RaisesWhenPickled(error))
    assert raised.value is error


@pytest.mark.parametrize("patch", [VALUE_ERROR, PICKLING_ERRORS, PYBIND11_ERROR])
def test_what_can_be_pickled_is_pickled_as_before(patch: str) -> None:
    before = pickler().dumps({"a": [1, 2]})
    with compat_patches.applied(patch, force=True):
        assert pickler().dumps({"a": [1, 2]}) == before


@in_a_window
def test_the_pickler_can_be_used_again_after_a_bypass() -> None:
    with compat_patches.applied(VALUE_ERROR, force=True):
        used = pickler()
        with pytest.raises(BypassFxGraphCache):
            used.dumps(RaisesWhenPickled(ValueError()))
        assert used.dumps([1]) == pickler().dumps([1])


@in_a_window
def test_two_patches_on_the_one_slot_are_undone_in_either_order() -> None:
    compat_patches.revert("inductor")  # activation has applied what is for this release
    original = vars(FxGraphCachePickler)["dumps"]
    first = VALUE_ERROR if RELEASE == (2, 10) else PICKLING_ERRORS
    for order in ((first, PYBIND11_ERROR), (PYBIND11_ERROR, first)):
        assert [s.state for s in compat_patches.apply(first, PYBIND11_ERROR)] == ["applied", "applied"]
        compat_patches.revert(order[0])
        assert vars(FxGraphCachePickler)["dumps"] is not original
        compat_patches.revert(order[1])
        assert vars(FxGraphCachePickler)["dumps"] is original
