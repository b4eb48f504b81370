"""The parse command as a person sees it: settings from options, a progress line, and a summary that fits a screen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from jocr.config import ParseRecipe, load
from jocr.parsing.command import Summary, check, parse
from jocr.parsing.progress import ProgressLine

SHOWN = 3  # skipped files


def run(recipe: Path | None, sets: Sequence[str], given: Mapping[str, Any]) -> int:
    """Parse, print where the result lies, return the exit code."""
    settings = load(ParseRecipe, recipe, sets, given)
    planned = check(settings)
    with ProgressLine(len(planned[1].documents), Console(stderr=True)) as line:
        summary = parse(settings, planned=planned, sinks=(line,))
    show(summary, Console())
    return summary.exit_code(settings.fail_above)


def show(summary: Summary, console: Console) -> None:
    """Counts, speed, and the paths a person opens next."""
    run, speed = summary.run, summary.run["speed"]
    counts = ", ".join(f"{n} {status}" for status, n in run["counts"].items() if n)
    write = lambda text: console.print(text, markup=False, highlight=False, soft_wrap=True)  # noqa: E731
    write(f"{summary.pages} pages of {len(run['documents'])} documents: {counts or 'none'}")
    for reason, n in sorted(run["reasons"].items(), key=lambda item: -item[1]):
        write(f"  {n} x {reason}")
    unselected = sum(not document["pages"] for document in run["documents"])
    if unselected:
        write(f"{unselected} documents hold none of the pages asked for")
    if run["skipped"]:
        write(f"{len(run['skipped'])} files skipped (listed in run.json)")
        for file in run["skipped"][:SHOWN]:
            write(f"  {file['uri']}: {file['detail']}")
    write(f"{speed['seconds']:.1f} s, {speed['pages_per_second']} pages/s, {speed['tokens_per_second']} tokens/s")
    write(f"{summary.out}/report.html")
