import random
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jocr.evaluation import loops
from jocr.markup.repeats import LoopGuard, Repeat, find_loop, find_repeats

DATA = Path(__file__).parent / "data" / "loops.jsonl"


def noise(n: int, seed: int = 0) -> str:
    rng = random.Random(seed)
    return "".join(rng.choice("abcdefghij klmnopqr stuvw xyz") for _ in range(n))


@pytest.mark.parametrize("period", [20, 64, 199, 200, 333, 511, 512])
def test_evidence_of_any_period_anywhere(period: int) -> None:
    unit = "#" + noise(period - 2, period) + "!"
    page = noise(800, 1) + unit * 20 + noise(700, 2)
    assert find_loop(page) == Repeat(period, 20, 800, 800 + 20 * period, "item")


def test_lines_and_rows() -> None:
    block = "".join(f"{noise(90, i)}\n" for i in range(12))  # 1,092 characters: longer than any item period
    loop = find_loop(noise(300, 50) + "\n" + block * 6)
    assert loop is not None
    assert (loop.level, loop.period, loop.count) == ("line", 12, 6)
    rows = "".join(f"<tr><td>{noise(60, i)}</td><td>{i}</td></tr>" for i in range(9))
    loop = find_loop("<table>" + rows * 6 + "</table>")
    assert loop is not None
    assert (loop.level, loop.period, loop.count) == ("row", 9, 6)
    pipes = "".join(f"| {noise(60, i)} | {i} |\n" for i in range(9))
    loop = find_loop(pipes * 6)
    assert loop is not None
    assert (loop.level, loop.period, loop.count) == ("row", 9, 6)


def test_loop_that_only_counts() -> None:
    text = "".join(f"{i}. The seal is wanting on this deed.\n" for i in range(3, 80))
    loop = find_loop(text)
    assert loop is not None
    assert (loop.level, loop.period, loop.count, loop.start) == ("line", 1, 77, 0)
    amounts = random.Random(1)
    assert find_loop("".join(f"{i}. The seal cost {amounts.randint(1, 99)} pence.\n" for i in range(80))) is None


@pytest.mark.parametrize(
    "page",
    [
        "Chapter " + "." * 250 + " 7",
        "-" * 200,
        "| | | | |\n" * 60,
        "<tr><td></td><td></td></tr>" * 60,
        "word " * 10,
        "",
        "\n" * 500,
    ],
)
def test_what_pages_repeat_is_no_loop(page: str) -> None:
    assert find_loop(page) is None


def test_labelled_set() -> None:
    score = loops.score_loops(DATA)
    assert score.texts >= 200
    assert score.loops >= 100
    assert score.texts - score.loops >= 100
    assert min(score.precision, score.recall) >= 0.98, score.mistakes


def test_labelled_set_is_what_the_generator_writes() -> None:
    import importlib
    import json
    import sys

    sys.path.insert(0, str(DATA.parents[1]))
    try:
        make_loops = importlib.import_module("make_loops")
    finally:
        sys.path.pop(0)
    assert [json.loads(line) for line in DATA.read_text("utf-8").splitlines()] == list(make_loops.rows())


def test_score_exit_code_and_bad_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from jocr.errors import ConfigError

    file = tmp_path / "few.jsonl"
    file.write_text('{"text": "plain", "loop": true, "why": "mislabelled"}\n{"text": "plain", "loop": false}\n')
    assert loops.run(file) == 1
    assert "missed  [mislabelled]" in capsys.readouterr().out
    for bad in ("", "{}\n", '{"text": 1, "loop": true}\n', "not json\n"):
        file.write_text(bad)
        with pytest.raises(ConfigError):
            loops.score_loops(file)


def test_time_grows_linearly() -> None:
    text = noise(400_000)
    seconds = []
    for n in (100_000, 400_000):
        seconds.append(min(_timed(text[:n]) for _ in range(3)))
    assert seconds[1] < 12 * seconds[0]  # 4 times the text; wide for a busy machine, far from the 16 of a square


def _timed(text: str) -> float:
    begin = time.thread_time()
    find_loop(text)
    return time.thread_time() - begin


@given(
    st.lists(
        st.sampled_from(["ab ", "|x|\n", "<tr><td>1</td></tr>", "\n", ".", "一二", "7. a\n", "\ud800"]), max_size=80
    )
)
@settings(max_examples=60, deadline=None)
def test_any_text(parts: list[str]) -> None:
    text = "".join(parts)
    for r in find_repeats(text):
        assert 0 <= r.start < r.end <= len(text)
        assert r.count >= 4
    find_loop(text)


def decode(tokens: list[int]) -> str:
    return "".join(chr(t) for t in tokens)


def test_guard_stops_at_the_loop_and_not_before() -> None:
    guard = LoopGuard(decode=decode)
    head, unit = noise(700, 5), "the harbour board rose at noon. "
    assert guard.push(map(ord, head + unit * 5)) is None
    found = guard.push(map(ord, unit * 30))
    assert found is not None
    assert found.period == len(unit)
    assert head.endswith((head + unit)[found.start : 700])
    assert found.end < 700 + 20 * len(unit)


@given(st.integers(1, 7), st.integers(1, 60), st.integers(0, 3))
@settings(max_examples=12, deadline=None)
def test_guard_does_not_depend_on_how_tokens_arrive(chunk: int, period: int, seed: int) -> None:
    ids = [ord(c) for c in noise(100, seed) + noise(period, 9) * (2000 // period)]
    one, many = LoopGuard(decode=decode), LoopGuard(decode=decode)
    first = next((r for t in ids if (r := one.push([t]))), None)
    second = next((r for i in range(0, len(ids), chunk) if (r := many.push(ids[i : i + chunk]))), None)
    assert first is not None
    assert first == second


def test_guard_without_text_waits_for_more_evidence() -> None:
    guard = LoopGuard()
    assert guard.push([1, 2, 3] * 60) is None
    found = guard.push([1, 2, 3] * 60)
    assert found is not None
    assert (found.period, found.start) == (3, 0)


def test_guard_leaves_ledgers_alone_and_sees_counting() -> None:
    assert LoopGuard(decode=decode).push(map(ord, "| | | | | |\n" * 70)) is None
    text = "".join(f"{i}. The seal is wanting on this deed.\n" for i in range(3, 80))
    found = LoopGuard(decode=decode).push(map(ord, noise(90) + "\n" + text))
    assert found is not None
    assert abs(found.start - 91) <= 1


def test_guard_agrees_with_find_loop_on_the_labelled_set() -> None:
    """Character by character, the guard stops every item loop of the set and no honest page."""
    import json

    rows = [json.loads(line) for line in DATA.read_text("utf-8").splitlines()]
    for row in rows[::11]:
        found = LoopGuard(decode=decode).push(map(ord, row["text"][:1500]))
        if not row["loop"]:
            assert found is None, (row["why"], found)
