"""Rows by group: the least of each group, and those that no other of their group beats. All groups at once, as columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from chipwise.perf.arrays import Array
from chipwise.planner.fleet import Index
from chipwise.planner.limits import Mask

SWEEP_ROWS, SWEPT, STEPS = 4000, 3, 16  # rows from which a sweep pays, columns that it is for, shares that it looks at


def unbeaten(values: Array, group: Index, ties_by: Sequence[Array] = ()) -> Index:
    """Rows that no other of their group is as good as in every column; of equal ones the first by `ties_by`.

    The least by the sum of logarithms is beaten by none, and takes out whatever it beats: much, being good at everything. That
    is done for all groups at once, again and again.
    """
    if not len(values):
        return np.zeros(0, np.intp)
    columns = _telling(values)
    sums = np.sum([np.log(np.maximum(one, np.finfo(float).tiny)) for one in columns], axis=0)
    left = np.argsort(group, kind="stable")
    if len(left) > SWEEP_ROWS and len(columns) == SWEPT:
        left = _swept(columns, group, np.lexsort(tuple(reversed(ties_by))) if ties_by else np.arange(len(group)))
    keys = (*(one[left] for one in reversed(ties_by)), *(one[left] for one in reversed(columns)), sums[left], group[left])
    left = left[np.lexsort(keys)]
    winners = []
    while len(left):
        runs, starts = runs_of(group[left])
        winners.append(left[starts])
        left = left[_somewhere(columns, left, winners[-1][runs], np.less)]
    return np.sort(np.concatenate(winners))


def _swept(columns: Sequence[Array], group: Index, order_of_ties: Index) -> Index:
    """Rows of three columns without most of those that are beaten. For some shares of a group, the least by the first column:
    who is not among them, and by the second comes after one of them that is as good by the third, is beaten."""
    first, second, third = (one[order_of_ties] for one in columns)
    group, count = group[order_of_ties], len(group)
    order = _group_order(group, first)
    runs, starts = runs_of(group[order])
    share = np.empty(count)
    share[order] = (np.arange(count) - starts[runs]) / np.diff(np.append(starts, count))[runs]
    order = np.argsort(third, kind="stable")
    rank = np.empty(count, np.int64)
    rank[order] = runs_of(third[order])[0]
    order = _group_order(group, second)
    runs, _ = runs_of(group[order])
    level = rank[order] - runs * (count + 1)  # lower in every later group: the least so far never is another group's
    share, none = share[order], np.iinfo(np.int64).max
    beaten = np.zeros(count, dtype=bool)
    for step in range(1, STEPS):
        cheap = share < step / STEPS
        lowest = np.minimum.accumulate(np.where(cheap, level, none))
        beaten[1:] |= ~cheap[1:] & (lowest[:-1] <= level[1:])
    return order_of_ties[order[~beaten]]


def _group_order(group: Index, values: Array) -> Index:
    """The order of rows by group, and by value within it."""
    order = np.argsort(values, kind="stable")
    return order[np.argsort(group[order], kind="stable")]


def _telling(values: Array) -> list[Array]:
    """Columns in which rows differ, each once: in a chain the stage decided last is the one that ends last."""
    distinct: list[Array] = []
    for index in range(values.shape[1]):
        column = np.ascontiguousarray(values[:, index])
        if (column != column[0]).any() and not any(np.array_equal(column, one) for one in distinct):
            distinct.append(column)
    return distinct or [np.ascontiguousarray(values[:, 0])]


def runs_of(groups: Index | Array) -> tuple[Index, Index]:
    """(which run of equal groups each row is in, where the runs start)."""
    fresh = np.empty(len(groups), dtype=bool)
    fresh[0], fresh[1:] = True, groups[1:] != groups[:-1]
    return np.cumsum(fresh) - 1, np.flatnonzero(fresh)


def first_least(values: Array, runs: Index, starts: Index) -> Index:
    """Of every run the first place that has its least value."""
    hits = np.flatnonzero(values == np.minimum.reduceat(values, starts)[runs])
    return hits[runs_of(runs[hits])[1]]


def _somewhere(columns: Sequence[Array], rows: Index, rivals: Index, holds: Callable[[Array, Array], Mask]) -> Mask:
    """Whether it holds in any column between each row and its other."""
    mask = holds(columns[0][rows], columns[0][rivals])
    for column in columns[1:]:
        mask |= holds(column[rows], column[rivals])
    return mask


def group_minima(values: Array, group: Index, groups: int) -> Array:
    """The least of every column in every group; of groups without rows infinite."""
    minima = np.full((groups, *values.shape[1:]), np.inf)
    if len(group):
        order = np.argsort(group, kind="stable")
        _, starts = runs_of(group[order])
        minima[group[order[starts]]] = np.minimum.reduceat(values[order], starts, axis=0)
    return minima
