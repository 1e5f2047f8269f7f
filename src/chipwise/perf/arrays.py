"""Columns of candidates: one row is one configuration, and a column of length one stands for all rows.

Names (chips, engines, models) are columns too: `Coded` keeps the few distinct names beside an index for every row, so
that whatever depends on a name is computed once per name and then looked up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Index = NDArray[np.intp]


_FIRST: Index = np.zeros(1, dtype=np.intp)


def column(values: float | Sequence[float] | Array) -> Array:
    found = np.asarray(values, dtype=np.float64)
    return found if found.ndim else found.reshape(1)


def has_nonzero(values: Array | NDArray[np.bool_]) -> bool:
    """Whether any row is not zero."""
    return bool(values[0]) if len(values) == 1 else bool(values.any())


def cut(values: Array, selection: slice | Index) -> Array:
    """Some rows of a column that may stand for all of them."""
    return values if len(values) == 1 else values[selection]


def pick(condition: NDArray[np.bool_], yes: Array, no: Array) -> Array:
    """As `np.where`, without a pass over the rows where one answer holds for all of them."""
    if len(condition) == 1:
        return yes if condition[0] else no
    return np.where(condition, yes, no)


@dataclass(frozen=True, slots=True)
class Coded:
    """A column of names."""

    names: tuple[str, ...]
    index: Index

    @classmethod
    def of(cls, values: str | Sequence[str]) -> Coded:
        if isinstance(values, str):
            return cls((values,), np.zeros(1, dtype=np.intp))
        known: dict[str, int] = {}
        index = np.fromiter((known.setdefault(value, len(known)) for value in values), dtype=np.intp, count=len(values))
        return cls(tuple(known), index)

    def __len__(self) -> int:
        return len(self.index)

    def look_up(self, value: Callable[[str], float]) -> Array:
        """`value` of every row's name, asked once per name."""
        if len(self.index) == 1:
            return np.array([value(self.names[self.index[0]])], dtype=np.float64)
        return np.array([value(name) for name in self.names], dtype=np.float64)[self.index]

    def map(self, change: Callable[[str], str]) -> Coded:
        if len(self.index) == 1:
            return Coded((change(self.names[self.index[0]]),), _FIRST)
        known: dict[str, int] = {}
        table = np.array([known.setdefault(change(name), len(known)) for name in self.names], dtype=np.intp)
        return Coded(tuple(known), table[self.index])

    def cross(self, right: Coded) -> Coded:
        """Pairs of names, written `a|b`; only those that some row has."""
        if len(self.index) == 1 and len(right.index) == 1:
            return Coded((f"{self.names[self.index[0]]}|{right.names[right.index[0]]}",), _FIRST)
        if len(self.names) == 1 and len(right.names) == 1:
            return Coded((f"{self.names[0]}|{right.names[0]}",), self.index if len(self.index) > 1 else right.index)
        width = len(right.names)
        present, place = _present(self.index * width + right.index, len(self.names) * width)
        return Coded(tuple(f"{self.names[at // width]}|{right.names[at % width]}" for at in present.tolist()), place)

    def rows(self, which: slice | Index) -> Coded:
        return self if len(self.index) == 1 else Coded(self.names, self.index[which])

    def name_at(self, row: int) -> str:
        """The name in a row, of a column that may stand for all rows."""
        return self.names[int(self.index[row if len(self.index) > 1 else 0])]

    def texts(self) -> list[str]:
        return [self.names[i] for i in self.index]


class Filling:
    """Columns that are written piece by piece."""

    def __init__(self, count: int) -> None:
        self.columns: dict[str, Array] = {}
        self._count = count

    def add(self, selection: slice, columns: Mapping[str, Array]) -> None:
        for name, values in columns.items():
            if name not in self.columns:
                self.columns[name] = np.empty(self._count)
            self.columns[name][selection] = values


def combinations(columns: Sequence[Coded]) -> tuple[list[Coded], Index]:
    """The distinct combinations of names that rows have: every column by combination, and each row's combination."""
    widths = {id(one.index): len(one.names) for one in columns if len(one) > 1}  # columns that share an index go together
    indices = {id(one.index): one.index for one in columns if len(one) > 1}
    if not widths:
        return list(columns), _FIRST
    key: Index = reduce(
        lambda so_far, index_id: so_far * widths[index_id] + indices[index_id], widths, np.zeros(1, dtype=np.intp)
    )
    present, place = _present(key, math.prod(widths.values()))
    codes: dict[int, Index] = {}
    rest = present
    for index_id, width in reversed(widths.items()):
        rest, codes[index_id] = np.divmod(rest, width)
    return [one if len(one) == 1 else Coded(one.names, codes[id(one.index)]) for one in columns], place


def _present(key: Index, limit: int) -> tuple[Index, Index]:
    """The distinct keys in order, and the place of each row's among them."""
    if limit > max(4 * len(key), 1 << 16):
        return np.unique(key, return_inverse=True)
    mask = np.zeros(limit, dtype=np.bool_)
    mask[key] = True
    present = np.flatnonzero(mask)
    place = np.empty(limit, dtype=np.intp)
    place[present] = np.arange(len(present))
    return present, place.take(key)


def soft_max(a: Array, b: Array, sharpness: float = 4.0) -> Array:
    """The larger of two times, a little above it where they are close: neither perfectly hides the other."""
    top = np.maximum(a, b)
    ratio = np.minimum(a, b) / np.maximum(top, 1e-300)
    if sharpness == 4.0:
        return top * soft_one(ratio)
    return top * (1.0 + ratio**sharpness) ** (1.0 / sharpness)


def soft_one(ratio: Array) -> Array:
    """`soft_max` of 1 and a ratio: (1 + ratio^4)^(1/4), by squares and square roots, which are quicker than powers."""
    power: Array = ratio * ratio
    power *= power
    power += 1.0
    np.sqrt(power, out=power)
    return np.sqrt(power, out=power)
