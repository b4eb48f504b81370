"""Token boxes of a formula as KaTeX lays it out, measured in one persistent headless Chromium page.

Every character has a box; so have the parts that are drawn without characters (fraction bars, radicals, over- and
underlines, stretchy accents), which a comparison of characters alone would miss. System fonts, 24 px, display mode.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
from functools import lru_cache
from typing import Any

from jocr.errors import ConfigError, EngineError, MarkupError, UnscoredError
from jocr.evaluation.omnidocbench.cdm import Token
from jocr.markup import katex

MAX_CHARS = 8000
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")

_MEASURE = r"""
(latex) => {
  const host = document.getElementById("host");
  host.textContent = "";
  try {
    katex.render(latex, host, {displayMode: true, throwOnError: true, strict: "ignore", output: "html",
                               maxExpand: 1000, maxSize: 100});
  } catch (error) { return {error: error.message}; }
  const out = [], origin = host.getBoundingClientRect();
  const add = (text, r) => out.push([text, r.left - origin.left, r.top - origin.top, r.width, r.height]);
  const fonts = ["mathbf", "boldsymbol", "mathbb", "mathcal", "mathscr", "mathfrak", "mathsf", "mathtt", "mathit",
                 "mathrm", "mathnormal", "textbf", "textit", "texttt", "textsf"];
  const font = (node) => {
    for (let e = node; e && e !== host; e = e.parentElement)
      for (const name of fonts) if (e.classList.contains(name)) return name;
    return "main";
  };
  const lines = ["frac-line", "overline-line", "underline-line"];
  const walk = (node) => {
    if (node.nodeType === Node.TEXT_NODE) {
      const range = document.createRange();
      const f = font(node.parentElement);
      let at = 0;
      for (const c of node.data) {
        if (!/[\s\u200b-\u200d\u2060-\u2064\ufeff]/.test(c)) {
          range.setStart(node, at); range.setEnd(node, at + c.length);
          add("[" + f + "]" + c, range.getBoundingClientRect());
        }
        at += c.length;
      }
      return;
    }
    if (node.tagName === "svg" || node.tagName === "SVG") {
      const near = node.closest(".sqrt") ? "sqrt" : "stretchy:" + (node.querySelector("path") ?
        node.querySelector("path").getAttribute("d").slice(0, 24) : "");
      add(near, node.getBoundingClientRect());
      return;
    }
    if (node.classList) for (const name of lines) if (node.classList.contains(name))
      add(name, node.getBoundingClientRect());
    for (const child of node.childNodes) walk(child);
  };
  walk(host);
  return {tokens: out};
}
"""


class KatexPage:
    """One browser and one page, closed at exit. Not for use from several threads."""

    def __init__(self) -> None:
        executable = find_browser()
        try:
            from playwright.sync_api import Error, sync_playwright
        except ImportError as e:
            raise ConfigError("formula boxes need playwright: pip install 'jocr[boxes]'") from e
        try:
            self._playwright = sync_playwright().start()
            self._browser = self._playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        except Error as e:
            raise EngineError(f"cannot start {executable}: {e}") from e
        atexit.register(self.close)
        self._page: Any = self._browser.new_page(viewport={"width": 800, "height": 400})
        self._page.set_content(
            "<!doctype html><style>" + re.sub(r"@font-face\{[^}]*\}", "", katex.source("katex.min.css")) + "</style>"
            '<div id="host" style="font-size:24px;position:absolute;left:20px;top:20px;white-space:nowrap"></div>'
        )
        self._page.add_script_tag(content=katex.source())
        self.tokens = lru_cache(maxsize=20_000)(self._tokens)

    def _tokens(self, latex: str) -> tuple[Token, ...]:
        """Tokens in document order. Raises MarkupError where KaTeX refuses, UnscoredError past MAX_CHARS."""
        if len(latex) > MAX_CHARS:
            raise UnscoredError(f"formula of {len(latex)} characters, cap {MAX_CHARS}")
        found = self._page.evaluate(_MEASURE, latex)
        if "error" in found:
            raise MarkupError(str(found["error"]))
        return tuple(Token(str(t), float(x), float(y), float(w), float(h)) for t, x, y, w, h in found["tokens"])

    def close(self) -> None:
        """Idempotent."""
        atexit.unregister(self.close)
        self._browser.close()
        self._playwright.stop()


def find_browser() -> str:
    """Path of a Chromium: ``$JOCR_CHROMIUM`` or the first known name on the path. Raises ConfigError."""
    named = os.environ.get("JOCR_CHROMIUM")
    for name in (named,) if named else BROWSERS:
        if (path := shutil.which(name)) is not None:
            return path
    raise ConfigError("no Chromium found: apt-get install chromium-headless-shell, or set JOCR_CHROMIUM")
