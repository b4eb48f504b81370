"""KaTeX (0.16.21, MIT, shipped as package data) in process through V8: LaTeX -> presentation MathML."""

from __future__ import annotations

import atexit
import json
import os
import re
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib import resources
from typing import Any

from jocr.errors import ConfigError, MarkupError, UnscoredError

VERSION = "0.16.21"
TIMEOUT_S = 2.0
MAX_CHARS = 20_000
MAX_OUTCOMES = 8192
MAX_MEMORY = 512 << 20  # bytes of V8 heap

_RENDER = """
function jocrMathml(request) {
  const [formulas, display] = JSON.parse(request);
  return JSON.stringify(formulas.map(latex => {
    try {
      return "+" + katex.renderToString(latex, {
        output: "mathml", displayMode: display, throwOnError: true, strict: "ignore", maxExpand: 1000, maxSize: 100});
    } catch (error) { return "-" + error.message; }
  }));
}
"""
_ANNOTATION = re.compile(r"<annotation\b.*?</annotation>", re.DOTALL)
_MATH = re.compile(r"<math\b.*</math>", re.DOTALL)
_INVISIBLE = re.compile(r"[\s\u200b\u200c\u200d\u2060-\u2064\ufeff]+")

_lock = threading.Lock()
_outcomes: dict[tuple[str, bool], str] = {}  # (formula, display) -> what KaTeX said; the oldest leave first
_contexts: dict[int, Any] = {}  # process id -> V8 context


@atexit.register
def close() -> None:
    """Free V8 before the interpreter ends (a context still alive then hangs its own destructor)."""
    context = _contexts.pop(os.getpid(), None)
    if context is not None:
        context.close()


def source(name: str = "katex.min.js") -> str:
    """The text of a file of the shipped KaTeX distribution (``katex.min.js``, ``katex.min.css``)."""
    return (resources.files("jocr") / "data" / "katex" / name).read_text("utf-8")


def _context() -> Any:
    """This process's context. V8 does not survive ``fork``: a child of a process that used it must not try."""
    if os.getpid() not in _contexts:
        if _contexts:
            raise ConfigError("KaTeX ran before this process was forked; start workers with 'spawn' or 'forkserver'")
        with ThreadPoolExecutor(1) as pool:  # inside a running event loop mini-racer would tie itself to that loop
            _contexts[os.getpid()] = pool.submit(_start).result()
    return _contexts[os.getpid()]


def _start() -> Any:
    try:
        from py_mini_racer import MiniRacer
    except ImportError as error:
        raise ConfigError("formulas need mini-racer: pip install 'jocr[eval]'") from error
    context = MiniRacer()
    context.set_hard_memory_limit(MAX_MEMORY)
    context.eval(source())
    context.eval(_RENDER)
    return context


def prepare(formulas: Iterable[str], *, display: bool = True, timeout_s: float = TIMEOUT_S) -> None:
    """Render many formulas in one call and remember the outcomes: cheaper than one call each.

    A batch that passes the time limit is left to :func:`to_mathml`, which then says which formula it was.
    """
    wanted = [f for f in dict.fromkeys(formulas) if len(f) <= MAX_CHARS and (f, display) not in _outcomes]
    if len(wanted) > 1:
        with suppress(UnscoredError):
            _render(wanted, display, timeout_s)


def _render(formulas: list[str], display: bool, timeout_s: float) -> list[str]:
    """For each formula ``+`` and KaTeX's output, or ``-`` and its message."""
    with _lock:
        context = _context()
        from py_mini_racer import JSEvalException, JSOOMException, JSTimeoutException

        try:
            out = context.call("jocrMathml", json.dumps([formulas, display]), timeout_sec=timeout_s)
        except JSTimeoutException as error:
            raise UnscoredError(f"KaTeX passed {timeout_s:g} s") from error
        except (JSOOMException, JSEvalException) as error:
            close()
            raise UnscoredError(f"KaTeX stopped: {str(error).splitlines()[0]}") from error
        outcomes: list[str] = json.loads(str(out))
        for formula, outcome in zip(formulas, outcomes, strict=True):
            _outcomes[formula, display] = outcome
        while len(_outcomes) > MAX_OUTCOMES:
            _outcomes.pop(next(iter(_outcomes)))
        return outcomes


def to_mathml(latex: str, *, display: bool = True, timeout_s: float = TIMEOUT_S) -> str:
    """``<math>...</math>`` as KaTeX writes it, without the annotation that repeats the source.

    Raises:
        MarkupError: KaTeX does not parse the formula.
        UnscoredError: it took longer than ``timeout_s`` or is longer than MAX_CHARS.
    """
    if len(latex) > MAX_CHARS:
        raise UnscoredError(f"formula of {len(latex)} characters, cap {MAX_CHARS}")
    out = _outcomes.get((latex, display)) or _render([latex], display, timeout_s)[0]
    found = _MATH.search(out)
    if out[:1] != "+" or found is None:
        raise MarkupError(out[1:] or "KaTeX returned nothing")
    return _ANNOTATION.sub("", found[0])


def presentation(latex: str) -> str:
    """What stands inside ``<semantics>`` of :func:`to_mathml`, without blanks and invisible characters."""
    inner = re.search(r"<semantics>(.*)</semantics>", to_mathml(latex), re.DOTALL)
    return _INVISIBLE.sub("", inner[1] if inner else "")
