"""Regions for traffic from many places, against plain loops over all sets."""

from __future__ import annotations

from itertools import combinations
from math import ceil, inf, isclose

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chipwise.planner.load.placing import FAR_SHARE, RELAXED, SIZES, Origin, Site, Unit, place, round_trip_s
from chipwise.planner.values.placement import Placement
from effort import cases

places = st.tuples(st.floats(-60.0, 60.0), st.floats(-179.0, 179.0))
units = st.lists(
    st.builds(lambda rate, usd: Unit("m", rate, usd), st.floats(0.5, 40.0), st.floats(10.0, 900.0)), min_size=1, max_size=3
)
sites = st.lists(
    st.builds(lambda at, some: Site("p", f"{at}", None, at[0], at[1], tuple(some)), places, units), min_size=0, max_size=7
)
origins = st.lists(st.builds(lambda at, share: Origin("o", share, *at), places, st.floats(0.05, 1.0)), min_size=1, max_size=6)


def within(trips: list[float], shares: list[float]) -> float:
    """The round trip that all but FAR_SHARE stays within."""
    held = 0.0
    for trip, share in sorted(zip(trips, shares, strict=True)):
        held += share
        if held >= 1 - FAR_SHARE - 1e-9:
            return trip
    raise AssertionError


def brute(origins: list[Origin], sites: list[Site], rate: float, limit: float) -> float | None:
    whole = sum(one.share for one in origins)
    shares = [one.share / whole for one in origins]
    trips = [[round_trip_s((s.latitude, s.longitude), (o.latitude, o.longitude)) for o in origins] for s in sites]
    best = None
    for size in SIZES:
        for chosen in combinations(range(len(sites)), size):
            need = dict.fromkeys(chosen, 0.0)
            fine = True
            for lost in (None, *chosen):
                alive = [one for one in chosen if one != lost]
                goes = [min(alive, key=lambda s, o=o: trips[s][o]) for o in range(len(origins))]  # type: ignore[misc]
                for site in alive:
                    need[site] = max(need[site], sum(share for share, to in zip(shares, goes, strict=True) if to == site))
                took = within([trips[to][o] for o, to in enumerate(goes)], shares)
                fine &= took <= limit * (1 if lost is None else RELAXED)
            if fine:
                usd = sum(min(ceil(need[at] * rate / unit.rate - 1e-9) * unit.usd for unit in sites[at].units) for at in chosen)
                best = usd if best is None else min(best, usd)
    return best


@settings(max_examples=cases(150))
@given(origins, sites, st.floats(0.5, 100.0), st.floats(0.02, 0.4))
def test_the_sets_are_those_of_plain_loops(origins: list[Origin], sites: list[Site], rate: float, limit: float) -> None:
    found, wanted = place(origins, sites, rate, limit, "test"), brute(origins, sites, rate, limit)
    if wanted is None:
        assert not found.stands
        assert found.missing
    else:
        assert isclose(found.usd, wanted, rel_tol=1e-9)
        assert isclose(sum(one.usd for one in found.stands), found.usd, rel_tol=1e-9)
        assert isclose(sum(one.share for one in found.stands), 1.0, rel_tol=1e-9)


def everywhere(limit: float = 0.05) -> Placement:
    unit = (Unit("m", 5.0, 100.0),)
    known = {"frankfurt": (50.1, 8.7), "paris": (48.9, 2.4), "virginia": (38.9, -77.4), "tokyo": (35.7, 139.7)}
    return place(
        [Origin("DEU", 0.7, 50.1, 8.7), Origin("FRA", 0.3, 48.9, 2.4)],
        [Site("p", name, None, *at, unit) for name, at in known.items()],
        20.0,
        limit,
        "test",
    )


def test_any_one_region_can_be_lost() -> None:
    found = everywhere()
    assert {one.region for one in found.stands} == {"frankfurt", "paris"}
    assert all(one.carried >= 1 and one.farthest_s <= RELAXED * found.limit_s for one in found.losses)
    assert found.single_usd == 400.0
    assert found.usd == 800.0


def test_a_goal_that_no_two_regions_keep_is_told() -> None:
    found = everywhere(limit=0.004)  # below what the last mile takes
    assert not found.stands
    assert "4 ms" in found.missing


def test_one_region_does_not_outlive_itself() -> None:
    one = Site("p", "a", None, 50.0, 8.0, (Unit("m", 5.0, 100.0),))
    found = place([Origin("DEU", 1.0, 50.1, 8.7)], [one], 3.0, 0.1, "test")
    assert not found.stands
    assert "second" in found.missing
    assert found.single_usd == 100.0


@pytest.mark.parametrize(
    ("one", "other", "low", "high"),
    [((50.1, 8.7), (38.9, -77.4), 80, 110), ((51.5, -0.1), (40.7, -74.0), 65, 95), ((50.1, 8.7), (1.3, 103.8), 130, 180)],
)
def test_round_trips_are_about_what_the_net_has(
    one: tuple[float, float], other: tuple[float, float], low: float, high: float
) -> None:
    assert low <= round_trip_s(one, other) * 1e3 <= high
    assert round_trip_s(one, other) < inf
