"""Columns of candidates: one row is one configuration, and a column of length one stands for all rows.

Names (chips, engines, models) are columns too: `Coded` keeps the few distinct names beside an index for every row, so
that whatever depends on a name is computed once per name and then looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Index = NDArray[np.intp]


_FIRST: Index = np.zeros(1, dtype=np.intp)


def column(values: float | Sequence[float] | Array) -> Array:
    return np.atleast_1d(np.asarray(values, dtype=np.float64))


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

    def cross(self, other: Coded) -> Coded:
        """Pairs of names, written `a|b`; only those that some row has."""
        if len(self.index) == 1 and len(other.index) == 1:
            return Coded((f"{self.names[self.index[0]]}|{other.names[other.index[0]]}",), _FIRST)
        if len(self.names) == 1 and len(other.names) == 1:
            return Coded((f"{self.names[0]}|{other.names[0]}",), self.index if len(self.index) > 1 else other.index)
        pair = self.index * len(other.names) + other.index
        here = np.zeros(len(self.names) * len(other.names), dtype=bool)
        here[pair] = True
        present = np.flatnonzero(here)
        place = np.zeros(len(here), dtype=np.intp)
        place[present] = np.arange(len(present))
        width = len(other.names)
        return Coded(tuple(f"{self.names[at // width]}|{other.names[at % width]}" for at in present.tolist()), place[pair])

    def rows(self, which: slice) -> Coded:
        return self if len(self.index) == 1 else Coded(self.names, self.index[which])

    def at(self, row: int) -> str:
        """The name in a row, of a column that may stand for all rows."""
        return self.names[int(self.index[row if len(self.index) > 1 else 0])]

    def texts(self) -> list[str]:
        return [self.names[i] for i in self.index]


def soft_max(a: Array, b: Array, sharpness: float = 4.0) -> Array:
    """The larger of two times, a little above it where they are close: neither perfectly hides the other."""
    top = np.maximum(a, b)
    low = np.minimum(a, b)
    ratio = low / np.maximum(top, 1e-300)
    return top * (1.0 + ratio**sharpness) ** (1.0 / sharpness)
