"""What the user says through the environment."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compat_patches.settings import Settings

VARIABLES = ["", "_ONLY", "_DISABLE", "_MANIFEST", "_STRICT", "_LOG"]


def said(**variables: str) -> Settings:
    return Settings.from_environment({f"COMPAT_PATCHES{name}": value for name, value in variables.items()})


def test_an_empty_environment_says_nothing_out_of_the_ordinary():
    assert Settings.from_environment({}) == Settings()


def test_empty_variables_say_nothing():
    assert Settings.from_environment({f"COMPAT_PATCHES{name}": " " for name in VARIABLES if name != "_MANIFEST"}) == (
        Settings()
    )
    assert said(_MANIFEST="") == Settings()


@pytest.mark.parametrize("word", ["off", "OFF", " Off ", "0", "false", "no"])
def test_words_for_off(word):
    assert said(**{"": word}) == Settings(off=True)
    assert said(_STRICT=word) == Settings()


@pytest.mark.parametrize("word", ["on", "ON", " 1", "true", "yes"])
def test_words_for_on(word):
    assert said(**{"": word}) == Settings()
    assert said(_STRICT=word) == Settings(strict=True)


def test_another_word_is_complained_about_and_changes_nothing():
    assert said(**{"": "nope", "_STRICT": "2", "_LOG": "loud"}) == Settings(
        complaints=(
            "COMPAT_PATCHES_LOG is 'loud'; expected one of debug, info, warning, error",
            "COMPAT_PATCHES is 'nope'; expected on or off",
            "COMPAT_PATCHES_STRICT is '2'; expected on or off",
        )
    )


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a", ("a",)),
        ("a,b", ("a", "b")),
        (" a , b,, c ", ("a", "b", "c")),
        ("m/a", ("m/a",)),
        (",", ()),
        ("a b", ("a", "b")),
    ],
)
def test_names_are_separated_by_commas(text, names):
    assert said(_ONLY=text).only == names
    assert said(_DISABLE=text).disable == names


def test_manifests_are_a_path_list():
    paths = ["/a b/c.toml", "d.toml", " e.toml"]
    assert said(_MANIFEST=os.pathsep.join(["", *paths, ""])).manifests == tuple(paths)


@pytest.mark.parametrize("level", ["debug", "DEBUG", " info", "warning", "error"])
def test_levels_of_logging(level):
    assert said(_LOG=level) == Settings(log=level.strip().lower())


def test_the_environment_of_the_process_is_read_when_it_is_asked_for(monkeypatch):
    monkeypatch.setenv("COMPAT_PATCHES_STRICT", "1")
    assert Settings.from_environment().strict


@given(st.dictionaries(st.sampled_from([f"COMPAT_PATCHES{name}" for name in VARIABLES]), st.text()))
def test_whatever_is_said_does_not_raise(environment):
    settings = Settings.from_environment(environment)
    assert all(isinstance(name, str) and name for name in (*settings.only, *settings.disable, *settings.manifests))
