"""The catalog that tests plan on is a small one of the same world."""

from __future__ import annotations

from chipwise.catalog.catalog import Catalog
from chipwise.catalog.load import load
from chipwise.catalog.offer import Purchase
from small_catalog import HOMES, small_catalog


def kinds(catalog: Catalog) -> set[tuple[str, str | None, Purchase]]:
    chips = {machine.key: machine.chip for machine in catalog.machines}
    return {(one.provider, chips[one.provider, one.machine], one.purchase) for one in catalog.offers if one.can_win}


def test_it_has_every_provider_chip_and_way_to_buy() -> None:
    assert kinds(small_catalog()) == kinds(load())


def test_its_offers_are_real_ones_and_few() -> None:
    few, every = small_catalog().offers, load().offers
    assert {offer.key for offer in few} <= {offer.key for offer in every}
    assert len(few) < len(every) / 10


def test_the_regions_that_it_keeps_are_there() -> None:
    assert {region.key for region in load().regions} >= HOMES
