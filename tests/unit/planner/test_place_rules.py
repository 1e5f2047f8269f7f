"""Rules on countries: what stands in an avoided country, or nobody knows where, is never offered."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from chipwise.api.session.wiring import Session, open_session
from chipwise.catalog.catalog import Catalog
from chipwise.catalog.region import country_in
from chipwise.countries import EEA, EU
from chipwise.planner.explain.reason_words import rule_words
from chipwise.planner.ground import ground_for
from chipwise.planner.limits import Allowed, Rules, allowed
from chipwise.planner.reasons.limits import RuleKind
from chipwise.planner.rules import rules_of
from chipwise.workload.limits import Limits

pytestmark = pytest.mark.real_catalog


@cache
def session() -> Session:
    return open_session()


def limited(**limits: Any) -> tuple[Catalog, Rules, Allowed]:
    rules = rules_of(session().known, Limits.model_validate({"market": "any", "commit": "any"} | limits))
    ground = ground_for(session().known, wide=True)
    return ground.fleet.catalog, rules, allowed(ground.fleet, rules, ground.market.prices)


@pytest.mark.parametrize("place", ["countries", "regions"])
def test_avoiding_china_is_safe_for_every_packaged_offer(place: str) -> None:
    catalog, _, ok = limited(avoid={place: ["CN"]})
    assert len(catalog.offers) >= 14_683
    regions = [catalog.regions[at] for at in np.frombuffer(catalog.offers.region, dtype=np.int32)]
    left = set(ok.offers.tolist())
    for at, region in enumerate(regions):
        if at in left:
            assert region.country not in (None, "CHN"), region
            assert country_in(region.name) != "CHN", region
            assert ", CN" not in region.name
    assert sum(region.country == "CHN" for region in regions) >= 5


@pytest.mark.parametrize(
    ("limits", "inside"),
    [
        ({"countries": ["DE"]}, {"DEU"}),
        ({"residency": ["EU"]}, EU),
        ({"compliance": ["gdpr"]}, {*EEA, "CHE", "GBR"}),
    ],
)
def test_an_unknown_country_is_refused_by_every_rule(limits: dict[str, Any], inside: set[str]) -> None:
    catalog, rules, ok = limited(**limits)
    used = {int(at) for at in np.frombuffer(catalog.offers.region, dtype=np.int32)[ok.offers]}
    assert used
    for at in used:
        assert catalog.regions[at].country in inside, catalog.regions[at]
        assert rules.permits(catalog.regions[at])
    unknown = next(one for one in ok.refused if one.rule.kind is RuleKind.UNKNOWN_COUNTRY)
    assert rule_words(unknown.rule) == "its country is not known"


def test_without_a_rule_on_countries_nothing_is_refused_for_its_place() -> None:
    _, _, ok = limited()
    assert not {one.rule.kind for one in ok.refused} & {RuleKind.UNKNOWN_COUNTRY, RuleKind.COUNTRY, RuleKind.AVOIDED_COUNTRY}


@pytest.mark.parametrize("place", ["EU", "DE"])
def test_a_country_is_the_same_as_a_region_and_as_a_country(place: str) -> None:
    by_region, by_country = (limited(**{name: [place]})[2].offers.tolist() for name in ("regions", "countries"))
    assert by_region == by_country
    mixed = limited(regions=[place, "us-east-1"])[2].offers.tolist()
    assert mixed
    assert mixed != by_region
