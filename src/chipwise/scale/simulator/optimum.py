"""The least that a job could have cost on a trace, if the whole trace had been known: a dynamic programme over time and
slack.

Slack is what is left of the time after the work: a tick without a machine costs a tick of it, a start costs a restart of it,
and work costs none. So the state is (ticks left, slack, what is held), and the job is done where the slack is as large as the
time. Slack is counted in the largest unit that divides tick and restart; where that would be too fine, restarts are rounded
down, and the result is still a bound.
"""

from __future__ import annotations

from math import floor, gcd

import numpy as np
from numpy.typing import NDArray

from chipwise.scale.spot import ROUNDING_H, Flags, Hours, SpotJob

_NEVER = np.float32(1e9)
_FINEST_UNITS = 60  # of a tick, at most


def optimum(available: Flags, job: SpotJob) -> Hours:
    """USD of each scenario."""
    units = _units(job)
    restart = floor(job.restart_h / job.tick_h * units + ROUNDING_H)
    levels = levels_of(job)
    spot_usd, on_demand_usd = np.float32(job.spot_usd * job.tick_h), np.float32(job.on_demand_usd * job.tick_h)
    none = spot = on_demand = np.zeros((len(available), levels), np.float32)
    slack = np.arange(levels)
    for left in range(1, job.ticks + 1):
        has_spot = available[:, job.ticks - left, None]
        stay_spot = np.where(has_spot, spot_usd + spot, _NEVER)
        stay_on_demand = on_demand_usd + on_demand
        none = np.minimum(_spent(none, units), _spent(np.minimum(stay_spot, stay_on_demand), restart))
        none[:, slack >= left * units] = 0.0
        spot, on_demand = np.minimum(none, stay_spot), np.minimum(none, stay_on_demand)
    usd: Hours = none[:, -1].astype(np.float64)
    return usd


def levels_of(job: SpotJob) -> int:
    """Of slack that are told apart: each is a number for each scenario, at each tick."""
    return floor((job.ticks - job.work_h / job.tick_h) * _units(job) + ROUNDING_H) + 1


def _units(job: SpotJob) -> int:
    tick_s = max(round(job.tick_h * 3600), 1)
    restart_s = floor(job.restart_h * 3600 + ROUNDING_H)
    units = tick_s // gcd(tick_s, restart_s) if restart_s else 1
    return min(units, _FINEST_UNITS)


def _spent(usd: NDArray[np.float32], units: int) -> NDArray[np.float32]:
    """The same with so much less slack."""
    if units == 0:
        return usd
    less = np.full_like(usd, _NEVER)
    less[:, units:] = usd[:, :-units]
    return less
