"""KaTeX (0.16.21, MIT, shipped as package data) in process through V8: LaTeX -> presentation MathML."""

from __future__ import annotations

import atexit
import os
import re
import threading
from functools import lru_cache
from importlib import resources
from typing import Any

from jocr.errors import ConfigError, MarkupError, UnscoredError

VERSION = "0.16.21"
TIMEOUT_S = 2.0
MAX_CHARS = 20_000
MAX_MEMORY = 512 << 20  # bytes of V8 heap

_RENDER = """
function jocrMathml(latex, display) {
  try {
    return "+" + katex.renderToString(latex, {
      output: "mathml", displayMode: display, throwOnError: true, strict: "ignore", maxExpand: 1000, maxSize: 100});
  } catch (error) { return "-" + error.message; }
}
"""
_ANNOTATION = re.compile(r"<annotation\b.*?</annotation>", re.DOTALL)
_MATH = re.compile(r"<math\b.*</math>", re.DOTALL)
_INVISIBLE = re.compile(r"[\s\u200b\u200c\u200d\u2060-\u2064\ufeff]+")

_lock = threading.Lock()
_contexts: dict[int, Any] = {}  # process id -> V8 context; a forked child makes its own


def source(name: str = "katex.min.js") -> str:
    """The text of a file of the shipped KaTeX distribution (``katex.min.js``, ``katex.min.css``)."""
    return (resources.files("jocr") / "data" / "katex" / name).read_text("utf-8")


@atexit.register
def close() -> None:
    """Free V8 before the interpreter ends (a context still alive then hangs its own destructor)."""
    context = _contexts.pop(os.getpid(), None)
    if context is not None:
        context.close()


def _context() -> Any:
    context = _contexts.get(os.getpid())
    if context is None:
        try:
            from py_mini_racer import MiniRacer
        except ImportError as error:
            raise ConfigError("formulas need mini-racer: pip install 'jocr[eval]'") from error
        context = MiniRacer()
        context.set_hard_memory_limit(MAX_MEMORY)
        context.eval(source())
        context.eval(_RENDER)
        _contexts.clear()
        _contexts[os.getpid()] = context
    return context


@lru_cache(maxsize=8192)
def _render(latex: str, display: bool, timeout_s: float) -> str:
    """``+`` and KaTeX's output, or ``-`` and its message. A timeout drops the context, so the next call starts fresh."""
    from py_mini_racer import JSEvalException, JSTimeoutException

    with _lock:
        try:
            return str(_context().call("jocrMathml", latex, display, timeout_sec=timeout_s))
        except JSTimeoutException as error:
            _contexts.clear()
            raise UnscoredError(f"KaTeX passed {timeout_s:g} s") from error
        except JSEvalException as error:
            _contexts.clear()
            return "-" + str(error).splitlines()[0]


def to_mathml(latex: str, *, display: bool = True, timeout_s: float = TIMEOUT_S) -> str:
    """``<math>...</math>`` as KaTeX writes it, without the annotation that repeats the source.

    Raises:
        MarkupError: KaTeX does not parse the formula.
        UnscoredError: it took longer than ``timeout_s`` or is longer than MAX_CHARS.
    """
    if len(latex) > MAX_CHARS:
        raise UnscoredError(f"formula of {len(latex)} characters, cap {MAX_CHARS}")
    out = _render(latex, display, timeout_s)
    found = _MATH.search(out)
    if out[:1] != "+" or found is None:
        raise MarkupError(out[1:] or "KaTeX returned nothing")
    return _ANNOTATION.sub("", found[0])


def presentation(latex: str) -> str:
    """What stands inside ``<semantics>`` of :func:`to_mathml`, without blanks and invisible characters."""
    inner = re.search(r"<semantics>(.*)</semantics>", to_mathml(latex), re.DOTALL)
    return _INVISIBLE.sub("", inner[1] if inner else "")
