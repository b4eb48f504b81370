"""The one loop detector: cleaning, the decoding guard and the repetition reward all ask here.

``find_repeats`` lists what stands back to back at least four times: characters (or tokens) with any period up to 512,
whole lines, and table rows. ``find_loop`` gives the one repetition that is a loop (``loop_rules``), wherever it stands,
with its evidence. ``LoopGuard`` asks the same question token by token while a page is being decoded.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from jocr.markup.counters import counting_runs
from jocr.markup.loop_rules import MIN_COUNT, copies_allowed, is_loop
from jocr.markup.runs import periodic_runs

MAX_PERIOD = 512
MIN_LENGTH = 32  # characters or tokens that a repetition of items covers at least
TEXT_EVERY = 256  # tokens between two looks of a guard at the text
TEXT_WINDOW = 4096  # tokens at the tail that such a look decodes
TOKENS_COVERED = 256  # a loop of tokens whose text is unknown covers at least this many

_HTML_ROW = re.compile(
    r"<tr\b[^<>]*>[^<]*(?:<(?!/tr>|tr\b|/table)[^<]*)*(?:</tr>|(?=<tr\b)|(?=</table))", re.IGNORECASE
)
_ROW_LINE = re.compile(r"[ \t]*(?:\||<tr\b|<t[dh]\b)", re.IGNORECASE)

Decode = Callable[[Sequence[int]], str]


@dataclass(frozen=True, slots=True)
class Repeat:
    """``count`` whole copies of a unit, back to back.

    ``period`` counts items (characters or tokens), lines or rows, as ``level`` says; ``start`` and ``end`` are
    positions in the sequence that was searched (characters of a text, tokens of a token list) at every level.
    """

    period: int
    count: int
    start: int
    end: int
    level: Literal["item", "line", "row"]


def find_repeats(
    seq: str | Sequence[int],
    *,
    max_period: int = MAX_PERIOD,
    min_count: int = MIN_COUNT,
    min_length: int = MIN_LENGTH,
) -> list[Repeat]:
    """All maximal repetitions, ordered by start, whether or not they are loops. Time grows linearly with ``seq``.

    Args:
        seq: a text, or token ids (then only items are looked at).
        max_period: longest unit, in items, lines or rows.
        min_count: whole copies a repetition has at least.
        min_length: items that a repetition of items covers at least.
    """
    out = [
        Repeat(p, (end - start) // p, start, end, "item")
        for p, start, end in periodic_runs(
            _codes(seq), max_period=max_period, min_count=min_count, min_length=min_length
        )
    ]
    if isinstance(seq, str):
        out += _unit_repeats(seq, _lines(seq), max_period, min_count)
        if "<tr" in seq:
            rows = ((m.start(), m.end(), m[0]) for m in _HTML_ROW.finditer(seq))
            out += _unit_repeats(seq, rows, max_period, min_count, "row")
    return sorted(out, key=lambda r: (r.start, r.level))


def find_loop(
    seq: str | Sequence[int], *, max_period: int = MAX_PERIOD, decode: Decode | None = None, lenience: float = 1.0
) -> Repeat | None:
    """The loop in ``seq`` that covers most of it, or None.

    Args:
        seq: a text or token ids.
        max_period: longest unit, in items, lines or rows.
        decode: token ids -> text. With it tokens are judged by what they say; without it a token loop must cover
            TOKENS_COVERED tokens, which a page of empty ledger rows may do as well.
        lenience: by how much fewer copies are called a loop than without anything to compare with; above 1 only where
            a reference is at hand whose own repetition is allowed for.
    """
    loops = [r for r in find_repeats(seq, max_period=max_period) if _judge(seq, r, decode, lenience)]
    if isinstance(seq, str):
        runs = counting_runs(list(_lines(seq)))
        loops += [Repeat(p, count, start, end, "line") for p, count, start, end in runs]
    return max(loops, key=lambda r: (r.end - r.start, r.level == "item"), default=None)


def _judge(seq: str | Sequence[int], repeat: Repeat, decode: Decode | None, lenience: float) -> bool:
    if isinstance(seq, str):
        run = seq[repeat.start : repeat.end]
        if repeat.level == "item":
            return is_loop(run[repeat.period : 2 * repeat.period], repeat.count, run=run, lenience=lenience)
        return is_loop(run[: len(run) // repeat.count], repeat.count, lenience=lenience)
    if decode is None:
        return repeat.end - repeat.start >= TOKENS_COVERED
    return is_loop(decode(seq[repeat.start : repeat.start + repeat.period]), repeat.count, lenience=lenience)


def _codes(seq: str | Sequence[int]) -> np.ndarray:
    if isinstance(seq, str):
        codes = np.frombuffer(seq.encode("utf-32-le", "surrogatepass"), np.uint32)
        return np.where(codes - 9 < 5, np.uint32(32), codes)  # line breaks and tabs are blanks: text may be wrapped
    return np.asarray(seq, dtype=np.int64)


def _lines(text: str) -> Iterator[tuple[int, int, str]]:
    """(start, end, line) of every line that is not blank."""
    at = 0
    for line in text.split("\n"):
        if line.strip():
            yield at, at + len(line), line
        at += len(line) + 1


def _unit_repeats(
    text: str,
    units: Iterable[tuple[int, int, str]],
    max_period: int,
    min_count: int,
    level: Literal["line", "row"] | None = None,
) -> Iterator[Repeat]:
    """Repetitions over lines or rows, compared without regard to blank space."""
    ids: dict[str, int] = {}
    units = list(units)
    codes = np.array([ids.setdefault(" ".join(unit.split()), len(ids)) for _, _, unit in units], np.int64)
    for p, a, b in periodic_runs(codes, max_period=max_period, min_count=min_count, min_length=min_count):
        count = (b - a) // p
        all_rows = all(_ROW_LINE.match(unit) for _, _, unit in units[a : a + p])
        yield Repeat(p, count, units[a][0], units[a + count * p - 1][1], level or ("row" if all_rows else "line"))


class LoopGuard:
    """Watches a growing token sequence by the same rules; a few microseconds a token.

    Tokens are compared with those up to ``max_period`` before them. With ``decode``, every TEXT_EVERY tokens the text
    of the last TEXT_WINDOW tokens is searched too, which sees loops of lines and rows and loops that only count.
    The answer depends on the tokens alone, not on how many come in one push.

    Args:
        max_period: longest unit in tokens.
        decode: token ids -> text; see :func:`find_loop`.
    """

    def __init__(self, *, max_period: int = MAX_PERIOD, decode: Decode | None = None) -> None:
        self._decode = decode
        self._periods = np.arange(1, max_period + 1)
        self._tokens = np.full(max_period + 1024, -1, np.int64)
        self._size = 0
        self._equal = np.zeros(max_period, np.int64)  # [p - 1]: how long each token has equalled the one p before it
        cover = (TOKENS_COVERED if decode is None else MIN_LENGTH) - self._periods
        self._due = np.maximum((MIN_COUNT - 1) * self._periods, cover)  # equal stretch at which to look at a period
        self._first_due = self._due.copy()

    def push(self, token_ids: Iterable[int]) -> Repeat | None:
        """Add committed tokens; the loop at the tail as soon as there is one (period, start, end in tokens)."""
        for token in token_ids:
            found = self._push(int(token))
            if found:
                return found
        return None

    def _push(self, token: int) -> Repeat | None:
        if self._size == len(self._tokens):
            self._tokens = np.concatenate([self._tokens, np.full(self._size, -1, np.int64)])
        n, width = self._size, min(self._size, len(self._periods))
        same = self._tokens[n - width : n][::-1] == token
        self._tokens[n] = token
        self._size += 1
        np.copyto(self._due[:width], self._first_due[:width], where=~same)
        self._equal[:width] = (self._equal[:width] + 1) * same
        ripe = self._equal >= self._due
        found = self._look(np.flatnonzero(ripe)) if ripe.any() else None
        if found is None and self._decode and self._size % TEXT_EVERY == 0:
            return self._look_at_text(self._decode)
        return found

    def _look(self, indices: np.ndarray) -> Repeat | None:
        """Judge the periods whose repetition has become long enough; put off those that may go on."""
        for i in indices.tolist():
            period, start = i + 1, self._size - int(self._equal[i]) - i - 1
            count = (self._size - start) // period
            if self._decode is None:
                return Repeat(period, count, start, self._size, "item")
            unit = self._decode(self._tokens[start + period : start + 2 * period].tolist())
            run = self._decode(self._tokens[start : self._size].tolist()) if "\n" not in unit else ""
            if is_loop(unit, count, run=run):
                return Repeat(period, count, start, self._size, "item")
            self._due[i] = max(copies_allowed(unit) - 1, count + 1) * period
        return None

    def _look_at_text(self, decode: Decode) -> Repeat | None:
        first = max(0, self._size - TEXT_WINDOW)
        tokens = self._tokens[first : self._size].tolist()
        text = decode(tokens)
        loop = find_loop(text)
        if loop is None or len(text) - loop.end > (loop.end - loop.start) // loop.count:
            return None
        start, end = (
            first + bisect_left(range(len(tokens)), at, key=lambda k: len(decode(tokens[:k])))
            for at in (loop.start, loop.end)
        )
        return Repeat(max(1, (end - start) // loop.count), loop.count, start, end, "item")
