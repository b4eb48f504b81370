"""One tree of errors. What a user can cause is a ``JocrError``; anything else that escapes is a bug.

JocrError
├── ConfigError        bad usage: unknown key, wrong type, impossible combination (CLI exit code 2)
├── StorageError       a path or URI cannot be listed, read or written
├── DocumentError      a file cannot be opened as a document; carries a ``reason`` code
│   └── PageError      one page of an open document cannot be turned into an image
├── CheckpointError    a checkpoint directory does not hold what the model needs
├── EngineError        a decoder cannot start or died
├── LedgerError        an archive's result and its ledger disagree, or a unit's rows are not its pages
├── StuckError         passes over an archive end without committing anything
├── MarkupError        text has no such structure (for example: no table in this HTML)
└── UnscoredError      a score could not be computed within its limits: never the same as a score of zero
"""

from __future__ import annotations


class JocrError(Exception):
    """Base of every error this project raises on purpose."""


class ConfigError(JocrError):
    """Bad usage; the message says the remedy."""


class StorageError(JocrError):
    """A path or URI cannot be listed, read or written."""


class DocumentError(JocrError):
    """A file cannot be opened as a document.

    Args:
        reason: a code from ``jocr.records.REASONS``.
        detail: one sentence a person understands.
    """

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
        self.detail = detail

    def __reduce__(self) -> tuple[type[DocumentError], tuple[str, str]]:
        return type(self), (self.reason, self.detail)


class PageError(DocumentError):
    """One page of an open document cannot be turned into an image."""


class CheckpointError(JocrError):
    """A checkpoint directory does not hold what the model needs."""


class EngineError(JocrError):
    """A decoder cannot start or died."""


class LedgerError(JocrError):
    """An archive's result and its ledger disagree, or a unit's rows are not exactly its pages."""


class StuckError(JocrError):
    """Passes over an archive end without committing anything; the message names units and the last cause."""


class MarkupError(JocrError):
    """Text has no such structure."""


class UnscoredError(JocrError):
    """A score could not be computed within its limits (size, time). Never the same as zero."""
