"""Checks in and out of JSONL: nothing is lost, and everything wrong is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jocr.checks import KINDS, dump_checks, load_checks, parse_check
from jocr.errors import ConfigError

ID = {"pdf": "a/b.pdf", "page": 2, "id": "x"}
EXAMPLES: dict[str, dict[str, Any]] = {
    "present": {"text": "Hello", "max_diffs": 1, "case_sensitive": False, "first_n": 20, "last_n": None},
    "absent": {"text": "Page 3", "checked": "verified", "url": "https://example.org"},
    "order": {"before": "one", "after": "two", "max_diffs": 1},
    "table": {"cell": "4.0", "left": "3.0", "up": None, "top_heading": "C", "ignore_markdown_tables": True},
    "math": {"math": "x^2", "ignore_dollar_delimited": True},
    "baseline": {"max_length": 10, "max_length_skips_image_alt_tags": True},
    "format": {"text": "Title", "format": "heading"},
    "footnote": {"marker": "1", "appears_before_marker": "word"},
}


def test_every_kind_is_covered() -> None:
    assert EXAMPLES.keys() == KINDS.keys()


@pytest.mark.parametrize("kind", EXAMPLES)
def test_a_record_survives_writing_and_reading(kind: str, tmp_path: Path) -> None:
    check = parse_check({**ID, "type": kind, **EXAMPLES[kind]})
    dump_checks([check], tmp_path / "t.jsonl")
    assert load_checks(tmp_path / "t.jsonl") == [check]
    assert parse_check(check.record()) == check


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"type": "presence"}, "type"),
        ({"type": None}, "type"),
        ({"txt": "a"}, "txt"),
        ({"text": None}, "text"),
        ({"text": 5}, "text"),
        ({"text": " \n"}, "text"),
        ({"text": "****"}, "text"),
        ({"page": 0}, "page"),
        ({"page": "1"}, "page"),
        ({"page": True}, "page"),
        ({"max_diffs": -1}, "max_diffs"),
        ({"max_diffs": 1.5}, "max_diffs"),
        ({"checked": "maybe"}, "checked"),
        ({"pdf": ""}, "pdf"),
        ({"id": ""}, "id"),
        ({"first_n": -1}, "first_n"),
        ({"last_n": -1}, "last_n"),
    ],
)
def test_what_is_wrong_is_named(change: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        parse_check({**ID, "type": "present", "text": "Hello", **change})


@pytest.mark.parametrize(
    ("record", "named"),
    [
        ({"type": "present"}, "text"),
        ({"type": "order", "before": "abc", "after": "abcdef", "max_diffs": 2}, "max_diffs"),
        ({"type": "order", "before": "", "after": "abcdef"}, "before"),
        ({"type": "math", "math": " "}, "math"),
        ({"type": "footnote", "marker": "1 2"}, "marker"),
        ({"type": "footnote", "marker": "1", "appears_after_marker": "..."}, "appears_after_marker"),
        ({"type": "format", "text": "a", "format": "underline"}, "format"),
        ({"type": "baseline", "max_repeats": 0}, "max_repeats"),
        ({"type": "table", "cell": 4}, "cell"),
        ({"type": "table", "cell": "a", "needle": "a"}, "needle"),
    ],
)
def test_each_kind_validates(record: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        parse_check({**ID, **record})


def test_not_an_object() -> None:
    with pytest.raises(ConfigError, match="object"):
        parse_check(["present"])  # type: ignore[arg-type]


def test_a_file_names_its_bad_line(tmp_path: Path) -> None:
    good = json.dumps({**ID, "type": "present", "text": "Hello"})
    file = tmp_path / "t.jsonl"
    file.write_text(f"{good}\n\n{good}\n", "utf-8")
    with pytest.raises(ConfigError, match=r"t\.jsonl:3: id 'x' is taken by line 1"):
        load_checks(file)
    file.write_text(f"{good}\n{{not json\n", "utf-8")
    with pytest.raises(ConfigError, match=r"t\.jsonl:2"):
        load_checks(file)
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match=r"t\.jsonl"):
        load_checks(file)
    with pytest.raises(ConfigError, match=r"none\.jsonl"):
        load_checks(tmp_path / "none.jsonl")
