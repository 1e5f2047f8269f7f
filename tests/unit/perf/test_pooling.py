"""Pooled factors: what a fit learns, what it leaves, and how unsure it stays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chipwise.perf import bands
from chipwise.perf.arrays import Array, Coded, combinations
from chipwise.perf.fitting import Problem, fit
from chipwise.perf.pooling import ALL_TERMS, FactorBlock, Factors, Groups
from effort import cases

BLOCKS = (
    FactorBlock("all", "work", "1", 0.5),
    FactorBlock("chip", "work", "1", 0.3),
    FactorBlock("chip", ALL_TERMS, "1", 0.05),
)


def problem(chips: list[str], truth: Array, weight: Array | None = None) -> Problem:
    count = len(chips)
    levels = {"all": Coded.of(["all"] * count), "chip": Coded.of(chips)}

    def formula(exponents: dict[str, Array]) -> Array:  # work of one second beside a tenth of a second that never changes
        return np.log(np.exp(exponents["work"]) + 0.1) + exponents.get(ALL_TERMS, np.zeros(1)) + np.zeros(count)

    return Problem(formula, ("work",), levels, {}, truth, np.ones(count) if weight is None else weight)  # type: ignore[arg-type]


def test_many_rows_of_one_chip_are_learnt_and_an_unseen_chip_gets_the_common_part() -> None:
    chips = ["a"] * 40 + ["b"] * 40
    truth = np.log(np.where(np.array(chips) == "a", 2.0, 1.5) + 0.1)
    found = fit(problem(chips, truth), BLOCKS)
    asked = {"all": Coded.of(["all"] * 3), "chip": Coded.of(["a", "b", "new"])}
    work = found.pool(asked, {}).exponents["work"] + found.pool(asked, {}).exponents[ALL_TERMS]
    assert np.exp(work[:2]) == pytest.approx([2.0, 1.5], rel=0.06)
    assert 1.4 < np.exp(work[2]) < 2.1


def test_a_row_without_weight_teaches_nothing() -> None:
    chips = ["a"] * 10 + ["b"]
    truth = np.log(np.r_[np.full(10, 1.1), 50.0])
    silent = fit(problem(chips, truth, np.r_[np.ones(10), 0.0]), BLOCKS)
    alone = fit(problem(chips, np.log(np.r_[np.full(10, 1.1), 1.1]), np.r_[np.ones(10), 0.0]), BLOCKS)
    assert silent.values == alone.values
    assert "b" not in silent.values["chip/work/1"]


def test_a_name_never_seen_is_less_sure_than_one_with_rows() -> None:
    found = fit(problem(["a"] * 30, np.log(np.full(30, 1.3))), BLOCKS)
    spread = found.pool({"all": Coded.of(["all"] * 2), "chip": Coded.of(["a", "new"])}, {}).variances["work"]
    assert spread[0] < spread[1]


def test_one_wild_row_among_many_moves_little() -> None:
    truth = np.log(np.full(21, 1.1))
    truth[0] = np.log(40.0)
    found = fit(problem(["a"] * 21, truth), BLOCKS)
    pooled = found.pool({"all": Coded.of(["all"]), "chip": Coded.of(["a"])}, {}).exponents
    assert np.exp(pooled["work"] + pooled[ALL_TERMS])[0] == pytest.approx(1.0, abs=0.1)


LEANING = Factors(
    (
        FactorBlock("chip", "work", "1", 0.3),
        FactorBlock("engine", "work", "batch", 0.2),
        FactorBlock("engine", ALL_TERMS, "hidden", 0.1),
    ),
    {
        "chip/work/1": {"a": (0.2, 0.01), "b": (-0.1, 0.02)},
        "engine/work/batch": {"x": (0.05, 0.001)},
        "engine/*/hidden": {"x": (0.03, 0.002), "y": (-0.02, 0.003)},
    },
)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xyz"), st.floats(-3, 3)), min_size=2, max_size=30))
def test_rows_in_groups_get_what_each_row_gets_alone(rows: list[tuple[str, str, float]]) -> None:
    chips, engines, batches = zip(*rows, strict=True)
    (chip, engine), index = combinations((Coded.of(chips), Coded.of(engines)))
    hidden = np.array([0.7])
    together = LEANING.pool(Groups({"chip": chip, "engine": engine}, index), {"batch": np.array(batches), "hidden": hidden})
    for at, (one, software, batch) in enumerate(rows):
        alone = LEANING.pool(
            {"chip": Coded.of(one), "engine": Coded.of(software)}, {"batch": np.array([batch]), "hidden": hidden}
        )
        for base in ("work", ALL_TERMS):
            for asked in ("scale", "exponent", "variance"):
                found = np.broadcast_to(getattr(together, asked)(base), len(rows))
                assert found[at] == pytest.approx(getattr(alone, asked)(base)[0], rel=1e-12, abs=1e-15)


@given(st.integers(0, 10_000), st.integers(200, 600))
@settings(max_examples=cases(20))
def test_intervals_hold_four_fifths_of_later_rows(seed: int, count: int) -> None:
    random = np.random.default_rng(seed)
    spread = random.uniform(0.05, 0.5, 2 * count)
    residual = random.normal(0, 1, 2 * count) * spread
    band = bands.calibrate(spread[:count], residual[:count])
    low, high = band.limits(spread[count:])
    inside = np.mean((residual[count:] >= low) & (residual[count:] <= high))
    assert 0.68 < inside < 0.97


def test_bands_survive_being_written_and_read() -> None:
    random = np.random.default_rng(1)
    made = {"token": bands.calibrate(random.uniform(0, 1, 300), random.normal(0, 0.1, 300)), "few": bands.WIDE}
    again = bands.from_rows(bands.to_rows(made))
    assert again["token"].low == pytest.approx(made["token"].low, rel=1e-4)
    assert again["few"].edges == (np.inf,)


@pytest.mark.parametrize(("base", "moves"), [("prefill_matrix", False), ("decode_matrix", True)])
def test_a_source_far_from_all_others_does_not_move_what_they_share(base: str, moves: bool) -> None:
    """Until a first token sources may differ by far; in steps they are as near as the priors say."""
    sources = [name for name in ("a", "b", "c", "far") for _ in range(30)]
    levels = {"all": Coded.of(["all"] * len(sources)), "source": Coded.of(sources)}

    def formula(exponents: dict[str, Array]) -> Array:
        return exponents[base] + np.zeros(len(sources))

    truth = np.where(np.array(sources) == "far", 2.0, 0.0)
    asked = Problem(formula, (base,), levels, {}, truth, np.ones(len(sources)))  # type: ignore[arg-type]
    found = fit(asked, [FactorBlock("all", base, "1", 0.3), FactorBlock("source", base, "1", 0.2)], rounds=30)
    assert (found.values[f"all/{base}/1"]["all"][0] > 0.25) is moves
