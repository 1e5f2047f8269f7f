"""How much the same work varies from run to run, by kind of offer; apart from how wrong a model of it is.

Times are taken as log-normal. A table (`data/perf/steadiness.csv`) holds the standard deviation of the logarithm for each
kind and the worst ratio seen; where only a range over about three runs was known, sd = ln(max / min) / 1.69, the expected
range of three normal draws. Independent causes add in squares: sd^2 = model^2 + offer^2 + ...
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, reduce
from statistics import NormalDist

import numpy as np

from chipwise.errors import UnknownName
from chipwise.perf.arrays import Array, Coded
from chipwise.perf.tables import rows
from chipwise.spelling import nearest


@dataclass(frozen=True, slots=True)
class Steadiness:
    kind: str
    log_sd: float
    worst_ratio: float  # slowest over usual
    basis: str
    notes: str


@cache
def table() -> dict[str, Steadiness]:
    return {
        row["kind"]: Steadiness(
            kind=row["kind"],
            log_sd=float(row["log_sd"]),
            worst_ratio=float(row["worst_ratio"]),
            basis=row["basis"],
            notes=row["notes"],
        )
        for row in rows("steadiness.csv")
    }


def steadiness(kind: str) -> Steadiness:
    if kind not in table():
        raise UnknownName("kind of offer", kind, nearest(kind, table()), remedy=f"Known: {', '.join(table())}.")
    return table()[kind]


def log_sd(kind: Coded) -> Array:
    """Of every row's kind."""
    return kind.look_up(lambda name: steadiness(name).log_sd)


def combined(*deviations: Array) -> Array:
    """Standard deviation of the logarithm when causes are independent."""
    return reduce(np.hypot, deviations)


def interval(value: Array, deviation: Array, level: float = 0.8) -> tuple[Array, Array]:
    """Between which values `level` of the runs lie."""
    width = NormalDist().inv_cdf(0.5 + level / 2) * deviation
    return value * np.exp(-width), value * np.exp(width)
