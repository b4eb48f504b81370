"""``jocr score loops FILE.jsonl``: precision and recall of the loop detector on labelled texts."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

from jocr.errors import ConfigError
from jocr.markup.repeats import Repeat, find_loop

THRESHOLD = 0.98


@dataclass(frozen=True, slots=True)
class Mistake:
    """A text on which detector and label differ; ``found`` is the evidence of a false alarm, None for a miss."""

    line: int
    why: str
    found: Repeat | None
    head: str


@dataclass(frozen=True, slots=True)
class LoopScore:
    """Counts over a labelled file; a ratio without any case is 1."""

    texts: int
    loops: int
    true_positives: int
    mistakes: list[Mistake] = field(default_factory=list)

    @property
    def false_positives(self) -> int:
        return sum(m.found is not None for m in self.mistakes)

    @property
    def precision(self) -> float:
        fired = self.true_positives + self.false_positives
        return self.true_positives / fired if fired else 1.0

    @property
    def recall(self) -> float:
        return self.true_positives / self.loops if self.loops else 1.0


def score_loops(path: str | Path) -> LoopScore:
    """Run the detector over lines ``{"text": str, "loop": bool}`` (an optional ``why`` names the case).

    Raises:
        ConfigError: the file cannot be read or a line is not of that form.
    """
    hits, loops, texts = 0, 0, 0
    mistakes: list[Mistake] = []
    for number, text, label, why in _labelled(Path(path)):
        found = find_loop(text)
        texts += 1
        loops += label
        hits += label and found is not None
        if label != (found is not None):
            mistakes.append(Mistake(number, why, found, " ".join(text.split())[:80]))
    return LoopScore(texts, loops, hits, mistakes)


def _labelled(path: Path) -> list[tuple[int, str, bool, str]]:
    out = []
    try:
        lines = path.read_text("utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {error}") from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            text, loop = row["text"], row["loop"]
        except (ValueError, KeyError, TypeError) as error:
            raise ConfigError(f"{path}:{number}: expected an object with 'text' and 'loop' ({error!r})") from error
        if not isinstance(text, str) or not isinstance(loop, bool):
            raise ConfigError(f"{path}:{number}: 'text' must be a string and 'loop' true or false")
        out.append((number, text, loop, str(row.get("why", ""))))
    if not out:
        raise ConfigError(f"{path} holds no labelled text")
    return out


def run(path: str | Path) -> int:
    """Print every mistake and both ratios; 0 when both reach THRESHOLD, else 1."""
    score = score_loops(path)
    for m in score.mistakes:
        evidence = f"false alarm {m.found}" if m.found else "missed"
        print(f"line {m.line}: {evidence}  [{m.why}]  {m.head!r}")
    print(
        f"{score.texts} texts, {score.loops} loops: precision {score.precision:.4f}  recall {score.recall:.4f}"
        f"  ({len(score.mistakes)} mistakes; both must reach {THRESHOLD})"
    )
    return 0 if min(score.precision, score.recall) >= THRESHOLD else 1
