"""Where CDM values come from: KaTeX boxes in a browser (``cdm_katex``), or a real CDM the user has (``cdm``).

Both are gated: a formula against itself must score exactly 1, or the run stops. A broken toolchain (the usual one:
ImageMagick 6 rasters in grey and every F1 becomes 0 silently) is thereby an error and never a score.
"""

from __future__ import annotations

import importlib.util
import json
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from jocr.errors import ConfigError, EngineError, MarkupError, UnscoredError
from jocr.evaluation.omnidocbench import cdm

PROBES = (r"E=mc^2", r"\frac{a+b}{\sqrt{x_i}}", r"\sum_{i=1}^{n} \alpha_i \hat{y}")


class Backend(Protocol):
    """A source of CDM values; ``name`` is the metric's name in every result."""

    name: str

    def score(self, reference: str, prediction: str) -> float:
        """F1 in [0, 1] of two formulas without delimiters. Raises UnscoredError where it cannot say."""


def gate(backend: Backend) -> None:
    """Raises EngineError unless CDM(x, x) is exactly 1 for every probe."""
    for probe in PROBES:
        try:
            value = backend.score(probe, probe)
        except UnscoredError as e:
            raise EngineError(f"{backend.name} cannot score {probe!r} against itself: {e}") from e
        if value != 1.0:
            raise EngineError(
                f"{backend.name}({probe!r}, itself) = {value}, not 1: its toolchain is broken (for the real CDM the "
                "usual cause is ImageMagick 6; version 7 and a PDF-permitting policy are needed)"
            )


class KatexBoxes:
    """The surrogate: KaTeX boxes through Chromium. ``boxes`` maps LaTeX to tokens and raises MarkupError on a formula
    KaTeX refuses."""

    name = "cdm_katex"

    def __init__(self, boxes: Any) -> None:
        self._boxes = boxes

    def score(self, reference: str, prediction: str) -> float:
        if reference == prediction:  # still drawn, so that the gate tests the drawing
            tokens = self._draw(reference)
            return cdm.score(tokens, tokens)
        expected = self._draw(reference)
        try:
            found = self._boxes(prediction)
        except MarkupError:
            return 0.0  # a prediction that cannot be drawn shows nothing
        return cdm.score(expected, found)

    def _draw(self, latex: str) -> Sequence[cdm.Token]:
        try:
            tokens: Sequence[cdm.Token] = self._boxes(latex)
        except MarkupError as e:
            raise UnscoredError(f"KaTeX cannot draw the reference: {e}") from e
        return tokens


class RealCommand:
    """A command that reads ``{"gt": ..., "pred": ...}`` on stdin and prints F1 as a number (or JSON with
    ``F1_score``)."""

    name = "cdm"

    def __init__(self, command: str, timeout_s: float = 120.0) -> None:
        self._command, self._timeout_s = shlex.split(command), timeout_s

    def score(self, reference: str, prediction: str) -> float:
        query = json.dumps({"gt": reference, "pred": prediction})
        try:
            done = subprocess.run(
                self._command, input=query, capture_output=True, text=True, timeout=self._timeout_s, check=False
            )
        except subprocess.TimeoutExpired as e:
            raise UnscoredError(f"CDM passed {self._timeout_s:g} s") from e
        except OSError as e:
            raise EngineError(f"cannot run the CDM command {self._command[0]!r}: {e}") from e
        if done.returncode:
            raise UnscoredError(f"the CDM command ended with {done.returncode}: {done.stderr[-300:]}")
        return _f1(done.stdout.strip().splitlines()[-1] if done.stdout.strip() else "")


class RealModule:
    """OmniDocBench's own ``cdm_metric.py`` at a path the user gives; its class ``CDM`` is called as upstream does."""

    name = "cdm"

    def __init__(self, path: Path) -> None:
        file = path / "cdm_metric.py" if path.is_dir() else path
        spec = importlib.util.spec_from_file_location("cdm_metric", file)
        if spec is None or spec.loader is None or not file.is_file():
            raise ConfigError(f"no CDM module at {file}")
        sys.path.insert(0, str(file.parent))
        try:
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            self._metric = module.CDM()
        except Exception as e:  # whatever the user's module raises, the remedy is the user's
            raise EngineError(f"the CDM module {file} does not load: {e!r}") from e
        finally:
            sys.path.remove(str(file.parent))

    def score(self, reference: str, prediction: str) -> float:
        try:
            found = self._metric.evaluate(reference, prediction, "jocr")
        except Exception as e:
            raise UnscoredError(f"the CDM module failed: {e!r}") from e
        return _f1(json.dumps(found) if isinstance(found, dict) else str(found))


def _f1(text: str) -> float:
    try:
        value = json.loads(text)
        return float(value["F1_score"] if isinstance(value, dict) else value)
    except (ValueError, KeyError, TypeError) as e:
        raise UnscoredError(f"CDM printed {text[:80]!r} instead of a number") from e


def open_backend(choice: str) -> tuple[Backend | None, str]:
    """The gated backend for ``choice`` and, where there is none, the reason.

    ``auto``: KaTeX boxes where Chromium is found; ``katex``: the same, but required; ``none``; otherwise the real CDM:
    a path to its ``cdm_metric.py`` (or folder), or ``command:...``.
    """
    if choice == "none":
        return None, "switched off"
    if choice in ("auto", "katex"):
        try:
            backend: Backend = KatexBoxes(_katex_boxes())
        except (ConfigError, EngineError, ImportError) as e:
            if choice == "katex":
                raise
            return None, f"no KaTeX boxes: {e}"
    elif choice.startswith("command:"):
        backend = RealCommand(choice.removeprefix("command:"))
    else:
        backend = RealModule(Path(choice))
    gate(backend)
    return backend, ""


def _katex_boxes() -> Any:
    from jocr.evaluation.omnidocbench.katex_boxes import KatexPage

    return KatexPage().tokens
