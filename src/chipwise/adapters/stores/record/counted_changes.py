"""What changed since a mark, where writers stand in a line: the mark is the counter of changes, and a smaller one is never
committed after a larger one."""

from __future__ import annotations

from typing import Any

from chipwise.adapters.stores.record import rows as r
from chipwise.adapters.stores.record.database import Transaction
from chipwise.errors import OutsideFailed
from chipwise.runner.record import Mark

_FIRST_READING = 62  # bits: see `read_changes`
_CHANGED = f"SELECT mark, {r.BODY} FROM jobs WHERE place = ? AND mark > ? ORDER BY mark LIMIT ?"


def read_changes(tx: Transaction, after: Mark, place: str, limit: int) -> tuple[list[tuple[Any, ...]], Mark]:
    """A first reading (from 0) leaves out jobs that were over when it began. It may take several pages, so the mark that is
    handed out between them remembers where it began: such a mark is negative."""
    assert isinstance(after, int)
    if after > 0:
        return _page(tx, place, after, limit)
    position = after & ((1 << _FIRST_READING) - 1)
    began = (position - after) >> _FIRST_READING
    since = began or _changes(tx)
    live = tx.rows(r.CHANGED_LIVE, (place, position, since, limit))
    if len(live) == limit:
        return _jobs(live), live[-1][0] - (since << _FIRST_READING)
    newer, mark = _page(tx, place, since, limit - len(live))
    return _jobs(live) + newer, mark


def _changes(tx: Transaction) -> int:
    rows = tx.rows("SELECT value FROM meta WHERE name = 'mark'")
    if not rows or not isinstance(rows[0][0], int):
        raise OutsideFailed("The database has lost its counter of changes.", remedy="Restore a backup.")
    return rows[0][0]


def _page(tx: Transaction, place: str, after: int, most: int) -> tuple[list[tuple[Any, ...]], int]:
    found = tx.rows(_CHANGED, (place, after, most))
    return _jobs(found), found[-1][0] if found else after


def _jobs(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [values[1:] for values in rows]
