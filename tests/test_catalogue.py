"""What names stand for, over all manifests that are loaded."""

import pytest
from declared import document, table, toml

from compat_patches import manifest
from compat_patches.catalogue import Catalogue
from compat_patches.errors import ManifestError, UnknownPatchError
from compat_patches.manifest import Manifest


def declared(name: str, *ids: str, source: str = "", **groups: str) -> Manifest:
    patches = (table(id=i, groups=groups[i].split() if i in groups else None) for i in ids)
    return manifest.parse(toml(document(*patches, name=name)), source or f"{name}.toml")


def catalogue(*manifests: Manifest) -> Catalogue:
    made = Catalogue()
    for one in manifests:
        made.add(one)
    return made


def test_adding_a_manifest_gives_its_patches():
    made = Catalogue()
    assert [patch.id for patch in made.add(declared("m", "a", "b"))] == ["a", "b"]
    assert [one.name for one in made.manifests] == ["m"]


def test_adding_the_very_same_manifest_again_adds_nothing():
    made = catalogue(declared("m", "a"))
    assert made.add(declared("m", "a", source="another/way/to/it.toml")) == []
    assert made.select(()) == ["m/a"]


def test_another_manifest_of_the_same_name_is_refused_and_nothing_of_it_is_taken():
    made = catalogue(declared("m", "a"))
    with pytest.raises(ManifestError, match=r"'m' is the name of the manifest that was loaded from m\.toml") as caught:
        made.add(declared("m", "b", source="other.toml"))
    assert caught.value.source == "other.toml"
    assert made.select(()) == ["m/a"]


def test_no_name_stands_for_all():
    assert catalogue(declared("m", "a", "b"), declared("n", "c")).select(()) == ["m/a", "m/b", "n/c"]


@pytest.mark.parametrize(
    ("names", "selected"),
    [
        (["a"], ["m/a"]),
        (["m/a"], ["m/a"]),
        (["g"], ["m/a", "m/b", "n/c"]),
        (["m/g"], ["m/a", "m/b"]),
        (["b", "a", "b"], ["m/b", "m/a"]),
        (["c", "g"], ["n/c", "m/a", "m/b"]),
    ],
)
def test_a_name_is_an_id_or_a_group_qualified_by_the_manifest_or_not(names, selected):
    made = catalogue(declared("m", "a", "b", a="g g", b="g"), declared("n", "c", c="g"))
    assert made.select(names) == selected


def test_an_unknown_name_is_told_its_nearest_neighbour_and_all_known_names():
    made = catalogue(declared("m", "some-patch", **{"some-patch": "group"}))
    with pytest.raises(UnknownPatchError) as caught:
        made.select(["some-ptach"])
    assert str(caught.value) == (
        "no patch and no group is named 'some-ptach'; did you mean 'some-patch'? Known: group, some-patch"
    )


@pytest.mark.parametrize("name", ["", "/", "m/", "/a", "m/a/a", "n/a"])
def test_what_looks_like_a_name_but_is_none_is_unknown(name):
    with pytest.raises(UnknownPatchError):
        catalogue(declared("m", "a")).select([name])


def test_of_very_many_names_the_first_are_told():
    made = catalogue(declared("m", *(f"patch-{number}" for number in range(1000))))
    with pytest.raises(UnknownPatchError) as caught:
        made.select(["x" * 1000])
    assert str(caught.value).endswith(", and 960 more")
    assert str(UnknownPatchError("x", [])).endswith("Known: none")


def test_an_id_that_two_manifests_declare_has_to_be_qualified():
    made = catalogue(declared("m", "a", "b"), declared("n", "a"))
    with pytest.raises(UnknownPatchError, match="several manifests declare 'a'; say m/a or n/a"):
        made.select(["a"])
    assert made.select(["n/a"]) == ["n/a"]


def test_a_name_that_is_an_id_here_and_a_group_there_has_to_be_qualified():
    made = catalogue(declared("m", "a", a="xpu"), declared("n", "xpu"))
    with pytest.raises(UnknownPatchError, match="several manifests declare 'xpu'; say n/xpu or m/xpu"):
        made.select(["xpu"])
    assert made.select(["n/xpu"]) == ["n/xpu"]
    assert made.select(["m/xpu"]) == ["m/a"]


def test_ids_are_shown_qualified_only_where_they_have_to_be():
    first, second = declared("m", "a", "b"), declared("n", "a")
    made = catalogue(first)
    assert [made.short_id(patch) for patch in first.patches] == ["a", "b"]
    made.add(second)
    assert [made.short_id(patch) for patch in first.patches] == ["m/a", "b"]
