"""Spot markets made up: the longer spot is there, or gone, the longer it stays so.

The rate of change falls with the age of what is seen, as (age + 5 min)^-exponent; the rates at the age of zero differ from
series to series, so that some markets are calm and some flicker, and some are seldom there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chipwise.errors import BadInput
from chipwise.scale.spot import Flags

_YOUNG_H = 1.0 / 12.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticMarket:
    """Rates an hour at the age of ten minutes, and how far (as a factor) those of a series may be from them."""

    losses_per_hour: float = 1.0
    returns_per_hour: float = 1.0
    spread: float = 4.0
    exponent: float = 0.7

    def __post_init__(self) -> None:
        if min(self.losses_per_hour, self.returns_per_hour) <= 0.0 or self.spread < 1.0 or self.exponent < 0.0:
            raise BadInput(
                "The rates of a synthetic market must be above zero, its spread at least 1, its exponent not below 0."
            )


def series(market: SyntheticMarket, *, count: int, ticks: int, tick_h: float, seed: int) -> Flags:
    """Series x tick; the same seed gives the same series."""
    chance = np.random.default_rng(seed)
    factors = market.spread ** chance.uniform(-1.0, 1.0, (2, count))
    losses, returns = market.losses_per_hour * factors[0], market.returns_per_hour * factors[1]
    available = chance.random(count) < returns / (losses + returns)
    age_h = np.full(count, 1.0)
    flags = np.empty((count, ticks), np.bool_)
    for tick in range(ticks):
        flags[:, tick] = available
        rate = np.where(available, losses, returns) * ((age_h + _YOUNG_H) / (3.0 * _YOUNG_H)) ** -market.exponent
        changes = chance.random(count) < -np.expm1(-rate * tick_h)
        available = available ^ changes
        age_h = np.where(changes, 0.0, age_h + tick_h)
    return flags
