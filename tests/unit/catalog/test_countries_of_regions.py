"""A region's country comes from the data or from its name, and only where the name can mean nothing else."""

from __future__ import annotations

import pytest

from chipwise.catalog.catalog import Catalog
from chipwise.catalog.load import load
from chipwise.catalog.offer import Offer, Purchase
from chipwise.catalog.region import Region, country_in


@pytest.mark.parametrize(
    ("name", "country"),
    [
        ("Sichuan, CN, AS", "CHN"),
        (", CN, AS", "CHN"),
        ("Georgia, US, NA", "USA"),
        ("Tbilisi, GE, AS", "GEO"),
        ("oslo-norway-3", "NOR"),
        ("houston-usa-1", "USA"),
        ("georgia-usa-1", "USA"),
        ("FI", "FIN"),
        ("FINLAND", "FIN"),
        ("US-1", "USA"),
        ("us-central3-a", "USA"),
        ("us-gov-east-1", "USA"),
        ("ca-central-1", "CAN"),
        ("cn-north-1", "CHN"),
        ("cn-hangzhou", "CHN"),
        ("chinaeast2", "CHN"),
        ("northcentralus", "USA"),
        ("southafricanorth", "ZAF"),
        ("uksouth", "GBR"),
        ("KOREA-WEST-1-SCP-B001", "KOR"),
        ("Seoul, South Korea", "KOR"),
        ("Auckland, New Zealand", "NZL"),
        ("auckland-new-zealand-1", "NZL"),
        ("belfast-northern-ireland", "GBR"),
        ("fr-par", "FRA"),
    ],
)
def test_a_name_tells_its_country(name: str, country: str) -> None:
    assert country_in(name) == country


@pytest.mark.parametrize(
    "name",
    [
        *("*", "default", "", "north-america", "europe-west4", "me-south-1", "sa-east-1", "eu-west", "ap-east-2", "eastasia"),
        *("FRA", "BHS", "AMS", "San Jose, CA", "CA-1", "new-mexico-1", "Georgia", "jersey-city-1", "malta-usa-1"),
        *("in-house", "my-room", "it-department", "ai-lab", "ML", "IT", "no-name", "at-home", "hr-cluster", "de-lab"),
    ],
)
def test_a_name_that_may_mean_something_else_tells_nothing(name: str) -> None:
    assert country_in(name) is None


def test_a_name_never_contradicts_what_a_source_states() -> None:
    stated = [region for region in load().regions if region.country and "country" not in region.fact.inferred]
    assert len(stated) > 100
    told = {(one.name, text): country_in(text) for one in stated for text in (one.name, one.location or "")}
    wrong = {
        key: country
        for key, country in told.items()
        for one in stated
        if one.name == key[0] and country not in (None, one.country)
    }
    assert wrong == {}


def test_countries_are_inferred_for_feeds_and_for_regions_of_users() -> None:
    offer = Offer("aws", "p5.48xlarge", "cn-north-1", Purchase.SPOT, 40.0, "2026-11-01", source="feed")
    own = Region("rack", "lyon-france-1")
    catalog = load(regions=[own], offers=[offer])
    for key, country in ((offer.provider, offer.region), "CHN"), (own.key, "FRA"):
        region = catalog.regions[catalog.region_index[key]]
        assert region.country == country
        assert region.fact.inferred == ("country",)


def test_what_a_source_states_is_not_replaced() -> None:
    catalog: Catalog = load(regions=[Region("rack", "paris-france-1", country="USA")])
    region = catalog.regions[catalog.region_index["rack", "paris-france-1"]]
    assert region.country == "USA"
    assert region.fact.inferred == ()


def test_few_packaged_offers_are_without_a_country() -> None:
    catalog = load()
    unknown = {region.key for region in catalog.regions if region.country is None}
    assert unknown == {
        ("lambda", "europe-south-1"),
        ("coreweave", "north-america"),
        ("crusoe", "default"),
        ("hyperbolic", "default"),
        ("hyperstack", "default"),
        ("runpod", "*"),
        ("seeweb", "default"),
        ("yotta", "ap-east-2"),
    }
