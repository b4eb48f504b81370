"""Money is arithmetic: hand-computed cases, the budget's edge, and an interval that covers what it claims to."""

from __future__ import annotations

import random

import pytest

from jocr.archive.cost import Meter, student
from jocr.config import CostSettings
from jocr.errors import ConfigError


def meter(decoders=2, **settings):
    return Meter(CostSettings(**settings), decoders)


def test_money_by_hand():
    priced = meter(hourly_price=0.72, currency="EUR")
    assert priced.spent(7200) == pytest.approx(1.44)
    assert priced.per_million(1000, 500.0) == pytest.approx({"decoder_seconds": 500_000.0, "money": 100.0})
    assert priced.per_million(0, 5.0) == {"decoder_seconds": None, "money": None}


def test_without_a_price_there_are_seconds_and_no_money():
    free = meter()
    assert free.spent(100) is None
    assert not free.exhausted(1e12)
    assert free.per_million(10, 1.0) == {"decoder_seconds": pytest.approx(100_000.0), "money": None}
    forecast = free.forecast(200, 2000, 100.0)
    assert forecast.money is forecast.money_low is forecast.money_high is None
    assert forecast.decoder_seconds == pytest.approx(1000.0)


def test_a_price_of_nothing_is_a_price():
    assert meter(hourly_price=0.0).spent(3600) == 0.0
    assert not meter(hourly_price=0.0, budget=1.0).exhausted(1e9)


def test_budget_ends_exactly_when_it_is_spent():
    limited = meter(hourly_price=3.6, budget=1.0)
    assert not limited.exhausted(999.9)
    assert limited.exhausted(1000.0)
    assert limited.exhausted(1000.1)


def test_a_budget_without_a_price_is_refused_with_the_remedy():
    with pytest.raises(ConfigError, match=r"cost\.hourly_price"):
        meter(budget=5.0)


def test_forecast_waits_for_its_sample():
    waiting = meter(forecast_pages=200)
    assert waiting.forecast(199, 5000, 10.0) is None
    assert waiting.forecast(0, 0, 0.0) is None
    assert waiting.forecast(200, 5000, 10.0).done == 200
    assert waiting.forecast(50, 50, 10.0).decoder_seconds == pytest.approx(10.0)  # fewer pages than the sample


def test_forecast_by_hand():
    forecast = meter(hourly_price=3.6).forecast(400, 4000, 100.0)
    assert forecast.decoder_seconds == pytest.approx(1000.0)
    assert forecast.wall_seconds == pytest.approx(500.0)
    assert forecast.money == pytest.approx(1.0)
    assert forecast.high == pytest.approx(1000 * (1 + 0.9 * 1.96 / 20))
    assert forecast.low == pytest.approx(1000 * (1 - 0.9 * 1.96 / 20))
    assert forecast.money_low < forecast.money < forecast.money_high


def test_equal_units_leave_no_doubt_and_a_finished_run_none_either():
    even = meter().forecast(200, 1000, 50.0, [(100, 25.0), (100, 25.0)])
    assert even.low == even.high == pytest.approx(250.0)
    whole = meter().forecast(200, 200, 50.0, [(100, 5.0), (100, 45.0)])
    assert whole.low == whole.high == pytest.approx(50.0)


def test_interval_covers_about_what_it_says():
    """Units of unequal size and unequal kinds of pages; the truth is the mean of the kind they are drawn from."""
    rng = random.Random(5)
    hits = 0
    for _ in range(400):
        units = []
        for _ in range(12):
            pages = rng.randint(64, 256)
            units.append((pages, pages * rng.gauss(2.0, 0.4)))
        done, seconds = sum(n for n, _ in units), sum(s for _, s in units)
        forecast = meter().forecast(done, done * 1000, seconds, units)
        hits += forecast.low <= 2.0 * done * 1000 <= forecast.high
    assert 0.90 <= hits / 400 <= 0.99


@pytest.mark.parametrize(("freedom", "value"), [(1, 12.706), (10, 2.228), (11, 2.201), (30, 2.042), (1000, 1.962)])
def test_student(freedom, value):
    assert student(freedom) == pytest.approx(value, rel=2e-3)
