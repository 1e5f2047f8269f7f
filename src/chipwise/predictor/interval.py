"""A figure between its ends, by itself: whoever needs no more loads no more."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Interval:
    """Four cases in five lie between `low` and `high`."""

    value: float
    low: float
    high: float

    def times(self, factor: float) -> Interval:
        return Interval(self.value * factor, self.low * factor, self.high * factor)

    def of(self, amount: float) -> Interval:
        """What an amount takes at this rate, or the rate at which it is done in this time."""
        return Interval(amount / self.value, amount / self.high, amount / self.low)
