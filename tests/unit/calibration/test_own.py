"""Own factors: they learn what is there, keep quiet where there is nothing, and say when they do not help."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.calibration import own
from chipwise.calibration.calibrated import calibrated
from chipwise.calibration.crossvalidate import samples
from chipwise.calibration.from_profile import ChipOffset
from chipwise.calibration.own import NOISE, OwnFactors, Runs, apply, fit, try_out
from chipwise.calibration.score import predict
from chipwise.perf.arrays import Coded
from chipwise.perf.model import MEASURED, Estimate, packaged
from chipwise.perf.part import Parts
from chipwise.perf.rows import Row

CHIPS = ("H100-SXM", "A100-80", "L40S")
MODELS = ("llama-3.1-8b", "mixtral-8x7b", "qwen2.5-7b", "gemma-2-9b")


def runs(residual: np.ndarray[tuple[int], np.dtype[np.float64]] | list[float], family: str = "inference") -> Runs:
    """Runs over chips and models in turn, each pair a group of its own."""
    values = np.array(residual, dtype=np.float64)
    keys = tuple((family, CHIPS[at % 3], "vllm", MODELS[at // 3 % 4]) for at in range(len(values)))
    return Runs(tuple(f"{key[1]}|{key[3]}" for key in keys), keys, np.ones(len(values)), values)


def log(
    factors: OwnFactors, chip: str, model: str = "llama-3.1-8b", family: str = "inference", software: str = "vllm"
) -> float:
    return float(factors.offset(family, Coded.of([chip]), Coded.of([software]), Coded.of([model])).log[0])


def test_runs_that_were_predicted_perfectly_change_nothing() -> None:
    factors = fit(runs(np.zeros(24)))
    assert all(abs(value) < 1e-12 for _, _, value, _ in factors.factors())
    assert log(factors, "H100-SXM") == log(factors, "MI300X") == 0.0


def test_a_constant_factor_over_many_groups_is_learnt_and_carried_to_other_chips() -> None:
    factors = fit(runs(np.full(24, np.log(1.2))))
    assert np.exp(log(factors, "H100-SXM")) == pytest.approx(1.2, rel=0.01)
    assert 1.1 < np.exp(log(factors, "MI300X", "never-seen")) < 1.2


def test_a_chip_that_differs_has_a_factor_of_its_own() -> None:
    values = np.array([np.log(1.3) if at % 3 == 0 else 0.0 for at in range(36)])
    factors = fit(runs(values))
    assert np.exp(log(factors, CHIPS[0])) == pytest.approx(1.3, rel=0.04)
    assert np.exp(log(factors, CHIPS[1])) == pytest.approx(1.0, abs=0.03)


def test_a_family_of_which_there_is_no_run_is_left_alone() -> None:
    factors = fit(runs(np.full(24, 0.3)))
    assert log(factors, "H100-SXM", family="training") == 0.0


def test_one_wild_run_among_many_does_not_move_the_rest() -> None:
    values = np.zeros(24)
    values[5] = np.log(1000.0)
    factors = fit(runs(values))
    assert abs(log(factors, CHIPS[0])) < 0.03


def test_spelling_of_a_model_does_not_matter() -> None:
    factors = fit(runs(np.linspace(0.0, 0.4, 12)))
    assert log(factors, "A100-80", "Llama 3.1 8B") == log(factors, "A100-80", "llama-3.1-8b")


@given(st.lists(st.floats(-1.5, 1.5), min_size=1, max_size=30))
def test_a_factor_never_goes_beyond_what_was_seen(residuals: list[float]) -> None:
    factors = fit(runs(residuals))
    for chip in CHIPS:
        found = factors.offset("inference", Coded.of([chip]), Coded.of(["vllm"]), Coded.of(["llama-3.1-8b"]))
        assert min(0.0, *residuals) - 1e-6 <= found.log[0] <= max(0.0, *residuals) + 1e-6
        assert found.variance[0] > 0.0
        assert 0.0 <= found.trust[0] <= 1.0


def test_more_runs_leave_less_open() -> None:
    few, many = fit(runs(np.full(3, 0.1))), fit(runs(np.full(30, 0.1)))
    asked = (Coded.of(["H100-SXM"]), Coded.of(["vllm"]), Coded.of(["llama-3.1-8b"]))
    assert many.offset("inference", *asked).variance[0] < few.offset("inference", *asked).variance[0]


def test_columns_of_any_length_give_what_single_rows_give() -> None:
    factors = fit(runs(np.linspace(-0.2, 0.3, 24)))
    chips, models = Coded.of(["H100-SXM", "A100-80", "TPU-v5e", "H100-SXM"]), Coded.of([*MODELS[:3], "llama-3.1-8b"])
    found = factors.offset("inference", chips, Coded.of("vllm"), models)
    for at in range(4):
        one = factors.offset("inference", Coded.of(chips.texts()[at]), Coded.of("vllm"), Coded.of(models.texts()[at]))
        assert found.log[at] == pytest.approx(one.log[0])
        assert found.measured[at] == one.measured[0]
    assert found.measured.tolist() == [1.0, 1.0, 0.0, 1.0]


def test_held_out_runs_tell_whether_the_factors_help() -> None:
    good = try_out(runs(np.full(24, 0.25)))
    assert good is not None
    assert not good.worse
    assert good.median_after < 0.25 * good.median_before
    rng = np.random.default_rng(3)
    outcomes = [try_out(runs(0.02 * rng.standard_normal(12))) for _ in range(20)]
    for outcome in outcomes:  # noise alone: whatever comes out, `worse` says it
        assert outcome is not None
        assert outcome.worse == (
            outcome.median_after > outcome.median_before
            if abs(outcome.median_after - outcome.median_before) > 0.001
            else outcome.mean_after > outcome.mean_before + 0.001
        )


def test_groups_that_contradict_each_other_come_out_worse_and_say_so() -> None:
    keys = (("inference", "H200", "vllm", "m"),) * 6
    contrary = Runs(("a", "a", "a", "b", "b", "b"), keys, np.ones(6), np.array([0.3, 0.3, 0.3, -0.3, -0.3, -0.3]))
    outcome = try_out(contrary)
    assert outcome is not None
    assert outcome.worse
    assert outcome.median_after > outcome.median_before


@pytest.mark.parametrize("count", [1, 2])
def test_too_few_runs_cannot_tell_and_move_predictions_little(count: int) -> None:
    few = runs([np.log(1.5)] * count)
    assert try_out(few) is None
    assert try_out(runs([np.log(1.5)] * 6).rows(np.array([0, 3]))) is None
    bold, careful = fit(few), fit(few, cautious=True)
    assert 0.0 < log(careful, "H100-SXM") < log(bold, "H100-SXM")


def estimate(power: float) -> Estimate:
    seconds = np.array([2.0, 4.0])
    value = seconds**power
    terms = {"matrix": seconds * 0.75, "cache": seconds * 0.25}
    return Estimate(value, value * 0.7, value * 1.5, seconds, terms, Coded.of(["formula", "interpolated"]), np.full(2, 0.5))


@pytest.mark.parametrize("power", [1.0, -1.0])
def test_applying_a_factor_scales_the_time_and_keeps_the_sum(power: float) -> None:
    factors = fit(runs(np.full(24, np.log(1.2))), spread={"inference": 0.05})
    offset = factors.offset("inference", Coded.of(["H100-SXM", "TPU-v5e"]), Coded.of("vllm"), Coded.of("llama-3.1-8b"))
    before = estimate(power)
    after = apply(before, offset, np.full(2, power))
    assert after.seconds == pytest.approx(before.seconds * np.exp(offset.log))
    assert sum(after.terms.values()) == pytest.approx(after.seconds)
    assert after.value == pytest.approx(after.seconds**power)
    assert np.all((after.low < after.value) & (after.value < after.high))
    assert after.provenance.texts() == [MEASURED, "interpolated"]


def test_an_interval_narrows_toward_own_runs_but_never_below_their_noise() -> None:
    asked = (Coded.of(["H100-SXM", "TPU-v5e"]), Coded.of("vllm"), Coded.of("llama-3.1-8b"))
    steady = fit(runs(np.full(48, 0.1)), spread={"inference": 0.001}).offset("inference", *asked)
    after = apply(estimate(1.0), steady, np.ones(2))
    width = np.log(after.high / after.value)
    assert own.Z * NOISE <= width[0] < width[1] < np.log(1.5)
    unknown = fit(runs([0.1, 0.1]), cautious=True).offset("inference", *asked)
    same = apply(estimate(1.0), unknown, np.ones(2))
    assert np.log(same.high / same.value) == pytest.approx(np.log(1.5))


def test_real_rows_measured_a_fifth_slower_are_learnt(parts: Parts, mpt: list[Row]) -> None:
    slower = []
    for row, answer in zip(mpt, predict(mpt, parts, packaged()), strict=True):
        assert answer.predicted is not None
        power = 1.0 if row.text("metric_name") == "step_time_s" else -1.0
        slower.append(Row({**row.cells, "metric_value": str(answer.predicted * 1.2**power)}))
    found = own.runs_of(samples(slower, parts), packaged())
    assert found.residual == pytest.approx(np.full(len(mpt), np.log(1.2)))
    trial = try_out(found)
    assert trial is not None
    assert not trial.worse
    model = calibrated(packaged(), fit(found, spread=trial.spread), {})
    for row, answer in zip(slower, predict(slower, parts, model), strict=True):
        assert answer.predicted == pytest.approx(row.number("metric_value", 0.0), rel=0.01)
        assert answer.provenance == MEASURED


def test_nothing_measured_is_the_packaged_model_itself() -> None:
    assert calibrated(packaged(), None, {}) is packaged()


def test_runs_come_before_a_profile_of_the_same_chip(parts: Parts, mpt: list[Row]) -> None:
    found = own.runs_of(samples(mpt, parts), packaged())
    chips = {key[1] for key in found.keys}
    profiles = {chip: ChipOffset(chip, 0.3, 0.3) for chip in chips}
    with_both, with_runs = (calibrated(packaged(), fit(found), some) for some in (profiles, {}))
    assert predict(mpt, parts, with_both) == predict(mpt, parts, with_runs)
    only = predict(mpt, parts, calibrated(packaged(), None, profiles))
    assert only != predict(mpt, parts, packaged())
