"""What a run costs and what the whole will cost: plain arithmetic on decoder-seconds and an hourly price.

A *decoder-second* is one second for which one decoder (one machine of ``hourly_price``) is held, idle or not; with one
GPU a decoder it is a GPU-second. Seconds of all decoders are summed before they come here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from jocr.config import CostSettings
from jocr.errors import ConfigError

MILLION = 1_000_000
T95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)  # Student's t, two-sided, by freedom
Z95 = 1.960


@dataclass(frozen=True, slots=True)
class Forecast:
    """What the whole will take, with a 95 % interval; it takes the pages to come to be like those that are done."""

    done: int  # pages it rests on
    total: int
    decoder_seconds: float  # of the whole, all decoders together
    low: float
    high: float
    wall_seconds: float  # of the whole, with the decoders at hand all busy
    money: float | None  # None without a price
    money_low: float | None
    money_high: float | None
    currency: str
    basis: str  # where the interval comes from, in words

    def row(self) -> dict[str, Any]:
        """The record as a JSON-ready dict."""
        return asdict(self)


class Meter:
    """Turns decoder-seconds into money, forecasts and the end of a budget.

    Args:
        settings: price, currency, budget, and after how many pages to forecast.
        decoders: how many are held at a time.

    Raises:
        ConfigError: a budget without a price.
    """

    def __init__(self, settings: CostSettings, decoders: int) -> None:
        if settings.budget is not None and settings.hourly_price is None:
            raise ConfigError("cost.budget needs cost.hourly_price: without a price nothing is ever spent")
        self.settings = settings
        self.decoders = decoders

    def spent(self, decoder_seconds: float) -> float | None:
        """Money for so many decoder-seconds; None without a price."""
        price = self.settings.hourly_price
        return None if price is None else price * decoder_seconds / 3600

    def exhausted(self, decoder_seconds: float) -> bool:
        """Whether the budget is spent: time to stop, resumably."""
        spent, budget = self.spent(decoder_seconds), self.settings.budget
        return spent is not None and budget is not None and spent >= budget

    def per_million(self, pages: int, decoder_seconds: float) -> dict[str, float | None]:
        """Decoder-seconds and money per million pages; None where there are no pages yet."""
        seconds = decoder_seconds / pages * MILLION if pages else None
        return {"decoder_seconds": seconds, "money": None if seconds is None else self.spent(seconds)}

    def forecast(
        self, done: int, total: int, decoder_seconds: float, units: Iterable[tuple[int, float]] = ()
    ) -> Forecast | None:
        """What all ``total`` pages will take; None before ``forecast_pages`` (or all, where they are fewer) are done.

        Args:
            done: pages with a row so far.
            total: pages of the manifest.
            decoder_seconds: held for those that are done.
            units: (pages, decoding seconds) of each committed unit. Given two or more, the interval comes from how
                much units differ (a ratio estimate with Student's t); without them, page times are taken to vary by
                as much as their mean.
        """
        if not done or done < min(self.settings.forecast_pages, total):
            return None
        whole = decoder_seconds * total / done
        share, basis = _relative_error(done, list(units))
        left = max(0.0, 1 - done / total)  # what is done is certain
        low, high = whole * (1 - left * min(share, 1.0)), whole * (1 + left * share)
        return Forecast(
            done=done,
            total=total,
            decoder_seconds=whole,
            low=low,
            high=high,
            wall_seconds=whole / self.decoders,
            money=self.spent(whole),
            money_low=self.spent(low),
            money_high=self.spent(high),
            currency=self.settings.currency,
            basis=basis,
        )


def _relative_error(done: int, units: list[tuple[int, float]]) -> tuple[float, str]:
    """Half the width of the 95 % interval of the mean time of a page, as a share of that mean; and its basis."""
    pages, seconds = sum(n for n, _ in units), sum(s for _, s in units)
    if len(units) < 2 or not pages or seconds <= 0:
        return Z95 / math.sqrt(done), "page times taken to vary by as much as their mean"
    mean = seconds / pages
    squares = sum((s - mean * n) ** 2 for n, s in units)
    error = math.sqrt(squares * len(units) / (len(units) - 1)) / pages
    return student(len(units) - 1) * error / mean, f"how much {len(units)} units differ"


def student(freedom: int) -> float:
    """The 97.5 % point of Student's t distribution (Cornish-Fisher beyond the table; within 0.2 %)."""
    if freedom <= len(T95):
        return T95[freedom - 1]
    return Z95 + (Z95**3 + Z95) / (4 * freedom) + (5 * Z95**5 + 16 * Z95**3 + 3 * Z95) / (96 * freedom**2)
