from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.errors import BadInput
from chipwise.perf.arrays import Coded, column
from chipwise.perf.power import IDLE, energy_j, energy_per_token_j, kwh, power

shares = st.floats(0, 1)
kinds = st.sampled_from([*IDLE, "unheard-of"])


def watts(kind: str, compute: float, memory: float, pue: float = 1.2) -> tuple[float, float]:
    drawn = power(Coded.of(kind), column(700.0), column(compute), column(memory), pue)
    return float(drawn.chip[0]), float(drawn.total[0])


@given(kinds, shares, shares, shares, shares)
def test_more_utilisation_never_draws_less(kind: str, compute: float, memory: float, more: float, busier: float) -> None:
    less, all_less = watts(kind, compute, memory)
    chip, total = watts(kind, min(compute + more, 1), min(memory + busier, 1))
    assert chip >= less
    assert total >= all_less


@given(kinds, st.floats(0, 50), st.floats(0, 50))
def test_a_chip_stays_between_idle_and_its_limit(kind: str, compute: float, memory: float) -> None:
    chip, total = watts(kind, compute, memory)
    assert 0 < chip <= 700
    assert total >= chip


def test_an_idle_h100_draws_a_tenth_of_its_limit() -> None:
    assert watts("gpu", 0, 0)[0] == pytest.approx(84, abs=20)


def test_training_a_large_model_draws_most_of_the_limit() -> None:
    assert 560 < watts("gpu", 0.45, 0.4)[0] < 680


def test_reading_memory_alone_draws_about_two_thirds() -> None:
    assert 420 < watts("gpu", 0.02, 0.9)[0] < 520


@given(shares, shares, st.floats(1, 3), st.floats(0, 2))
def test_a_worse_building_never_draws_less(compute: float, memory: float, pue: float, worse: float) -> None:
    assert watts("gpu", compute, memory, pue + worse)[1] >= watts("gpu", compute, memory, pue)[1]


def test_lines_sum_to_the_total() -> None:
    drawn = power(Coded.of(["gpu", "cpu"]), column([700.0, 350.0]), column(0.4), column(0.5))
    assert drawn.total == pytest.approx(drawn.chip + drawn.host + drawn.facility)
    assert drawn.facility == pytest.approx(0.2 * (drawn.chip + drawn.host))


def test_energy_per_token_times_tokens_is_the_energy_of_a_step() -> None:
    drawn = power(Coded.of("gpu"), column(700.0), column(0.4), column(0.5))
    step = energy_j(drawn, column(8.0), column(2.0))
    assert energy_per_token_j(drawn, column(8.0), column(5000.0)) * 5000 * 2 == pytest.approx(step)
    assert kwh(column(3.6e6)).tolist() == [1]


@pytest.mark.parametrize(("compute", "memory", "pue"), [(-0.1, 0.5, 1.2), (0.5, np.nan, 1.2), (0.5, 0.5, 0.9)])
def test_what_cannot_be_is_refused(compute: float, memory: float, pue: float) -> None:
    with pytest.raises(BadInput):
        watts("gpu", compute, memory, pue)
