"""Spot whenever it is there, else wait; on-demand when the time is up. The baseline of the public benchmark: from the tick at
which two more starts would no longer fit, a spot machine is kept while it lasts, and none is waited for.
"""

from __future__ import annotations

import numpy as np

from chipwise.scale.spot import Choices, Decide, SpotChoice, SpotJob, SpotState, before_the_deadline

KIND = "spot"
SUMMARY = "Spot when it is available, else wait, until only on-demand is in time."
NEEDS = "work left, restart time"


def begin(job: SpotJob, count: int) -> Decide:
    def decide(state: SpotState) -> Choices:
        return before_the_deadline(state, np.where(state.spot, np.int8(SpotChoice.SPOT), np.int8(SpotChoice.WAIT)))

    return decide
