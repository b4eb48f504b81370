"""``report.html`` of an archive: counts, collections, speed and cost, then a sample of pages side by side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from html import escape
from typing import Any

from jocr.records import STATUSES, ParsedPage
from jocr.report.charts import area, bars
from jocr.report.frame import LISTED, Tile, about, frame, reasons, status_tiles, table, tiles
from jocr.report.gallery import ImageOf, gallery

LIMIT = 16 << 20  # bytes of the gallery: the whole file stays below 20 MB
HOUR = 3600.0


def report(run: Mapping[str, Any], pages: Iterable[ParsedPage], image: ImageOf) -> str:
    """The whole file.

    Args:
        run: what ``run.json`` holds (``jocr.archive.summary.describe``).
        pages: the gallery's rows.
        image: JPEG bytes of a page, or None where it cannot be shown.
    """
    shown = gallery(run, pages, image, table="every page is a row of the page table.", limit=LIMIT)
    return "".join(frame("jocr archive report", _header(run), shown))


def _header(run: Mapping[str, Any]) -> Iterator[str]:
    yield about(run)
    if run["pending"]:
        left = f"{run['pending']:,} of {run['manifest']['pages']:,} pages have no row yet: run the job again."
        yield f'<p class="why">{left}</p>'
    yield tiles([*status_tiles(run), *_speeds(run), *_money(run["cost"])])
    yield '<div class="charts">' + _throughput(run["speed"]) + _tokens(run["tokens_per_page"]) + "</div>"
    yield _cost(run["cost"])
    yield reasons(run)
    yield _collections(run["collections"])
    yield _attempts(run["attempts"])
    yield _skipped(run["skipped"])


def _speeds(run: Mapping[str, Any]) -> Iterator[Tile]:
    yield "documents written", f"{run['documents']['written']:,}", ""
    yield "pages per second", f"{run['speed']['pages_per_second']:.2f}", ""
    yield "working time", duration(run["speed"]["seconds"]), ""


def _money(cost: Mapping[str, Any]) -> Iterator[Tile]:
    per_million = cost["per_million_pages"]
    if per_million["decoder_seconds"] is not None:
        yield f"{_unit(cost)} per million pages", _seconds(cost, per_million["decoder_seconds"]), ""
    if per_million["money"] is not None:
        yield f"{cost['currency']} per million pages", amount(per_million["money"]), ""


def _throughput(speed: Mapping[str, Any]) -> str:
    points, seconds = speed["over_time"], speed["seconds"]
    if not points:
        return ""
    unit, name = (HOUR, "hours") if seconds > 2 * HOUR else (60.0, "minutes") if seconds > 120 else (1.0, "seconds")
    breaks = [at / unit for at in speed["pauses"]]
    chart = area(
        [(at / unit, value) for at, value in points],
        title="pages per second over working time",
        x=f"{name} of work" + (", pauses dashed" if breaks else ""),
        y="pages/s",
        breaks=breaks,
        width=seconds / unit,
    )
    return _figure("Throughput", chart)


def _tokens(histogram: Mapping[str, Any]) -> str:
    step, counts = histogram["step"], histogram["pages"]
    values = [(i * step, (i + 1) * step, n) for i, n in enumerate(counts)]
    return _figure("Tokens per decoded page", bars(values, title="pages by tokens", x="tokens", y="pages"))


def _figure(title: str, chart: str) -> str:
    return f"<figure><figcaption>{escape(title)}</figcaption>{chart}</figure>" if chart else ""


def _cost(cost: Mapping[str, Any]) -> str:
    forecast, currency = cost["forecast"], cost["currency"]
    how = "held" if cost["counted"] == "held" else "busy"
    unit = _unit(cost)
    rows: list[tuple[str, str, str]] = [
        (
            _seconds(cost, cost["decoder_seconds"]),
            _paid(cost["money"], currency),
            f"so far ({unit}: decoders were {how})",
        ),
    ]
    if forecast:
        middle = f"forecast for {forecast['total']:,} pages from the first {forecast['done']:,}"
        rows.append((_seconds(cost, forecast["decoder_seconds"]), _paid(forecast["money"], currency), middle))
        money = "-"
        if forecast["money"] is not None:
            money = f"{amount(forecast['money_low'])} to {amount(forecast['money_high'])} {currency}"
        span = f"{_seconds(cost, forecast['low'])} to {_seconds(cost, forecast['high'])}"
        rows.append((span, money, f"its 95 % interval, from {forecast['basis']}"))
    if cost["budget"] is not None:
        rows.append(("", _paid(cost["budget"], currency), "budget" + (", spent" if cost["budget_spent"] else "")))
    return table("Cost", (unit, "money", ""), rows, opened=True)


def _unit(cost: Mapping[str, Any]) -> str:
    return "GPU-seconds" if cost["gpus_per_decoder"] else "decoder-seconds"


def _seconds(cost: Mapping[str, Any], decoder_seconds: float) -> str:
    """Of GPUs, where decoders have some."""
    return f"{decoder_seconds * (cost['gpus_per_decoder'] or 1):,.0f}"


def _paid(money: float | None, currency: str) -> str:
    return "-" if money is None else f"{amount(money)} {currency}"


def _collections(collections: list[Mapping[str, Any]]) -> str:
    head = ("pages", "collection", *STATUSES, "tokens per page")
    rows = []
    for facts in collections[:LISTED]:
        name = f"{facts['of']:,} more" if facts["name"] is None else facts["name"] or "(top)"
        statuses = [f"{facts.get(status, 0):,}" for status in STATUSES]
        rows.append((f"{facts['pages']:,}", name, *statuses, f"{facts['tokens'] / facts['pages']:,.0f}"))
    more = f", the {LISTED} largest" if len(collections) > LISTED else ""
    return table(f"Collections ({len(collections):,}{more})", head, rows, opened=len(rows) <= 12)


def _attempts(attempts: Mapping[str, int]) -> str:
    rows = [(f"{n:,}", times) for times, n in sorted(attempts.items(), key=lambda item: int(item[0]))]
    return table("Attempts", ("pages", "attempts each"), rows)


def _skipped(skipped: Mapping[str, Any]) -> str:
    rows = [("", item["name"], f"{item['reason']}: {item['detail']}") for item in skipped["first"]]
    shown = f", the first {len(rows)}" if len(rows) < skipped["count"] else ""
    return table(f"Skipped files ({skipped['count']:,}{shown})", ("", "file", "why"), rows)


def duration(seconds: float) -> str:
    """``3 h 07 min``, ``4 min 05 s``, ``12.3 s``."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes < 60 else f"{minutes // 60:,} h {minutes % 60:02d} min"


def amount(money: float) -> str:
    """Money with as many decimals as it needs."""
    return f"{money:,.0f}" if money >= 1000 else f"{money:,.2f}" if money >= 0.1 or money == 0 else f"{money:.2g}"
