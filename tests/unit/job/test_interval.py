"""The interval is the optimum that the planner uses, without arrays."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.job.interval import best_interval_s, interval_s
from chipwise.money import spot


@given(st.floats(1e-6, 1e5), st.floats(1.0, 1e8))
def test_the_interval_is_the_one_of_the_planner(save_s: float, mean_s: float) -> None:
    assert best_interval_s(save_s, mean_s) == pytest.approx(float(spot.best_interval_s(save_s, mean_s)), rel=1e-9)


def test_a_minute_of_saving_and_a_loss_a_day_give_young_s_interval_within_a_few_percent() -> None:
    assert best_interval_s(60, 86400) == pytest.approx(math.sqrt(2 * 60 * 86400), rel=0.03)


@given(st.floats(0.001, 1000), st.floats(0.001, 10))
def test_more_interruptions_never_mean_a_longer_interval(save_s: float, per_hour: float) -> None:
    assert interval_s(save_s, per_hour * 2) <= interval_s(save_s, per_hour) * (1 + 1e-9)


def test_without_interruptions_nothing_needs_to_be_saved_on_the_way() -> None:
    assert interval_s(1, 0) == math.inf


def test_interruptions_too_rare_for_a_number_are_none() -> None:
    assert interval_s(1, 1e-320) == math.inf
