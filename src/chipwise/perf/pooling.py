"""Factors on the terms of a formula, pooled over what configurations have in common.

Every kind of work k in a formula (matrix products, cache reads, ...) is multiplied by exp(u_k), and the whole by exp(u_*):
  u_k = sum over blocks of  coefficient[block, the row's name at the block's level] * feature
A block is one level (chip, architecture, engine, ...) with one feature (1, or a centred logarithm such as log(hidden/4096)).
Each coefficient has a normal prior around zero with the block's standard deviation, so a chip with three rows borrows from
its architecture and a chip with none is its architecture. Coefficients carry their variance: a name never seen counts with
the prior's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from chipwise.perf.arrays import Array, Coded

WHOLE = "*"
PLAIN = "1"


@dataclass(frozen=True, slots=True)
class Block:
    level: str
    base: str  # which kind of work, or WHOLE
    feature: str  # PLAIN for a factor that depends on the name alone
    sd: float

    @property
    def key(self) -> str:
        return f"{self.level}/{self.base}/{self.feature}"


@dataclass(frozen=True, slots=True)
class Pooled:
    """Of every row: the exponent of each base, and the variance that its coefficients leave to it."""

    exponents: Mapping[str, Array]
    variances: Mapping[str, Array]


@dataclass(frozen=True, slots=True)
class _Level:
    """The blocks of one level as a table: a row per known name and a last one for names never seen."""

    name: str
    blocks: tuple[Block, ...]
    place: Mapping[str, int]
    values: Array  # blocks by names + 1
    variances: Array


@dataclass(frozen=True)
class Factors:
    """What a fit found: for each block a value and a variance per name."""

    blocks: tuple[Block, ...]
    values: Mapping[str, Mapping[str, tuple[float, float]]]  # block key -> name -> (coefficient, variance)

    @cached_property
    def _levels(self) -> tuple[_Level, ...]:
        return tuple(self._level(name) for name in dict.fromkeys(block.level for block in self.blocks))

    def _level(self, name: str) -> _Level:
        blocks = [block for block in self.blocks if block.level == name]
        place: dict[str, int] = {}
        for block in blocks:
            for known in self.values.get(block.key, {}):
                place.setdefault(known, len(place))
        values = np.zeros((len(place) + 1, len(blocks)))
        variances = np.tile(np.array([block.sd**2 for block in blocks]), (len(place) + 1, 1))
        for at, block in enumerate(blocks):
            for known, (value, variance) in self.values.get(block.key, {}).items():
                values[place[known], at], variances[place[known], at] = value, variance
        return _Level(name, tuple(blocks), place, values.T.copy(), variances.T.copy())

    @cached_property
    def _bases(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(block.base for block in self.blocks))

    @cached_property
    def _features(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(block.feature for block in self.blocks if block.feature != PLAIN))

    @cached_property
    def _slots(self) -> tuple[tuple[NDArray[np.intp], Array], ...]:
        """Of every level: which feature each of its blocks has (0: none), and blocks by bases as ones and zeros."""
        place = {PLAIN: 0} | {name: at for at, name in enumerate(self._features, start=1)}
        return tuple(
            (
                np.array([place[block.feature] for block in level.blocks], dtype=np.intp),
                np.array([[float(block.base == base) for base in self._bases] for block in level.blocks]),
            )
            for level in self._levels
        )

    def _pool_one(self, levels: Mapping[str, Coded], features: Mapping[str, Array]) -> Pooled:
        """One row: a few products per level instead of a few operations per block. The same sums."""
        slopes = np.array([1.0, *(float(features[name][0]) for name in self._features)])
        exponents, variances = np.zeros(len(self._bases)), np.zeros(len(self._bases))
        for level, (feature, bases) in zip(self._levels, self._slots, strict=True):
            coded = levels[level.name]
            row = level.place.get(coded.names[coded.index[0]], len(level.place))
            slope = slopes[feature]
            exponents += (level.values[:, row] * slope) @ bases
            variances += (level.variances[:, row] * slope * slope) @ bases
        return Pooled(
            {base: exponents[at : at + 1] for at, base in enumerate(self._bases)},
            {base: variances[at : at + 1] for at, base in enumerate(self._bases)},
        )

    def pool(self, levels: Mapping[str, Coded], features: Mapping[str, Array]) -> Pooled:
        """Columns that are the same in every row stay of length one."""
        if all(len(coded.index) == 1 for coded in levels.values()) and all(len(values) == 1 for values in features.values()):
            return self._pool_one(levels, features)
        exponents: dict[str, Array] = {}
        variances: dict[str, Array] = {}
        for level in self._levels:
            coded = levels[level.name]
            rows = np.array([level.place.get(name, len(level.place)) for name in coded.names], dtype=np.intp)
            values, spreads = level.values[:, rows], level.variances[:, rows]
            for at, block in enumerate(level.blocks):
                value, spread = values[at][coded.index], spreads[at][coded.index]
                if block.feature != PLAIN:
                    feature = features[block.feature]
                    value, spread = value * feature, spread * feature**2
                base = block.base
                exponents[base] = exponents[base] + value if base in exponents else value
                variances[base] = variances[base] + spread if base in variances else spread
        return Pooled(exponents, variances)

    def exponents(self, levels: Mapping[str, Coded], features: Mapping[str, Array]) -> Mapping[str, Array]:
        """u_k of every base that has a block, and u_* of the whole."""
        return self.pool(levels, features).exponents
