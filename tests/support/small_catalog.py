"""The packaged catalog with few of its offers, for tests of planning whose law holds for any catalog.

Selected from the real rows, so that it cannot fall behind them: of every provider, chip, way to buy and size of machine the
cheapest offer that may win, in each region that examples name and once elsewhere. It has every chip and every trade-off, and
a thirteenth of the offers: not every machine in every region. Of serverless services it has those of five providers.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from unittest.mock import patch

from chipwise.api.session.wiring import Session, open_session
from chipwise.catalog import load
from chipwise.catalog.catalog import Catalog
from chipwise.catalog.offer import NEVER_WIN, VERDICTS, Offers

COLUMNS = ("machine", "region", "purchase", "price", "price_max", "as_of", "verdict", "text")
SIZES = (2, 8)  # where machines with few chips and with many begin
# the regions that examples name, and one of each large cloud beside
HOMES = frozenset(
    {
        ("aws", "us-east-1"),
        ("aws", "eu-central-1"),
        ("aws", "eu-west-2"),
        ("gcp", "us-central1"),
        ("gcp", "europe-west2"),
        ("azure", "uksouth"),
    }
)
SERVERLESS = frozenset({"aws", "gcp", "azure", "modal", "runpod"})
ENDPOINTS = ("ml.g5.xlarge", "ml.g5.12xlarge", "ml.p4d.24xlarge", "ml.p5.48xlarge", "ml.inf2.xlarge")  # of 25 of SageMaker
_packaged = load._packaged


@cache
def small_catalog(prices: bool = True) -> Catalog:
    whole = _packaged(prices)
    if not prices:
        return whole
    few = replace(whole, offers=_selected(whole))
    few._tables["serverless"] = tuple(
        row
        for row in whole.rows("serverless")
        if row.provider in SERVERLESS and (row.hardware in ENDPOINTS or not row.hardware.startswith("ml."))
    )
    return few


def _selected(catalog: Catalog) -> Offers:
    offers = catalog.offers
    cheapest: dict[tuple[object, ...], int] = {}
    for i in range(len(offers)):
        if VERDICTS[offers.verdict[i]] in NEVER_WIN:
            continue
        machine, region = catalog.machines[offers.machine[i]], catalog.regions[offers.region[i]]
        home = region.name if region.key in HOMES else ""
        key = (machine.provider, machine.chip, offers.purchase[i], bisect(SIZES, machine.chips or 0), home)
        if offers.price[i] < offers.price[cheapest.setdefault(key, i)]:
            cheapest[key] = i
    few = Offers(offers.machine_keys, offers.region_keys)
    few.texts = offers.texts
    for name in COLUMNS:
        column = getattr(offers, name)
        getattr(few, name).extend(column[i] for i in sorted(cheapest.values()))
    return few


@contextmanager
def few_offers() -> Iterator[None]:
    """Whoever opens a session and has no files of his own meets the small catalog."""
    with patch.object(load, "_packaged", small_catalog):
        yield


def real_session() -> Session:
    """One that knows every offer, for what needs them among others that do not."""
    with patch.object(load, "_packaged", _packaged):
        opened = open_session()
        assert opened.catalog.offers
    return opened
