"""The cheapest choice to the end of the job, by how long spot stays and stays away, which is learned while the job runs.

A stochastic programme (`scale/survival/programme.py`) gives the expected cost of each choice for each kind of spot market; the
kinds are weighed by what the market showed so far (`scale/survival/kinds.py`). Nothing in it is set per trace or per job.
"""

from __future__ import annotations

import numpy as np

from chipwise.scale.spot import ROUNDING_H, Choices, Decide, Hours, SpotChoice, SpotJob, SpotState
from chipwise.scale.survival.kinds import CLASSES, Learner
from chipwise.scale.survival.programme import Programme, programme

KIND = "spot"
SUMMARY = "The least expected cost by a stochastic programme, with survival of spot learned online."
NEEDS = "work left, restart time, prices, availability so far"


def begin(job: SpotJob, count: int) -> Decide:
    learner, costs = Learner(count, job.tick_h), programme(job)

    def decide(state: SpotState) -> Choices:
        learner.see(state.spot)
        weights = learner.weights
        market = learner.age_class + CLASSES * state.spot
        expected = np.stack([(_costs(costs, state, choice, market) * weights).sum(axis=1) for choice in SpotChoice])
        expected[SpotChoice.SPOT] = np.where(state.spot, expected[SpotChoice.SPOT], np.inf)
        cheapest: Choices = expected.argmin(axis=0).astype(np.int8)
        return cheapest

    return decide


def _costs(costs: Programme, state: SpotState, choice: SpotChoice, market: np.typing.NDArray[np.intp]) -> Hours:
    """Scenario x kind, of this tick and all that follow, in hours of on-demand price."""
    job = state.job
    restart_h = np.zeros_like(state.pending_h) if choice is SpotChoice.WAIT else state.restart_h(choice)
    in_tick_h = np.minimum(restart_h, job.tick_h)
    # A start on demand cannot be lost: all of its overhead is taken from the slack at once.
    spent_h = {
        SpotChoice.WAIT: np.full_like(restart_h, job.tick_h),
        SpotChoice.SPOT: in_tick_h,
        SpotChoice.ON_DEMAND: restart_h,
    }[choice]
    after = costs.expected(
        choice,
        time_left_h=state.time_left_h - job.tick_h,
        slack_h=state.time_left_h - state.most_work_h - spent_h,
        pending_h=restart_h - in_tick_h,
        market=market,
    )
    spot_price = job.tick_h * job.spot_usd / job.on_demand_usd
    after = np.maximum(after, spot_price)  # who is not done pays one more tick at least
    if choice is SpotChoice.WAIT:
        return after + ROUNDING_H  # of equals, not to wait
    finishes = state.most_work_h + restart_h <= job.tick_h + ROUNDING_H
    return (spot_price if choice is SpotChoice.SPOT else job.tick_h) + np.where(finishes[:, None], 0.0, after)
