"""How far a cost may be off: the price may have moved, and the speed is an estimate. Both are of eight cases in ten.

They have nothing to do with each other, so their spreads are joined as those of independent errors: by the root of the sum of
squares, of logarithms. A job that takes longer is paid longer. A service that is slower than expected needs more machines,
unless it has room to spare.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from chipwise.perf.arrays import Array
from chipwise.planner.chances import sure_factors
from chipwise.planner.pricing import Priced


@dataclass(frozen=True, slots=True)
class Spread:
    """Factors below and above 1."""

    low: float = 1.0
    high: float = 1.0

    def __mul__(self, other: Spread) -> Spread:
        return Spread(
            math.exp(-math.hypot(math.log(self.low), math.log(other.low))),
            math.exp(math.hypot(math.log(self.high), math.log(other.high))),
        )


def sure_extra(priced: Priced, confidence: float) -> Array:
    """USD above the expected cost of every row that are not exceeded with `confidence`. A service has the machines that carry
    its load with it already, so its price alone may move."""
    prices, offer = priced.prices, priced.offer
    by_price = np.maximum(prices.high[offer] / np.maximum(prices.counted[offer], 1e-12), 1.0)
    unpaid = priced.tails.first_wait_s
    by_time = np.maximum((priced.high_s - unpaid) / np.maximum(priced.seconds - unpaid, 1e-9), 1.0)
    spread = np.exp(np.hypot(np.log(by_price), np.log(by_time)))
    return np.asarray((priced.compute_usd + priced.restart_usd) * (sure_factors(spread, confidence) - 1.0), dtype=np.float64)


def spread_of(low: float, value: float, high: float) -> Spread:
    """Of a value inside an interval; nothing where there is none."""
    if not (0.0 < value < math.inf):
        return Spread()
    return Spread(min(max(low, 1e-9) / value, 1.0), max(high / value, 1.0))


def short_spread(load: float, rate: float, replicas: int, machines: int, factor: float) -> Spread:
    """Of machines that are bought with confidence: more are needed where one replica does even less than they allow for."""
    if not (load > 0 and rate > 0 and replicas > 0 and machines > 0 and factor > 1.0):
        return Spread()
    copies = math.ceil(load * factor / rate - 1e-6)
    return Spread(1.0, max(math.ceil(copies * machines / replicas - 1e-9) / machines, 1.0))


def machine_spread(load: float, rate: float, replicas: int, machines: int, factor: float) -> Spread:
    """Of the machines that a load takes, where one replica does `rate` give or take `factor`."""
    if not (load > 0 and rate > 0 and replicas > 0 and machines > 0 and factor > 1.0):
        return Spread()

    def needed(speed: float) -> float:
        copies = math.ceil(load / speed - 1e-9)
        inside = replicas / machines  # below 1: a replica spans several machines
        return math.ceil(copies / inside - 1e-9)

    planned = needed(rate)
    return Spread(min(needed(rate * factor) / planned, 1.0), max(needed(rate / factor) / planned, 1.0))
