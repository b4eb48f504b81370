"""The live line: an honest total, speed and time left; nothing where nobody watches."""

from __future__ import annotations

import io

from rich.console import Console

from jocr.documents import Origin, failed
from jocr.parsing.progress import ProgressLine, clock_time
from jocr.parsing.rendering import Opened
from jocr.records import DocRef, PageFailure

ROW = failed(PageFailure("a", "00", 0, "render", "corrupt"), Origin("m", "r", "p", "e"))


def opened(number, pages):
    return Opened(number, DocRef("a", "00", 1, "pdf"), pages, tuple(range(pages)))


def line(documents, terminal=False):
    now = [100.0]
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=120)
    return ProgressLine(documents, console, lambda: now[0]), now, out


def test_total_speed_and_time_left():
    progress, now, _ = line(4)
    assert (progress.total, progress.speed, progress.seconds_left) == (0, 0.0, None)
    progress.opened(opened(0, 10))
    assert progress.total == 40  # four documents like the first
    now[0] += 5
    progress.page(0, ROW)
    assert progress.speed == 0.2
    assert progress.seconds_left == 39 / 0.2
    progress.page(1, ROW)  # it did not open: one row
    progress.opened(opened(2, 1))
    progress.opened(opened(3, 0))
    assert progress.total == 12
    assert progress.seconds_left == 10 / 0.4


def test_silent_without_a_terminal():
    progress, _, out = line(1)
    with progress:
        progress.opened(opened(0, 1))
        progress.page(0, ROW)
    assert out.getvalue() == ""


def test_shown_on_a_terminal():
    progress, now, out = line(1, terminal=True)
    with progress:
        progress.opened(opened(0, 2))
        now[0] += 2
        progress.page(0, ROW)
        progress._progress.refresh()
    assert "1/2" in out.getvalue()
    assert "0.50/s" in out.getvalue()
    assert "1 failed" in out.getvalue()
    assert "ETA 0:00:02" in out.getvalue()


def test_clock_time():
    assert [clock_time(s) for s in (0, 59.6, 3661)] == ["0:00:00", "0:01:00", "1:01:01"]
