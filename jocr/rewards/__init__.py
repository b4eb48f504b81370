"""Verifiable rewards of a transcribed page: terms with evidence, and ways to combine them."""

from jocr.rewards.base import Term
from jocr.rewards.combine import FLOORS, PRESETS, combine
from jocr.rewards.page import TERMS, Reward, score_page
from jocr.rewards.statistics import floor_hit_rate, term_means, zero_variance_share

__all__ = [
    "FLOORS",
    "PRESETS",
    "TERMS",
    "Reward",
    "Term",
    "combine",
    "floor_hit_rate",
    "score_page",
    "term_means",
    "zero_variance_share",
]
