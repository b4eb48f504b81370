"""All real documents through the archive job: every page ends as ``tests/pages/expected_documents.tsv`` says."""

from __future__ import annotations

import pytest

from jobs.parse import run
from tests.pages.test_documents import expected, installed, passwords
from tests.pipelines.archive import recipe, rows

pytestmark = [pytest.mark.ray, pytest.mark.slow]


def ends(out, documents):
    found = {}
    for row in rows(out):
        name = row.uri.removeprefix(f"{documents}/")
        found.setdefault(name, []).append((str(row.page), row.status, row.reason or ""))
    return found


def wanted(label):
    table = {}
    for name, lines in expected().items():
        own = [(page, outcome, reason) for page, outcome, reason, password in lines if password == label]
        if own:
            table[name] = own
    if label == "" and installed("pillow_heif") and "unstructured/DA-1p.heic" in table:
        table["unstructured/DA-1p.heic"] = [("1", "ok", "")]
    return table


def test_every_page_ends_as_it_must_without_and_with_its_password(ray_cluster, shared_data, tmp_path):
    documents = shared_data / "documents"
    size = {"long_side": 1280}
    locked = passwords(documents)
    shape = {"unit": 64, "decoder_cpus": 0.5}

    run(recipe(documents, tmp_path / "without", render=size, ray=shape))
    assert differences(ends(tmp_path / "without", documents), wanted("")) == {}

    own = {name: password for name, password in locked.items() if name in wanted("given")}
    for label, given in (("given", own), ("wrong", {name: f"not {password}" for name, password in own.items()})):
        out = tmp_path / label
        render = {**size, "passwords": {f"{documents}/{name}": password for name, password in given.items()}}
        given_recipe = recipe(documents, out, render=render, ray=shape)
        run(given_recipe.model_copy(update={"sources": tuple(f"{documents}/{name}" for name in given)}))
        assert differences(ends(out, documents), wanted(label)) == {}


def differences(found, table):
    """name -> (found, wanted) where they differ; a page that fails while its document opens keeps its number."""
    names = set(found) | set(table)
    return {
        name: (found.get(name), table.get(name))
        for name in names
        if plain(found.get(name, [])) != plain(table.get(name, []))
    }


def plain(lines):
    """Page 0 and page 1 of a document of one row are the same: what does not open is told at its first page."""
    return [("1" if page == "0" else page, *rest) for page, *rest in sorted(lines, key=lambda line: int(line[0]))]
