"""Spot when it is there; else wait as long as the slack is at least a fifth of the work that is left, and otherwise pay
on-demand.
"""

from __future__ import annotations

import numpy as np

from chipwise.scale.spot import ROUNDING_H, Choices, Decide, SpotChoice, SpotJob, SpotState, before_the_deadline

KIND = "spot"
SUMMARY = "Spot when it is available; wait while slack is 20% of the work left, else on-demand."
NEEDS = "work left, restart time"
LEAST_SLACK = 0.2


def begin(job: SpotJob, count: int) -> Decide:
    def decide(state: SpotState) -> Choices:
        slack_h = state.time_left_h - state.most_work_h
        ample = slack_h >= LEAST_SLACK * np.maximum(state.most_work_h, ROUNDING_H)
        without = np.where(ample, np.int8(SpotChoice.WAIT), np.int8(SpotChoice.ON_DEMAND))
        return before_the_deadline(state, np.where(state.spot, np.int8(SpotChoice.SPOT), without).astype(np.int8))

    return decide
