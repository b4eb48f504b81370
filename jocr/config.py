"""Typed recipes: every setting of the project has one name, one type and one place.

A recipe is a pydantic model read from a TOML file, changed by ``--set a.b=c``. An unknown key or a wrong type is a
``ConfigError`` that names the key and, where one is near, the key that was probably meant.
"""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from jocr.errors import ConfigError


class Recipe(BaseModel):
    """Base of all recipes and their sections: frozen, and no key it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=(), coerce_numbers_to_str=True)


R = TypeVar("R", bound=Recipe)


class ModelSettings(Recipe):
    """Which checkpoint reads the pages, and how."""

    name: str = "nano"  # "nano", "fake[:settings]", a checkpoint directory or a hub id
    depth: str = "auto"  # draft tokens per verify round: "0".."5" or "auto"
    engine: Literal["auto", "torch", "vllm"] = "auto"  # "auto": vLLM on a CUDA device where it is installed
    device: str = "auto"  # "auto", "cpu", "cuda", "cuda:1"
    dtype: Literal["float32", "bfloat16"] | None = None  # None: what suits the device
    batch: int = Field(default=8, ge=1)  # pages decoded at once
    max_tokens: int | None = Field(default=None, ge=1)  # per page; None: the checkpoint's own limit
    page_seconds: float = Field(default=600.0, gt=0)  # time limit of one page's decoding
    instruction: str | None = None  # None: the checkpoint's own instruction

    @field_validator("depth", mode="before")
    @classmethod
    def _depth(cls, value: Any) -> str:
        text = str(value)
        if text != "auto" and text not in {"0", "1", "2", "3", "4", "5"}:
            raise ValueError('must be "auto" or a number from 0 to 5')
        return text


class RenderSettings(Recipe):
    """How pages become images. Each page is rendered in a child process with these limits."""

    long_side: int | None = Field(default=None, ge=64, le=8192)  # pixels; None: what the checkpoint's tiles can use
    workers: int = Field(default=1, ge=1, le=256)  # renderer processes
    page_seconds: float = Field(default=30.0, gt=0)  # time limit of one page's rendering
    memory_mb: int = Field(default=4096, ge=256)  # memory limit of a renderer process, MiB
    password: str | None = None  # tried on every document that asks for one
    passwords: dict[str, str] = {}  # pattern of a document's uri or name (fnmatch) -> its own password; comes first


class ReportSettings(Recipe):
    """What ``report.html`` shows."""

    pages: int = Field(default=100, ge=0)  # pages in the side-by-side gallery
    image_side: int = Field(default=700, ge=64, le=2048)  # pixels of a gallery image's long side


class Rung(Recipe):
    """One step of the retry ladder: what is changed for a page that ended as one of ``on``. Rungs are tried in order
    until the page is ok; of several bad endings the best is kept."""

    on: tuple[Literal["loop", "truncated", "empty_output"], ...] = ("loop", "truncated", "empty_output")
    scale: float = Field(default=1.0, gt=0, le=4)  # times the first rendering's long side
    rotate: Literal[0, 90, 180, 270] = 0  # degrees clockwise, on top of what the page says
    max_tokens: int | None = Field(default=None, ge=1)  # None: as before
    temperature: float = Field(default=0.0, ge=0, le=2)  # above 0 the page is sampled, without a draft
    seed: int = Field(default=0, ge=0)  # of the sampling; rungs of one temperature want different ones


class OutputSettings(Recipe):
    """What the archive job writes beside the page table."""

    markdown: bool = True  # one file per document, and documents.parquet with every page's span in it
    jsonl: bool = True  # Dolma-style documents with page spans
    running_lines: Literal["keep", "drop"] = "keep"  # headers, footers and page numbers; the page table always has them


class CostSettings(Recipe):
    """What the run costs, and when to stop for it."""

    hourly_price: float | None = Field(default=None, ge=0)  # of one decoder's machine; None: no money in the report
    currency: str = "USD"
    forecast_pages: int = Field(default=200, ge=1)  # pages after which the whole is forecast
    budget: float | None = Field(default=None, gt=0)  # stop, resumably, when this much is spent


class JobSettings(Recipe):
    """How the archive job works through failures; the in-process runner does not read it."""

    attempts: int = Field(default=3, ge=1)  # starts a page gets, over all runs; 1: each page by itself
    stall_seconds: float = Field(default=900.0, gt=0)  # an engine that finishes no page for so long is replaced
    redrive: str | None = None  # a reason code: take only the pages that failed for it
    spool_gb: float = Field(default=20.0, gt=0)  # room on each node for remote files and members of containers
    member_gb: float = Field(default=4.0, gt=0)  # largest member of a container, unpacked


class RaySettings(Recipe):
    """Shape of the Ray Data job; the in-process runner does not read it."""

    decoders: int = Field(default=1, ge=1)  # decoder actors
    max_decoders: int | None = Field(default=None, ge=1)  # let the pool grow to so many; None: as many as ``decoders``
    decoder_cpus: float = Field(default=1.0, ge=0)
    decoder_gpus: float = Field(default=0.0, ge=0)
    unit: int = Field(default=256, ge=1, le=1024)  # at most so many pages are committed together; at least a quarter
    renderers: int | None = Field(default=None, ge=1)  # render tasks at a time; None: as Ray finds room
    pass_units: int = Field(default=4096, ge=1)  # units of one pass; decoders start anew after it
    blocks: int | None = Field(default=None, ge=1)  # input blocks of a pass; None: one per unit, up to a limit
    address: str | None = None  # None: start or find a local cluster; a job on a cluster needs nothing here


class ParseRecipe(Recipe):
    """Everything ``jocr parse`` and ``jobs/parse.py`` can be told."""

    sources: tuple[str, ...] = ()  # files, folders, globs
    out: str = ""  # the result directory
    pages: str | None = None  # "1-5,8": counted from 1; None: all
    fail_above: float | None = Field(default=None, ge=0, le=1)  # share of failed pages above which the exit code is 3
    force: bool = False  # write into a directory that is not a result of this program
    model: ModelSettings = ModelSettings()
    render: RenderSettings = RenderSettings()
    report: ReportSettings = ReportSettings()
    outputs: OutputSettings = OutputSettings()
    retry: tuple[Rung, ...] = ()
    cost: CostSettings = CostSettings()
    job: JobSettings = JobSettings()
    ray: RaySettings = RaySettings()


def load(
    recipe: type[R],
    path: str | Path | None = None,
    sets: Iterable[str] = (),
    given: Mapping[str, Any] | None = None,
) -> R:
    """Read ``path`` (TOML; None for defaults), apply ``sets`` (``"a.b=c"``) and ``given`` ({"a.b": c}), validate.

    Raises:
        ConfigError: unreadable file, unknown key, wrong type; the message names the key and the remedy.
    """
    data = _read(Path(path)) if path is not None else {}
    for text in sets:
        key, value = parse_set(text)
        _assign(data, key, value)
    for key, value in (given or {}).items():
        _assign(data, key, value)
    return build(recipe, data, origin=str(path) if path is not None else "settings")


def build(recipe: type[R], data: Mapping[str, Any], *, origin: str = "settings") -> R:
    """Validate ``data`` as ``recipe``; see ``load``."""
    try:
        return recipe.model_validate(dict(data))
    except ValidationError as error:
        problems = "; ".join(_explain(recipe, e) for e in error.errors())
        raise ConfigError(f"{origin}: {problems}") from None


def parse_set(text: str) -> tuple[str, Any]:
    """``"a.b=c"`` -> (``"a.b"``, value). The value is TOML where it parses as such, else the plain text."""
    key, equals, raw = text.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"--set takes KEY=VALUE, for example --set model.batch=4; got {text!r}")
    try:
        return key.strip(), tomllib.loads(f"value = {raw}")["value"]
    except tomllib.TOMLDecodeError:
        return key.strip(), raw


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read the recipe {path}: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from None


def _assign(data: dict[str, Any], key: str, value: Any) -> None:
    *sections, last = key.split(".")
    for name in sections:
        child = data.setdefault(name, {})
        if not isinstance(child, dict):
            raise ConfigError(f"--set {key}: {name!r} is a value, not a section")
        data = child
    data[last] = value


def _explain(recipe: type[BaseModel], error: Any) -> str:
    where = [str(part) for part in error["loc"]]
    dotted = ".".join(where)
    if error["type"] != "extra_forbidden":
        message = error["msg"].removeprefix("Value error, ")
        if error["type"] == "tuple_type":
            message = f"must be a list, such as [{_toml(error['input'])}]"
        return f"{dotted} = {error['input']!r}: {message[:1].lower()}{message[1:]}" if dotted else message
    near = difflib.get_close_matches(dotted, _keys(recipe), n=1, cutoff=0.4)
    near = near or [key for key in _keys(recipe) if key.rsplit(".", 1)[-1] == where[-1]][:1]
    return f"unknown key {dotted!r}" + (f"; did you mean {near[0]!r}?" if near else "")


def _toml(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str | int | float) else "..."


def _keys(recipe: type[BaseModel], prefix: str = "") -> list[str]:
    keys: list[str] = []
    for name, info in recipe.model_fields.items():
        keys.append(prefix + name)
        for kind in (info.annotation, *get_args(info.annotation)):
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                keys += _keys(kind, f"{prefix}{name}.")
    return keys
