"""Damaged manifests: a manifest or a ManifestError, and never anything else.

The mutator is that of ``python -m benchmarks.fuzz_manifests``, which also looks at how long each takes.
"""

import sys

import pytest
from declared import ROOT, document, table, toml

from compat_patches import manifest
from compat_patches.errors import ManifestError
from compat_patches.manifest import MOST_KEY_PARTS

sys.path.insert(0, str(ROOT))

from benchmarks.fuzz_manifests import inputs, outcome


def test_two_thousand_damaged_manifests_are_loaded_or_refused():
    outcomes = [outcome(data)[0] for data in inputs(2000, seed=1)]
    # The mutator reaches both: what is damaged beyond TOML, and what only the checks find or nobody does.
    assert outcomes.count("refused") > 200
    assert outcomes.count("loaded") > 20


def test_the_same_seed_gives_the_same_inputs():
    assert list(inputs(20, seed=3)) == list(inputs(20, seed=3)) != list(inputs(20, seed=4))


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "line",
    [
        "{key} = 1",
        "  {key}=1",
        "[{key}]",
        "[[ {key} ]]",
        "value = {{ {key} = 1 }}",
        "value = {{ a = 1, {key} = 1 }}",
    ],
)
@pytest.mark.parametrize("part", ["a", "'a b'", '"a"', "a "])
def test_a_key_of_very_many_parts_is_refused_at_once(line, part):
    data = toml(document(table())) + line.format(key=".".join([part] * 50_000)).encode()
    with pytest.raises(ManifestError) as caught:
        manifest.parse(data, "some.toml")
    expected = f"some.toml: line 3: a key of more than {MOST_KEY_PARTS} parts; expected three at most"
    assert str(caught.value) == expected


def test_many_dots_in_a_value_are_no_key():
    dots = ".".join(["a"] * 1000)
    loaded = manifest.parse(toml(document(table(why=dots, target=f"{dots}:f", remove_when="... " * 100))), "some.toml")
    assert loaded.patches[0].why == dots
