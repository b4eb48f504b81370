"""What an inventory knows of each document, as a record and as a table, and which password it is opened with."""

from __future__ import annotations

import fnmatch
import hashlib
from dataclasses import dataclass, fields
from operator import attrgetter

import pyarrow as pa

from jocr.archive.layout import page_key
from jocr.archive.names import to_array, to_list
from jocr.config import ParseRecipe
from jocr.parsing.plan import PageSelection


@dataclass(frozen=True, slots=True)
class Document:
    """One document, or one file that is none (``skipped``)."""

    uri: str
    member: str
    name: str
    output: str
    collection: str
    etag: str
    sha256: str
    size: int
    kind: str
    pages: int  # 0 where it does not open
    reason: str  # empty where it opens
    detail: str
    skipped: bool = False


_NUMBERS = {"size": pa.int64(), "pages": pa.int32(), "skipped": pa.bool_()}
_FIELDS = [field.name for field in fields(Document)]
_values = attrgetter(*_FIELDS)
_facts = attrgetter(*(name for name in _FIELDS if name != "detail"))
DOCUMENTS = pa.schema(
    [pa.field(name, _NUMBERS.get(name, pa.string()), False) for name in _FIELDS]
    + [pa.field("keys", pa.list_(pa.int64())), pa.field("indices", pa.list_(pa.int32()))]
    + [pa.field("digest", pa.binary(32))]
)


def password_for(recipe: ParseRecipe, uri: str, name: str) -> str | None:
    """The password to try on a document: the first pattern of ``render.passwords`` that is its uri or name, or matches
    the uri, or the name (``fnmatch``); else ``render.password``."""
    own = recipe.render.passwords
    for exact in (uri, name):
        if exact in own:
            return own[exact]
    for pattern, password in own.items():
        if fnmatch.fnmatchcase(uri, pattern) or fnmatch.fnmatchcase(name, pattern):
            return password
    return recipe.render.password


def to_table(documents: list[Document], selection: PageSelection) -> pa.Table:
    """Documents with the keys of their chosen pages and a digest of all that makes up their rows."""
    indices = [_indices(document, selection) for document in documents]
    keys = [[_key(document, index) for index in chosen] for document, chosen in zip(documents, indices, strict=True)]
    columns = list(zip(*map(_values, documents), strict=True)) or [()] * len(_FIELDS)
    arrays: list[pa.Array] = [
        pa.array(values, _NUMBERS[name]) if name in _NUMBERS else to_array(values)
        for name, values in zip(_FIELDS, columns, strict=True)
    ]
    digests = [_digest(document, chosen) for document, chosen in zip(documents, keys, strict=True)]
    arrays += [pa.array(keys, DOCUMENTS.field("keys").type), pa.array(indices, DOCUMENTS.field("indices").type)]
    return pa.table([*arrays, pa.array(digests, pa.binary(32))], schema=DOCUMENTS)


def from_table(table: pa.Table) -> list[Document]:
    """The documents of ``to_table``."""
    columns = [table[name].to_pylist() if name in _NUMBERS else to_list(table[name]) for name in _FIELDS]
    return [Document(*values) for values in zip(*columns, strict=True)]


def _indices(document: Document, selection: PageSelection) -> list[int]:
    if document.skipped:
        return []
    return [0] if document.reason else list(selection.indices(document.pages))


def _key(document: Document, index: int) -> int:
    version = document.sha256 or document.etag
    return page_key(document.uri, document.member, version, index, document.reason or None)


def _digest(document: Document, keys: list[int]) -> bytes:
    facts = "\0".join(map(str, _facts(document)))
    return hashlib.sha256(f"{facts}\0{keys}".encode("utf-8", "surrogatepass")).digest()
