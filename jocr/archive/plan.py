"""Which units are to be done: the manifest's groups without those that are committed.

Names of units come from the keys of their pages, so the anti-join is on names. What the manifest no longer names (a
document came or went beside it) may still hold rows of pages that it does name: those are carried over, not read again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from jocr.archive.groups import Keys, unit_name
from jocr.archive.layout import Unit
from jocr.archive.ledger import Commit, Ledger
from jocr.archive.manifest import ManifestInfo, read_groups
from jocr.archive.work import Work
from jocr.errors import ConfigError

Groups = Iterable[tuple[str, int, int, Keys]]


@dataclass(frozen=True, slots=True)
class Plan:
    """``works`` in the order of the manifest; the rest counts what need not be done."""

    works: tuple[Work, ...]
    pages: int  # of ``works``
    units_done: int
    pages_done: int
    committed: tuple[tuple[str, int], ...] = ()  # units (and generations) that are done, where ``failed`` is not known
    failed: Mapping[str, int] | None = None  # unit -> pages of it that failed so far
    pages_missing: int = 0  # that have no row and are not asked for, as where only failed ones are

    def pending(self, names: Mapping[str, int]) -> list[Work]:
        """The works that are not committed by now; ``names`` as ``Ledger.names`` has them."""
        return [work for work in self.works if names.get(work.unit.name, -1) < work.unit.generation]


def make_plan(info: ManifestInfo, ledger: Ledger) -> Plan:
    """Plan everything that has no row yet.

    Raises:
        StorageError: manifest or ledger cannot be read.
    """
    return plan_groups(read_groups(info), ledger.names(), ledger)


def plan_groups(groups: Groups, names: Mapping[str, int], ledger: Ledger) -> Plan:
    """``make_plan`` on groups; ``ledger`` is asked for commits that the manifest no longer names."""
    pending: list[Unit] = []
    keys: list[Keys] = []
    committed: list[tuple[str, int]] = []
    pages_done = 0
    orphans = dict(names)
    for part, start, stop, group in groups:
        name = unit_name(group)
        orphans.pop(name, None)
        if name in names:
            committed.append((name, names[name]))
            pages_done += stop - start
        else:
            pending.append(Unit(name, part, start, stop))
            keys.append(group)
    carried = _carried(keys, list(ledger.read(sorted(orphans.items())))) if orphans and pending else {}
    works = tuple(Work(unit, carried.get(number, ())) for number, unit in enumerate(pending))
    return Plan(works, sum(unit.pages for unit in pending), len(committed), pages_done, tuple(committed))


def plan_redrive(info: ManifestInfo, ledger: Ledger, reason: str) -> Plan:
    """Plan a new generation of each committed unit with pages that failed for ``reason``.

    Raises:
        ConfigError: there is none.
        StorageError: manifest or ledger cannot be read.
    """
    committed = ledger.committed()
    works, units, pages, missing, failed = [], 0, 0, 0, {}
    for part, start, stop, group in read_groups(info):
        commit = committed.get(unit_name(group))
        if commit is None:
            missing += stop - start
            continue
        if commit.counts.get("failed"):
            failed[commit.unit] = commit.counts["failed"]
        if commit.reasons.get(reason):
            unit = Unit(commit.unit, part, start, stop, commit.generation + 1)
            works.append(Work(unit, redo=reason))
        else:
            units, pages = units + 1, pages + stop - start
    if not works:
        known = sorted({name for commit in committed.values() for name in commit.reasons})
        raise ConfigError(f"no page failed for {reason!r}; reasons in this result: {', '.join(known) or 'none'}")
    again = sum(work.unit.pages for work in works)
    return Plan(tuple(works), again, units, pages, failed=failed, pages_missing=missing)


def _carried(groups: list[Keys], commits: list[Commit]) -> dict[int, tuple[tuple[str, int], ...]]:
    """Number of a group -> (unit, generation) of every commit that shares pages with it."""
    packed = [np.frombuffer(commit.packed_keys, ">i8").astype(np.int64) for commit in commits]
    if not packed or not groups:
        return {}
    held, wanted = np.concatenate(packed), np.concatenate(groups)
    commit_of = np.repeat(np.arange(len(packed)), [len(keys) for keys in packed])
    group_of = np.repeat(np.arange(len(groups)), [len(keys) for keys in groups])
    order = np.argsort(held, kind="stable")
    place = np.minimum(np.searchsorted(held[order], wanted), len(held) - 1)
    hit = held[order][place] == wanted
    pairs = np.unique(np.stack([group_of[hit], commit_of[order][place[hit]]]), axis=1)
    carried: dict[int, tuple[tuple[str, int], ...]] = {}
    for group, number in pairs.T.tolist():
        commit = commits[number]
        carried[group] = (*carried.get(group, ()), (commit.unit, commit.generation))
    return carried
