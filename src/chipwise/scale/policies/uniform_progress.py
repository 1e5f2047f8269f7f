"""Uniform Progress ("Can't Be Late", Wu et al., NSDI 2024): keep the progress on the straight line from begin to deadline.

Spot when it is there; without it, wait while the work is ahead of the line and pay on-demand while it is behind. An on-demand
machine is kept, also when spot comes back, until the work is ahead by two restarts of the line (the paper's hysteresis).
"""

from __future__ import annotations

import numpy as np

from chipwise.scale.spot import Choices, Decide, SpotChoice, SpotJob, SpotState, before_the_deadline

KIND = "spot"
SUMMARY = "Uniform Progress (NSDI'24): on-demand while progress is behind a straight line to the deadline."
NEEDS = "work left, restart time"


def begin(job: SpotJob, count: int) -> Decide:
    speed = job.longest_work_h / job.deadline_h

    def decide(state: SpotState) -> Choices:
        passed_h = job.deadline_h - state.time_left_h
        progress_h = job.longest_work_h - state.most_work_h
        behind = progress_h < speed * passed_h
        ahead = progress_h >= speed * (passed_h + 2.0 * job.longest_restart_h)
        without = np.where(behind, np.int8(SpotChoice.ON_DEMAND), np.int8(SpotChoice.WAIT))
        choices = np.where(state.spot, np.int8(SpotChoice.SPOT), without)
        keeps = (state.choice == SpotChoice.ON_DEMAND) & ~ahead
        return before_the_deadline(state, np.where(keeps, np.int8(SpotChoice.ON_DEMAND), choices).astype(np.int8))

    return decide
