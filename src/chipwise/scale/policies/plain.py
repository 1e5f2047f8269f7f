"""The rule that `run` follows where no policy is named: spot, or waiting for it, while two restarts fit between the end of the
work and the deadline; then on-demand machines, until there is time for twice as much and the rest is worth two moves."""

from __future__ import annotations

import numpy as np

from chipwise.scale.spot import Choices, Decide, SpotChoice, SpotJob, SpotState

KIND = "spot"
SUMMARY = "Spot or waiting while two restarts fit before the deadline, then on-demand: the rule of run."
NEEDS = "work left, restart time"

RESTARTS = 2.0


def begin(job: SpotJob, count: int) -> Decide:
    needed_h = RESTARTS * job.longest_restart_h

    def decide(state: SpotState) -> Choices:
        spare_h = state.time_left_h - state.most_work_h
        on_demand = state.choice == SpotChoice.ON_DEMAND
        short = spare_h <= np.where(on_demand, 2.0 * needed_h, needed_h)
        stays = on_demand & (state.most_work_h <= 2.0 * needed_h)
        cheap = np.where(state.spot, np.int8(SpotChoice.SPOT), np.int8(SpotChoice.WAIT))
        return np.where(short | stays, np.int8(SpotChoice.ON_DEMAND), cheap).astype(np.int8)

    return decide
