"""How far a cost may be off: the price may have moved, and the speed is an estimate. Both are of eight cases in ten.

They have nothing to do with each other, so their spreads are joined as those of independent errors: by the root of the sum of
squares, of logarithms. A job that takes longer is paid longer. A service that is slower than expected needs more machines,
unless it has room to spare.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


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


def spread_of(low: float, value: float, high: float) -> Spread:
    """Of a value inside an interval; nothing where there is none."""
    if not (0.0 < value < math.inf):
        return Spread()
    return Spread(min(max(low, 1e-9) / value, 1.0), max(high / value, 1.0))


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
