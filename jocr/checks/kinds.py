"""Every kind of check, read from and written to the benchmark's JSONL, and run over a page.

One definition serves the olmOCR-Bench runner, the synthetic pages and the reward.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from jocr.checks.base import Check, Verdict, build
from jocr.checks.baseline import Baseline
from jocr.checks.math_check import Math
from jocr.checks.page import MathBackend, PageText
from jocr.checks.span_checks import Footnote, Format
from jocr.checks.table_check import Table
from jocr.checks.text_checks import Absent, Order, Present
from jocr.errors import ConfigError

KINDS: dict[str, type[Check]] = {
    cls.kind: cls for cls in (Present, Absent, Order, Table, Math, Baseline, Format, Footnote)
}


def parse_check(record: Mapping[str, Any]) -> Check:
    """The check a JSON object describes.

    Raises:
        ConfigError: unknown type, unknown, missing or ill-typed field, or a value the kind does not allow.
    """
    if not isinstance(record, Mapping):
        raise ConfigError(f"a check must be a JSON object, got {record!r}")
    kind = record.get("type")
    if not isinstance(kind, str) or kind not in KINDS:
        raise ConfigError(f"check {record.get('id', '?')!r}: field 'type' is {kind!r}; known: {', '.join(KINDS)}")
    return build(KINDS[kind], {k: v for k, v in record.items() if k != "type"})


def load_checks(path: Path | str) -> list[Check]:
    """All checks of a JSONL file; blank lines are skipped.

    Raises:
        ConfigError: with file and line, for a line that is no check or an id that occurs twice.
    """
    checks: list[Check] = []
    seen: dict[str, int] = {}
    try:
        lines = Path(path).read_text("utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path} as JSON lines: {error}") from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            check = parse_check(json.loads(line))
        except (ConfigError, json.JSONDecodeError) as error:
            raise ConfigError(f"{path}:{number}: {error}") from error
        if check.id in seen:
            raise ConfigError(f"{path}:{number}: id {check.id!r} is taken by line {seen[check.id]}")
        seen[check.id] = number
        checks.append(check)
    return checks


def dump_checks(checks: Iterable[Check], path: Path | str) -> None:
    """Write ``checks`` as JSONL, one a line; :func:`load_checks` gives them back."""
    lines = [json.dumps(check.record(), ensure_ascii=False) + "\n" for check in checks]
    Path(path).write_text("".join(lines), "utf-8")


def run_checks(
    checks: Sequence[Check], markdown: str, *, math: MathBackend = "mathml", strict: bool = False
) -> list[Verdict]:
    """The verdict of each check on one page; the page is prepared once.

    Args:
        checks: questions to this page.
        markdown: the page as the parser wrote it.
        math: ``mathml`` (KaTeX in process) or ``boxes`` (glyph boxes measured by Chromium).
        strict: close the known holes of the math check, as a reward must.

    Raises:
        UnscoredError: a check could not be decided within its limits; never reported as a failed check.
    """
    page = PageText(markdown, math=math, strict=strict)
    return [check.run(page) for check in checks]
