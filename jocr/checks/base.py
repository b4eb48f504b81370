"""What every kind of check shares: identity, validation, verdict."""

from __future__ import annotations

import types
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

from jocr.errors import ConfigError

if TYPE_CHECKING:
    from jocr.checks.page import PageText


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a check passed; ``detail`` says in a sentence why not (empty where it passed)."""

    passed: bool
    detail: str = ""


PASS = Verdict(True)
_HINTS: dict[type, dict[str, Any]] = {}


@dataclass(frozen=True, kw_only=True)
class Check(ABC):
    """One question to one page with the answer yes or no: a line of an olmOCR-Bench JSONL file.

    ``pdf`` is a path below the benchmark's ``pdfs/``, ``page`` counts from 1, ``id`` is unique over all files,
    ``max_diffs`` is the count of edits tolerated (each kind says how), ``checked`` what a person made of it.
    """

    kind: ClassVar[str]

    pdf: str
    page: int
    id: str
    max_diffs: int = 0
    checked: Literal["verified", "rejected"] | None = None
    url: str | None = None

    def __post_init__(self) -> None:
        self.require(bool(self.pdf), "pdf", "must name a file")
        self.require(bool(self.id), "id", "must not be empty")
        self.require(self.page >= 1, "page", "counts from 1")
        self.require(self.max_diffs >= 0, "max_diffs", "must be 0 or more")
        self.prepare()

    def prepare(self) -> None:  # noqa: B027 (kinds without needles need none)
        """Kind-specific validation and normalised needles."""

    @abstractmethod
    def run(self, page: PageText) -> Verdict:
        """The verdict on one page.

        Raises:
            UnscoredError: the answer could not be found within the limits on size and time.
        """

    def require(self, holds: bool, name: str, complaint: str) -> None:
        """Raise ConfigError naming the check and the field unless ``holds``."""
        if not holds:
            raise ConfigError(f"check {self.id!r} ({self.kind}): {name} {complaint}, got {getattr(self, name)!r}")

    def keep(self, name: str, value: Any) -> None:
        """Set a derived attribute of the frozen record."""
        object.__setattr__(self, name, value)

    def record(self) -> dict[str, Any]:
        """The check as its JSON object; fields at their defaults are left out."""
        values = {f.name: getattr(self, f.name) for f in fields(self) if f.init}
        defaults = {f.name: f.default for f in fields(self)}
        head = {"pdf": self.pdf, "page": self.page, "id": self.id, "type": self.kind}
        rest = {k: v for k, v in values.items() if k not in head and v != defaults[k]}
        return {**head, **rest}


def build(cls: type[Check], record: Mapping[str, Any]) -> Check:
    """A check of class ``cls`` from a record without its ``type``; ConfigError names an unknown or ill-typed key."""
    hints = _hints(cls)
    who = f"check {record.get('id', '?')!r} ({cls.kind})"
    if unknown := sorted(set(record) - set(hints)):
        raise ConfigError(f"{who}: unknown field {', '.join(map(repr, unknown))}; known: {', '.join(sorted(hints))}")
    needed = [f.name for f in fields(cls) if f.init and f.default is MISSING]
    if missing := [name for name in needed if name not in record]:
        raise ConfigError(f"{who}: missing field {', '.join(map(repr, missing))}")
    for name, value in record.items():
        if not _accepts(hints[name], value):
            raise ConfigError(f"{who}: field {name!r} has a value of the wrong type: {value!r}")
    return cls(**record)


def _hints(cls: type[Check]) -> dict[str, Any]:
    """The type of every field a record may give, worked out once per class."""
    if cls not in _HINTS:
        names = {f.name for f in fields(cls) if f.init}
        _HINTS[cls] = {name: hint for name, hint in get_type_hints(cls).items() if name in names}
    return _HINTS[cls]


def _accepts(hint: Any, value: Any) -> bool:
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return any(_accepts(option, value) for option in get_args(hint))
    if origin is Literal:
        return value in get_args(hint)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, hint)
