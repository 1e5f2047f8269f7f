"""Prices as they come over the wire, made into numbers that may be believed, and what is odd about a spot price."""

from __future__ import annotations

import math

from chipwise.catalog.offer import Verdict

# The dearest machine on sale is a few hundred USD an hour (TPU slices: a few thousand); beyond this a unit was misread.
_HIGHEST_USD_PER_HOUR = 100_000.0
# No machine is rented for less: below, the figure is a placeholder even where there is nothing to compare it with.
_LOWEST_USD_PER_HOUR = 0.0005
# The largest spot discount that providers publish is 91% (GCP) and 90% (AWS, Azure).
_PLACEHOLDER_SHARE = 0.01
_FLOOR_SHARE, _FLOOR_WIDTH = 0.10, 0.0005


def usable_price(value: object) -> float | None:
    """USD per hour, or None for what cannot be a price: absent, zero, negative, not finite, absurdly large."""
    if isinstance(value, bool) or not isinstance(value, int | float | str) or (isinstance(value, str) and len(value) > 50):
        return None
    try:
        price = float(value)
    except (ValueError, OverflowError):
        return None
    return price if math.isfinite(price) and 0 < price <= _HIGHEST_USD_PER_HOUR else None


def spot_verdict(price: float, on_demand: float | None) -> tuple[Verdict, str]:
    """What is odd about a spot price, with the reason.

    Below 1% of on-demand it is a placeholder (test servers answer 0.00001 for every machine): EXCLUDE, so that it is
    seen and never ranked. OUTLIER would let it win, because outliers may. At exactly a tenth it stands at the
    provider's largest discount and will rise.
    """
    if on_demand is None:
        if price < _LOWEST_USD_PER_HOUR:
            return Verdict.EXCLUDE, f"a placeholder: nothing is rented for {price:g} USD an hour"
        return Verdict.FINE, ""
    share = price / on_demand
    if share < _PLACEHOLDER_SHARE:
        return Verdict.EXCLUDE, f"a placeholder: below 1% of on-demand ({on_demand:g} USD an hour)"
    if share >= 1:
        return Verdict.NO_SAVING, "not below on-demand"
    if abs(share - _FLOOR_SHARE) < _FLOOR_WIDTH:
        return Verdict.FLOOR, "at a tenth of on-demand, the largest discount: expect a rise"
    return Verdict.FINE, ""
