"""What changed since a mark in PostgreSQL, where writers do not wait for each other.

A number that a writer takes early may be committed late, so no number says what a reader has seen. A snapshot of the server
does: it names the transactions that were committed when it was taken. Each row holds the transaction that changed it last, and
what changed is what is committed now and was not in the snapshot of the reading before, however long its transaction took. A
transaction that stays open makes readers look again at what changed since it began, and keeps nothing from them.

A mark is a snapshot, and between two pages also where the next one begins. It holds for the server that gave it, until that
crashes (`PostgresDatabase.changes`). Rows that were restored into another server may
hold transactions that are still to come there; a first reading finds them, and they are read once more when those come.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from chipwise.adapters.stores.record import rows as r
from chipwise.adapters.stores.record.database import Transaction
from chipwise.adapters.stores.record.schema import LIVE
from chipwise.runner.record import Mark

_NOW = f"""SELECT pg_current_snapshot()::text, coalesce((SELECT max(mark) FROM jobs WHERE place = ? AND {LIVE}), 0)"""
# The snapshot of the statement is the one by which its rows are seen.
_CHANGED = f"""SELECT pg_current_snapshot()::text, xact::text, mark, {r.BODY} FROM jobs WHERE place = ?
    AND (xact, mark) > (?::xid8, ?) AND xact < pg_snapshot_xmax(pg_current_snapshot())
    AND NOT pg_visible_in_snapshot(xact, ?::pg_snapshot) ORDER BY xact, mark LIMIT ?"""


@dataclass(frozen=True, slots=True)
class _FirstReading:
    """Jobs that are not over, by their marks up to the largest that there was when it began."""

    snapshot: str  # when it began: what is committed later comes after it
    last: int
    position: int = 0


@dataclass(frozen=True, slots=True)
class _Pages:
    """Jobs that changed after a snapshot, from a transaction and a mark on."""

    seen: str
    snapshot: str = ""  # of the first page: what was committed while pages were read is looked for again; empty: no page yet
    xact: str = ""
    position: int = 0


def read_changes(tx: Transaction, after: Mark, place: str, limit: int) -> tuple[list[tuple[Any, ...]], Mark]:
    begin = _read(after) if after else _FirstReading(*tx.rows(_NOW, (place,))[0])
    if isinstance(begin, _Pages):
        return _page(tx, begin, place, limit)
    live = tx.rows(r.CHANGED_LIVE, (place, begin.position, begin.last, limit))
    jobs = [values[1:] for values in live]
    if len(live) == limit:
        return jobs, _text(_FirstReading(begin.snapshot, begin.last, live[-1][0]))
    newer, mark = _page(tx, _Pages(begin.snapshot), place, limit - len(live))
    return jobs + newer, mark


def _page(tx: Transaction, begin: _Pages, place: str, limit: int) -> tuple[list[tuple[Any, ...]], Mark]:
    """Where nothing changed, the mark stays as it is."""
    oldest = begin.seen.split(":")[0]  # the first transaction that may not have been committed then
    changed = tx.rows(_CHANGED, (place, begin.xact or oldest, begin.position, begin.seen, limit))
    snapshot = begin.snapshot or (changed[0][0] if changed else begin.seen)
    following = _Pages(snapshot)
    if len(changed) == limit:
        following = _Pages(begin.seen, snapshot, xact=changed[-1][1], position=changed[-1][2])
    return [values[3:] for values in changed], _text(following)


def _text(mark: _FirstReading | _Pages) -> str:
    if isinstance(mark, _FirstReading):
        return f"first {mark.snapshot} {mark.last} {mark.position}"
    return f"since {mark.seen} {mark.snapshot} {mark.xact} {mark.position}" if mark.xact else f"since {mark.seen}"


def _read(text: Mark) -> _FirstReading | _Pages:
    kind, snapshot, *rest = str(text).split()
    if kind == "first":
        return _FirstReading(snapshot, int(rest[0]), int(rest[1]))
    return _Pages(snapshot, rest[0], rest[1], int(rest[2])) if rest else _Pages(snapshot)
