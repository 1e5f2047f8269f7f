"""Loading the whole catalog, and one query over all offers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from chipwise.catalog import load as loading
from chipwise.catalog.load import load
from chipwise.catalog.query import MachineQuery, OfferOrder, OfferQuery, find_offers
from chipwise.catalog.tables import TABLES
from figure import Figure, cpu_here


def _everything() -> None:
    """As a new process reads it: nothing is kept from the last time."""
    for kept in (loading._packaged, loading._packaged_rows):
        kept.cache_clear()
    catalog = load()
    for table in TABLES:
        catalog.rows(table)
    assert catalog.sources


def figures() -> Iterator[Figure]:
    yield Figure("catalog_load_cpu", cpu_here(_everything), "s", {"max": 0.1})
    catalog = load()
    questions = {
        "all_by_price": OfferQuery(),
        "h100_by_chip_price": OfferQuery(MachineQuery(chips={"H100-SXM", "H100-PCIe"}), order=OfferOrder.PRICE_PER_CHIP),
        "80gb_real": OfferQuery(MachineQuery(min_chip_memory_bytes=80e9), real_only=True),
    }
    for name, question in questions.items():
        yield Figure(f"query_{name}_cpu", cpu_here(partial(find_offers, catalog, question), 41) * 1e3, "ms", {"max": 5.0})
    yield Figure("offers_in_catalog", len(catalog.offers), "offers", {"min": 14_600})
