"""``jocr reward PRED.md REF.json``: why a page scores as it does, term by term."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from jocr.errors import ConfigError
from jocr.records import Sample
from jocr.rewards.combine import FLOORS, PRESETS, combine
from jocr.rewards.page import Reward, score_page


def run(pred: Path, ref: Path, as_json: bool = False, *, preset: str = "product") -> int:
    """Print every term with its detail. Exit code 0, or 1 where the page is unscored. Raises ConfigError."""
    chosen = next((p for p in PRESETS if p == preset), None)
    if chosen is None:
        raise ConfigError(f"preset {preset!r}: one of {', '.join(PRESETS)}")
    sample = load_sample(ref)
    try:
        prediction = pred.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as e:
        raise ConfigError(f"cannot read the prediction {pred}: {e}") from e
    reward = score_page(prediction, sample, preset=chosen)
    print(json.dumps(_record(reward, sample), ensure_ascii=False, indent=1) if as_json else text(reward, sample))
    return 0 if reward.value is not None else 1


def load_sample(path: Path) -> Sample:
    """A sample from ``{"sample_id": ..., "markdown": ..., "checks": [...]}``; other keys of Sample are allowed."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as e:
        raise ConfigError(f"cannot read the reference {path}: {e}") from e
    if not isinstance(data, dict) or not isinstance(data.get("markdown"), str):
        raise ConfigError(f"{path}: expected an object with sample_id, markdown and checks")
    known = {"sample_id", "markdown", "checks", "kind", "uri", "meta"}
    if unknown := sorted(set(data) - known):
        raise ConfigError(f"{path}: unknown keys {', '.join(unknown)}; known are {', '.join(sorted(known))}")
    checks = data.get("checks") or []
    if not isinstance(checks, list) or not all(isinstance(c, dict) for c in checks):
        raise ConfigError(f"{path}: checks must be a list of objects")
    return Sample(
        sample_id=str(data.get("sample_id", path.stem)),
        markdown=data["markdown"],
        kind=str(data.get("kind", "")),
        uri=data.get("uri"),
        checks=tuple(checks),
        meta=dict(data.get("meta") or {}),
    )


def text(reward: Reward, sample: Sample) -> str:
    """The terms as lines a person reads: value, floor, and the evidence below."""
    lines = [f"sample {sample.sample_id}"]
    for t in reward.terms:
        if not t.applies:
            lines.append(f"  {t.name:<12} does not apply")
            continue
        floor = FLOORS.get(t.name, 0.0)
        note = f"  (floor {floor:g} counts in the product)" if t.value < floor else ""
        lines.append(f"  {t.name:<12} {t.value:.4f}{note}")
        lines += [f"      {key}: {_short(value)}" for key, value in t.detail.items() if value not in ([], {}, "")]
    if reward.value is None:
        return "\n".join([*lines, f"UNSCORED: {reward.unscored_reason}"])
    return "\n".join([*lines, *(f"reward ({p}): {combine(reward.terms, p):.4f}" for p in PRESETS)])


def _short(value: Any) -> str:
    shown = json.dumps(value, ensure_ascii=False)
    return shown if len(shown) <= 400 else shown[:397] + "..."


def _record(reward: Reward, sample: Sample) -> dict[str, Any]:
    presets = None if reward.value is None else {p: combine(reward.terms, p) for p in PRESETS}
    return {
        "sample_id": sample.sample_id,
        "value": reward.value,
        "unscored_reason": reward.unscored_reason,
        "presets": presets,
        "terms": [asdict(t) for t in reward.terms],
    }
