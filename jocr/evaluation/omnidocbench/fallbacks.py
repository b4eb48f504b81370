"""v1.6's second chances for long paragraphs whose pairing went wrong: a better local span, or merged neighbours.

Only paragraphs of at least 400 normalised characters with an edit distance above 0.35 are looked at, and a
replacement is taken only where it gains at least 0.15. Implemented from the published description; the recorded
results this project has are v1.5's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from jocr.evaluation.omnidocbench.costs import ned
from jocr.evaluation.omnidocbench.matching import Pair

MIN_LENGTH = 400
MIN_EDIT = 0.35
MIN_GAIN = 0.15
MAX_NEIGHBOURS = 12


def better_text(pair: Pair, page_text: Sequence[str]) -> Pair:
    """``pair``, or the same with the prediction replaced by the nearer of a local span and merged neighbours."""
    now = ned(pair.gt_text, pair.pred_text)
    if len(pair.gt_text) < MIN_LENGTH or now <= MIN_EDIT:
        return pair
    options = [_local_span(pair.gt_text, "".join(page_text)), *_merged(pair.gt_text, page_text)]
    best = min(options, key=lambda text: ned(pair.gt_text, text))
    return replace(pair, pred_text=best) if now - ned(pair.gt_text, best) >= MIN_GAIN else pair


def _local_span(reference: str, page: str) -> str:
    """The part of ``page`` nearest to ``reference``."""
    from rapidfuzz import fuzz

    if len(page) <= len(reference):
        return page
    found = fuzz.partial_ratio_alignment(reference, page)
    return "" if found is None else page[found.dest_start : found.dest_end]


def _merged(reference: str, page_text: Sequence[str]) -> list[str]:
    """For every start, neighbouring paragraphs joined up to the reference's length."""
    out = []
    for start in range(len(page_text)):
        joined = ""
        for piece in page_text[start : start + MAX_NEIGHBOURS]:
            joined += piece
            if len(joined) >= len(reference):
                break
        out.append(joined)
    return out or [""]
