"""The end of a pass: a unit's rows become part of the result, once."""

from __future__ import annotations

from jocr.archive.attempts import Journal
from jocr.archive.ledger import Ledger
from jocr.archive.work import Read, Receipt


def commit_unit(read: Read, ledger: Ledger) -> Receipt:
    """Commit the rows; where somebody else was first, theirs stay and these are gone.

    Raises:
        LedgerError: the rows are not exactly the unit's pages; nothing is written.
        StorageError: the result is not writable.
    """
    unit = read.work.unit
    made = None
    if not read.done:
        made = ledger.commit(unit, read.rows, read.keys, busy_seconds=read.busy_seconds, carried=read.carried)
        if read.kept:
            Journal(ledger.out, ledger.settings, unit).clear()
    if made is not None:
        return Receipt.of(made)
    (theirs,) = ledger.read([(unit.name, unit.generation)])
    return Receipt.of(theirs, mine=False)
