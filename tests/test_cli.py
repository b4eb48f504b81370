"""The command as a whole: instant help, one sentence for an error, the exit codes."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from jocr import cli
from jocr.config import load
from jocr.errors import ConfigError, EngineError

EXAMPLES = Path(__file__).resolve().parents[1] / "jocr" / "data" / "examples"
HEAVY = ("torch", "ray", "transformers", "pyarrow", "numpy", "PIL", "vllm", "pydantic", "boto3")


def main(capsys, *argv):
    """Run ``jocr argv``; (exit code, stdout, stderr)."""
    old, sys.argv = sys.argv, ["jocr", *map(str, argv)]
    handlers = {name: signal.getsignal(name) for name in (signal.SIGTERM, signal.SIGHUP)}
    try:
        with pytest.raises(SystemExit) as stopped:
            cli.main()
    finally:
        sys.argv = old
        for name, handler in handlers.items():
            signal.signal(name, handler)
    done = capsys.readouterr()
    return stopped.value.code, done.out, done.err


def test_help_is_instant_and_imports_nothing_heavy():
    code = (
        "import sys, time\n"
        "from jocr import cli\n"
        "sys.argv = ['jocr', '--help']\n"
        "try: cli.main()\n"
        "except SystemExit as stop: assert not stop.code\n"
        f"loaded = [name for name in {HEAVY} if name in sys.modules]\n"
        "print('LOADED', loaded, 'SECONDS', time.process_time())"
    )
    assert min(_seconds(code) for _ in range(3)) < 0.3


def _seconds(code: str) -> float:
    """CPU time of the whole process, interpreter included: what help costs on a machine that is not busy."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "Archive pages to trustworthy Markdown" in done.stdout
    assert "LOADED [] " in done.stdout
    return float(done.stdout.rsplit(" ", 1)[-1])


def commands(app=cli.app, prefix=()):
    """Every command of the program, as words."""
    for info in app.registered_commands:
        yield (*prefix, info.name or info.callback.__name__.replace("_", "-"))
    for group in app.registered_groups:
        yield from commands(group.typer_instance, (*prefix, group.name))


@pytest.mark.parametrize("words", sorted(commands()), ids=" ".join)
def test_every_command_has_help(words):
    done = CliRunner().invoke(cli.app, [*words, "--help"])
    assert done.exit_code == 0
    assert "Usage" in done.output


def test_the_commands_are_those_promised():
    assert {" ".join(words) for words in commands()} == {
        "parse",
        "model inspect",
        "score olmocr-bench",
        "score omnidocbench",
        "score vectors",
        "score loops",
        "reward",
        "bench decode",
        "bench read",
        "bench score",
        "bench chaos",
        "bench parse",
        "synth",
    }


def test_parse_says_what_it_did(tmp_path, capsys):
    out = tmp_path / "out"
    code, stdout, stderr = main(capsys, "parse", EXAMPLES / "annual-report.pdf", "--out", out, "--model", "fake")
    assert code == 0
    assert "2 pages of 1 documents: 2 ok" in stdout
    assert str(out / "report.html") in stdout
    assert stderr == ""  # no progress where nobody watches
    assert json.loads((out / "run.json").read_text())["counts"]["ok"] == 2


def test_fail_above_gives_three(tmp_path, capsys):
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.4\nnothing follows")
    argv = ["parse", tmp_path / "broken.pdf", EXAMPLES / "harbour.png", "--model", "fake", "--set", "report.pages=0"]
    assert main(capsys, *argv, "--out", tmp_path / "a", "--fail-above", "0.5")[0] == 0
    assert main(capsys, *argv, "--out", tmp_path / "b", "--fail-above", "0.4")[0] == 3
    assert (tmp_path / "b" / "report.html").exists()


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["parse"], "--out"),
        (["parse", "--out", "OUT"], "name at least one"),
        (["parse", "/nowhere/at/all", "--out", "OUT"], "/nowhere/at/all"),
        (["parse", "EXAMPLES", "--out", "OUT", "--pages", "5-1"], "counted from 1"),
        (["parse", "EXAMPLES", "--out", "OUT", "--draft-depth", "9"], "model.depth"),
        (["parse", "EXAMPLES", "--out", "OUT", "--fail-above", "2"], "fail_above"),
        (["parse", "EXAMPLES", "--out", "OUT", "--workers", "0"], "render.workers"),
        (["parse", "EXAMPLES", "--out", "OUT", "--set", "model.bacth=2"], "did you mean 'model.batch'"),
        (["parse", "EXAMPLES", "--out", "OUT", "--recipe", "/no.toml"], "cannot read the recipe"),
        (["parse", "EXAMPLES", "--out", "s3://bucket/x"], "local directory"),
        (["parse", "EXAMPLES", "--out", "/proc/jocr"], "--out"),
        (["parse", "EXAMPLES", "--nonsense"], "--nonsense"),
        (["nonsense"], "nonsense"),
    ],
)
def test_bad_usage_is_two_and_one_sentence(tmp_path, capsys, argv, words):
    place = {"OUT": str(tmp_path / "out"), "EXAMPLES": str(EXAMPLES)}
    code, stdout, stderr = main(capsys, *(place.get(word, word) for word in argv))
    assert code == 2
    assert words in stderr
    assert "Traceback" not in stderr
    assert stdout == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (ConfigError("wrong knob"), 2, "jocr: wrong knob"),
        (EngineError("it died"), 1, "jocr: it died"),
        (KeyboardInterrupt(), 130, "stopped"),
    ],
)
def test_errors_of_a_command(monkeypatch, capsys, error, code, words):
    def fail(target):
        raise error

    monkeypatch.setattr("jocr.model.inspect.run", fail)
    got, _, stderr = main(capsys, "model", "inspect", "nano")
    assert got == code
    assert stderr.strip().startswith("jocr: ")
    assert words in stderr
    assert stderr.strip().count("\n") == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_end_is_obeyed_in_good_order(monkeypatch, capsys, number):
    tidied = []

    def work(target):
        try:
            os.kill(os.getpid(), number)
            time.sleep(30)
        finally:
            tidied.append(target)

    monkeypatch.setattr("jocr.model.inspect.run", work)
    before = signal.signal(number, signal.SIG_DFL)  # whoever runs the tests under nohup ignores SIGHUP
    try:
        code, _, stderr = main(capsys, "model", "inspect", "nano")
    finally:
        signal.signal(number, before)
    assert (code, stderr, tidied) == (128 + number, "jocr: stopped\n", ["nano"])


def test_the_two_time_limits_are_told_apart(monkeypatch, capsys):
    given = {}
    monkeypatch.setattr("jocr.parsing.cli.run", lambda recipe, sets, options: given.update(options) or 0)
    main(capsys, "parse", "x", "--out", "y", "--render-seconds", "3", "--decode-seconds", "7")
    assert (given["render.page_seconds"], given["model.page_seconds"]) == (3, 7)


def test_pages_beyond_the_end_are_said(tmp_path, capsys):
    argv = ["parse", EXAMPLES / "annual-report.pdf", "--out", tmp_path / "out", "--model", "fake", "--pages", "9-12"]
    code, stdout, _ = main(capsys, *argv)
    assert code == 0
    assert "0 pages of 1 documents: none" in stdout
    assert "1 documents hold none of the pages asked for" in stdout
    assert json.loads((tmp_path / "out" / "run.json").read_text())["documents"][0]["pages_in_document"] == 2


def test_a_bug_is_not_dressed_up(monkeypatch):
    monkeypatch.setattr("jocr.model.inspect.run", lambda target: 1 / 0)
    monkeypatch.setattr(sys, "argv", ["jocr", "model", "inspect", "nano"])
    with pytest.raises(ZeroDivisionError):
        cli.main()


def test_a_commands_code_is_the_exit_code(monkeypatch, capsys):
    monkeypatch.setattr("jocr.model.inspect.run", lambda target: 7)
    assert main(capsys, "model", "inspect", "nano")[0] == 7


LATE = [
    (["score", "olmocr-bench", "--data", "d", "--pred", "p", "--math", "boxes"], "jocr.evaluation.olmocr_bench.run"),
    (["score", "omnidocbench", "--data", "d", "--pred", "p", "--version", "1.6"], "jocr.evaluation.omnidocbench.run"),
    (["score", "vectors", "a.jsonl", "b.jsonl"], "jocr.evaluation.vectors.run"),
    (["score", "loops", "a.jsonl"], "jocr.evaluation.loops.run"),
    (["reward", "a.md", "b.json", "--json"], "jocr.rewards.run.run"),
    (["synth", "d", "--count", "3", "--split", "heldout"], "jocr.synth.command.run"),
    (["bench", "decode", "--json", "x.json", "--pages", "2"], "jocr.evaluation.bench_decode.run"),
    (["bench", "score"], "jocr.evaluation.bench_score.run"),
    (["model", "inspect", "published"], "jocr.model.inspect.run"),
]


@pytest.mark.parametrize(("argv", "target"), LATE, ids=lambda x: x if isinstance(x, str) else None)
def test_a_command_calls_its_function_as_that_wants_to_be_called(monkeypatch, capsys, argv, target):
    """The real signature must accept the call; the work itself is replaced."""
    module, _, name = target.rpartition(".")
    function = getattr(importlib.import_module(module), name)
    calls = []

    def fake(*args, **kwargs):
        calls.append(inspect.signature(function).bind(*args, **kwargs).arguments)
        return 5

    monkeypatch.setattr(f"{module}.{name}", fake)
    code, _, stderr = main(capsys, *argv)
    assert (code, stderr) == (5, "")
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("argv", "job", "recipe"),
    [
        (["chaos", "--runs", "3", "--pages", "200", "--kills", "2"], "jobs.bench_chaos", "ChaosRecipe"),
        (["parse", "--pages", "64", "--json", "a b.json"], "jobs.bench_parse", "BenchParseRecipe"),
    ],
)
def test_a_bench_on_ray_becomes_its_button(monkeypatch, capsys, argv, job, recipe):
    """The button must know every setting it is given; what it does with them is its own tests' affair."""
    became = []
    monkeypatch.setattr("os.execv", lambda program, words: became.append(words))
    main(capsys, "bench", *argv)
    ((_, flag, module, *sets),) = became
    assert (flag, module) == ("-m", job)
    given = load(getattr(importlib.import_module(job), recipe), None, [text.removeprefix("--set=") for text in sets])
    assert given.pages == int(argv[argv.index("--pages") + 1])
    assert "a b.json" in (given.json_out or "a b.json")
