"""On-demand from the first tick to the last: the price of certainty."""

from __future__ import annotations

import numpy as np

from chipwise.scale.spot import Choices, Decide, SpotChoice, SpotJob, SpotState

KIND = "spot"
SUMMARY = "On-demand machines from the beginning to the end."
NEEDS = "nothing"


def begin(job: SpotJob, count: int) -> Decide:
    def decide(state: SpotState) -> Choices:
        return np.full(count, SpotChoice.ON_DEMAND, np.int8)

    return decide
