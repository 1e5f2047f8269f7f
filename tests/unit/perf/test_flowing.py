"""Requests that arrive on their own: Little's law holds whatever factors a fit gives, and a burst is over with its work."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.catalog.load import load
from chipwise.perf.arrays import Array
from chipwise.perf.family_inference import question_of
from chipwise.perf.part import Parts
from chipwise.perf.published_inference import InferenceCase, case_of
from chipwise.perf.question import Question
from chipwise.perf.rows import Row

PARTS = Parts(load(prices=False).chips.values())
CELLS = {
    "model": "Llama-3.1-8B",
    "task": "llm-online",
    "chip": "H100-SXM",
    "engine": "tensorrt-llm",
    "precision_weights": "bf16",
    "chips": "1",
    "tp": "1",
    "input_len": "400",
    "output_len": "200",
    "metric_name": "requests_per_s",
}
STEP = ("weights", "cache", "communication", "launches", "engine", "sequences")
factors = st.floats(-1.5, 1.5)


def case(**cells: str) -> InferenceCase:
    part = PARTS.find(CELLS["chip"])
    assert part is not None
    return case_of(Row({**CELLS, **cells}), part)


def at_rate(rate: float, **cells: str) -> Question:
    return question_of([case(rate_rps=str(rate), **cells)])


def burst(requests: float, output_len: float = 200.0, equal: bool = True) -> Question:
    sent = case(rate_rps="inf", batch_or_concurrency="1000")
    return question_of([replace(sent, requests=requests, output_len=output_len, equal=equal)])


def terms(question: Question, exponents: dict[str, float] | None = None) -> dict[str, float]:
    by_name = question.terms({name: np.array([value]) for name, value in (exponents or {}).items()})
    return {name: float(np.ravel(values)[0]) for name, values in by_name.items()}


def whole(question: Question, exponents: dict[str, float] | None = None) -> float:
    return sum(terms(question, exponents).values())


def prompts(seconds: dict[str, float]) -> float:
    return sum(values for name, values in seconds.items() if name.startswith("prefill"))


@given(st.floats(0.2, 4.0), factors, factors, factors, factors)
def test_below_its_capacity_a_replica_answers_as_often_as_it_is_asked(
    rate: float, weights: float, step: float, prompt: float, every: float
) -> None:
    """Whatever factors a fit finds: the number in flight follows from them, so that no fit is misled by an offered rate."""
    exponents = {"decode_matrix": weights, "step_host": step, "prefill_matrix": prompt, "*": every}
    last = whole(at_rate(rate, metric_name="latency_ms"), exponents) / 500.0
    assert whole(at_rate(rate), exponents) == pytest.approx(1.0 / rate + last, rel=1e-3)


@given(st.floats(0.5, 30.0), factors, factors)
def test_in_flight_are_as_many_as_come_while_one_is_answered(rate: float, weights: float, every: float) -> None:
    exponents = {"decode_matrix": weights, "sequence_host": 3.0, "*": every}
    token = terms(at_rate(rate, metric_name="tpot_ms"), exponents)
    step, stretch = sum(token[name] for name in STEP), prompts(token)
    alone = case(task="llm-decode", input_len="300", output_len="1", metric_name="tpot_ms")

    def decoded(sequences: float) -> float:
        lone = question_of([replace(alone, batch=sequences, input_len=500.0)])
        return whole(lone, exponents)

    in_flight = rate * 200.0 * (step + stretch)
    if 1.5 < in_flight < 300.0:
        assert step == pytest.approx(decoded(in_flight), rel=0.1)


def test_above_its_capacity_a_replica_answers_as_fast_as_it_can() -> None:
    swamped = at_rate(5000.0)
    assert terms(swamped)["arrival"] == 0.0
    assert whole(swamped, {"decode_matrix": 0.5}) > 1.1 * whole(swamped) > 1.1 / 5000.0


@pytest.mark.parametrize("requests", [1.0, 30.0, 400.0])
def test_a_burst_that_all_have_a_slot_in_takes_its_work_once(requests: float) -> None:
    work = terms(burst(requests))
    lone = replace(case(task="llm-decode", metric_name="tpot_ms"), batch=requests, input_len=500.0)
    step = whole(question_of([lone]))
    assert sum(work[name] for name in STEP) == pytest.approx(200.0 * step / requests, rel=0.02)
    assert work["waiting"] == 0.0


def test_a_long_burst_is_answered_like_callers_without_end() -> None:
    """Its end counts for nothing then."""
    endless = replace(case(metric_name="requests_per_s", batch_or_concurrency="2048"), equal=True)
    assert whole(burst(1e7)) == pytest.approx(whole(question_of([endless])), rel=0.1)


def test_lengths_that_vary_leave_fewer_and_fewer_in_flight() -> None:
    """Steps of one sequence take as long as steps of many where weights are all that is read: the last of n answers of
    exponential lengths takes the n-th harmonic number of mean answers."""

    def steps(equal: bool) -> Array:
        work = terms(burst(100.0, output_len=20.0, equal=equal))
        return np.array([work["weights"], work["engine"]])

    assert steps(False)[1] / steps(True)[1] == pytest.approx(sum(1.0 / n for n in range(1, 101)), rel=0.02)
    assert np.all(steps(False) > 2.0 * steps(True))


def test_random_prompts_of_a_benchmark_have_answers_of_one_length() -> None:
    assert case(notes="random prompts; all 500 requests sent at once").equal
    assert not case(notes="ShareGPT prompts; all 500 requests sent at once").equal


@given(st.floats(1.0, 3000.0), st.floats(1.0, 2.0), st.booleans())
def test_a_larger_burst_never_takes_less_time(requests: float, more: float, equal: bool) -> None:
    before, after = (count * whole(burst(count, equal=equal)) for count in (requests, requests * more))
    assert after >= before * (1.0 - 1e-9)
