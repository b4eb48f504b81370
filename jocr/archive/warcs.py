"""WARC files (ISO 28500), plain or with every record gzipped by itself, read with warcio."""

from __future__ import annotations

import contextlib
import gzip
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from jocr.archive.members import Entry, Item, Member, Names, copy_out, is_bomb
from jocr.errors import DocumentError
from jocr.pages.sniff import SNIFF_BYTES

_PADDING = 4096  # bytes behind the last record that are looked at


def list_members(path: str | Path, limit: int) -> Iterator[Item]:
    """Payloads of response and resource records, named by their target URI; raises DocumentError at damage."""
    names, name = Names(), ""
    with open(path, "rb") as file:
        records = _iterate(file)
        try:
            for ordinal, record in enumerate(records):
                if not record.rec_headers.get_header("Content-Length"):  # every record has one: its header is not whole
                    raise EOFError("a record's header is cut off")
                entry = Entry(_uri(record, ordinal), ordinal, -1, records.offset)
                name = entry.name
                wanted = record.rec_type in ("response", "resource")
                item = _judge(record, entry, names, limit) if wanted else None
                _finish(records, record)
                if item is not None:
                    yield item
                if records.next_line is not None and records.reader.decompressor is not None:
                    raise ValueError("several records in one gzip block; `warcio recompress` takes them apart")
            if not _at_end(file, records.offset):  # warcio takes a record that is not whole for the end
                raise EOFError("a record is cut off")
        except _broken() as error:
            where = f"at or behind {name!r}" if name else "at its beginning"
            raise DocumentError("corrupt", f"damaged {where} ({_reason(error)})") from None


def extract(
    path: str | Path, wanted: Sequence[Member], target: Callable[[Member], Path], limit: int
) -> Iterator[tuple[Member, DocumentError | None]]:
    """Unpack payloads, each found by its record's offset; transfer and content encodings are undone."""
    broken: tuple[type[Exception], ...] = (*_broken(), StopIteration)
    with open(path, "rb") as file:
        for member in wanted:
            try:
                file.seek(member.offset)
                records = _iterate(file)
                record = next(records)
                copy_out(record.content_stream().read, target(member), limit)
                _finish(records, record)
            except DocumentError as error:
                yield member, error
            except broken as error:
                yield member, DocumentError("corrupt", f"its record cannot be read ({error or type(error).__name__})")
            else:
                yield member, None


def _judge(record: Any, entry: Entry, names: Names, limit: int) -> Item:
    status = record.http_headers.get_statuscode() if record.http_headers else "200"
    if status != "200":
        return entry.skipped("not_a_document", f"the server answered {status}")
    if bomb := is_bomb(record.length or 0, record.length or 0, limit):
        return entry.failed(names, "too_large", bomb)
    try:
        head = record.content_stream().read(SNIFF_BYTES)
    except (zlib.error, ValueError) as error:
        return entry.failed(names, "corrupt", f"its content encoding is damaged ({error})")
    return entry.judged(names, head)


def _at_end(file: Any, offset: int) -> bool:
    """Whether nothing follows but, at most, empty gzip blocks."""
    file.seek(offset)
    left = file.read(_PADDING)
    if left.startswith(b"\x1f\x8b") and len(left) < _PADDING:
        with contextlib.suppress(EOFError, zlib.error, OSError):
            left = gzip.decompress(left).strip()
    return not left


def _reason(error: Exception) -> str:
    if isinstance(error, TypeError | AttributeError):
        return "a record lacks its type or its URI"
    text = " ".join("".join(c if c.isprintable() else " " for c in str(error)).split())
    return text[:200] or type(error).__name__


def _finish(records: Any, record: Any) -> None:
    """Read a record to its end, which must be there and followed by nothing but empty lines."""
    records.read_to_end()
    if getattr(record.raw_stream, "limit", 0):
        raise EOFError("it is cut off")
    if records.err_count:
        raise ValueError("its length is wrong, or its bytes are damaged")
    unpacker = records.reader.decompressor
    if unpacker is not None and records.next_line is None and not unpacker.eof:  # what warcio passes over
        raise EOFError("its gzip checksum is wrong or missing")


def _uri(record: Any, ordinal: int) -> str:
    return record.rec_headers.get_header("WARC-Target-URI") or f"record {ordinal}"


def _iterate(file: Any) -> Any:
    from warcio.archiveiterator import WARCIterator

    return WARCIterator(file)


def _broken() -> tuple[type[Exception], ...]:
    from warcio.exceptions import ArchiveLoadFailed
    from warcio.statusandheaders import StatusAndHeadersParserException

    return (ArchiveLoadFailed, StatusAndHeadersParserException, EOFError, zlib.error, OSError, ValueError, TypeError,
            AttributeError)  # fmt: skip  # the last two: what warcio raises on records without a type or URI
