"""Content: is everything on the page transcribed, in order, and nothing else?"""

from __future__ import annotations

from jocr.markup.text import edit_distance
from jocr.records import Sample
from jocr.rewards.base import Outcome, term
from jocr.rewards.view import view

SLACK = 0.9  # lengths this near are not penalised beyond their edit distance


@term("content")
def content(prediction: str, reference: Sample) -> Outcome:
    """1 - normalised edit distance over the whole page, times a penalty where the lengths differ by more than 10 %.

    The whole page is compared, so that invented paragraphs, tables, comments and image texts cost what they are long.
    """
    found, expected = view(prediction).text, view(reference.markdown).text
    longest, shortest = max(len(found), len(expected)), min(len(found), len(expected))
    if not longest:
        return 1.0, {"ned": 0.0, "length_ratio": 1.0}
    distance = edit_distance(expected, found)
    penalty = min(1.0, shortest / longest / SLACK)
    detail = {
        "ned": round(distance / longest, 6),
        "edits": distance,
        "length_ratio": round(len(found) / max(1, len(expected)), 4),
        "length_penalty": round(penalty, 4),
    }
    return (1 - distance / longest) * penalty, detail
