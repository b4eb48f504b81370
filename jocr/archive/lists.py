"""Lists of URIs as sources: ``list:URI`` of a text or Parquet file.

Text: one URI a line, each line's bytes taken as they are, so that a name may begin or end with any character, ``#`` and
spaces included. Only empty lines are passed over. Lines end with LF, or all with CR LF where the first one does; a
UTF-8 byte order mark at the start is dropped. Parquet: a column ``uri`` (text, in the stored form of
``jocr.archive.names``, or bytes) and, if wanted, ``collection``. Passwords have their place in the recipe,
``render.passwords``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import takewhile
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from jocr import storage
from jocr.archive.names import original
from jocr.errors import ConfigError

PREFIX = "list:"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def is_list(source: str) -> bool:
    return source.startswith(PREFIX)


@dataclass(frozen=True, slots=True)
class UriList:
    """A list at hand: ``path`` is a local copy of what was ``given``."""

    given: str
    path: str

    def entries(self) -> Iterator[tuple[str, str | None]]:
        """(URI, collection or None) of each line, in order."""
        return _parquet(self) if self.given.endswith(".parquet") else ((uri, None) for uri in _lines(self.path))

    def base(self) -> str:
        """The deepest folder above all of them; names are relative to it.

        Raises:
            ConfigError: the list is empty or no list, or names what no file can be.
        """
        common: list[str] | None = None
        for uri, _ in self.entries():
            self._check(uri)
            parts = _parts(uri)[:-1]
            if common is None:
                common = parts
            elif parts[: len(common)] != common:
                equal = takewhile(lambda pair: pair[0] == pair[1], zip(common, parts, strict=False))
                common = [part for part, _ in equal]
        if common is None:
            raise ConfigError(f"{self.given!r} names no file; write one URI a line")
        text = "/".join(common)
        return text if text.startswith("s3://") else "" if text in {"s3:", "s3:/"} else text or "/"

    def _check(self, uri: str) -> None:
        if "\0" in uri:
            raise ConfigError(f"{self.given!r} holds zero bytes, as UTF-16 text does; save it as UTF-8")
        if storage.is_s3(uri):
            if not uri.removeprefix("s3://").partition("/")[2]:
                raise ConfigError(f"{self.given!r} names {uri!r}, which is no object; write s3://bucket/key")
        elif _SCHEME.match(uri) and not os.path.lexists(uri):
            raise ConfigError(f"{self.given!r} names {uri!r}; only local paths and s3:// URIs can be read")


@contextmanager
def open_list(source: str) -> Iterator[UriList]:
    """The list that a source ``list:URI`` names; a remote one is copied for as long as the context lasts.

    Raises:
        ConfigError: it is neither text nor Parquet by its name.
        FileNotFoundError, StorageError: it cannot be read.
    """
    uri = source.removeprefix(PREFIX)
    if not uri.endswith((".txt", ".parquet")):
        raise ConfigError(f"{source!r}: a list of URIs ends in .txt or .parquet; rename it")
    if not storage.is_s3(uri):
        if not os.path.isfile(uri):
            raise ConfigError(f"no such list: {uri!r} (looked in {os.getcwd()}); check the path")
        yield UriList(source, uri)
        return
    with TemporaryDirectory(prefix="jocr-list-") as folder:
        path = os.path.join(folder, "list")
        storage.download(uri, path)
        yield UriList(source, path)


def _parts(uri: str) -> list[str]:
    return (uri if storage.is_s3(uri) else os.path.abspath(uri)).split("/")


def _lines(path: str) -> Iterator[str]:
    with open(path, "rb") as file:
        if file.read(3) != b"\xef\xbb\xbf":
            file.seek(0)
        windows: bool | None = None
        for raw in file:
            line = raw.removesuffix(b"\n")
            if windows is None:
                windows = raw.endswith(b"\r\n")
            if windows:
                line = line.removesuffix(b"\r")
            if line:
                yield os.fsdecode(line)


def _parquet(given: UriList) -> Iterator[tuple[str, str | None]]:
    try:
        file = pq.ParquetFile(given.path)
    except (pa.ArrowInvalid, OSError) as error:
        raise ConfigError(f"{given.given!r} is not a Parquet file: {error}") from None
    columns = set(file.schema_arrow.names)
    if "uri" not in columns:
        raise ConfigError(f"{given.given!r} has no column uri; it has {', '.join(sorted(columns))}")
    if "password" in columns:
        raise ConfigError(
            f"{given.given!r} has a column password, which would end up beside the results; "
            "drop it and give the passwords as render.passwords"
        )
    wanted = [name for name in ("uri", "collection") if name in columns]
    for name in wanted:
        kind = file.schema_arrow.field(name).type
        if not _is_text(kind.value_type if pa.types.is_dictionary(kind) else kind, binary=name == "uri"):
            raise ConfigError(f"{given.given!r}: its column {name} holds {kind}; make it text")
    for batch in file.iter_batches(batch_size=4096, columns=wanted):
        uris = batch["uri"].to_pylist()
        collections = batch["collection"].to_pylist() if "collection" in columns else [None] * len(uris)
        yield from ((_text(uri), kind) for uri, kind in zip(uris, collections, strict=True) if uri)


def _is_text(kind: pa.DataType, *, binary: bool) -> bool:
    types = pa.types
    text = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind) or types.is_null(kind)
    return text or (binary and (types.is_binary(kind) or types.is_large_binary(kind)))


def _text(value: Any) -> str:
    return os.fsdecode(value) if isinstance(value, bytes) else original(value)
