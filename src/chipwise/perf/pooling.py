"""Factors on the terms of a formula, pooled over what configurations have in common.

Every kind of work k in a formula (matrix products, cache reads, ...) is multiplied by exp(u_k), and the whole by exp(u_*):
  u_k = sum over blocks of  coefficient[block, the row's name at the block's level] * feature
A block is one level (chip, architecture, engine, ...) with one feature (1, or a centred logarithm such as log(hidden/4096)).
Each coefficient has a normal prior around zero with the block's standard deviation, so a chip with three rows borrows from
its architecture and a chip with none is its architecture. Coefficients carry their variance: a name never seen counts with
the prior's.

A million candidates have a few hundred combinations of names. `Groups` keeps levels once per combination; the blocks of one
base and feature are summed there, and rows only look their sums up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from chipwise.perf.arrays import Array, Coded, Index

ALL_TERMS = "*"
PLAIN = "1"
_PIECE = 512  # groups whose coefficients are summed at a time, so that they stay in the cache


@dataclass(frozen=True, slots=True)
class FactorBlock:
    level: str
    base: str  # which kind of work, or WHOLE
    feature: str  # PLAIN for a factor that depends on the name alone
    sd: float

    @property
    def key(self) -> str:
        return f"{self.level}/{self.base}/{self.feature}"


class Groups(Mapping[str, Coded]):
    """Levels of rows that come in few groups: kept once per group, given out by row. `floors` are levels of the same groups
    whose exponents theirs are never below."""

    def __init__(
        self,
        levels: Mapping[str, Coded],
        index: Index,
        sums: dict[Factors, Array] | None = None,
        floors: Mapping[str, Coded] | None = None,
    ) -> None:
        self.levels = levels
        self.index = index
        self._floors = floors
        self._sums: dict[Factors, Array] = {} if sums is None else sums  # shared by all slices of the same rows

    def __getitem__(self, level: str) -> Coded:
        coded = self.levels[level]
        return coded if len(coded) == 1 else Coded(coded.names, coded.index[self.index])

    def __iter__(self) -> Iterator[str]:
        return iter(self.levels)

    def __len__(self) -> int:
        return len(self.levels)

    def rows(self, selection: slice | Index) -> Groups:
        return self if len(self.index) == 1 else Groups(self.levels, self.index[selection], self._sums, self._floors)

    def sums(self, factors: Factors) -> Array:
        if factors not in self._sums:
            sums = factors.sums(self.levels)
            self._sums[factors] = sums if self._floors is None else _at_least(sums, factors.sums(self._floors))
        return self._sums[factors]


def _at_least(found: Array, least: Array) -> Array:
    """Of each (coefficients, variances), the pair with the larger coefficient."""
    return np.where(found[0] >= least[0], found, least)


@dataclass(frozen=True, slots=True)
class Pooled:
    """Of every row: the exponent of each base, and the variance that its coefficients leave to it."""

    place: Mapping[str, int]  # of each base
    totals: Array  # (exponents, variances) x bases x groups: all that is the same for every row of a group
    scales: Array  # exp of the exponents
    leaning: Mapping[str, Sequence[tuple[Array, Array]]]  # by base: sums by group, and the feature by row that goes with them
    index: Index | None  # the group of each row; None: rows are groups, or all are one

    def scale(self, base: str) -> Array:
        """exp(u), by group where it can be."""
        return np.exp(self.exponent(base)) if base in self.leaning else self._by_row(self.scales[self.place[base]])

    def exponent(self, base: str) -> Array:
        total = self._by_row(self.totals[0, self.place[base]])
        for sums, feature in self.leaning.get(base, ()):
            total = total + self._by_row(sums[0]) * feature
        return total

    def variance(self, base: str) -> Array:
        total = self._by_row(self.totals[1, self.place[base]])
        for sums, feature in self.leaning.get(base, ()):
            total = total + self._by_row(sums[1]) * (feature * feature)
        return total

    @property
    def exponents(self) -> dict[str, Array]:
        return {base: self.exponent(base) for base in self.place}

    @property
    def variances(self) -> dict[str, Array]:
        return {base: self.variance(base) for base in self.place}

    def _by_row(self, values: Array) -> Array:
        return values if self.index is None or len(values) == 1 else values.take(self.index)


@dataclass(frozen=True, eq=False)  # known by identity: groups remember what factors made of them
class Factors:
    """What a fit found: for each block a value and a variance per name."""

    blocks: tuple[FactorBlock, ...]
    values: Mapping[str, Mapping[str, tuple[float, float]]]  # block key -> name -> (coefficient, variance)

    @cached_property
    def _table(self) -> _Table:
        return _Table.of(self.blocks, self.values)

    def sums(self, levels: Mapping[str, Coded]) -> Array:
        """(coefficients, variances) x pairs of base and feature x rows of the levels."""
        return self._table.sums(levels)

    def pool(self, levels: Mapping[str, Coded], features: Mapping[str, Array]) -> Pooled:
        """Columns that are the same in every row stay of length one."""
        if isinstance(levels, Groups):
            return self._table.pooled(levels.sums(self), levels.index, features)
        return self._table.pooled(self.sums(levels), None, features)

    def exponents(self, levels: Mapping[str, Coded], features: Mapping[str, Array]) -> Mapping[str, Array]:
        """u_k of every base that has a block, and u_* of the whole."""
        return self.pool(levels, features).exponents


@dataclass(frozen=True, slots=True)
class _Table:
    """All coefficients in one row: a block's are neighbours, one per known name and a last one for names never seen.

    Blocks are ordered by base and feature, so that a sum over the blocks of such a pair, or over the pairs of a base, is one
    over neighbours.
    """

    bases: Mapping[str, int]  # the place of each
    features: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]  # of base and feature
    feature: Index  # of each pair: 0 for none, then in the order of `features`
    places: Mapping[str, Mapping[str, int]]  # of each level: where a name stands within a block
    cells: Array  # (coefficients, variances) x cells
    level: Index  # of each block, in the order of `places`
    first: Index  # cell of each block, as a column
    starts: Index  # block that each pair begins with
    base_starts: Index  # pair that each base begins with

    @classmethod
    def of(cls, blocks: Sequence[FactorBlock], values: Mapping[str, Mapping[str, tuple[float, float]]]) -> _Table:
        places: dict[str, dict[str, int]] = {block.level: {} for block in blocks}
        for block in blocks:
            for name in values.get(block.key, {}):
                places[block.level].setdefault(name, len(places[block.level]))
        bases = {base: at for at, base in enumerate(dict.fromkeys(block.base for block in blocks))}
        pairs = sorted(dict.fromkeys((block.base, block.feature) for block in blocks), key=lambda pair: bases[pair[0]])
        order = {pair: at for at, pair in enumerate(pairs)}
        ordered = sorted(blocks, key=lambda block: order[block.base, block.feature])
        sizes = [len(places[block.level]) + 1 for block in ordered]
        first = np.cumsum([0, *sizes])
        cells = np.zeros((2, first[-1]))
        for block, start, size in zip(ordered, first, sizes, strict=False):
            cells[1, start : start + size] = block.sd**2
            for name, cell in values.get(block.key, {}).items():
                cells[:, start + places[block.level][name]] = cell
        level = {name: at for at, name in enumerate(places)}
        features = tuple(dict.fromkeys(feature for _, feature in pairs if feature != PLAIN))
        feature = np.array([(PLAIN, *features).index(name) for _, name in pairs], dtype=np.intp)
        return cls(
            bases=bases,
            features=features,
            pairs=tuple(pairs),
            feature=feature,
            places=places,
            cells=cells,
            level=np.array([level[block.level] for block in ordered], dtype=np.intp),
            first=first[:-1, None].astype(np.intp),
            starts=_starts([order[block.base, block.feature] for block in ordered]),
            base_starts=_starts([bases[base] for base, _ in pairs]),
        )

    def sums(self, levels: Mapping[str, Coded]) -> Array:
        if not self.places:
            return np.zeros((2, 0, 1))
        rows = [_rows(levels[level], place) for level, place in self.places.items()]
        indices: Index = np.array(rows if len({len(one) for one in rows}) == 1 else np.broadcast_arrays(*rows), dtype=np.intp)
        pieces = [self._sums(indices[:, start : start + _PIECE]) for start in range(0, indices.shape[1], _PIECE)]
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces, axis=2)

    def pooled(self, sums: Array, index: Index | None, features: Mapping[str, Array]) -> Pooled:
        """Features that all rows share are taken in by group, the others stay beside their sums."""
        if not self.pairs:
            return Pooled(place={}, totals=sums, scales=sums[0], leaning={}, index=index)
        by_row = {name: values for name, values in features.items() if len(values) > 1}
        shared = [1.0, *(0.0 if name in by_row else features[name][0] for name in self.features)]
        slope = np.array(shared).take(self.feature)
        totals = np.add.reduceat(sums * np.array((slope, slope * slope))[..., None], self.base_starts, axis=1)
        leaning: dict[str, list[tuple[Array, Array]]] = {}
        if by_row:
            for position, (base, name) in enumerate(self.pairs):
                if name in by_row:
                    leaning.setdefault(base, []).append((sums[:, position], by_row[name]))
        return Pooled(place=self.bases, totals=totals, scales=np.exp(totals[0]), leaning=leaning, index=index)

    def _sums(self, at: Index) -> Array:
        cells = self.cells.take(at.take(self.level, axis=0) + self.first, axis=1)
        return np.add.reduceat(cells, self.starts, axis=1)


def _rows(coded: Coded, place: Mapping[str, int]) -> Sequence[int] | Index:
    if len(coded) == 1:
        return [place.get(coded.names[coded.index[0]], len(place))]
    return np.array([place.get(name, len(place)) for name in coded.names], dtype=np.intp)[coded.index]


def _starts(places: Sequence[int]) -> Index:
    """Where each run of equal numbers begins, in a sequence that never falls."""
    return np.flatnonzero(np.diff(np.array(places, dtype=np.intp), prepend=-1))
