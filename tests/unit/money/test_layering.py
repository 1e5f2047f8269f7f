from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from math import floor, inf, isclose
from random import Random
from time import process_time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chipwise.errors import InvalidSettings, NoResult
from chipwise.money.layering import Load, Option, layer
from effort import cases

ON_DEMAND = Option("on-demand", 2.0)


def hourly(machines: Iterable[float]) -> Load:
    return Load.of_pairs((count, 1.0) for count in machines)


def brute(pairs: list[tuple[int, float]], options: list[Option]) -> float:
    """Every number of each committed option, and at each step every way to share out the load."""
    peak = max(count for count, _ in pairs)
    horizon = sum(hours for _, hours in pairs)
    held = [one for one in options if one.committed]
    hourly = [one for one in options if not one.committed]

    def room(one: Option) -> int:
        return peak if one.capacity is None else min(one.capacity, peak)

    least = inf
    for kept in product(*(range(room(one) + 1) for one in held)):
        usd = sum(number * one.usd_per_hour * horizon for number, one in zip(kept, held, strict=True))
        for count, hours in pairs:
            cheapest = inf
            tops = [*kept, *(room(one) for one in hourly)]
            for parts in product(*(range(min(top, count) + 1) for top in tops)):
                if sum(parts) != count:
                    continue
                on_hourly = list(zip(hourly, parts[len(held) :], strict=True))
                if any(
                    sum(part for other, part in on_hourly if other.usable_share <= one.usable_share)
                    > floor(one.usable_share * count + 1e-9)
                    for one in hourly
                ):
                    continue
                price = sum(part * (one.usd_per_hour + one.running_usd_per_hour) for one, part in on_hourly)
                price += sum(part * one.running_usd_per_hour for one, part in zip(held, parts, strict=False))
                cheapest = min(cheapest, price)
            usd += cheapest * hours
        least = min(least, usd)
    return least


def drawn(random: Random) -> tuple[list[tuple[int, float]], list[Option]]:
    pairs = [(random.randint(0, 4), random.choice([1.0, 2.5, 10.0])) for _ in range(random.randint(1, 4))]
    options = []
    for number in range(random.randint(1, 4)):
        committed = random.random() < 0.5
        options.append(
            Option(
                f"option {number}",
                random.choice([0.0, 0.3, 0.5, 1.0, 1.7, 2.0, 3.1]),
                committed,
                random.choice([None, None, 0, 1, 2, 3]),
                1.0 if committed else random.choice([1.0, 1.0, 0.75, 0.5, 0.3]),
                random.choice([0.0, 0.0, 0.2, 0.6, 1.1]),
            )
        )
    return pairs, options


def test_against_trying_everything_on_600_random_cases() -> None:
    random, solved = Random(20), 0
    for _ in range(600):
        pairs, options = drawn(random)
        wanted = brute(pairs, options)
        if wanted == inf:
            with pytest.raises(NoResult):
                layer(Load.of_pairs(pairs), options)
            continue
        found = layer(Load.of_pairs(pairs), options)
        assert isclose(found.usd, wanted, rel_tol=1e-9, abs_tol=1e-9), (pairs, options, found)
        assert sum(one.hours_used for one in found.layers) == pytest.approx(sum(count * hours for count, hours in pairs))
        assert all(one.hours_used <= one.hours_paid * (1 + 1e-9) for one in found.layers)
        solved += 1
    assert solved >= 400


def test_the_base_is_reserved_and_the_peak_on_demand() -> None:
    found = layer(
        Load.of_pairs([(10, 1000), (4, 7000), (0, 760)]), [ON_DEMAND, Option("reserved", 1.2, committed=True, term_years=3.0)]
    )
    assert [(one.name, one.machines, one.term_years) for one in found.layers] == [("reserved", 4, 3.0), ("on-demand", 6, 0.0)]
    assert found.layers[0].utilisation == pytest.approx(8000 / 8760)
    assert found.usd == pytest.approx(4 * 8760 * 1.2 + 6 * 1000 * 2)
    assert found.cost.usd == pytest.approx(sum(one.usd for one in found.layers))


def test_a_machine_is_reserved_from_the_break_even_share_of_hours_on() -> None:
    for busy, kept in ((0.59, 0), (0.61, 1)):
        found = layer(
            Load.of_pairs([(1, busy * 100), (0, (1 - busy) * 100)]), [ON_DEMAND, Option("reserved", 1.2, committed=True)]
        )
        assert [one.name for one in found.layers] == (["reserved"] if kept else ["on-demand"])


def test_own_machines_are_the_base_and_the_cloud_takes_the_bursts() -> None:
    found = layer(hourly([2, 3, 9, 4]), [ON_DEMAND, Option("own", 0.3, capacity=4)])
    assert {one.name: (one.machines, one.hours_used) for one in found.layers} == {"own": (4, 13.0), "on-demand": (5, 5.0)}


def test_buying_is_weighed_with_its_power() -> None:
    bought = Option("bought", 0.8, committed=True, running_usd_per_hour=0.3)
    cheap = layer(hourly([3, 3, 3, 5]), [ON_DEMAND, bought])
    assert {one.name: one.machines for one in cheap.layers} == {"bought": 3, "on-demand": 2}
    assert cheap.layers[0].usd == pytest.approx(3 * 4 * (0.8 + 0.3))


def test_spot_carries_only_its_share_of_each_moment() -> None:
    found = layer(hourly([10, 5, 1]), [ON_DEMAND, Option("spot", 0.6, usable_share=0.5)])
    assert {one.name: one.hours_used for one in found.layers} == {"spot": 5 + 2 + 0, "on-demand": 5 + 3 + 1}


def test_two_spot_markets_share_the_load_that_stands_interruption() -> None:
    spots = [Option("here", 0.6, capacity=2, usable_share=0.5), Option("there", 0.7, usable_share=0.5)]
    found = layer(hourly([10]), [ON_DEMAND, *spots])
    assert {one.name: one.machines for one in found.layers} == {"here": 2, "there": 3, "on-demand": 5}


def test_each_option_alone_is_shown_beside_the_layering() -> None:
    options = [
        ON_DEMAND,
        Option("reserved", 1.2, committed=True),
        Option("own", 0.1, capacity=1),
        Option("spot", 0.5, usable_share=0.5),
    ]
    found = layer(hourly([4, 2]), options)
    assert {one.name: one.usd for one in found.alone} == {
        "on-demand": 12.0,
        "reserved": pytest.approx(9.6),
        "own": None,
        "spot": None,
    }
    assert "1 machines" in next(one.why for one in found.alone if one.name == "own")
    assert found.usd <= 9.6


def test_no_load_costs_nothing() -> None:
    found = layer(hourly([0, 0]), [ON_DEMAND, Option("reserved", 1.0, committed=True)])
    assert (found.usd, found.layers) == (0.0, ())


def test_parts_of_a_machine_are_whole_machines() -> None:
    assert hourly([1.2, 0.5, 2.0]).machines.tolist() == [1, 2]


def test_too_little_capacity_says_how_much_is_missing() -> None:
    with pytest.raises(NoResult, match=r"3 of at most 5 machines.*on-demand without a limit"):
        layer(hourly([5]), [Option("own", 0.1, capacity=2)])


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ([], "options"),
        ([ON_DEMAND, ON_DEMAND], "options"),
        ([Option("a", -1.0)], "a.usd_per_hour"),
        ([Option("a", 1.0, capacity=-1)], "a.capacity"),
        ([Option("a", 1.0, usable_share=1.5)], "a.usable_share"),
        ([Option("a", 1.0, committed=True, usable_share=0.5)], "a.usable_share"),
    ],
)
def test_impossible_options_are_named(options: list[Option], field: str) -> None:
    with pytest.raises(InvalidSettings) as caught:
        layer(hourly([1]), options)
    assert caught.value.problems[0].field == field
    assert caught.value.problems[0].allowed


@pytest.mark.parametrize("pairs", [[], [(-1.0, 1.0)], [(1.0, 0.0)], [(1e9, 1.0)], [(float("nan"), 1.0)]])
def test_impossible_loads_are_refused(pairs: list[tuple[float, float]]) -> None:
    with pytest.raises(InvalidSettings):
        Load.of_pairs(pairs)


loads = st.lists(st.tuples(st.integers(0, 30), st.floats(0.5, 100)), min_size=1, max_size=12)
prices = st.floats(0.01, 10)


@settings(max_examples=cases(100), deadline=None)
@given(loads, prices, prices, prices, st.floats(0, 1))
def test_another_option_never_makes_it_dearer(
    pairs: list[tuple[int, float]], on_demand: float, reserved: float, spot: float, share: float
) -> None:
    load = Load.of_pairs(pairs)
    options = [Option("on-demand", on_demand)]
    before = layer(load, options).usd
    for more in (Option("reserved", reserved, committed=True), Option("spot", spot, usable_share=share)):
        options.append(more)
        after = layer(load, options)
        assert after.usd <= before * (1 + 1e-9)
        assert all(one.usd is None or after.usd <= one.usd * (1 + 1e-9) + 1e-9 for one in after.alone)
        before = after.usd


@settings(max_examples=cases(60), deadline=None)
@given(loads, prices, prices, st.integers(0, 20), st.floats(0, 1))
def test_more_capacity_and_more_tolerance_never_make_it_dearer(
    pairs: list[tuple[int, float]], reserved: float, spot: float, capacity: int, share: float
) -> None:
    def usd(capacity: int, share: float) -> float:
        options = [ON_DEMAND, Option("r", reserved, committed=True, capacity=capacity), Option("s", spot, usable_share=share)]
        return layer(Load.of_pairs(pairs), options).usd

    assert usd(capacity + 1, share) <= usd(capacity, share) * (1 + 1e-9)
    assert usd(capacity, min(1.0, share + 0.2)) <= usd(capacity, share) * (1 + 1e-9)


def test_a_year_of_hours_with_ten_options_takes_milliseconds() -> None:
    hours = np.arange(8760)
    load = 1000 * (0.4 + 0.3 * np.sin(hours / 24 * 2 * np.pi) + 0.1 * np.random.default_rng(0).random(8760))
    options = [ON_DEMAND, Option("own", 0.3, capacity=100), Option("spot", 0.8, usable_share=0.3), Option("zone b", 2.2)]
    options += [
        Option(f"reserved {i}", 1.0 + i / 10, committed=True, capacity=50 * i, running_usd_per_hour=0.1) for i in range(6)
    ]
    took = []
    for _ in range(5):
        start = process_time()
        layer(hourly(load), options)
        took.append(process_time() - start)
    assert min(took) < 0.02
