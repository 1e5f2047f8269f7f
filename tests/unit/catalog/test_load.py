from __future__ import annotations

from dataclasses import replace

import pytest

from chipwise.catalog.catalog import Catalog
from chipwise.catalog.chip import ChipKind, Precision, usable_memory
from chipwise.catalog.discount import Discount, apply
from chipwise.catalog.fact import Fact
from chipwise.catalog.load import load, richer
from chipwise.catalog.machine import Machine
from chipwise.catalog.offer import Offer, Purchase
from chipwise.catalog.query import MachineQuery, OfferQuery, accelerator_memory, find_offers

P5 = ("aws", "p5.48xlarge")


def test_units_are_converted_once_at_the_door(catalog: Catalog) -> None:
    h100 = catalog.chips["H100-SXM"]
    assert h100.memory_bytes_per_s == 3350e9
    assert h100.rate(Precision.BF16) == 989.4e12
    assert h100.link_bytes_per_s == 900e9
    p5 = catalog.machines[catalog.machine_index[P5]]
    assert p5.network_bytes_per_s == 3200e9 / 8
    assert p5.memory_bytes == 2048 * 2.0**30


def test_usable_memory_follows_how_boards_keep_their_check_bits() -> None:
    gib = 2.0**30
    assert usable_memory(80) == 80 * gib
    assert usable_memory(48, inline_ecc=True) == 45 * gib
    assert usable_memory(None) is None


def test_boards_hand_out_what_their_drivers_report(catalog: Catalog) -> None:
    """Reported in GiB: T4 15.0, A10G 22.5, L40S 45.0, RTX A6000 48, RTX PRO 6000 95.6, H200 140.4."""
    reported = {
        "T4": 15.0,
        "A10G": 22.4,
        "L40S": 45.0,
        "RTX-A6000": 48.0,
        "RTX-PRO-6000-SE": 95.6,
        "H200": 140.4,
        "RTX-4090": 24.0,
    }
    for name, gib in reported.items():
        memory = catalog.chips[name].memory_bytes
        assert memory is not None
        assert abs(memory / 2**30 - gib) / gib < 0.01, name


def test_an_offer_names_the_source_of_its_own_purchase_option() -> None:
    by_purchase = {o.purchase: o for o in load().offers if o.key[:3] == ("aws", "g5.xlarge", "us-east-1")}
    assert "skypilot" in by_purchase[Purchase.ON_DEMAND].source
    assert "boavizta" in by_purchase[Purchase.RESERVED_1Y].source
    assert "ec2-instances-info" in by_purchase[Purchase.RESERVED_1Y_UPFRONT].source


def test_processors_and_edge_devices_of_their_own_tables_are_chips(catalog: Catalog) -> None:
    assert catalog.chips["Graviton5"].kind is ChipKind.CPU
    assert catalog.chips["Hailo-8"].kind is ChipKind.EDGE
    assert catalog.chips["Xeon-Sapphire-Rapids"].rate(Precision.BF16) == 157.29e12
    assert "bf16" in catalog.chips["Xeon-Sapphire-Rapids"].fact.inferred


def test_an_offer_under_a_known_key_replaces_the_packaged_one() -> None:
    fresh = Offer("aws", "p5.48xlarge", "us-east-1", Purchase.ON_DEMAND, 40.0, "2026-11-01", source="feed")
    before, after = load(), load(offers=[fresh])
    assert len(before.offers) == len(after.offers)
    found = [o for o in after.offers if o.key == fresh.key]
    assert found == [fresh]


def test_an_offer_in_an_unknown_region_gives_that_region_a_row_with_an_unknown_place() -> None:
    fresh = Offer("aws", "p5.48xlarge", "xx-moon-1", Purchase.SPOT, 40.0, "2026-11-01", source="feed")
    catalog = load(offers=[fresh])
    region = catalog.regions[catalog.region_index["aws", "xx-moon-1"]]
    assert region.country is None
    assert region.location is None


def test_a_poorer_row_does_not_erase_what_a_richer_one_states() -> None:
    known = Machine("azure", "Standard_X", "H100-SXM", 8, vcpus=96, fact=Fact(("docs",), "2026-01-01"))
    new = Machine("azure", "Standard_X", None, None, fact=Fact(("feed",), "2026-11-01"))
    joined = richer(known, new)
    assert (joined.chip, joined.chips, joined.vcpus) == ("H100-SXM", 8, 96)
    assert joined.fact.as_of == "2026-11-01"


def test_a_discount_lowers_exactly_the_offers_it_names() -> None:
    catalog = load()
    cut = apply(catalog, [Discount(0.3, "aws", frozenset({P5}), purchases=frozenset({Purchase.ON_DEMAND}), note="contract 7")])
    for i, offer in enumerate(catalog.offers):
        named = offer.provider == "aws" and offer.machine == "p5.48xlarge" and offer.purchase is Purchase.ON_DEMAND
        assert cut.offers.price[i] == (offer.usd_per_hour * 0.7 if named else offer.usd_per_hour)
    found = find_offers(cut, OfferQuery(MachineQuery(machines={P5}), purchases={Purchase.ON_DEMAND}))
    assert all("negotiated" in cut.offers[i].notes for i in found)


def test_discounts_leave_the_catalog_they_were_given_alone() -> None:
    catalog = load()
    before = list(catalog.offers.price)
    apply(catalog, [Discount(0.5, "aws")])
    assert list(catalog.offers.price) == before


def test_what_is_inferred_stays_marked(catalog: Catalog) -> None:
    assert "pcie_gen" in catalog.machines[catalog.machine_index[P5]].fact.inferred
    assert "tf32" in catalog.chips["A10G"].fact.inferred
    assert "int8" in catalog.chips["Jetson-AGX-Orin-64GB"].fact.inferred


def test_a_price_that_is_no_real_offer_stays_marked_when_it_comes_back() -> None:
    floor = next(o for o in load().offers if o.provider == "mithril")
    again = Offer(
        floor.provider, floor.machine, floor.region, floor.purchase, floor.usd_per_hour, "2026-11-10", source="an import"
    )
    joined = next(o for o in load(offers=[again]).offers if o.key == floor.key)
    assert (joined.as_of, joined.can_win) == ("2026-11-10", False)
    real = replace(again, usd_per_hour=floor.usd_per_hour * 200)
    assert next(o for o in load(offers=[real]).offers if o.key == floor.key).can_win


def test_an_older_price_does_not_replace_a_newer_one_unless_it_is_the_users_own() -> None:
    ours = next(o for o in load().offers if o.key == ("aws", "p5.48xlarge", "us-east-1", Purchase.ON_DEMAND))
    old = replace(ours, usd_per_hour=98.0, as_of="2023-08-01", source="an old import")
    assert next(o for o in load(offers=[old]).offers if o.key == ours.key) == ours
    assert next(o for o in load(own_offers=[old]).offers if o.key == ours.key).usd_per_hour == 98.0


def test_a_feeds_row_keeps_marks_and_takes_no_facts_of_another_chip() -> None:
    known = next(m for m in load().machines if m.key == P5)
    same = richer(known, Machine("aws", "p5.48xlarge", "H100-SXM", 8, fact=Fact(("a feed",), "2026-11-01")))
    assert "link" in same.fact.inferred
    assert same.link == known.link
    other = richer(known, Machine("aws", "p5.48xlarge", "A100-40", 8, fact=Fact(("a feed",), "2026-11-01")))
    assert (other.link, other.chip_memory_bytes) == (None, None)
    gone = next(m for m in load().machines if m.retired)
    assert richer(gone, Machine(gone.provider, gone.name, None, None)).retired


def test_the_memory_of_slices_is_counted_once(catalog: Catalog) -> None:
    def gib(provider: str, name: str) -> float:
        memory = accelerator_memory(catalog, catalog.machines[catalog.machine_index[provider, name]])
        assert memory is not None
        return memory / 2**30

    assert gib("aws", "g6f.4xlarge") == pytest.approx(11.2, rel=0.05)
    assert gib("runpod", "2x_PRO-6000-MIG-24GB_SECURE") == pytest.approx(48, rel=0.05)
    assert gib("aws", "p5.48xlarge") == 640
    assert gib("aws", "g4dn.12xlarge") == 60
