"""Load over a week: laws of curves, machines and layers."""

from __future__ import annotations

from datetime import time
from math import isclose

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.money.layering import Option
from chipwise.planner.load.advice import advise
from chipwise.planner.load.curve import (
    WEEKS,
    Answering,
    Base,
    LoadCurve,
    MachineKind,
    carry,
    hours_of,
    machines_of,
    pattern_of,
    recorded,
    sessions,
    steady,
    up_share,
)
from chipwise.workload.schedule import Always, Bursts, BusinessHours, Cron, Day, MarketHours
from chipwise.workload.trace import dispersion

OFFICE = BusinessHours(time_zone="Europe/Berlin", start=time(8), end=time(18))
NIGHTLY = Cron(expression="0 2 * * *", runs_for=3600.0)
DEAR, HELD = Option("on-demand", 3.0), Option("reserved-1y", 2.0, committed=True)


def kind(per_replica: float = 1.0, chips: int = 1, width: int = 1, options: tuple[Option, ...] = (DEAR, HELD)) -> MachineKind:
    return MachineKind("aws", "m", "r", "L4", Answering(per_replica, chips, width), options)


curves = st.builds(
    lambda rates, schedule, burst, step: recorded(rates, step, schedule, burst),
    st.lists(st.floats(0.0, 200.0), min_size=1, max_size=40),
    st.sampled_from([Always(), OFFICE, Cron(expression="0 2 * * *", runs_for=7200.0)]),
    st.floats(0.0, 8.0),
    st.sampled_from([300.0, 3600.0]),
)
answers = st.builds(
    Answering, st.floats(0.5, 40.0), st.sampled_from([1, 2, 4, 8]), st.sampled_from([1, 2, 4, 8, 16]), st.integers(1, 3)
)


@given(curves, answers)
def test_a_peak_is_no_less_than_the_mean_and_machines_follow(curve: LoadCurve, answering: Answering) -> None:
    assert curve.peak >= curve.busiest >= curve.mean - 1e-9
    assert curve.busiest == max(curve.rate)
    hours = hours_of(curve, answering)
    assert hours.autoscaled <= hours.scheduled * (1 + 1e-9)
    assert hours.scheduled <= hours.static * (1 + 1e-9)
    assert (machines_of(curve, answering) >= answering.machines(curve.planned)).all()


@given(curves, answers, st.lists(st.tuples(st.floats(0.1, 9.0), st.booleans()), min_size=1, max_size=4))
def test_layers_cost_no_more_than_any_option_alone(
    curve: LoadCurve, answering: Answering, prices: list[tuple[float, bool]]
) -> None:
    options = tuple(Option(f"o{at}", usd, held) for at, (usd, held) in enumerate(prices))
    found = carry(curve, MachineKind("p", "m", "r", "c", answering, options))
    assert all(one.usd is None or found.usd <= one.usd * (1 + 1e-9) for one in found.layering.alone)
    assert isclose(found.usd, sum(one.usd for one in found.layers), rel_tol=1e-9, abs_tol=1e-9)


@given(curves, st.floats(0.01, 9.0), st.floats(0.5, 60.0))
def test_owned_machines_as_the_base_are_used_only_where_they_save(curve: LoadCurve, usd: float, rate: float) -> None:
    base = Base("own m in berlin", Answering(rate, 1, 1), usd)
    plain, based = carry(curve, kind(7.0)), carry(curve, kind(7.0), base)
    assert based.usd <= plain.usd * (1 + 1e-9)
    if based.base is not None:
        rented = sum(one.machines for one in based.layering.layers)
        assert based.base.machines * rate + rented * 7.0 >= curve.peak - 1e-6  # together they carry the peak


def test_the_base_is_as_good_as_trying_every_number_of_owned_machines() -> None:
    curve = recorded([3.0, 9.0, 30.0, 55.0, 8.0, 4.0], 3600.0, Always(), 1.0)
    base = Base("own", Answering(10.0, 1, 1), 1.0)
    tried = []
    for count in range(7):
        rest = np.maximum(curve.planned - 10.0 * count, 0.0)
        needed = np.ceil(rest / 7.0 - 1e-9)
        hourly = float(needed @ curve.hours) * WEEKS * 3.0
        best = min(
            held * 2.0 * 168 * WEEKS + float(np.maximum(needed - held, 0) @ curve.hours) * WEEKS * 3.0 for held in range(9)
        )
        tried.append(count * 168 * WEEKS + min(hourly, best))
    assert isclose(carry(curve, kind(7.0), base).usd, min(tried), rel_tol=1e-9)


def test_bursts_keep_the_mean_and_the_peak_is_the_burst() -> None:
    curve = steady(10.0, Bursts(times=4, lasts=7200.0, every=86400.0))
    assert isclose(curve.mean, 10.0)
    assert isclose(curve.peak / float(curve.rate.min()), 4.0)
    assert isclose(curve.on_hours, 168.0)


def test_bursts_faster_than_a_machine_starts_are_not_followed() -> None:
    slow, fast = (steady(10.0, Bursts(times=4, lasts=lasts, every=lasts * 10)) for lasts in (3600.0, 60.0))
    answering = Answering(1.0, 1, 1)
    assert hours_of(slow, answering).autoscaled < hours_of(slow, answering).scheduled
    assert isclose(hours_of(fast, answering).autoscaled, hours_of(fast, answering).scheduled)


def test_burstiness_adds_as_the_formula_says() -> None:
    assert isclose(steady(12.0, Always(), 1.4).peak, 12.0 + 2.33 * (0.96 * 12.0 / 60.0) ** 0.5)
    assert steady(12.0, Always(), 0.3).peak == 12.0


def test_after_short_steps_machines_stop_late() -> None:
    curve = recorded([1.0, 1.0, 5.0, 1.0, 1.0], 300.0, Always(), 1.0)
    assert machines_of(curve, Answering(1.0, 1, 1)).tolist() == [1, 1, 5, 5, 1]
    assert machines_of(recorded([1.0, 5.0, 1.0], 3600.0, Always(), 1.0), Answering(1.0, 1, 1)).tolist() == [1, 5, 1]


@pytest.mark.parametrize(
    ("curve", "schedule", "pattern"),
    [
        (steady(5.0, Always()), Always(), "continuous"),
        (steady(5.0, OFFICE), OFFICE, "business-hours"),
        (steady(5.0, MarketHours(market="xnys")), MarketHours(market="xnys"), "business-hours"),
        (steady(5.0, Bursts(times=5, lasts=3600, every=86400)), Bursts(times=5, lasts=3600, every=86400), "bursty"),
        (steady(5.0, Cron(expression="0 2 * * *")), Cron(expression="0 2 * * *"), "batch"),
        (steady(5.0, NIGHTLY), NIGHTLY, "batch"),
        (sessions(5, 0.2, 600.0, OFFICE), OFFICE, "development"),
    ],
)
def test_the_advice_follows_the_pattern(curve: LoadCurve, schedule: Always, pattern: str) -> None:
    assert pattern_of(curve, schedule) == pattern
    told = advise(pattern, curve, carry(curve, kind()), hours_of(curve, Answering(1.0, 1, 1)))
    words = {
        "continuous": "around the clock",
        "business-hours": "Stop",
        "bursty": "autoscaler",
        "batch": "each run",
        "development": "idle",
    }
    assert words[pattern] in told


def test_business_hours_do_not_pay_for_a_promise() -> None:
    found = carry(steady(5.0, OFFICE), kind())
    assert [one.name for one in found.layers] == ["on-demand"]
    told = advise("business-hours", steady(5.0, OFFICE), found, hours_of(steady(5.0, OFFICE), Answering(1.0, 1, 1)))
    assert "reserved-1y pays from 67% of the hours on" in told
    whole = carry(steady(5.0, Always()), kind())
    assert [one.name for one in whole.layers] == ["reserved-1y"]


@given(st.integers(1, 60), st.floats(0.02, 0.98), st.floats(60.0, 20000.0))
def test_sessions_up_at_once_have_the_share_as_their_mean(people: int, busy: float, idle: float) -> None:
    curve = sessions(people, busy, idle, OFFICE)
    up = up_share(busy, idle)
    assert busy <= up <= 1
    assert isclose(curve.mean, people * up, rel_tol=1e-3)
    assert curve.peak == people


def test_sooner_stops_leave_less_on_and_none_leaves_all() -> None:
    hours = [hours_of(sessions(20, 0.25, idle, OFFICE), Answering(1.0, 1, 1)).autoscaled for idle in (60.0, 1800.0, None)]
    assert hours == sorted(hours)
    assert isclose(hours[-1], 20 * 50 * WEEKS)


def test_counts_by_chance_have_a_burstiness_of_one() -> None:
    random = np.random.default_rng(3)
    counts = random.poisson(20.0, 4000).astype(float)
    step = np.repeat(np.arange(100), 40)
    windows = np.full(100, 40.0)
    assert abs(dispersion(counts, step, windows) - 1.0) < 0.05
    busy = counts * random.choice([0.2, 1.8], 4000)
    assert dispersion(busy, step, windows) > 2.0


def test_a_whole_week_of_days_is_always_on() -> None:
    every = BusinessHours(time_zone="UTC", start=time(0), end=time(0), days=tuple(Day))
    assert steady(3.0, every).off_hours == 0
    assert pattern_of(steady(3.0, every), every) == "continuous"
