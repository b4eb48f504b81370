"""The functions that the recorded OmniDocBench v1.5 vectors name (``jocr score vectors``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jocr.evaluation.omnidocbench.extraction import extract
from jocr.evaluation.omnidocbench.metrics import table_scores
from jocr.evaluation.omnidocbench.normalise import formula_norm, table_norm, text_clean, text_norm


def _extract(markdown: str) -> dict[str, list[dict[str, str]]]:
    found = extract(markdown)
    return {
        kind: [{"content": e.content, **({"fine_category_type": e.fine} if e.fine else {})} for e in elements]
        for kind, elements in found.items()
    }


def _rounded(which: int) -> Callable[[list[str]], float]:
    return lambda pair: round(table_scores(table_norm(pair[0]), table_norm(pair[1]))[which], 6)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "text_norm_clean": text_clean,
    "text_norm": text_norm,
    "formula_norm": formula_norm,
    "table_norm": table_norm,
    "teds": _rounded(0),
    "teds_s": _rounded(1),
    "extract": _extract,
}
