"""Spot with a deadline: no rule is late where on-demand machines exist, and the bound is what trying everything finds."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chipwise.errors import BadInput
from chipwise.scale.policies import greedy, learned_survival, on_demand, slack, uniform_progress
from chipwise.scale.simulator.optimum import optimum
from chipwise.scale.simulator.spot import play
from chipwise.scale.spot import Begin, Choices, Decide, Flags, SpotChoice, SpotJob, SpotState

RULES = [on_demand.begin, greedy.begin, slack.begin, uniform_progress.begin]


def job_of(
    work_h: float = 4.0, deadline_h: float = 6.0, restart_h: float = 0.2, work_error: float = 0.0, restart_error: float = 0.0
) -> SpotJob:
    return SpotJob(
        work_h=work_h,
        deadline_h=deadline_h,
        restart_h=restart_h,
        spot_usd=1.0,
        on_demand_usd=3.0,
        tick_h=1.0 / 6.0,
        work_error=work_error,
        restart_error=restart_error,
    )


def always(choice: SpotChoice) -> Begin:
    def begin(job: SpotJob, count: int) -> Decide:
        return lambda state: np.full(count, choice, np.int8)

    return begin


def by_chance(seed: int) -> Begin:
    def begin(job: SpotJob, count: int) -> Decide:
        chance = np.random.default_rng(seed)

        def decide(state: SpotState) -> Choices:
            return chance.integers(0, 3, count).astype(np.int8)

        return decide

    return begin


def market(seed: int, ticks: int, count: int = 20) -> Flags:
    chance = np.random.default_rng(seed)
    flips = chance.random((count, ticks)) < chance.choice([0.02, 0.2, 0.6], (count, 1))
    flags: Flags = (np.cumsum(flips, axis=1) + chance.integers(0, 2, (count, 1))) % 2 == 1
    return flags


@pytest.mark.chance
@settings(deadline=None)
@given(
    seed=st.integers(0, 10**6),
    restart_h=st.floats(0.0, 0.9),
    work_h=st.floats(0.5, 4.0),
    work_error=st.floats(0.0, 0.2),
    restart_error=st.floats(0.0, 0.5),
    rule=st.sampled_from([*RULES, always(SpotChoice.WAIT), always(SpotChoice.SPOT)]) | st.integers(0, 100).map(by_chance),
)
def test_no_rule_is_late_even_if_work_and_restarts_take_longer(
    seed: int, restart_h: float, work_h: float, work_error: float, restart_error: float, rule: Begin
) -> None:
    job = job_of(work_h, 6.5, restart_h, work_error, restart_error)
    available, chance = market(seed, job.ticks), np.random.default_rng(seed)
    outcome = play(
        available,
        job,
        rule,
        true_work=work_h * (1.0 + chance.uniform(-0.1, work_error, len(available))),
        true_restarts=restart_h * (1.0 + chance.uniform(-0.5, restart_error, available.shape)),
    )
    assert not outcome.is_late.any()


def test_the_learned_rule_is_not_late_either() -> None:
    for seed in range(3):
        job = job_of(4.5, 6.0, 0.3, work_error=0.1, restart_error=0.5)
        available = market(seed, job.ticks)
        late_work = np.full(len(available), job.longest_work_h)
        slow = np.full(available.shape, job.longest_restart_h)
        assert not play(available, job, learned_survival.begin, true_work=late_work, true_restarts=slow).is_late.any()


@pytest.mark.parametrize("rule", [*RULES, learned_survival.begin])
def test_no_rule_is_cheaper_than_the_bound(rule: Begin) -> None:
    for seed in range(3):
        job = job_of()
        available = market(seed, job.ticks)
        assert (play(available, job, rule).usd >= optimum(available, job) - 1e-4).all()


@pytest.mark.parametrize(("restart_h", "work_h"), [(0.0, 0.5), (0.1, 0.5), (0.2, 0.4), (1 / 6, 0.6), (0.02, 0.7)])
def test_the_bound_is_the_cheapest_of_all_schedules(restart_h: float, work_h: float) -> None:
    job = job_of(work_h, 7 / 6, restart_h)
    available = market(3, job.ticks, count=6)
    assert optimum(available, job) == pytest.approx([_cheapest(row, job) for row in available], abs=1e-4)


def _cheapest(row: Flags, job: SpotJob) -> float:
    """Of all sequences of choices."""
    costs = []
    for choices in product(SpotChoice, repeat=job.ticks):
        usd, left, pending, held = 0.0, job.work_h, 0.0, SpotChoice.WAIT
        for tick, choice in enumerate(choices):
            if choice is SpotChoice.SPOT and not row[tick]:
                break
            if choice is not held and choice is not SpotChoice.WAIT:
                pending = job.restart_h
            held = choice
            if choice is SpotChoice.WAIT:
                continue
            usd += (job.spot_usd if choice is SpotChoice.SPOT else job.on_demand_usd) * job.tick_h
            left -= max(job.tick_h - pending, 0.0)
            pending = max(pending - job.tick_h, 0.0)
            if left <= 1e-7:
                costs.append(usd)
                break
    return min(costs)


def test_ample_spot_is_used_by_all_who_look_for_it() -> None:
    job = job_of()
    there = np.ones((1, job.ticks), np.bool_)
    spot_only = job.ticks_needed(job.work_h + job.restart_h) * job.tick_h * job.spot_usd
    for rule in (greedy.begin, slack.begin, uniform_progress.begin, learned_survival.begin):
        assert play(there, job, rule).usd == pytest.approx(spot_only)


def test_a_job_that_cannot_be_in_time_is_refused() -> None:
    with pytest.raises(BadInput, match="do not fit"):
        job_of(6.0, 6.0)


def test_a_trace_that_ends_before_the_deadline_is_refused() -> None:
    with pytest.raises(BadInput, match="shorter than the deadline"):
        play(np.ones((1, 3), np.bool_), job_of(), greedy.begin)
