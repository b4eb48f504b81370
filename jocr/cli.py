"""``jocr``: everything one machine can do. Heavy imports happen inside the commands, so that ``--help`` is instant."""

from __future__ import annotations

import io
import signal
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from jocr.errors import ConfigError, JocrError

STOPPED = 130
HELP = {"help_option_names": ["-h", "--help"]}
app = typer.Typer(
    help="Archive pages to trustworthy Markdown.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings=HELP,
)
model_app = typer.Typer(help="Look into checkpoints.", no_args_is_help=True, context_settings=HELP)
score_app = typer.Typer(help="Score parsed pages against references.", no_args_is_help=True, context_settings=HELP)
bench_app = typer.Typer(help="Measure speed on this machine.", no_args_is_help=True, context_settings=HELP)
app.add_typer(model_app, name="model")
app.add_typer(score_app, name="score")
app.add_typer(bench_app, name="bench")

JsonOut = Annotated[Path | None, typer.Option("--json", help="Write the results as JSON to this file.")]
Html = Annotated[Path | None, typer.Option("--html", help="Write a report of the worst pages.")]
MarkdownOut = Annotated[Path | None, typer.Option("--markdown", help="Write the table as Markdown.")]
Data = Annotated[Path, typer.Option("--data", help="The benchmark's own data.")]
DType = Annotated[str | None, typer.Option(help="float32 or bfloat16 (default: what suits the machine).")]
Predictions = Annotated[Path, typer.Option("--pred", help="Folder of predicted Markdown files.")]


def main() -> None:
    """Entry point: errors a user can cause are one sentence on stderr (exit 2 for bad usage, 1 otherwise)."""
    for name in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(name) == signal.SIG_DFL:  # nohup's wish is respected
            signal.signal(name, _end)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a file name outside UTF-8 must not be what ends a run
            stream.reconfigure(errors="backslashreplace")
    try:
        code = app(standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        code = STOPPED
    except ConfigError as error:
        _stop(str(error), 2)
    except JocrError as error:
        _stop(str(error), 1)
    except Exception as error:  # click's own: usage errors know how to show themselves
        if not hasattr(error, "exit_code") or not hasattr(error, "show"):
            raise
        error.show()
        sys.exit(error.exit_code)
    if code == STOPPED:  # typer's own answer to Ctrl-C
        _stop("stopped", STOPPED)
    sys.exit(code if isinstance(code, int) else 0)


def _end(number: int, _: object) -> None:
    """A scheduler's or a lost terminal's signal ends a run like Ctrl-C: nothing stays behind."""
    _stop("stopped", 128 + number)


def _stop(message: str, code: int) -> None:
    print(f"jocr: {message}", file=sys.stderr)
    sys.exit(code)


@app.command()
def parse(
    sources: Annotated[list[str] | None, typer.Argument(metavar="SRC...", help="Files, folders, patterns.")] = None,
    out: Annotated[str | None, typer.Option("--out", "-o", help="Result directory.")] = None,
    model: Annotated[str | None, typer.Option(help="nano (default), a checkpoint directory, a hub id or fake.")] = None,
    draft_depth: Annotated[str | None, typer.Option(help="Drafted tokens a round: 0 to 5 or auto (default).")] = None,
    pages: Annotated[str | None, typer.Option(help="Pages of each document, such as 1-5,8.")] = None,
    engine: Annotated[str | None, typer.Option(help="auto (default: vLLM on CUDA), torch or vllm.")] = None,
    device: Annotated[str | None, typer.Option(help="auto (default), cpu, cuda or cuda:N.")] = None,
    workers: Annotated[int | None, typer.Option(help="Rendering processes (default 1).")] = None,
    batch: Annotated[int | None, typer.Option(help="Pages decoded at once (default 8).")] = None,
    password: Annotated[str | None, typer.Option(help="Tried on every document that asks for one.")] = None,
    fail_above: Annotated[float | None, typer.Option(help="Exit with 3 above this share of failed pages.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Token limit of one page.")] = None,
    render_seconds: Annotated[float | None, typer.Option(help="Time limit of rendering a page (default 30).")] = None,
    decode_seconds: Annotated[float | None, typer.Option(help="Time limit of decoding a page (default 600).")] = None,
    force: Annotated[bool, typer.Option("--force", help="Write into a directory that holds other files.")] = False,
    recipe: Annotated[Path | None, typer.Option(help="TOML recipe; options given here win over it.")] = None,
    sets: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Any other setting.")] = None,
) -> int:
    """Turn PDFs and images into Markdown, a page table and a report.

    Exit codes: 0 every page has its row; 1 the model or the disk failed; 2 bad usage; 3 more pages failed than
    --fail-above allows.
    """
    from jocr.parsing.cli import run

    given: dict[str, Any] = {
        "sources": sources or None,
        "out": out,
        "pages": pages,
        "fail_above": fail_above,
        "force": force or None,
        "model.name": model,
        "model.depth": draft_depth,
        "model.engine": engine,
        "model.device": device,
        "model.batch": batch,
        "model.max_tokens": max_tokens,
        "render.workers": workers,
        "render.password": password,
        "render.page_seconds": render_seconds,
        "model.page_seconds": decode_seconds,
    }
    return run(recipe, sets or [], {key: value for key, value in given.items() if value is not None})


@model_app.command("inspect")
def model_inspect(target: Annotated[str, typer.Argument(help="A checkpoint directory, nano, or published.")]) -> int:
    """Print every tensor's name and shape, tab-separated."""
    from jocr.model.inspect import run

    return run(target)


@score_app.command("olmocr-bench")
def score_olmocr_bench(
    data: Data,
    pred: Predictions,
    json_out: JsonOut = None,
    html: Html = None,
    markdown_out: MarkdownOut = None,
    math: Annotated[str, typer.Option(help="mathml, or boxes (Chromium, as the official scorer).")] = "mathml",
    force: Annotated[bool, typer.Option("--force", help="Count missing pages as empty.")] = False,
) -> int:
    """olmOCR-Bench: pass rate by category with bootstrap intervals."""
    from jocr.evaluation.olmocr_bench import run

    if math not in ("mathml", "boxes"):
        raise ConfigError(f"--math is mathml or boxes, not {math!r}")
    return run(data, pred, json_out=json_out, html=html, markdown_out=markdown_out, math=math, force=force)  # type: ignore[arg-type]


@score_app.command("omnidocbench")
def score_omnidocbench(
    data: Annotated[Path, typer.Option("--data", help="annotations.json.")],
    pred: Predictions,
    version: Annotated[str, typer.Option(help="1.5 or 1.6.")] = "1.5",
    json_out: JsonOut = None,
    html: Html = None,
    markdown_out: MarkdownOut = None,
    cdm: Annotated[str, typer.Option(help="auto, katex, none, a path to a CDM checkout, or command:...")] = "auto",
    images: Annotated[Path | None, typer.Option(help="Page images for the report.")] = None,
) -> int:
    """OmniDocBench: text, formula, table and reading-order distances."""
    from jocr.evaluation.omnidocbench import run

    return run(
        data, pred, version=version, json_out=json_out, html=html, markdown_out=markdown_out, cdm=cdm, images=images
    )


@score_app.command("vectors")
def score_vectors(files: Annotated[list[Path], typer.Argument(help="Golden vectors, JSON lines.")]) -> int:
    """Run recorded inputs of the official scorers and compare the results; exit 1 on any difference."""
    from jocr.evaluation.vectors import run

    return run(files)


@score_app.command("loops")
def score_loops(file: Annotated[Path, typer.Argument(help="JSON lines of {text, loop}.")]) -> int:
    """Precision and recall of the loop detector; exit 1 below 0.98."""
    from jocr.evaluation.loops import run

    return run(file)


@app.command()
def reward(
    prediction: Annotated[Path, typer.Argument(metavar="PRED.md", help="Predicted Markdown.")],
    reference: Annotated[Path, typer.Argument(metavar="REF.json", help="Reference sample.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    preset: Annotated[str, typer.Option(help="How terms combine: product, sum or gated.")] = "product",
) -> int:
    """Every reward term of one page, with its detail."""
    from jocr.rewards.run import run

    return run(prediction, reference, as_json, preset=preset)


@bench_app.command("decode")
def bench_decode(
    model: Annotated[str, typer.Option(help="nano, a checkpoint directory or a hub id.")] = "nano",
    json_out: JsonOut = None,
    published_size: Annotated[bool, typer.Option("--published-size", help="Random bf16 weights, 6.8 GB.")] = False,
    pages: Annotated[int, typer.Option(min=1, help="Held-out pages of each kind.")] = 12,
    repeats: Annotated[int, typer.Option(min=1, help="Alternating runs; medians are kept.")] = 3,
    engine: Annotated[str, typer.Option(help="torch, or vllm: the paper's tables 7 and 8 on this machine.")] = "torch",
    dtype: DType = None,
) -> int:
    """Greedy and speculative decoding: tokens/s, tau, acceptance, step cost, identical or not.

    Exit code 1 where speculation changed a token.
    """
    if engine not in {"torch", "vllm"}:
        raise ConfigError(f"engine {engine!r}: give torch or vllm")
    if dtype is not None and (engine == "vllm" or published_size):
        raise ConfigError("--dtype is for a checkpoint in this project's own engine")
    if engine == "vllm":
        from jocr.evaluation import bench_vllm

        return bench_vllm.run(json_path=json_out, published_size=published_size, model=model, pages=pages)
    from jocr.evaluation.bench_decode import run

    return run(
        json_path=json_out, published_size=published_size, model=model, pages=pages, repeats=repeats, dtype=dtype
    )


@bench_app.command("read")
def bench_read(
    model: Annotated[str, typer.Option(help="nano, a checkpoint directory or a hub id.")] = "nano",
    count: Annotated[int, typer.Option(min=1, help="Pages of each kind.")] = 100,
    json_out: JsonOut = None,
    dtype: DType = None,
) -> int:
    """How well a checkpoint reads synthetic pages it has never seen."""
    from contextlib import closing

    from jocr.decoding.load import load_decoder
    from jocr.evaluation.reading import run

    with closing(load_decoder(model, dtype=dtype)) as decoder:
        run(decoder, count=count, json_path=json_out)
    return 0


@bench_app.command("score")
def bench_score(json_out: JsonOut = None) -> int:
    """TEDS, rewards and benchmark tests against the reference implementations, medians of one run."""
    from jocr.evaluation.bench_score import run

    return run(json_out)


@bench_app.command("chaos")
def bench_chaos(
    runs: Annotated[int, typer.Option(min=1, help="Runs, each with kills of its own.")] = 20,
    pages: Annotated[int, typer.Option(min=60, help="Pages of the archive.")] = 2000,
    kills: Annotated[int, typer.Option(min=0, help="SIGKILLs of a run: driver, worker or node.")] = 3,
    seed: Annotated[int, typer.Option(help="Of the first run.")] = 0,
    json_out: JsonOut = None,
) -> int:
    """The archive job on a Ray cluster that is killed at random: every page must end in exactly one row.

    Exit code 1 where a run left anything else.
    """
    return _job("bench_chaos", runs=runs, pages=pages, kills=kills, seed=seed, json_out=json_out)


@bench_app.command("parse")
def bench_parse(
    pages: Annotated[int, typer.Option(min=64, help="Pages of a long run at 0 ms.")] = 6144,
    rounds: Annotated[int, typer.Option(min=1, help="Alternating rounds; medians are kept.")] = 2,
    json_out: JsonOut = None,
) -> int:
    """The archive job with the fake engine against a bare loop, and rendering against bare pypdfium2: pages/s."""
    return _job("bench_parse", pages=pages, rounds=rounds, json_out=json_out)


def _job(name: str, **settings: Any) -> int:
    """Become a button: Ray has no place in this process, and signals and the exit code need nobody in between."""
    import json
    import os

    given = {key: str(value) if isinstance(value, Path) else value for key, value in settings.items()}
    sets = [f"--set={key}={json.dumps(value)}" for key, value in given.items() if value is not None]
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", f"jobs.{name}", *sets])


@app.command()
def synth(
    out: Annotated[Path, typer.Argument(metavar="DIR", help="Where images and references go.")],
    count: Annotated[int, typer.Option(min=1, help="Pages.")] = 10,
    kind: Annotated[str, typer.Option(help="paragraph, table, formula or mixed.")] = "mixed",
    width: Annotated[int, typer.Option(min=64, help="Pixels.")] = 512,
    height: Annotated[int, typer.Option(min=64, help="Pixels.")] = 512,
    seed: Annotated[int, typer.Option(help="First page's seed.")] = 0,
    split: Annotated[str, typer.Option(help="train, heldout or heldout_font.")] = "train",
) -> int:
    """Draw synthetic pages with their exact Markdown and unit tests."""
    from jocr.synth.command import run

    return run(out, count=count, kind=kind, width=width, height=height, seed=seed, split=split)
