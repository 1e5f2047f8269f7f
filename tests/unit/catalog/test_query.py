from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.catalog.catalog import Catalog
from chipwise.catalog.chip import ChipKind
from chipwise.catalog.load import load
from chipwise.catalog.offer import Purchase
from chipwise.catalog.query import MachineQuery, OfferOrder, OfferQuery, chip_memory, find_machines, find_offers

CATALOG = load()
OFFERS = list(CATALOG.offers)
ORDERS = st.sampled_from(list(OfferOrder))
QUERIES = st.builds(
    OfferQuery,
    machines=st.builds(
        MachineQuery,
        providers=st.none() | st.sets(st.sampled_from(["aws", "gcp", "azure", "mithril"]), min_size=1),
        chips=st.none() | st.sets(st.sampled_from(["H100-SXM", "A100-80", "T4", "L4"]), min_size=1),
        kinds=st.none() | st.sets(st.sampled_from(list(ChipKind)), min_size=1),
        min_chips=st.none() | st.sampled_from([1.0, 8.0]),
        min_chip_memory_bytes=st.none() | st.sampled_from([16e9, 80e9]),
        retired=st.booleans(),
    ),
    purchases=st.none() | st.sets(st.sampled_from(list(Purchase)), min_size=1),
    max_usd_per_hour=st.none() | st.floats(0.1, 100),
    real_only=st.booleans(),
    order=ORDERS,
    descending=st.booleans(),
)


@given(QUERIES)
def test_a_query_finds_exactly_what_a_plain_scan_finds(query: OfferQuery) -> None:
    machines = query.machines

    def fits(i: int) -> bool:
        offer = OFFERS[i]
        machine = CATALOG.machines[CATALOG.offers.machine[i]]
        memory = chip_memory(CATALOG, machine)
        kind = CATALOG.chips[machine.chip].kind if machine.chip else None
        return (
            (machines.providers is None or machine.provider in machines.providers)
            and (machines.chips is None or machine.chip in machines.chips)
            and (machines.kinds is None or kind in machines.kinds)
            and (machines.min_chips is None or (machine.chips or 0) >= machines.min_chips * 0.999)
            and (machines.min_chip_memory_bytes is None or (memory or 0) >= machines.min_chip_memory_bytes * 0.999)
            and (machines.retired or not machine.retired)
            and (query.purchases is None or offer.purchase in query.purchases)
            and (query.max_usd_per_hour is None or offer.usd_per_hour <= query.max_usd_per_hour)
            and (not query.real_only or offer.can_win)
        )

    assert sorted(find_offers(CATALOG, query)) == [i for i in range(len(OFFERS)) if fits(i)]


@given(QUERIES)
def test_what_is_not_a_real_offer_never_stands_before_one(query: OfferQuery) -> None:
    winners = [OFFERS[i].can_win for i in find_offers(CATALOG, query)]
    assert winners == sorted(winners, reverse=True)


def test_prices_come_in_ascending_order_among_real_offers() -> None:
    prices = [CATALOG.offers.price[i] for i in find_offers(CATALOG, OfferQuery(real_only=True))]
    assert prices == sorted(prices)


def test_an_auction_floor_is_kept_but_cannot_win(catalog: Catalog) -> None:
    found = find_offers(catalog, OfferQuery(MachineQuery(providers={"mithril"})))
    assert len(found) == 6
    assert not any(catalog.offers[i].can_win for i in found)
    assert find_offers(catalog, OfferQuery(MachineQuery(providers={"mithril"}), real_only=True)) == []


@pytest.mark.parametrize("purchase", list(Purchase))
def test_a_purchase_filter_gives_only_that_purchase(catalog: Catalog, purchase: Purchase) -> None:
    found = find_offers(catalog, OfferQuery(purchases={purchase}))
    assert {catalog.offers[i].purchase for i in found} <= {purchase}


def test_eighty_gigabytes_asked_for_are_found_on_an_80_gb_chip(catalog: Catalog) -> None:
    found = {catalog.machines[i].chip for i in find_machines(catalog, MachineQuery(min_chip_memory_bytes=80e9))}
    assert {"A100-80", "H100-SXM", "H200"} <= found
    assert not {"A100-40", "L40S", "T4"} & found


def test_memory_that_ecc_takes_away_is_not_promised(catalog: Catalog) -> None:
    """A 48 GB L40S hands out 45 GiB."""
    found = {catalog.machines[i].chip for i in find_machines(catalog, MachineQuery(min_chip_memory_bytes=48 * 2.0**30))}
    assert "L40S" not in found
    assert "A100-80" in found
