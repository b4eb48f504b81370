"""How files are named: plain paths and ``s3://bucket/key``, taken byte for byte."""

from __future__ import annotations

import os
from dataclasses import dataclass

from jocr.errors import StorageError


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of a listing."""

    uri: str
    size: int  # bytes
    etag: str  # version: S3's ETag without its quotes; locally modification time and size


def is_s3(uri: str) -> bool:
    return uri.startswith("s3://")


def split_s3(uri: str) -> tuple[str, str]:
    """``s3://bucket/key`` -> (bucket, key), without any decoding; the key may be empty."""
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    if not bucket:
        raise StorageError(f"{uri!r} names no bucket; write s3://bucket/key")
    return bucket, key


def join(folder: str, name: str) -> str:
    """The URI of ``name`` inside ``folder``."""
    return f"{folder.rstrip('/')}/{name}" if is_s3(folder) else os.path.join(folder, name)
