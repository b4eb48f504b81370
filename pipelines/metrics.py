"""What Prometheus sees of a run, through ``ray.util.metrics``: counted where the rows are made."""

from __future__ import annotations

from typing import Any

from jocr.records import ParsedPage

BUCKETS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900]  # seconds


class PageMetrics:
    """Of one decoder process.

    Metrics: ``jocr_pages_total`` (status, reason), ``jocr_tokens_total``, ``jocr_page_seconds`` (rendering and
    decoding), ``jocr_pages_in_flight``.
    """

    def __init__(self) -> None:
        from ray.util.metrics import Counter, Gauge, Histogram

        self._pages = Counter("jocr_pages_total", "Pages that have their row", tag_keys=("status", "reason"))
        self._tokens = Counter("jocr_tokens_total", "Tokens generated")
        self._seconds = Histogram("jocr_page_seconds", "Rendering and decoding of a page", boundaries=BUCKETS)
        self._flying = Gauge("jocr_pages_in_flight", "Pages being decoded")

    def row(self, row: ParsedPage) -> None:
        self._pages.inc(1, {"status": row.status, "reason": row.reason or ""})
        if row.tokens:
            self._tokens.inc(row.tokens)
        self._seconds.observe(row.seconds)

    def flying(self, pages: int) -> None:
        self._flying.set(pages)


class RunMetrics:
    """Of the driver: ``jocr_pages_left``."""

    def __init__(self) -> None:
        from ray.util.metrics import Gauge

        self._left: Any = Gauge("jocr_pages_left", "Pages of the run that have no row yet")

    def left(self, pages: int) -> None:
        self._left.set(pages)
