"""An equation as the math check compares it: presentation MathML and the glyphs with their boxes.

Two renderers give the same form: KaTeX in process with boxes worked out from its own layout (``mathml``, no browser),
and KaTeX in Chromium with measured boxes (``boxes``, what the benchmark's scorer does).
"""

from __future__ import annotations

import json
import os
import re
import threading
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any

from jocr.checks.glyphs import Glyph, split
from jocr.errors import ConfigError, UnscoredError
from jocr.markup import katex

FONT_PX = 24.0 * 1.21  # the scorer's 24 px times the factor of katex.css
TIMEOUT_S = 5.0
MAX_CHARS = 20_000
_ANNOTATION = re.compile(r"<annotation\b.*?</annotation>", re.DOTALL)
_INSIDE = re.compile(r"<semantics>(.*)</semantics>", re.DOTALL)
_INVISIBLE = re.compile(r"[\s\u200b-\u200d\u2060-\u2064\ufeff]+")


@dataclass(frozen=True, slots=True)
class Rendered:
    """What KaTeX made of one equation; ``error`` is its message where it refused (then the rest is empty)."""

    compact: str  # the MathML inside <semantics>, without annotation, blanks and invisible characters
    glyphs: tuple[Glyph, ...]
    error: str = ""


def script(name: str) -> str:
    """The text of one of the checks' own scripts (package data)."""
    return (resources.files("jocr") / "data" / "checks" / name).read_text("utf-8")


def from_result(result: dict[str, Any]) -> Rendered:
    """The rendered equation from a script's answer; spans are split in characters."""
    if "error" in result:
        return Rendered("", (), str(result["error"]) or "KaTeX refused it")
    found = _INSIDE.search(_ANNOTATION.sub("", result["mathml"]))
    inside = found[1] if found else ""
    glyphs = tuple(glyph for span in result["spans"] for glyph in split(*span))
    return Rendered(_INVISIBLE.sub("", inside), glyphs)


class _Engine:
    """One V8 context per process; a timeout or a crash drops it, so that the next equation starts afresh."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.pid = 0
        self.context: Any = None

    def call(self, latex: str) -> dict[str, Any]:
        with self.lock:
            if self.pid != os.getpid() or self.context is None:
                self.context, self.pid = self._start(), os.getpid()
            from py_mini_racer import JSEvalException

            try:
                return dict(json.loads(self.context.call("jocrLayout", latex, FONT_PX, timeout_sec=TIMEOUT_S)))
            except JSEvalException as error:
                self.context = None
                raise UnscoredError(f"KaTeX did not finish on a formula of {len(latex)} characters: {error}") from error

    def _start(self) -> Any:
        try:
            from py_mini_racer import MiniRacer
        except ImportError as error:
            raise ConfigError("math checks need mini-racer: pip install 'jocr[eval]'") from error
        context = MiniRacer()
        context.set_hard_memory_limit(katex.MAX_MEMORY)
        context.eval(katex.source())
        context.eval(script("katex_layout.js"))
        return context


_engine = _Engine()


@lru_cache(maxsize=8192)
def in_process(latex: str) -> Rendered:
    """The equation rendered by KaTeX in process, boxes worked out from KaTeX's layout.

    Raises:
        UnscoredError: too long, or KaTeX did not finish in time.
        ConfigError: mini-racer is not installed.
    """
    if len(latex) > MAX_CHARS:
        raise UnscoredError(f"formula of {len(latex)} characters, cap {MAX_CHARS}")
    return from_result(_engine.call(latex))


def render(latex: str, backend: str) -> Rendered:
    """The equation by the backend asked for (``mathml`` or ``boxes``); results are remembered."""
    if backend == "boxes":
        from jocr.checks.boxes import in_browser

        return in_browser(latex)
    return in_process(latex)
