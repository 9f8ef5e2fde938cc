"""Frozen records."""

from __future__ import annotations

import copy
import pickle

import pytest

from compat_patches.frozen import Frozen


class Place(Frozen):
    module: str
    name: str
    late: bool = False


def test_fields_are_given_in_order_or_by_name_and_defaults_stay() -> None:
    place = Place("torch", name="Event")
    assert (place.module, place.name, place.late) == ("torch", "Event", False)
    assert place.as_dict() == {"module": "torch", "name": "Event", "late": False}
    assert repr(place) == "Place(module='torch', name='Event', late=False)"


@pytest.mark.parametrize(
    ("values", "named"),
    [
        (("torch",), {}),
        (("torch", "Event", False, 1), {}),
        (("torch",), {"module": "torch", "name": "Event"}),
        (("torch", "Event"), {"lat": True}),
        ((), {"module": "torch"}),
    ],
)
def test_a_record_takes_all_its_fields_and_no_others(values: tuple[object, ...], named: dict[str, object]) -> None:
    with pytest.raises(TypeError, match="Place"):
        Place(*values, **named)  # type: ignore[arg-type]  # the fault that is looked for


def test_a_record_cannot_be_changed_but_replaced() -> None:
    place = Place("torch", "Event")
    with pytest.raises(AttributeError, match="cannot be changed"):
        place.name = "Stream"  # type: ignore[misc]
    with pytest.raises(AttributeError, match="cannot be changed"):
        del place.name
    assert (place.replace(name="Stream"), place.name) == (Place("torch", "Stream"), "Event")
    with pytest.raises(TypeError, match="nam"):
        place.replace(nam="Stream")


def test_records_are_compared_by_value_and_by_class() -> None:
    class Other(Frozen):
        module: str
        name: str
        late: bool = False

    assert Place("torch", "Event") == Place("torch", "Event", late=False) != Place("torch", "Event", late=True)
    assert hash(Place("torch", "Event")) == hash(Place("torch", "Event", late=False))
    assert Place("torch", "Event") != Other("torch", "Event")
    assert {Place("torch", "Event"), Place("torch", "Event")} == {Place("torch", "Event")}


def test_records_are_copied_and_pickled() -> None:
    place = Place("torch", "Event", late=True)
    assert pickle.loads(pickle.dumps(place)) == copy.deepcopy(place) == copy.copy(place) == place
