"""``jocr score vectors FILE.jsonl ...``: recorded inputs of the official scorers against this project's answers.

Two forms of line are known: olmOCR-Bench ``{test, md, expected}`` and OmniDocBench ``{fn, input, expected}``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from jocr.errors import ConfigError, UnscoredError

TOLERANCE = 1e-6  # for numbers anywhere in an expected value


def run(files: Sequence[Path]) -> int:
    """Check every vector; print each mismatch and ``N of M`` per file. Returns 1 if any differs, else 0.

    Raises:
        ConfigError: a file cannot be read, holds no vector, or has a line of another form.
    """
    failed = 0
    for file in map(Path, files):
        total = wrong = 0
        for number, vector in _vectors(file):
            total += 1
            got = answer(vector, f"{file}:{number}")
            if not same(got, vector["expected"]):
                wrong += 1
                print(f"{file.name}:{number}: {_name(vector)}: expected {vector['expected']!r}, got {got!r}")
        if not total:
            raise ConfigError(f"{file} holds no vectors")
        print(f"{file.name}: {total - wrong} of {total}")
        failed += wrong
    return 1 if failed else 0


def _vectors(file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        lines = file.read_text("utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {file}: {error}") from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            vector = json.loads(line)
        except json.JSONDecodeError as error:
            raise ConfigError(f"{file}:{number}: {error}") from error
        if not isinstance(vector, dict) or "expected" not in vector:
            raise ConfigError(f"{file}:{number}: a vector is an object with the key 'expected'")
        yield number, vector


def answer(vector: Mapping[str, Any], where: str) -> Any:
    """What this project says to the vector's input; an input that cannot be scored answers with the reason as text."""
    try:
        if "test" in vector and "md" in vector:
            from jocr.checks import parse_check, run_checks

            return run_checks([parse_check(vector["test"])], vector["md"])[0].passed
        if "fn" in vector and "input" in vector:
            from jocr.evaluation.omnidocbench_vectors import FUNCTIONS

            if vector["fn"] not in FUNCTIONS:
                raise ConfigError(f"{where}: unknown function {vector['fn']!r}; known: {', '.join(sorted(FUNCTIONS))}")
            return FUNCTIONS[vector["fn"]](vector["input"])
    except UnscoredError as error:
        return f"unscored: {error}"
    raise ConfigError(f"{where}: neither {{test, md, expected}} nor {{fn, input, expected}}")


def same(got: Any, expected: Any) -> bool:
    """Equality of JSON values, numbers within TOLERANCE; True is not 1."""
    if isinstance(got, bool) or isinstance(expected, bool):
        return got is expected
    if isinstance(got, int | float) and isinstance(expected, int | float):
        return abs(got - expected) <= TOLERANCE
    if isinstance(got, Mapping) and isinstance(expected, Mapping):
        return got.keys() == expected.keys() and all(same(got[k], expected[k]) for k in got)
    if isinstance(got, list | tuple) and isinstance(expected, list):
        return len(got) == len(expected) and all(map(same, got, expected))
    return bool(got == expected)


def _name(vector: Mapping[str, Any]) -> str:
    if "test" in vector:
        return f"{vector['test'].get('type')} {vector['test'].get('id')} ({vector.get('note', '')})"
    return f"{vector['fn']} {str(vector['input'])[:80]!r}"
