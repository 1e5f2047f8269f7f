"""Machines of a service that scales are ordered a start-up time before they are needed, and paid for from then on."""

from __future__ import annotations

from datetime import time
from math import isclose

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from chipwise.money.layering import Option
from chipwise.planner.load.curve import (
    WEEKS,
    Answering,
    LoadCurve,
    MachineKind,
    by_the_hour,
    carry,
    hours_of,
    paid_of,
    recorded,
    steady,
)
from chipwise.planner.load.starting import start_s
from chipwise.workload.day import open_hours
from chipwise.workload.schedule import Always, Bursts, BusinessHours, Cron
from effort import cases

ONE = Answering(1.0, 1, 1)
OFFICE = BusinessHours(time_zone="Europe/Berlin", start=time(8), end=time(18))
MINUTE = 60.0


def minute_by_minute(needed: list[int], step_minutes: int, start_minutes: int) -> float:
    """Machine-hours of one round, by hand: in every minute the most that is needed until the start-up time later."""
    minutes = [machines for machines in needed for _ in range(step_minutes)]
    ahead = [[minutes[(now + later) % len(minutes)] for later in range(start_minutes + 1)] for now in range(len(minutes))]
    return sum(map(max, ahead)) / 60.0


@settings(max_examples=cases(100))
@given(st.lists(st.integers(1, 9), min_size=1, max_size=10), st.sampled_from([15, 20, 60]), st.integers(0, 150))
def test_hours_that_are_paid_are_those_of_a_count_by_the_minute(needed: list[int], step: int, start: int) -> None:
    curve = recorded([float(one) for one in needed], step * MINUTE, Always(), 1.0)
    rounds = 168.0 / (len(needed) * step / 60.0)
    expected = minute_by_minute(needed, step, start)
    # by the minute the last one counts in full, so that whole minutes bound what is paid from both sides
    less = minute_by_minute(needed, step, max(start - 1, 0))
    found = hours_of(curve, ONE, start * MINUTE).autoscaled / WEEKS / rounds
    assert less - 1e-6 <= found <= expected + 1e-6


def test_two_rises_of_a_day_cost_two_starts() -> None:
    rates = [1.0] * 8 + [4.0] * 4 + [2.0] * 2 + [5.0] * 4 + [1.0] * 6
    curve = by_the_hour(np.array(rates * 7), np.ones(168), 1.0)
    hours = hours_of(curve, ONE, 15 * MINUTE)
    assert isclose(hours.starting, ((4 - 1) + (5 - 2)) * 0.25 * 7 * WEEKS)
    assert isclose(hours.autoscaled, (sum(rates) * 7 * WEEKS) + hours.starting)
    paid = carry(curve, MachineKind("aws", "m", "r", "L4", ONE, (Option("on-demand", 3.0),), 15 * MINUTE))
    assert isclose(paid.usd, 3.0 * hours.autoscaled)


def test_a_start_longer_than_a_step_takes_the_later_peak() -> None:
    rates = [1.0, 1.0, 2.0, 8.0, *[1.0] * 20]
    curve = by_the_hour(np.array(rates * 7), np.ones(168), 1.0)
    paid, hours = paid_of(curve, np.array(rates * 7), 90 * MINUTE)
    by_number = {number: float(hours[paid == number].sum()) / 7 for number in (1.0, 2.0, 8.0)}
    assert by_number == pytest.approx({1.0: 20.5, 2.0: 1.0, 8.0: 2.5})  # two from 0:30 on, eight from 1:30 to 4:00
    whole, _ = paid_of(curve, np.array(rates * 7), 200 * 3600.0)
    assert set(whole.tolist()) == {8.0}


def test_machines_that_stop_outside_the_schedule_start_before_it() -> None:
    curve = steady(3.0, OFFICE)
    hours = hours_of(curve, ONE, 12 * MINUTE)
    assert isclose(hours.starting, 3 * 5 * 0.2 * WEEKS)
    same = by_the_hour(np.full(168, 3.0), open_hours(OFFICE), 1.0)
    assert isclose(hours_of(same, ONE, 12 * MINUTE).autoscaled, hours.autoscaled)
    nightly = steady(2.0, Cron(expression="0 2 * * *", runs_for=3600.0))
    assert isclose(hours_of(nightly, ONE, 12 * MINUTE).starting, 2 * 7 * 0.2 * WEEKS)


def test_a_recording_starts_as_often_as_its_schedule() -> None:
    for count, step in ((168, 3600.0), (24, 3600.0), (12, 300.0), (50, 3600.0)):
        curve = recorded([3.0] * count, step, OFFICE, 1.0)
        assert isclose(hours_of(curve, ONE, 12 * MINUTE).starting, 3 * 5 * 0.2 * WEEKS, rel_tol=0.05), count


def test_bursts_are_started_for_each_time() -> None:
    curve = steady(10.0, Bursts(times=4, lasts=7200.0, every=86400.0))
    usual, burst = (float(machines) for machines in np.ceil(curve.rate))
    assert isclose(hours_of(curve, ONE, 10 * MINUTE).starting, (burst - usual) * 7 / 6 * WEEKS)


curves = st.builds(
    lambda rates, schedule, step: recorded(rates, step, schedule, 1.0),
    st.lists(st.floats(0.0, 200.0), min_size=1, max_size=40),
    st.sampled_from([Always(), OFFICE, Cron(expression="0 2 * * *", runs_for=7200.0)]),
    st.sampled_from([300.0, 3600.0]),
)


@settings(max_examples=cases(300))
@given(curves, st.floats(0.0, 1e5), st.floats(0.0, 1e5))
@example(recorded([0.0], 300.0, OFFICE, 1.0), 0.0, 9.417551932692976e-07)  # a moment before each of 1,200 steps
def test_a_longer_start_never_costs_less_and_hours_are_those_of_a_week(curve: LoadCurve, one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert hours_of(curve, ONE, low).autoscaled <= hours_of(curve, ONE, high).autoscaled * (1 + 1e-9)
    assert hours_of(curve, ONE, high).autoscaled <= hours_of(curve, ONE, high).static * (1 + 1e-9)
    _, hours = paid_of(curve, ONE.machines(curve.planned), high)
    assert isclose(float(hours.sum()), 168.0)


def test_larger_weights_take_longer() -> None:
    small, large = start_s(8e9, "bf16", True), start_s(70e9, "bf16", True)
    assert isclose(large - small, 62e9 * 2 / 850e6)
    assert start_s(70e9, "fp8", True) < large
    assert start_s(25e6, "fp16", False) < small
