"""Opening files for an inventory: the documents in each, how many pages they have, or why they do not open.

A container is listed and its members opened one after another; one member at a time lies unpacked on disk.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from jocr import storage
from jocr.archive.collect import output_of
from jocr.archive.containers import Item, Member, SkippedMember, extract_run, members, sniff_container
from jocr.archive.inventory import Document, password_for
from jocr.archive.listing import File
from jocr.config import ParseRecipe
from jocr.errors import DocumentError, StorageError
from jocr.pages.render import Renderer
from jocr.pages.sniff import EXTENSIONS, SNIFF_BYTES, sniff
from jocr.pages.sources import lost
from jocr.records import PageFailure

CONTAINERS = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz", ".warc", ".warc.gz")


class Care(Protocol):
    """Who keeps a record of what is being read, as ``trials.Within`` does."""

    def begun(self, member: str) -> None: ...

    def deaths(self, member: str) -> int: ...


def open_file(
    file: File, recipe: ParseRecipe, renderer: Renderer, known: list[Document], care: Care | None = None
) -> Iterator[Document]:
    """The documents in a file: one for a plain file, any number for a container, a skipped one for anything else.

    Args:
        known: what an earlier inventory found at this uri; taken over where the version is the same and all opened.
        care: told of every member that is read; one that killed processes before is a failed document.
    """
    if not file.reason and not file.etag:
        file = _versioned(file)
    if file.reason:
        yield _skipped(file, file.reason, file.detail)
    elif known and all(_good(document, file, recipe.job.redrive) for document in known):
        yield from _distinct(_renamed(document, file) for document in known)
    elif _extension(file.name) in EXTENSIONS:
        yield _opened(file, recipe, renderer)
    else:
        yield from _distinct(_judged(file, recipe, renderer, care))


def deadly(file: File, deaths: int) -> Document:
    """A file that nobody opens again: it ended the process that did, so many times by itself. A container that did so
    apart from its members counts as one document then."""
    return _failed(file, "attempts_exhausted", f"the process that opened it died; {deaths} times nothing else was open")


def _distinct(documents: Iterable[Document]) -> Iterator[Document]:
    """Members whose paths differ only in what a path on disk cannot keep (``a//b`` and ``a/b``) get numbered outputs:
    no container can make another document's output impossible."""
    taken: set[str] = set()
    for document in documents:
        count, output = 1, document.output
        while output and output in taken:
            count += 1
            output = output_of(f"{document.name}#{count}")
        taken.add(output)
        yield document if output == document.output else replace(document, output=output)


def _judged(file: File, recipe: ParseRecipe, renderer: Renderer, care: Care | None) -> Iterator[Document]:
    """A file whose extension says nothing, by its first bytes."""
    claimed = file.name.lower().endswith(CONTAINERS)
    try:
        head = storage.read_bytes(file.uri, SNIFF_BYTES)
    except (OSError, StorageError) as error:
        named = not file.etag  # by itself, and it is not there
        why = "it is not there" if isinstance(error, FileNotFoundError) else str(error)
        yield (_failed if claimed or named else _skipped)(file, "unreadable_file", lost(file.uri) or why)
        return
    if sniff(head) is not None:
        yield _opened(file, recipe, renderer)
    elif sniff_container(head) is not None:
        yield from _unpacked(file, recipe, renderer, care)
    else:
        reason = "not_a_document" if head else "empty_file"
        detail = f"its first bytes are {head[:8]!r}" if head else "it has no bytes"
        yield (_failed if claimed else _skipped)(file, reason, detail)


def _unpacked(file: File, recipe: ParseRecipe, renderer: Renderer, care: Care | None) -> Iterator[Document]:
    with TemporaryDirectory(prefix="jocr-members-") as folder:
        here = _fetched(file, folder, recipe)
        if here.reason:
            yield _failed(here, here.reason, here.detail)
        else:
            yield from _members(here, _path(here, folder), Path(folder, "member"), recipe, renderer, care)


def _members(
    file: File, path: Path, target: Path, recipe: ParseRecipe, renderer: Renderer, care: Care | None
) -> Iterator[Document]:
    """Every member in the container's order: a member's place among the others tells where it is put together."""
    limit = int(recipe.job.member_gb * 1e9)

    def password(name: str) -> str | None:
        return password_for(recipe, file.uri, f"{file.name}/{name}")

    found = list(members(path, limit_bytes=limit, password=password))
    found = [_buried(item, care) for item in found] if care else found
    wanted = [item for item in found if isinstance(item, Member) and item.reason is None]
    documents: dict[str, Document] = {}
    broken: DocumentError | None = None

    def place(member: Member) -> Path:
        if care:
            care.begun(member.id)
        return target

    try:
        for member, error in extract_run(path, wanted, place, limit_bytes=limit, password=password):
            documents[member.id] = _member(file, member, error, target, recipe, renderer)
            target.unlink(missing_ok=True)
            if care:
                care.begun("")
    except DocumentError as error:  # the container cannot be opened a second time: it costs the members left
        broken = error
    for item in found:
        if isinstance(item, SkippedMember):
            yield replace(_skipped(file, item.reason, item.detail), member=item.name)
        elif not item.id:
            yield _failed(file, item.reason or "corrupt", item.detail)
        elif item.reason is not None:
            yield replace(_inside(file, item), reason=item.reason, detail=item.detail)
        else:
            yield documents.get(item.id) or _member(file, item, broken, target, recipe, renderer)


def _buried(item: Item, care: Care) -> Item:
    """The item, with a reason not to read it where it killed the processes that did."""
    if not isinstance(item, Member) or item.reason is not None or not (deaths := care.deaths(item.id)):
        return item
    return replace(item, reason="attempts_exhausted", detail=f"the process that read it died {deaths} times")


def _member(
    file: File, member: Member, error: DocumentError | None, path: Path, recipe: ParseRecipe, renderer: Renderer
) -> Document:
    document = _inside(file, member)
    if error is not None:
        return replace(document, reason=error.reason, detail=error.detail)
    return _filled(document, str(path), recipe, renderer)


def _inside(file: File, member: Member) -> Document:
    name = f"{file.name}/{member.id}"
    collection, size = file.collection, max(member.size, 0)
    return Document(file.uri, member.id, name, output_of(name), collection, file.etag, "", size, "", 0, "", "")


def _opened(file: File, recipe: ParseRecipe, renderer: Renderer) -> Document:
    if not storage.is_s3(file.uri):
        return _filled(_plain(file), None, recipe, renderer)
    with TemporaryDirectory(prefix="jocr-file-") as folder:
        here = _fetched(file, folder, recipe)
        if here.reason:
            return _failed(here, here.reason, here.detail)
        return _filled(_plain(here), str(_path(here, folder)), recipe, renderer)


def _fetched(file: File, folder: str, recipe: ParseRecipe) -> File:
    """The file with its bytes at ``_path`` and the version that they are of, or with the reason why not."""
    if not storage.is_s3(file.uri):
        return file
    try:
        entry = storage.download(file.uri, str(_path(file, folder)), limit=int(recipe.job.spool_gb * 1e9))
        return replace(file, etag=entry.etag, size=entry.size)
    except FileNotFoundError:
        return replace(file, reason="unreadable_file", detail="it is no longer there")
    except (OSError, StorageError) as error:
        return replace(file, reason="unreadable_file", detail=str(error))


def _path(file: File, folder: str) -> Path:
    return Path(folder, "copy") if storage.is_s3(file.uri) else Path(file.uri)


def _filled(document: Document, path: str | None, recipe: ParseRecipe, renderer: Renderer) -> Document:
    """The document with what its bytes say; a failure that may pass gets a second try."""
    password = password_for(recipe, document.uri, document.name)
    result = renderer.open(document.uri, password=password, path=path)
    if isinstance(result, PageFailure) and result.retryable:
        result = renderer.open(document.uri, password=password, path=path)
    if isinstance(result, PageFailure):
        return replace(document, sha256=result.sha256 or "", reason=result.reason, detail=result.detail)
    doc, pages = result
    document = replace(document, sha256=doc.sha256, size=doc.size, kind=doc.kind, pages=max(pages, 0))
    if pages < 1:
        return replace(document, reason="no_pages", detail="the document says it has no pages")
    return document


def _plain(file: File) -> Document:
    output = output_of(file.name)
    return Document(file.uri, "", file.name, output, file.collection, file.etag, "", file.size, "", 0, "", "")


def _failed(file: File, reason: str, detail: str) -> Document:
    return replace(_plain(file), reason=reason, detail=detail)


def _skipped(file: File, reason: str, detail: str) -> Document:
    return Document(file.uri, "", "", "", "", file.etag, "", 0, "", 0, reason, detail, True)


def _good(document: Document, file: File, redrive: str | None) -> bool:
    """Whether what was found before still holds: same version, and nothing that another try could mend. What killed
    the processes that opened it is tried again only where the run is told to ``redrive`` that."""
    same = bool(file.etag) and document.uri == file.uri and document.etag == file.etag
    given_up = document.reason == "attempts_exhausted" != redrive
    return same and (not document.reason or given_up or (document.skipped and document.reason != "unreadable_file"))


def _renamed(document: Document, file: File) -> Document:
    """The document as it is called under this run's sources."""
    if document.skipped:
        return replace(_skipped(file, document.reason, document.detail), member=document.member)
    name = f"{file.name}/{document.member}" if document.member else file.name
    return replace(document, name=name, output=output_of(name), collection=file.collection)


def _versioned(file: File) -> File:
    """A file that was named by a list: its version is asked for now."""
    try:
        return replace(file, etag=storage.etag(file.uri))
    except (OSError, StorageError):
        return file  # opening it says what is wrong


def _extension(name: str) -> str:
    last = name.rpartition("/")[2]
    return last.rpartition(".")[2].lower() if "." in last else ""
