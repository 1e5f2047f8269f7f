"""What packaged prices count with in plans."""

from __future__ import annotations

from datetime import date
from statistics import median

import pytest

from chipwise.api.session.wiring import open_session
from chipwise.catalog.offer import Purchase
from chipwise.planner.offer_prices import offer_prices


def test_a_spot_price_far_below_others_counts_only_where_another_source_has_it() -> None:
    """One source lists a B200 machine in one region at 0.43 of its price in ten others."""
    catalog = open_session().catalog
    prices = offer_prices(catalog, date(2026, 11, 15))
    spot = {
        one.region: at
        for at, one in enumerate(catalog.offers)
        if one.machine == "a4-highgpu-8g" and one.purchase is Purchase.SPOT
    }
    others = [float(prices.counted[at]) for region, at in spot.items() if region != "europe-west1"]
    assert not any(prices.replaced[at] for region, at in spot.items() if region != "europe-west1")
    assert catalog.offers[spot["europe-west1"]].usd_per_hour < 0.5 * median(others)
    assert prices.replaced[spot["europe-west1"]]
    assert prices.counted[spot["europe-west1"]] == pytest.approx(median(others))
