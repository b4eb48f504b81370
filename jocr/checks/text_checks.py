"""Checks on the running text: ``present``, ``absent`` and ``order``.

A needle counts as found where rapidfuzz's ``partial_ratio`` / 100 reaches 1 - max_diffs / length. Without tolerance
that is plain containment (of the shorter in the longer), which needs no fuzzy search at all.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rapidfuzz import fuzz

from jocr.checks.base import PASS, Check, Verdict
from jocr.checks.normalise import normalise
from jocr.checks.page import PageText
from jocr.errors import UnscoredError

MAX_FUZZY_WORK = 10_000_000  # steps of a fuzzy search that an order check may cost


def found(needle: str, text: str, threshold: float) -> bool:
    """Whether ``partial_ratio(needle, text) / 100 >= threshold``, by the cheapest way that gives the same answer."""
    if threshold <= 0:
        return True
    if text and (needle in text if len(needle) <= len(text) else text in needle):
        return True
    if threshold >= 1:
        return False
    return fuzz.partial_ratio(needle, text, score_cutoff=threshold * 100 - 1e-6) / 100 >= threshold


def snippet(text: str) -> str:
    """The beginning of ``text``, short enough for a message."""
    return repr(text if len(text) <= 60 else text[:57] + "...")


@dataclass(frozen=True, kw_only=True)
class TextCheck(Check):
    """What ``present`` and ``absent`` share.

    ``first_n`` and ``last_n`` narrow the search to that many characters at either end of the normalised page (both:
    head and tail joined); 0 and None mean no limit.
    """

    text: str
    case_sensitive: bool = True
    first_n: int | None = None
    last_n: int | None = None
    needle: str = field(init=False, repr=False, compare=False, default="")
    threshold: float = field(init=False, repr=False, compare=False, default=1.0)

    def prepare(self) -> None:
        needle = normalise(self.text)
        self.require(bool(needle.strip()), "text", "must hold something to look for")
        self.require((self.first_n or 0) >= 0, "first_n", "must be 0 or more")
        self.require((self.last_n or 0) >= 0, "last_n", "must be 0 or more")
        self.keep("needle", needle if self.case_sensitive else needle.lower())
        self.keep("threshold", 1.0 - self.max_diffs / len(self.needle))

    def found(self, page: PageText) -> bool:
        """Whether the needle is in the part of the page looked at."""
        return found(self.needle, page.region(self.first_n, self.last_n, self.case_sensitive), self.threshold)


@dataclass(frozen=True, kw_only=True)
class Present(TextCheck):
    """The text must occur. A page that is but a fragment of the needle passes (the shorter is sought in the longer)."""

    kind = "present"

    def run(self, page: PageText) -> Verdict:
        if self.found(page):
            return PASS
        best = fuzz.partial_ratio(self.needle, page.region(self.first_n, self.last_n, self.case_sensitive)) / 100
        return Verdict(False, f"{snippet(self.text)} not found: best {best:.3f}, needed {self.threshold:.3f}")


@dataclass(frozen=True, kw_only=True)
class Absent(TextCheck):
    """The text must not occur; an empty page passes, so never use this kind alone as a reward."""

    kind = "absent"

    def run(self, page: PageText) -> Verdict:
        if not self.found(page):
            return PASS
        return Verdict(False, f"{snippet(self.text)} should not be on the page and is")


@dataclass(frozen=True, kw_only=True)
class Order(Check):
    """Some occurrence of ``before`` must start earlier than some occurrence of ``after`` (max_diffs edits in each)."""

    kind = "order"
    before: str
    after: str
    first: str = field(init=False, repr=False, compare=False, default="")
    second: str = field(init=False, repr=False, compare=False, default="")

    def prepare(self) -> None:
        for name, target in (("before", "first"), ("after", "second")):
            needle = normalise(getattr(self, name))
            self.require(bool(needle.strip()), name, "must hold something to look for")
            self.require(self.max_diffs <= len(needle) // 2, "max_diffs", f"must be at most half the length of {name}")
            self.keep(target, needle)

    def run(self, page: PageText) -> Verdict:
        if self._plainly(page.text):
            return PASS
        first = page.starts(self.first, self.max_diffs, starts)
        second = page.starts(self.second, self.max_diffs, starts)
        for name, text, places in (("before", self.before, first), ("after", self.after, second)):
            if not places:
                return Verdict(False, f"{name} {snippet(text)} not found within {self.max_diffs} edits")
        if min(first) < max(second):
            return PASS
        return Verdict(False, f"{snippet(self.before)} never comes before {snippet(self.after)}")

    def _plainly(self, text: str) -> bool:
        """True where the last plain ``before`` comes before the first plain ``after``.

        Then the fuzzy search cannot find otherwise: every cluster with a plain occurrence is reported at one.
        """
        return 0 <= text.rfind(self.first) < text.find(self.second)


def starts(needle: str, text: str, max_diffs: int) -> list[int]:
    """Where ``needle`` occurs in ``text`` within ``max_diffs`` edits: fuzzysearch's best match of each cluster.

    Of overlapping plain occurrences fuzzysearch reports one by chance; the first and the last are always in here.

    Every match holds one of ``max_diffs + 1`` pieces of the needle unchanged. Pieces that are not on the page, or only
    where the whole needle is, decide the matter without a fuzzy search.

    Raises:
        UnscoredError: the search would take too long.
    """
    plain = {end for end in (text.find(needle), text.rfind(needle)) if end >= 0}
    if max_diffs == 0:
        return sorted(plain)
    size = len(needle) // (max_diffs + 1)
    pieces = [needle[i * size : (i + 1) * size] for i in range(max_diffs + 1)]
    present = [piece for piece in pieces if piece in text]
    if not present:
        return []
    if len(plain) == 1 and all(text.find(piece) == text.rfind(piece) for piece in pieces):
        return list(plain)
    _refuse_long_search(needle, text, max_diffs, present, size)
    from fuzzysearch import find_near_matches

    return sorted(plain | {match.start for match in find_near_matches(needle, text, max_l_dist=max_diffs)})


def _refuse_long_search(needle: str, text: str, max_diffs: int, pieces: list[str], size: int) -> None:
    """fuzzysearch extends every place of every piece; with pieces under three characters it walks all of the page."""
    work = len(text) * len(needle) * (max_diffs + 1) ** 2
    if size >= 3:
        extend = len(needle) * (2 * max_diffs + 1)
        work = sum(_places(piece, text, MAX_FUZZY_WORK // extend + 1) for piece in pieces) * extend
    if work > MAX_FUZZY_WORK:
        raise UnscoredError(f"{len(needle)} characters within {max_diffs} edits on a page of {len(text)}: too long")


def _places(piece: str, text: str, most: int) -> int:
    """How often ``piece`` occurs, overlaps included, counted up to ``most``."""
    count, at = 0, text.find(piece)
    while at >= 0 and count < most:
        count, at = count + 1, text.find(piece, at + 1)
    return count
