"""Running lines of a document of two pages, where nothing can come back three times.

One number that counts from the first page to the second is the evidence: page numbers at the foot, or a wording with
the page's number in it. Where the pages are numbered so, an equal title in the same place of both may be a running line
too. All else is body.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from jocr.markup.running_rules import Line, bare_number, is_bare, labels, looks_running, roman

YEARS = range(1500, 2101)  # more likely a year than a page
_DRESSED = re.compile(r"[-–—~·•|]|[^\W\d_]{2,}|[^\W\d_]\.|\d\s*/\s*\d")  # dashes, a page word, a total
_PAGE_WORD = re.compile(r"(?<![\w'’])(?:page|p|pp|pag|seite|s|fol|folio|página|стр|str|side|sida|blz)\W*$")
_TOTAL = re.compile(r"\s*(?:of|von|de|sur|di|из|van|av|/)\s*")
_MARKS = " \t[](){}-–—~·•|*_.,"

Pair = tuple[Line, Line]


def running_pairs(lines: Sequence[Line], pages: Sequence[str]) -> Iterator[tuple[Pair, bool]]:
    """Running lines that both pages have, and whether they count pages.

    Args:
        lines: at the edges of both pages, outermost first.
        pages: Markdown of the two pages.
    """
    pairs = list(_alike(lines))
    counting = [pair for pair in pairs if _is_number(pair) or _has_number(pair)]
    yield from ((pair, True) for pair in counting)
    if counting:
        yield from ((pair, False) for pair in pairs if pair not in counting and _is_title(pair, pairs, pages))


def _alike(lines: Sequence[Line]) -> Iterator[Pair]:
    """Lines of one wording in the same place of both pages, up to where the pages differ."""
    for bottom in (False, True):
        first, second = ([line for line in lines if line.bottom == bottom and line.page == page] for page in (0, 1))
        for one, two in zip(first, second, strict=False):
            if one.key != two.key and not (is_bare(one.text) and is_bare(two.text)):
                break
            yield one, two


def _is_number(pair: Pair) -> bool:
    """``12`` and ``13``, apart from the text. At the head only ``- 12 -`` or ``page 12``: poems and sections bear plain
    and bracketed numbers there."""
    one, two = (bare_number(line.text) for line in pair)
    if one is None or two != one + 1 or one in YEARS or not all(line.loose for line in pair):
        return False
    return pair[0].bottom or (roman(pair[0].text) is None and bool(_DRESSED.search(pair[0].text)))


def _has_number(pair: Pair) -> bool:
    """``12 THE HISTORY`` and ``13 THE HISTORY``: a number that counts, where a page number stands in such a line."""
    one, two = pair
    if is_bare(one.text) or one.key != two.key or not all(line.loose for line in pair):
        return False
    moving = [at for at, (a, b) in enumerate(zip(one.numbers, two.numbers, strict=True)) if a != b]
    if len(moving) != 1 or two.numbers[moving[0]] != one.numbers[moving[0]] + 1 or one.numbers[moving[0]] in YEARS:
        return False
    return _at_an_end(one, moving[0]) and looks_running(one, counts=True, times=2)


def _at_an_end(line: Line, number: int) -> bool:
    """Whether a number of the line stands first, before a title in capitals, or last, behind a page word or in a line
    with a year. Psalms, lots, soldiers and log entries bear their numbers at an end too."""
    pieces = line.key.split("#")
    before, behind = pieces[number], "#".join(pieces[number + 1 :])
    if number == 0 and not before.strip(_MARKS):
        words = re.findall(r"[^\W\d_]+", line.text)
        return len(words) > 1 and line.text.upper() == line.text != line.text.lower()
    if behind.strip(_MARKS) and not (behind.endswith("#") and _TOTAL.fullmatch(behind[:-1])):
        return False
    return bool(_PAGE_WORD.search(before)) or any(value in YEARS for value in line.numbers)


def _is_title(pair: Pair, pairs: Sequence[Pair], pages: Sequence[str]) -> bool:
    """An equal line with a title's letters, in documents that are no forms; not who speaks, and no refrain."""
    one, two = pair
    words = re.findall(r"[^\W\d_]+", one.text)
    if one.text != two.text or len(words) < 2 or not looks_running(one, counts=False, times=2):
        return False
    bodies = [_without(number, text, pairs) for number, text in enumerate(pages)]
    if any(one.text.casefold() in body.casefold() for body in bodies):
        return False
    return len(set(labels(bodies[0])) & set(labels(bodies[1]))) < 2


def _without(page: int, text: str, pairs: Sequence[Pair]) -> str:
    for line in sorted((pair[page] for pair in pairs), key=lambda line: -line.start):
        text = text[: line.start] + text[line.end :]
    return text
