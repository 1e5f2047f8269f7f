"""How likely it is that something is done in time: estimates are off by a logarithmic normal law."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from chipwise.perf.arrays import Array

NINE_OF_TEN = NormalDist().inv_cdf(0.9)

_half_erfc = np.frompyfunc(lambda size: 0.5 * math.erfc(size), 1, 1)


def sure_factors(spread: Array, confidence: float) -> Array:
    """How many times the expected value is not exceeded with `confidence`, where nine times of ten `spread` times it is not.
    Rounding does not make it a hair less sure."""
    power = NormalDist().inv_cdf(confidence) / NINE_OF_TEN
    return np.asarray(np.maximum(spread, 1.0) ** power * (1.0 + 1e-9), dtype=np.float64)


def sure_factor(spread: float, confidence: float) -> float:
    return float(sure_factors(np.array([spread]), confidence)[0])


def carried(load: float, rate: float, spread: float) -> float:
    """Probability that what takes `rate`, give or take `spread`, takes all of `load`."""
    return chance_of(1.0, load / max(rate, 1e-12), spread)


def chance_of(limit: float, seconds: float, spread: float) -> float:
    """As `chance_within`, of one estimate."""
    if limit <= 0.0:
        return 0.0
    size = math.log(limit / seconds) * NINE_OF_TEN / math.log(max(spread, 1.0 + 1e-9))
    return 0.5 * math.erfc(-size / math.sqrt(2.0))


def chance_within(limit: Array, seconds: Array, spread: Array) -> Array:
    """That at most `limit` seconds are taken, where `seconds` are expected and nine times of ten at most `spread` times as
    many; an estimate without a spread is taken at its word."""
    with np.errstate(divide="ignore"):
        far = np.log(np.maximum(limit, 0.0) / seconds) * NINE_OF_TEN
        sizes = far / np.log(np.maximum(spread, 1.0 + 1e-9))
    return np.asarray(_half_erfc(-np.asarray(sizes, dtype=np.float64) / math.sqrt(2.0)), dtype=np.float64)
