"""Output names: unique, reversible (the source's name plus ``.md``), and settled before anything is computed."""

from __future__ import annotations

import hashlib
import os
from collections import defaultdict
from collections.abc import Sequence
from itertools import takewhile

from jocr.errors import ConfigError

SUFFIX = ".md"
OWN = ("pages.parquet", "run.json", "report.html", ".parts")  # names at the top of a result directory
LONGEST = 240  # bytes of one path component; file systems allow 255, and a temporary name needs room


def output_names(named: Sequence[tuple[str, str]]) -> list[str]:
    """Relative Markdown path for each (uri, name), in order.

    Names that clash are told apart by as much of their location as it takes. Where that is impossible (one name is
    both a file and a folder, two members of an archive have the same path) it is a ``ConfigError``.
    """
    names = [safe_path(name) + SUFFIX for _, name in named]
    for indices in _groups(names):
        uris = [named[i][0] for i in indices]
        folders = zip(*(uri.split("/")[:-1] for uri in uris), strict=False)
        shared = sum(1 for _ in takewhile(lambda level: len(set(level)) == 1, folders))
        for i, uri in zip(indices, uris, strict=True):
            names[i] = safe_path("/".join(uri.split("/")[shared:])) + SUFFIX
    _refuse_clashes(names, [uri for uri, _ in named])
    return names


def safe_path(name: str) -> str:
    """``name`` as a relative path that stays inside its folder: no empty, ``.`` or ``..`` part, no part too long."""
    parts = [part for part in name.replace("\0", "%00").split("/") if part]
    return "/".join(_shorten(part.replace(".", "%2E") if part in {".", ".."} else part) for part in parts) or "%"


def _shorten(part: str) -> str:
    raw = os.fsencode(part)
    if len(raw) + len(SUFFIX) <= LONGEST:
        return part
    return raw[: LONGEST - 20].decode("utf-8", "ignore") + "~" + hashlib.sha256(raw).hexdigest()[:12]


def _groups(names: Sequence[str]) -> list[list[int]]:
    by_name: dict[str, list[int]] = defaultdict(list)
    for i, name in enumerate(names):
        by_name[name].append(i)
    return [indices for indices in by_name.values() if len(indices) > 1]


def _refuse_clashes(names: Sequence[str], uris: Sequence[str]) -> None:
    owner: dict[str, str] = dict.fromkeys(OWN, "the result itself")
    for name, uri in zip(names, uris, strict=True):
        if name in owner:
            raise ConfigError(
                f"{owner[name]} and {uri} would both be written to {name}; rename one, or parse them "
                "into two directories"
            )
        owner[name] = uri
    for name, uri in zip(names, uris, strict=True):
        parts = name.split("/")
        for k in range(1, len(parts)):
            folder = "/".join(parts[:k])
            if folder in owner:
                raise ConfigError(f"{owner[folder]} needs a file {folder}, and {uri} a folder of that name; rename one")
