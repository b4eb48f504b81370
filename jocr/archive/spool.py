"""Remote files and members of containers as local files, kept on the node as long as there is room for them.

Each version of a file is downloaded once per node, whichever of its processes asks. A container is listed once; members
are unpacked by the run, and a tar that is compressed as a whole is unpacked once, so that no run reads through the ones
before it again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from jocr import storage
from jocr.archive import tars
from jocr.archive.containers import Item, Member, PasswordOf, SkippedMember, extract_run, kind_of, members
from jocr.archive.members import LIMIT_BYTES
from jocr.archive.shelf import Shelf
from jocr.errors import DocumentError, StorageError
from jocr.pages.sources import lost

_FAILURES, _INDEX = "failures", "index"
_PER_MEMBER = 4096  # bytes a small file takes on disk
_LOCKED = ("encrypted", "wrong_password")  # what another password would change is not remembered
_TRANSIENT = ("unreadable_file",)

Download = Callable[[str, str], Any]


class Spool:
    """A node-local cache; many processes may share one folder.

    Args:
        folder: on a local disk.
        limit_bytes: what it may hold. It is exceeded only by files that are all in use.
        member_bytes: a member that unpacks to more is ``too_large``.
        download: (uri, path) -> the ``storage.Entry`` that was copied.
        size_of: bytes of a remote file, where ``local`` is not told.
    """

    def __init__(
        self,
        folder: str | Path,
        limit_bytes: int,
        *,
        member_bytes: int = LIMIT_BYTES,
        download: Download = storage.download,
        size_of: Callable[[str], int] = storage.size,
    ) -> None:
        self._shelf = Shelf(folder, limit_bytes)
        self._member_bytes = member_bytes
        self._download, self._size_of = download, size_of

    @contextlib.contextmanager
    def local(self, uri: str, etag: str, *, size: int | None = None) -> Iterator[Path]:
        """A file as a local path, which stays while the context lasts; a local file is itself, with no copy.

        Args:
            uri: a path or ``s3://`` URI.
            etag: its version as the listing told it; empty where that is not known.
            size: its bytes, where known.

        Raises:
            DocumentError: unreadable_file (not there, changed since it was listed, the disk is full), too_large.
        """
        if not storage.is_s3(uri):
            if why := lost(uri):
                raise DocumentError("unreadable_file", why)
            yield Path(uri)
            return
        key = _key("file", uri, etag)
        with self._shelf.hold(
            key, lambda: self._bytes(uri, size), lambda folder: self._fetch(uri, etag, folder)
        ) as folder:
            yield folder / "file"

    @contextlib.contextmanager
    def listing(self, uri: str, etag: str, *, password: PasswordOf | None = None) -> Iterator[Iterator[Item]]:
        """What a container holds, as ``containers.members`` lists it; listed once per version.

        Raises:
            DocumentError: the container cannot be had; what is wrong inside it are its items.
        """
        key = _key(_INDEX, uri, etag, str(self._member_bytes))
        hold = self._shelf.hold(key, lambda: 0, lambda folder: self._index(uri, etag, password, folder), _sound)
        with hold as at, open(at / _INDEX, encoding="ascii") as file:
            yield map(_read_item, file)

    @contextlib.contextmanager
    def members(
        self, uri: str, etag: str, wanted: Sequence[str], *, password: PasswordOf | None = None
    ) -> Iterator[dict[str, Path | DocumentError]]:
        """Members of a container as local paths, which stay while the context lasts.

        Args:
            uri, etag: of the container.
            wanted: ids of members (``Member.id``); neighbours asked for together are unpacked in one pass.
            password: gives the password of an encrypted member by its name.

        Yields:
            For each id its path, or why it cannot be had. Nothing is raised for a document.
        """
        with contextlib.ExitStack() as stack:
            try:
                chosen = self._chosen(uri, etag, wanted, password)
                run = self._fitting(chosen)
                secrets = [f"{m.name}\0{password(m.name) or ''}" for m in run] if password else []
                key = _key("members", uri, etag, str(self._member_bytes), *(m.id for m in run), "", *secrets)
                need = sum(max(0, member.size) + _PER_MEMBER for member in run)
                fill = lambda folder: self._unpack(uri, etag, run, password, folder)  # noqa: E731
                folder = stack.enter_context(self._shelf.hold(key, lambda: need, fill, _sound))
                found = _found(folder, run)
            except DocumentError as error:
                found = dict.fromkeys(wanted, error)
            else:
                found |= _missing(chosen, found, self._shelf.limit)
            yield found

    @contextlib.contextmanager
    def member(self, uri: str, etag: str, member: str, *, password: PasswordOf | None = None) -> Iterator[Path]:
        """One member as a local path; see ``members``. Raises DocumentError where it cannot be had."""
        with self.members(uri, etag, [member], password=password) as found:
            result = found[member]
            if isinstance(result, DocumentError):
                raise result
            yield result

    def _bytes(self, uri: str, size: int | None) -> int:
        if size is not None:
            return size
        try:
            return self._size_of(uri)
        except (OSError, StorageError) as error:
            raise DocumentError("unreadable_file", str(error)) from error

    def _fetch(self, uri: str, etag: str, folder: Path) -> None:
        try:
            entry = self._download(uri, str(folder / "file"))
        except (OSError, StorageError) as error:
            raise DocumentError("unreadable_file", str(error)) from error
        if etag and getattr(entry, "etag", etag) != etag:
            raise DocumentError("unreadable_file", "it changed since it was listed; take stock again")

    def _index(self, uri: str, etag: str, password: PasswordOf | None, folder: Path) -> None:
        failures = 0
        with self.local(uri, etag) as path, open(folder / _INDEX, "w", encoding="ascii") as file:
            for item in members(path, limit_bytes=self._member_bytes, password=password):
                failures += item.reason in _LOCKED or (item.reason in _TRANSIENT and item.name == "")
                file.write(json.dumps(asdict(item)) + "\n")
        if failures:
            (folder / _FAILURES).write_text("{}")

    def _chosen(
        self, uri: str, etag: str, wanted: Sequence[str], password: PasswordOf | None
    ) -> dict[str, Member | None]:
        """The wanted members by their ids, in the container's order; None for what it does not hold."""
        names = set(wanted)
        with self.listing(uri, etag, password=password) as items:
            chosen: dict[str, Member | None] = {
                item.id: item for item in items if isinstance(item, Member) and item.id and item.id in names
            }
        return chosen | {name: None for name in wanted if name not in chosen}

    def _fitting(self, chosen: dict[str, Member | None]) -> list[Member]:
        """As many of the members as the spool holds at once."""
        fitting, total = [], 0
        for member in chosen.values():
            if member is not None:
                total += max(0, member.size) + _PER_MEMBER
                if total <= self._shelf.limit:
                    fitting.append(member)
        return fitting

    def _unpack(self, uri: str, etag: str, run: list[Member], password: PasswordOf | None, folder: Path) -> None:
        places = {member.id: folder / str(number) for number, member in enumerate(run)}
        failures: dict[str, tuple[str, str]] = {}
        with self.local(uri, etag) as path, self._plain_tar(uri, etag, path) as plain:
            options: dict[str, Any] = {"limit_bytes": self._member_bytes, "password": password, "unpacked": plain}
            for member, error in extract_run(path, run, lambda member: places[member.id], **options):
                if error is not None:
                    failures[member.id] = (error.reason, error.detail)
        if failures:
            (folder / _FAILURES).write_text(json.dumps(failures))

    @contextlib.contextmanager
    def _plain_tar(self, uri: str, etag: str, path: Path) -> Iterator[Path | None]:
        """The tar inside a compressed one, where it may take half of the spool; None for all else."""
        kind = kind_of(path)
        with contextlib.ExitStack() as stack:
            plain = None
            if kind.startswith("tar."):
                with self.listing(uri, etag) as items:
                    size = max((item.offset + item.size for item in items if isinstance(item, Member)), default=0)
                if 0 < size <= self._shelf.limit // 2:
                    fill = lambda folder: tars.unpack(path, kind, folder / "tar", size)  # noqa: E731
                    with contextlib.suppress(DocumentError):  # then it is read through, run by run
                        plain = (
                            stack.enter_context(self._shelf.hold(_key("tar", uri, etag), lambda: size, fill)) / "tar"
                        )
            yield plain


def _key(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:40]


def _sound(folder: Path) -> bool:
    return not (folder / _FAILURES).exists()


def _read_item(line: str) -> Item:
    fields = json.loads(line)
    return Member(**fields) if "id" in fields else SkippedMember(**fields)


def _found(folder: Path, run: list[Member]) -> dict[str, Path | DocumentError]:
    failures = {} if _sound(folder) else json.loads((folder / _FAILURES).read_text())
    found: dict[str, Path | DocumentError] = {}
    for number, member in enumerate(run):
        failed = failures.get(member.id)
        found[member.id] = DocumentError(*failed) if failed else folder / str(number)
    return found


def _missing(
    chosen: dict[str, Member | None], found: dict[str, Path | DocumentError], limit: int
) -> dict[str, Path | DocumentError]:
    missing: dict[str, Path | DocumentError] = {}
    for name, member in chosen.items():
        if member is None:
            missing[name] = DocumentError("unreadable_file", "the container holds no such member; take stock again")
        elif name not in found:
            detail = f"with the members before it, it takes more than the spool of {limit:,} bytes; raise job.spool_gb"
            missing[name] = DocumentError("too_large", detail)
    return missing
