"""Every recipe is valid for the job it is named after, and every job that takes one has one."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from jocr.config import load
from jocr.errors import ConfigError

REPO = Path(__file__).resolve().parents[1]
RECIPES = sorted((REPO / "jobs" / "recipes").glob("*.toml"))
KINDS = {  # first word of the file name -> module of the job, where its type is
    "parse": ("jobs.parse", "jocr.config:ParseRecipe"),
    "inventory": ("jobs.inventory", "jocr.config:ParseRecipe"),
    "nano": ("jobs.train_nano", "jocr.training.recipe:NanoRecipe"),
    "fit": ("jobs.fit_draft", "jocr.training.recipe:NanoRecipe"),
}


def kind(path: Path):
    """(module of the job, recipe type)."""
    word = path.stem.partition("-")[0].partition("_")[0]
    assert word in KINDS, f"{path.name}: say in KINDS which job it belongs to"
    job, place = KINDS[word]
    module, name = place.split(":")
    return job, getattr(importlib.import_module(module), name)


@pytest.mark.parametrize("path", RECIPES, ids=lambda p: p.name)
def test_recipe_loads(path):
    module, recipe = kind(path)
    assert importlib.util.find_spec(module) is not None
    assert load(recipe, path) is not None


@pytest.mark.parametrize("path", RECIPES, ids=lambda p: p.name)
def test_a_typo_in_a_recipe_is_refused(path, tmp_path):
    _, recipe = kind(path)
    with pytest.raises(ConfigError, match="unknown key 'modle'"):
        load(recipe, path, ["modle=1"])


def test_the_parse_job_has_a_recipe():
    assert REPO / "jobs" / "recipes" / "parse.toml" in RECIPES
