"""The equations of a page, found by their delimiters alone, as the math check sees them."""

from __future__ import annotations

_DELIMITERS = ((r"\(", r"\)"), (r"\[", r"\]"), ("$$", "$$"), ("$", "$"))


def equations(markdown: str, *, dollar: bool = True) -> list[str]:
    r"""The insides of ``\(..\)``, ``\[..\]`` and, with ``dollar``, ``$$..$$`` and ``$..$``.

    Each kind is taken out of the page before the next is looked for. Prices such as "$5 and $6" count as an equation.
    """
    found: list[str] = []
    for opening, closing in _DELIMITERS if dollar else _DELIMITERS[:2]:
        inside, markdown = _take(markdown, opening, closing)
        found += [text.strip() for text in inside]
    return found


def _take(text: str, opening: str, closing: str) -> tuple[list[str], str]:
    """What stands between the delimiters, and the text without those stretches. Linear time."""
    inside, kept, at = [], [], 0
    while (start := text.find(opening, at)) >= 0:
        begin = start + len(opening)
        end = text.find(closing, begin + 1)
        if end < 0:
            break
        inside.append(text[begin:end])
        kept.append(text[at:start])
        at = end + len(closing)
    return inside, "".join([*kept, text[at:]])
