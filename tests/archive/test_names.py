"""Names survive tables exactly, and clashes among them are found."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jocr.archive import names
from jocr.archive.names import Digests, OutputNames, original, stored, to_array, to_list
from jocr.errors import ConfigError

ODD = [
    "Vol 1 (2) #3 %41.pdf", "a+b&c=d?.pdf", "caf\u00e9.pdf", "cafe\u0301.pdf", "\u09ac\u09be\u0982\u09b2\u09be.tif",
    "\\udcff.pdf", "a\\b.pdf", "~bytes:", "~bytes:\\udcff", "~bytes:~bytes:x", "\U0001f4dc", " ", "a\nb", "x" * 3000,
    os.fsdecode(b"caf\xe9.pdf"), os.fsdecode(b"\\\xff\\\\\x80"), os.fsdecode(b"~bytes:\xff"), "\ud800 lone", "a\0b",
]  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_a_name_survives(name):
    assert original(stored(name)) == name
    stored(name).encode("utf-8")


@given(st.binary(max_size=30), st.text(st.characters(), max_size=30))
def test_bytes_and_texts_survive(raw, text):
    for name in (os.fsdecode(raw), text, "~bytes:" + text):
        assert original(stored(name)) == name
    assert os.fsencode(original(stored(os.fsdecode(raw)))) == raw


def test_stored_forms_differ_where_names_do():
    assert len({stored(name) for name in ODD}) == len(ODD)


def test_ordinary_names_are_stored_as_they_are():
    assert stored("Vol 1 (2) #3 %41\\.pdf") == "Vol 1 (2) #3 %41\\.pdf"


@pytest.mark.parametrize("some", [ODD, ODD[:6], ["~bytes:x"], ["a"], []])
def test_columns_survive(some):
    column = to_array(some)
    column.validate(full=True)
    assert to_list(column) == some
    assert column.to_pylist() == [stored(name) for name in some]


def check(outputs: list[str]) -> None:
    found = OutputNames()
    for output in outputs:
        found.add(output)
    found.check(lambda: [(output, f"/scans/{number}") for number, output in enumerate(outputs)])


def test_distinct_outputs_pass():
    check(["a/b.pdf.md", "a/c.pdf.md", "b/b.pdf.md", "caf\u00e9.md", "cafe\u0301.md", "a.pdf.md", "a.docx.md"])


def test_equal_outputs_are_refused_with_both_names_and_the_remedy():
    with pytest.raises(
        ConfigError, match=r"/scans/0 and /scans/2 would both be written to a\.md; rename one, or parse"
    ):
        check(["a.md", "b.md", "a.md"])


def test_a_file_that_must_be_a_folder_is_refused():
    with pytest.raises(ConfigError, match=r"/scans/3 needs a file x/a\.md, and /scans/1 a folder of that name; rename"):
        check(["x/z.md", "x/a.md/deep/b.md", "x/c.md", "x/a.md"])


def test_equal_digests_of_different_names_are_looked_at_twice(monkeypatch):
    monkeypatch.setattr(names, "digest", lambda text: 7)
    check(["a.md", "b/c.md", "d.md"])
    with pytest.raises(ConfigError, match="would both"):
        check(["a.md", "b/c.md", "a.md"])


def test_a_million_names_take_eight_bytes_each():
    digests = Digests()
    for number in range(100_000):
        digests.add(f"scans/{number}")
    assert len(np.unique(digests.sorted())) == len(digests) == 100_000
    assert digests._seen.itemsize * len(digests) == 800_000
    digests.add("scans/77")
    assert digests.repeated() == {names.digest("scans/77")}
