"""What will be parsed and where it goes, settled before any compute."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from typing import Any

from jocr.errors import ConfigError
from jocr.parsing.names import output_names


@dataclass(frozen=True, slots=True)
class Planned:
    """One document to parse: ``number`` is its place in the run, ``output`` its Markdown path inside the result."""

    number: int
    uri: str
    name: str
    output: str


@dataclass(frozen=True, slots=True)
class Plan:
    """``skipped`` holds (uri, reason, detail) of what was found and is no document."""

    documents: tuple[Planned, ...]
    skipped: tuple[tuple[str, str, str], ...]


def make_plan(
    sources: Sequence[str],
    discover: Callable[[Sequence[str]], Iterable[Any]] | None = None,
    own: Set[str] = frozenset(),
) -> Plan:
    """Find the documents behind ``sources``; the same uri named twice is parsed once.

    ``own`` holds absolute paths of an earlier result's files, which are neither documents nor worth listing where the
    result directory lies among the sources.

    Raises:
        ConfigError: no sources, nothing found at all, or output names that cannot be told apart.
    """
    if not sources:
        raise ConfigError("nothing to parse: name at least one file, folder or pattern")
    if discover is None:
        from jocr.pages.sources import discover as default_discover

        discover = default_discover
    found, skipped = _split(entry for entry in discover(sources) if os.path.abspath(entry.uri) not in own)
    if not found and not skipped:
        raise ConfigError(f"nothing found at {', '.join(map(str, sources))}; check the path or pattern")
    outputs = output_names(list(found.items()))
    documents = zip(found.items(), outputs, strict=True)
    return Plan(tuple(Planned(i, uri, name, out) for i, ((uri, name), out) in enumerate(documents)), tuple(skipped))


def _split(entries: Iterable[Any]) -> tuple[dict[str, str], list[tuple[str, str, str]]]:
    found: dict[str, str] = {}
    skipped: list[tuple[str, str, str]] = []
    for entry in entries:
        if hasattr(entry, "reason"):
            skipped.append((entry.uri, entry.reason, entry.detail))
        else:
            found.setdefault(entry.uri, entry.name)
    return found, skipped


@dataclass(frozen=True, slots=True)
class PageSelection:
    """Which pages of each document to parse, as ranges counted from 1; ``last`` None means to the end."""

    ranges: tuple[tuple[int, int | None], ...]

    @classmethod
    def parse(cls, text: str | None) -> PageSelection:
        """``"1-5,8,10-"``; None or empty means all pages.

        Raises:
            ConfigError: anything else, or a range that runs backwards.
        """
        if not text or not text.strip():
            return cls(((1, None),))
        return cls(tuple(_one_range(part.strip(), text) for part in text.split(",")))

    def indices(self, n_pages: int) -> Iterator[int]:
        """Chosen page indices, counted from 0, ascending, each once."""
        for index in range(n_pages):
            if any(first <= index + 1 and (last is None or index + 1 <= last) for first, last in self.ranges):
                yield index


def _one_range(part: str, text: str) -> tuple[int, int | None]:
    match = re.fullmatch(r"([0-9]{1,9})(?:\s*(-)\s*([0-9]{1,9})?)?", part)
    first = int(match[1]) if match else 0
    last = first if match and not match[2] else int(match[3]) if match and match[3] else None
    if first < 1 or (last is not None and last < first):
        raise ConfigError(f"--pages takes numbers and ranges counted from 1, such as 1-5,8 or 10-; got {text!r}")
    return first, last
