"""The fitted model: factors and intervals together, as packaged or with a user's own calibration on top.

An estimate's provenance says how near it is to measurements: `measured` where this very configuration was, `interpolated`
(near measurements) where the chip was measured with that software at such settings, `between` where chip and software were,
but not together or at other settings, `other software` where the chip was with other software only, `formula` where only the
formula and the chip's kin speak, `carried` where a user's run of this work on another chip does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from chipwise.perf import bands
from chipwise.perf.arrays import Array, Coded, Filling, has_nonzero
from chipwise.perf.bands import Band
from chipwise.perf.blocks import fitted
from chipwise.perf.part import Part
from chipwise.perf.pooling import Factors
from chipwise.perf.question import Question, answer
from chipwise.perf.seen import FORMULA, GROWTH, INTERPOLATED, Seen
from chipwise.perf.seen import from_rows as seen_from_rows
from chipwise.perf.tables import rows

FAMILIES = ("training", "inference", "vision")
MEASURED = "measured"
CARRIED = "carried"  # from a user's own run on another chip
_COLUMNS = ("value", "low", "high", "seconds", "spread", "minimum")  # of an estimate
_TERM = "term "
# The level that tells whether a chip was measured with the software asked about, where settings are not known.
ARCHITECTURE = {"training": "arch", "inference": "arch", "vision": "architecture"}  # levels
_NEAR = {"training": "stack|chip", "inference": "engine|chip", "vision": "engine|chip"}


@dataclass(frozen=True, slots=True)
class Estimate:
    """One row per candidate. `value` is in the asked unit, between `low` and `high` in four of five cases."""

    value: Array
    low: Array  # 10th percentile
    high: Array  # 90th percentile
    seconds: Array  # the time that the value stands for
    terms: Mapping[str, Array]  # seconds; they sum to `seconds`
    provenance: Coded
    spread: Array
    minimum: Array = field(default_factory=lambda: np.zeros(1))  # seconds that the hardware needs at the very least


@dataclass(frozen=True, slots=True)
class Model:
    factors: Mapping[str, Factors]
    bands: Mapping[str, Band]
    nearness: Mapping[str, Seen] = field(default_factory=dict)  # by family; what was measured at which settings
    best: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # by family and architecture; shares of the peak

    def estimate(self, family: str, question: Question, kind: Coded) -> Estimate:
        factors = self.factors[family]
        result = answer(question, factors)
        near, beyond = self.near(family, question)
        spread = widened(result.spread, beyond)
        low, high = bands.limits(self.bands, kind.cross(near) if family in self.nearness else kind, spread)
        soonest = np.maximum(result.seconds * low, result.minimum)
        if has_nonzero(question.nominal):
            fastest = question.nominal / self.best_share(family, question)
            soonest = np.maximum(soonest, np.minimum(fastest, result.seconds))
        ends = question.value(soonest), question.value(result.seconds * high)
        return Estimate(
            value=result.value,
            low=np.minimum(*ends),
            high=np.maximum(*ends),
            seconds=result.seconds,
            terms=result.terms,
            provenance=near,
            spread=spread,
            minimum=result.minimum,
        )

    def best_share(self, family: str, question: Question) -> Array:
        """Of the stated peak, the most that products of a whole step or pass were measured to reach on such a chip."""
        shares = self.best.get(family, {})
        most = max(shares.values(), default=1.0)
        return question.levels[ARCHITECTURE[family]].look_up(lambda name: shares.get(name, most))

    def by_formula(self, estimate: Estimate, part: Part, power: float) -> Estimate:
        """An estimate that no fit made, with what a user measured; `power` is -1 for rates."""
        return estimate

    def near(self, family: str, question: Question) -> tuple[Coded, Array]:
        """How near each row is to measurements, and how far beyond measured settings."""
        if family in self.nearness and question.settings:
            return self.nearness[family].place(question)
        known = self.factors[family].values.get(f"{_NEAR[family]}/*/1", {})
        return question.levels[_NEAR[family]].map(lambda name: INTERPOLATED if name in known else FORMULA), np.zeros(1)


def widened(spread: Array, beyond: Array) -> Array:
    """What factors leave open, and what settings beyond the measured ones add."""
    return np.hypot(spread, GROWTH * beyond) if beyond.any() else spread


class Joining:
    """Estimates of consecutive rows as one, written down as they come: the memory of each is free for the next."""

    def __init__(self, count: int) -> None:
        self._columns = Filling(count)
        self._near = np.empty(count, dtype=np.intp)
        self._names: dict[str, int] = {}

    def add(self, selection: slice, part: Estimate) -> None:
        self._columns.add(selection, {name: getattr(part, name) for name in _COLUMNS})
        self._columns.add(selection, {f"{_TERM}{name}": values for name, values in part.terms.items()})
        codes = [self._names.setdefault(name, len(self._names)) for name in part.provenance.names]
        self._near[selection] = np.array(codes, dtype=np.intp)[part.provenance.index]

    def estimate(self) -> Estimate:
        columns = self._columns.columns
        terms = {name.removeprefix(_TERM): values for name, values in columns.items() if name.startswith(_TERM)}
        return Estimate(
            **{name: columns[name] for name in _COLUMNS}, terms=terms, provenance=Coded(tuple(self._names), self._near)
        )


class _Fitted(Mapping[str, Factors]):
    """The packaged factors, each family's read when it is asked for."""

    def __getitem__(self, family: str) -> Factors:
        if family not in FAMILIES:
            raise KeyError(family)
        return fitted(family)

    def __iter__(self) -> Iterator[str]:
        return iter(FAMILIES)

    def __len__(self) -> int:
        return len(FAMILIES)


@cache
def packaged() -> Model:
    best: dict[str, dict[str, float]] = {}
    for row in rows("best_shares.csv"):
        best.setdefault(row["family"], {})[row["architecture"]] = float(row["share"])
    return Model(_Fitted(), bands.from_rows(rows("intervals.csv")), seen_from_rows(rows("seen.csv")), best)
