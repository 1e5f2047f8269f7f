"""Series of spot machines from tables: a number per tick, numbers with times, or machines that come and go.

Times say how long a tick is where they are regular. Numbers at irregular times hold until the next; they are read in ticks of
ten minutes (or as `tick_s` says), and a tick counts as available where every number that holds in it does.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from chipwise.errors import BadInput

READ_TICK_S = 600.0  # where the times are irregular
_TIME_NAMES = ("time", "second", "date", "moment")
_MOVES = {"add": 1.0, "remove": -1.0}  # of Bamboo's traces: milliseconds, what happened, the name of the machine
_MOST_TICKS = 10_000_000


class NotASeries(BadInput):
    """A table of something else."""


@dataclass(frozen=True, slots=True)
class TimedCells:
    """Cells that are numbers, and when each begins to hold; `times_s` is None where the table does not say it."""

    cells: Sequence[str | float]
    times_s: NDArray[np.float64] | None


def read_table(name: str, text: str, *, has_tick: bool = False) -> TimedCells:
    """`has_tick`: the user says how long one is, so that seconds before the numbers do not count."""
    try:
        rows = [[cell.strip() for cell in row] for row in csv.reader(io.StringIO(text)) if "".join(row).strip()]
    except csv.Error as error:
        raise BadInput(f"{name} is no table: {str(error)[:120]}.", remedy="Give JSON or one number per line.") from error
    heading: list[str] = []
    if rows and not is_number(rows[0][-1]) and (len(rows[0]) < 2 or rows[0][1] not in _MOVES):
        heading, rows = [cell.lower() for cell in rows[0]], rows[1:]
    if not rows or len(rows[0]) == 1:
        return TimedCells([row[-1] for row in rows], None)
    if len(rows[0]) == 3 and rows[0][1] in _MOVES:
        return _moves(name, rows)
    if is_number(rows[0][0]) and len(rows[0]) == 2:
        return TimedCells([row[-1] for row in rows], _seconds(rows) if _is_time(heading) and not has_tick else None)
    times_s = _dates(name, rows) if len(rows[0]) <= 3 else None
    if times_s is None:
        raise NotASeries(
            f"{name} has no number per tick.", remedy="Give one number per line, also with a time before it, or JSON."
        )
    return TimedCells([row[-1] for row in rows], times_s)


def _is_time(heading: Sequence[str]) -> bool:
    return bool(heading) and any(word in heading[0] for word in _TIME_NAMES)


def _seconds(rows: Sequence[Sequence[str]]) -> NDArray[np.float64] | None:
    try:
        return np.array([row[0] for row in rows], np.float64)
    except ValueError:
        return None


def _dates(name: str, rows: Sequence[Sequence[str]]) -> NDArray[np.float64] | None:
    """Of dates, in one column or two; None where they are no dates."""
    try:
        moments = [datetime.fromisoformat(" ".join(row[:-1])) for row in rows]
    except ValueError:
        return None
    if len({moment.tzinfo is None for moment in moments}) > 1:
        raise BadInput(f"{name}: some times have a time zone and some have none.", remedy="Write all times in one time zone.")
    zero = moments[0]
    return np.array([(moment - zero).total_seconds() for moment in moments])


def _moves(name: str, rows: Sequence[Sequence[str]]) -> TimedCells:
    times, moves = [], []
    for line, row in enumerate(rows, start=1):
        if len(row) != 3 or row[1] not in _MOVES or not is_number(row[0]):
            raise BadInput(f"{name}, line {line}: {','.join(row)[:60]!r} is no time in milliseconds, add or remove, and name.")
        times.append(float(row[0]) / 1000.0)
        moves.append(_MOVES[row[1]])
    return TimedCells(np.cumsum(moves).tolist(), np.array(times))


def in_ticks(
    name: str, times_s: NDArray[np.float64], available: NDArray[np.bool_], tick_s: float | None
) -> tuple[NDArray[np.bool_], float]:
    """The flags in ticks of one length, and that length."""
    gaps = np.diff(times_s)
    if not np.isfinite(times_s).all() or (gaps < 0).any():
        line = int(np.argmin(np.nan_to_num(gaps, nan=-1.0))) + 2
        raise BadInput(f"{name}: row {line} is earlier than the row before it.", remedy="Sort the rows by time.")
    if len(gaps) and gaps[0] > 0.0 and np.allclose(gaps, gaps[0], rtol=1e-6) and tick_s in (None, float(gaps[0])):
        return available, float(gaps[0])
    tick_s = READ_TICK_S if tick_s is None else tick_s
    count = (times_s[-1] - times_s[0]) / tick_s
    if count < 1.0:
        raise BadInput(f"{name} is shorter than a tick of {tick_s:g} s.", remedy="Give a longer trace, or a shorter --tick.")
    if count > _MOST_TICKS:
        raise BadInput(f"{name} has more than {_MOST_TICKS:,} ticks of {tick_s:g} s.", remedy="Give a longer --tick.")
    edges = times_s[0] + np.arange(int(count) + 1) * tick_s
    missing = np.concatenate([[0], np.cumsum(~available)])
    first = np.searchsorted(times_s, edges[:-1], side="right") - 1  # what holds when the tick begins
    last = np.searchsorted(times_s, edges[1:], side="left")
    return missing[last] == missing[first], tick_s


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
