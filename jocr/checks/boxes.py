"""KaTeX in Chromium: glyph boxes as the benchmark's own scorer measures them (extra ``boxes``).

One headless browser with one page per process, driven by one thread; it starts on the first equation.
"""

from __future__ import annotations

import atexit
import os
import queue
import re
import shutil
import threading
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from jocr.checks.render import MAX_CHARS, Rendered, from_result, script
from jocr.errors import UnscoredError
from jocr.markup import katex

BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome-headless-shell")
TIMEOUT_S = 20.0  # per equation, once the browser runs
START_S = 60.0  # for the browser to start
_PAGE = """<!DOCTYPE html><html><head><style>{css}</style></head>
<body style="margin:0;width:800px;height:400px;display:flex;justify-content:center;align-items:center">
<div id="equation" style="font-size:24px;padding:10px"></div></body></html>"""

_lock = threading.Lock()
_driver: _Driver | None = None


def find_browser() -> str | None:
    """The Chromium to use: ``JOCR_CHROMIUM`` or the first of BROWSERS on the path; None where there is none."""
    named = os.environ.get("JOCR_CHROMIUM")
    return named or next((path for name in BROWSERS if (path := shutil.which(name))), None)


class _Driver(threading.Thread):
    """The thread that owns the browser: Playwright's synchronous calls must all come from one thread without a loop."""

    def __init__(self, executable: str) -> None:
        super().__init__(name="katex-boxes", daemon=True)
        self.pid = os.getpid()
        self.executable = executable
        self.failure: Exception | None = None
        self.started = threading.Event()  # the browser runs, or never will
        self.requests: queue.Queue[tuple[str, queue.Queue[Any]] | None] = queue.Queue()

    def run(self) -> None:
        try:
            from playwright.sync_api import sync_playwright

            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=self.executable, args=["--no-sandbox"])
                try:
                    self._serve(self._open(browser))
                finally:
                    browser.close()
        except Exception as error:  # whatever the browser dies of, the waiting side must hear of it
            self.failure = error
        finally:
            self.started.set()

    def _open(self, browser: Any) -> Callable[[str], Any]:
        page = browser.new_page(viewport={"width": 800, "height": 400})
        css = re.sub(r"@font-face\{[^}]*\}", "", katex.source("katex.min.css"))
        page.set_content(_PAGE.replace("{css}", css))
        page.add_script_tag(content=katex.source())
        page.add_script_tag(content=script("katex_boxes.js"))
        self.started.set()
        return lambda latex: page.evaluate("latex => jocrBoxes(latex)", latex)

    def _serve(self, render: Callable[[str], Any]) -> None:
        while (request := self.requests.get()) is not None:
            latex, answer = request
            answer.put(render(latex))

    def wait(self, answer: queue.Queue[Any]) -> Any:
        """The answer, or the exception that stands for none: too late, or the browser died."""
        limit = TIMEOUT_S if self.started.wait(START_S) else 0.0
        deadline = time.monotonic() + limit
        while time.monotonic() < deadline:
            try:
                return answer.get(timeout=0.2)
            except queue.Empty:
                if (self.failure or not self.is_alive()) and answer.empty():
                    return self.failure or RuntimeError("the browser's thread ended")
        return TimeoutError(f"no answer within {limit or START_S:g} s")


@lru_cache(maxsize=8192)
def in_browser(latex: str) -> Rendered:
    """The equation with boxes measured by Chromium.

    Raises:
        UnscoredError: no browser, it died, or it did not answer within TIMEOUT_S: never a failed check.
    """
    if len(latex) > MAX_CHARS:
        raise UnscoredError(f"formula of {len(latex)} characters, cap {MAX_CHARS}")
    with _lock:
        driver = _running()
        answer: queue.Queue[Any] = queue.Queue()
        driver.requests.put((latex, answer))
        result = driver.wait(answer)
        if isinstance(result, Exception):
            close()
            raise UnscoredError(f"glyph boxes: {type(result).__name__}: {str(result).strip()[:500]}") from result
    return from_result(result)


def _running() -> _Driver:
    global _driver
    if _driver is None or not _driver.is_alive() or _driver.pid != os.getpid():
        executable = find_browser()
        if executable is None:
            raise UnscoredError(
                "glyph boxes need a browser: apt-get install chromium-headless-shell (or JOCR_CHROMIUM)"
            )
        try:
            import playwright  # noqa: F401
        except ImportError as error:
            raise UnscoredError("glyph boxes need Playwright: pip install 'jocr[boxes]'") from error
        _driver = _Driver(executable)
        _driver.start()
    return _driver


def close() -> None:
    """End the browser, if one runs; the next equation starts another."""
    global _driver
    driver, _driver = _driver, None
    if driver is not None and driver.pid == os.getpid():
        driver.requests.put(None)
        driver.join(timeout=5)


atexit.register(close)
