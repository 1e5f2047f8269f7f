from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.errors import UnknownName
from chipwise.perf.arrays import Coded, column
from chipwise.perf.steadiness import combined, interval, log_sd, steadiness, table

deviations = st.floats(0, 2)


@given(deviations, deviations)
def test_two_causes_together_are_at_least_the_larger_and_at_most_the_sum(one: float, other: float) -> None:
    both = combined(column(one), column(other))[0]
    assert max(one, other) * (1 - 1e-12) <= both <= (one + other) * (1 + 1e-12)


@given(st.floats(1e-3, 1e3), deviations, st.floats(0.1, 0.95))
def test_an_interval_holds_the_value_in_its_middle(value: float, deviation: float, level: float) -> None:
    low, high = interval(column(value), column(deviation), level)
    assert low[0] <= value <= high[0]
    assert math.sqrt(low[0] * high[0]) == pytest.approx(value)


def test_a_wider_level_gives_a_wider_interval() -> None:
    narrow, wide = (interval(column(1.0), column(0.1), level)[1][0] for level in (0.5, 0.9))
    assert narrow < wide


def test_own_machines_are_steadier_than_shared_ones() -> None:
    order = ["dedicated", "whole-machine", "multi-node", "shared", "edge"]
    assert np.all(np.diff(log_sd(Coded.of(order))) > 0)


def test_three_submitters_of_one_system_lie_within_what_was_measured() -> None:
    assert math.exp(1.69 * steadiness("whole-machine").log_sd) == pytest.approx(1.05, abs=0.002)
    assert math.exp(1.69 * steadiness("software").log_sd) == pytest.approx(1.06, abs=0.002)
    assert math.exp(1.69 * steadiness("neuron-software").log_sd) == pytest.approx(1.13, abs=0.003)


def test_the_spread_of_one_submission_lies_between_its_median_and_its_ninetieth_percentile() -> None:
    sd = steadiness("dedicated").log_sd
    assert 0.003 / 1.69 < sd < 0.026 / 1.69


def test_every_kind_says_what_it_rests_on() -> None:
    assert {one.basis for one in table().values()} == {"measured", "rule of thumb"}
    assert all(one.worst_ratio > math.exp(2 * one.log_sd) for one in table().values())


def test_an_unknown_kind_offers_the_nearest() -> None:
    with pytest.raises(UnknownName, match="Did you mean shared"):
        steadiness("share")
