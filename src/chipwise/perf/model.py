"""The fitted model: factors and intervals together, as packaged or with a user's own calibration on top.

An estimate's provenance says how near it is to measurements: `measured` where this very configuration was, `interpolated`
where the chip was measured with that software, `formula` where only the formula and the chip's kin speak.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from chipwise.perf import bands
from chipwise.perf.arrays import Array, Coded, Index
from chipwise.perf.bands import Band
from chipwise.perf.blocks import fitted
from chipwise.perf.pooling import Factors
from chipwise.perf.question import Question, answer
from chipwise.perf.tables import rows

FAMILIES = ("training", "inference", "vision")
MEASURED, INTERPOLATED, FORMULA = "measured", "interpolated", "formula"
# The level that tells whether a chip was measured with the software asked about.
_NEAR = {"training": ("stack|chip", "*"), "inference": ("engine|chip", "*"), "vision": ("engine|chip", "*")}


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


@dataclass(frozen=True, slots=True)
class Model:
    factors: Mapping[str, Factors]
    bands: Mapping[str, Band]

    def estimate(self, family: str, question: Question, kind: Coded) -> Estimate:
        factors = self.factors[family]
        found = answer(question, factors)
        low, high = bands.limits(self.bands, kind, found.spread)
        soonest = np.maximum(found.seconds * low, found.least)
        latest = found.seconds * high
        ends = question.scale * soonest**question.power, question.scale * latest**question.power
        return Estimate(
            found.value,
            np.minimum(*ends),
            np.maximum(*ends),
            found.seconds,
            found.terms,
            self.near(family, question),
            found.spread,
        )

    def near(self, family: str, question: Question) -> Coded:
        level, base = _NEAR[family]
        known = self.factors[family].values.get(f"{level}/{base}/1", {})
        return question.levels[level].map(lambda name: INTERPOLATED if name in known else FORMULA)


def joined(parts: Sequence[Estimate]) -> Estimate:
    """Estimates of consecutive rows as one."""
    place = {name: at for at, name in enumerate(dict.fromkeys(name for part in parts for name in part.provenance.names))}

    def near(part: Estimate) -> Index:
        codes: Index = np.array([place[name] for name in part.provenance.names], dtype=np.intp)[part.provenance.index]
        return np.broadcast_to(codes, part.value.shape)

    def column(get: Callable[[Estimate], Array]) -> Array:
        return np.concatenate([np.broadcast_to(get(part), part.value.shape) for part in parts])

    return Estimate(
        value=column(lambda part: part.value),
        low=column(lambda part: part.low),
        high=column(lambda part: part.high),
        seconds=column(lambda part: part.seconds),
        terms={
            name: np.concatenate([np.broadcast_to(part.terms[name], part.value.shape) for part in parts])
            for name in parts[0].terms
        },
        provenance=Coded(tuple(place), np.concatenate([near(part) for part in parts])),
        spread=column(lambda part: part.spread),
    )


@cache
def packaged() -> Model:
    found = bands.from_rows(rows("intervals.csv"))
    return Model({family: fitted(family) for family in FAMILIES}, found)
