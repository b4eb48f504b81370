"""Recipes refuse what they do not know and say what was probably meant."""

from __future__ import annotations

import pytest

from jocr.config import ParseRecipe, Recipe, load, parse_set
from jocr.errors import ConfigError


def test_defaults_and_sets(tmp_path):
    path = tmp_path / "r.toml"
    path.write_text('sources = ["a.pdf"]\n[model]\nname = "fake"\nbatch = 2\n')
    recipe = load(ParseRecipe, path, ["model.batch=4", "render.long_side=512", "out=some where", "model.depth=3"])
    assert recipe.sources == ("a.pdf",)
    assert (recipe.model.name, recipe.model.batch, recipe.model.depth) == ("fake", 4, "3")
    assert (recipe.render.long_side, recipe.out) == (512, "some where")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.b=3", ("a.b", 3)),
        ("a=true", ("a", True)),
        ('a="x=y"', ("a", "x=y")),
        ("a=x=y", ("a", "x=y")),
        ("a=[1,2]", ("a", [1, 2])),
        ("a=", ("a", "")),
        ("a=s3://b/c", ("a", "s3://b/c")),
    ],
)
def test_set_values(text, expected):
    assert parse_set(text) == expected


@pytest.mark.parametrize("text", ["novalue", "=3", ""])
def test_set_without_key_is_refused(text):
    with pytest.raises(ConfigError, match="KEY=VALUE"):
        parse_set(text)


@pytest.mark.parametrize(
    ("sets", "words"),
    [
        (["model.bach=4"], "'model.bach'; did you mean 'model.batch'"),
        (["long_side=3"], "did you mean 'render.long_side'"),
        (["sources=/data/scans"], 'must be a list, such as ["/data/scans"]'),
        (["sorces=['a']"], "did you mean 'sources'"),
        (["model.batch=many"], "model.batch = 'many'"),
        (["model.depth=9"], "model.depth = 9: must be"),
        (["render.workers=0"], "render.workers = 0"),
        (["out.x=1"], "out = {'x': 1}"),
        (["fail_above=1.5"], "fail_above"),
    ],
)
def test_wrong_settings_name_the_key(sets, words):
    with pytest.raises(ConfigError) as caught:
        load(ParseRecipe, None, sets)
    assert words in str(caught.value)


def test_texts_that_look_like_numbers_stay_texts():
    recipe = load(ParseRecipe, None, ["pages=2", "render.password=1234", "out=2026"])
    assert (recipe.pages, recipe.render.password, recipe.out) == ("2", "1234", "2026")


def test_value_used_as_section():
    with pytest.raises(ConfigError, match="not a section"):
        load(ParseRecipe, None, ["out=x", "out.y=1"])


def test_unreadable_and_broken_files(tmp_path):
    with pytest.raises(ConfigError, match="cannot read the recipe"):
        load(ParseRecipe, tmp_path / "absent.toml")
    (tmp_path / "bad.toml").write_text("a = [1,")
    with pytest.raises(ConfigError, match="not valid TOML"):
        load(ParseRecipe, tmp_path / "bad.toml")


def test_recipes_are_frozen():
    class Tiny(Recipe):
        n: int = 1

    with pytest.raises(ValueError, match="frozen"):
        Tiny().n = 2  # type: ignore[misc]
