"""How far a price may have moved since it was read: by the provider's own record, or by that of its kind.

The table `price_drift` says what prices were 7 to 365 days later, over what they had been. An age between two horizons is read
off a straight line through the logarithms; beyond the last one they grow with the square root of the age, as those of
something that wanders do. Eight prices of ten stay inside. A provider that was looked at on few days goes by its kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import log

import numpy as np
from numpy.typing import NDArray

from chipwise.catalog.offer import Purchase
from chipwise.catalog.price_tables import PriceDrift

ACCELERATOR, PROCESSOR = "accelerator", "cpu"
Array = NDArray[np.float64]
FEWEST_HORIZONS = 3  # that a record of its own needs


class PriceRanges:
    """Factors on a price, low and high, by provider, hardware, purchase option and age."""

    def __init__(self, rows: Iterable[PriceDrift], kinds: Mapping[str, str]) -> None:
        """`kinds` of providers by name, as `providers.csv` has them."""
        self.kinds = kinds
        records: dict[tuple[str, str, str], list[PriceDrift]] = {}
        for row in rows:
            records.setdefault((row.provider, row.hardware, row.purchase), []).append(row)
        self._lines = {
            key: tuple(sorted((float(row.horizon_days or 0), log(row.low or 1.0), log(row.high or 1.0)) for row in drifts))
            for key, drifts in records.items()
        }

    def factors(self, provider: str, hardware: str, purchase: Purchase, days: Array) -> tuple[Array, Array]:
        line = self._line(provider, hardware, purchase)
        if line is None:
            return np.ones(len(days)), np.ones(len(days))
        horizons, lows, highs = (np.array([0.0, *column]) for column in zip(*line, strict=True))
        age = np.maximum(days, 0.0)
        beyond = np.sqrt(np.maximum(age / horizons[-1], 1.0))
        low, high = (np.exp(np.interp(age, horizons, ends) * beyond) for ends in (_out(lows, -1), _out(highs, 1)))
        return low, high

    def _line(self, provider: str, hardware: str, purchase: Purchase) -> tuple[tuple[float, float, float], ...] | None:
        if purchase is Purchase.OWNED:
            return None
        bought = str(Purchase.SPOT if purchase is Purchase.SPOT else Purchase.ON_DEMAND)  # nobody followed reserved prices
        own = self._lines.get((provider, hardware, bought))
        if own is not None and len(own) >= FEWEST_HORIZONS:
            return own
        pool = f"*{self.kinds.get(provider, 'gpu cloud').replace(' ', '-')}"
        return self._lines.get((pool, hardware, bought)) or self._lines.get((pool, ACCELERATOR, bought)) or own


def _out(ends: NDArray[np.float64], sign: int) -> Array:
    """A range never shrinks with age, and holds the price itself."""
    return np.asarray(sign * np.maximum.accumulate(np.maximum(sign * ends, 0.0)))
