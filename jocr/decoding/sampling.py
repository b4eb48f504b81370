"""Sampling at a temperature, for pages that greedy decoding failed on (the retry ladder's hot rungs).

The random number of each token is a hash of (seed, page, number of the token), so nothing is carried from token to
token: a page's text depends neither on the pages beside it nor on rounds that had to be repeated. Sampled pages are
decoded at depth 0, as acceptance falls with temperature.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jocr.records import PageInput

if TYPE_CHECKING:  # torch is loaded by who has logits: the fake engine and the driver of a job have none
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class Sampler:
    """Draws the tokens of one page."""

    temperature: float  # above 0
    seed: int
    page_id: str

    def pick(self, logits: Tensor, index: int) -> int:
        """Token number ``index`` (from 0) of the page, by the inverse of the cumulated softmax of logits (V,)."""
        import torch

        scaled = logits.double().cpu() / self.temperature
        cumulated = torch.softmax(scaled, dim=0).cumsum(0)
        point = cumulated.new_tensor(_uniform(self.seed, self.page_id, index)) * cumulated[-1]
        found = int(torch.searchsorted(cumulated, point, right=True))
        return min(found, logits.shape[0] - 1)


def sampler_of(page: PageInput) -> Sampler | None:
    """What draws the page's tokens; None for a greedy page.

    Raises:
        ValueError: a temperature below 0 or not finite.
    """
    if not (math.isfinite(page.temperature) and page.temperature >= 0):
        raise ValueError(f"temperature {page.temperature}: give 0 (greedy) or more")
    return Sampler(page.temperature, page.seed, page.page_id) if page.temperature > 0 else None


def request_seed(page: PageInput) -> int:
    """One number of 63 bits for engines that seed a generator for each request."""
    return _hash(page.seed, page.page_id, "request") >> 1


def _uniform(seed: int, page_id: str, index: int) -> float:
    """In [0, 1): the top 53 bits of the hash."""
    return float((_hash(seed, page_id, str(index)) >> 11) * 2.0**-53)


def _hash(seed: int, page_id: str, what: str) -> int:
    text = "\0".join((str(seed), page_id, what)).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big")
