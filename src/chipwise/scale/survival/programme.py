"""The stochastic programme: the expected cost to the end of a job, for every kind of market, and every state.

The state is (time left, slack, what is held, whether spot is there and for how long), where slack is what the time leaves
beside the work. A tick without a machine costs a tick of slack, the overhead of a start costs its own length, work costs
none; the job is done where the slack equals the time, and what is paid beyond is taken back, so that between the points of
the grid a part of a step costs its part. Backwards in time, each state takes the cheapest of waiting, spot and on-demand; a
lack of slack costs `_LATE` times the on-demand price, beside the law that forbids it. One table serves all jobs with the same
restart and prices.
"""

from __future__ import annotations

from functools import lru_cache
from math import ceil

import numpy as np
from numpy.typing import NDArray

from chipwise.scale.spot import Hours, SpotChoice, SpotJob
from chipwise.scale.survival.kinds import (
    AGE_EDGES_H,
    CLASSES,
    FIRST_AGE_H,
    KINDS,
    LOSSES_PER_HOUR,
    RETURNS_PER_HOUR,
    change_probability,
)

Table = NDArray[np.float32]

_MOST_STEPS = 432  # of time: three days of ten minutes; longer jobs take longer steps
_SAVED_STEP = 2  # steps of which the table is kept; between them it is interpolated
_SLACK_POINTS = 44
_LATE = 30.0
_NONE, _ON_DEMAND, _SPOT = 0, 1, 2  # what is mode; `_SPOT + j` has j steps of its start before it


def programme(job: SpotJob) -> Programme:
    """Tables are shared between jobs that differ in work and deadline only."""
    days = ceil(job.deadline_h / 24.0)
    step_h = max(FIRST_AGE_H, job.tick_h, days * 24.0 / _MOST_STEPS)
    return _cached(job.longest_restart_h, job.spot_usd / job.on_demand_usd, days * 24.0, step_h)


@lru_cache(maxsize=8)
def _cached(restart_h: float, spot_price: float, horizon_h: float, step_h: float) -> Programme:
    return Programme(restart_h, spot_price, horizon_h, step_h)


class Programme:
    """Costs in hours of on-demand price."""

    def __init__(self, restart_h: float, spot_price: float, horizon_h: float, step_h: float) -> None:
        self.step_h = step_h
        self._restart = restart_h / step_h
        self._spot_price = spot_price * step_h
        self._phases = max(ceil(self._restart - 1e-9), 1)  # steps of a start
        self._slack = self._slack_points(0.5 * horizon_h / step_h)
        steps = ceil(horizon_h / step_h) + 1
        # kept time x slack x held x (gone or there, by age) x kind: cost after a choice, before it is known what comes next
        self._table: Table = np.empty(
            (steps // _SAVED_STEP + 1, len(self._slack), _SPOT + self._phases, 2 * CLASSES, KINDS), np.float32
        )
        self._fill(steps)

    def _slack_points(self, largest: float) -> Hours:
        """Dense where little is left, and exact where a start or some just fit."""
        spread = largest * np.sinh(np.linspace(0.0, 4.0, _SLACK_POINTS)) / np.sinh(4.0)
        points: Hours = np.unique(np.round(np.append(spread, self._restart * np.array([1.0, 2.0, 4.0])), 4))
        return points[points <= largest]

    def _fill(self, steps: int) -> None:
        step_h = self.step_h
        losses = change_probability(LOSSES_PER_HOUR, step_h).astype(np.float32)
        returns = change_probability(RETURNS_PER_HOUR, step_h).astype(np.float32)
        older = np.append(np.minimum(step_h / np.diff(AGE_EDGES_H), 1.0), 0.0).astype(np.float32)[:, None]
        shifts = {
            amount: self._shift(amount) for amount in (1.0, self._restart, *(self._overhead(n) for n in range(self._phases)))
        }
        value: Table = np.zeros((len(self._slack), _SPOT + self._phases, 2 * CLASSES, KINDS), np.float32)
        spot_usd, on_demand_usd = np.float32(self._spot_price), np.float32(step_h)

        def spent(costs: Table, amount: float) -> Table:
            below, share, penalty = shifts[amount]
            shape = (-1,) + (1,) * (costs.ndim - 1)
            return costs[below] * (1 - share).reshape(shape) + costs[below + 1] * share.reshape(shape) + penalty.reshape(shape)

        for left in range(1, steps + 1):
            absent, present = value[:, :, :CLASSES], value[:, :, CLASSES:]
            lost = absent[:, :, :1].copy()
            lost[:, _SPOT:] = absent[:, :1, :1]  # a spot machine is lost with the market
            ahead = np.empty_like(value)
            ahead[:, :, CLASSES:] = present + older * (np.concatenate([present[:, :, 1:], present[:, :, -1:]], 2) - present)
            ahead[:, :, CLASSES:] += losses * (lost - ahead[:, :, CLASSES:])
            ahead[:, :, :CLASSES] = absent + older * (np.concatenate([absent[:, :, 1:], absent[:, :, -1:]], 2) - absent)
            ahead[:, :, :CLASSES] += returns * (present[:, :, :1] - ahead[:, :, :CLASSES])
            if (left - 1) % _SAVED_STEP == 0:
                self._table[(left - 1) // _SAVED_STEP] = ahead
            from_none = np.minimum(spent(ahead[:, _NONE], 1.0), on_demand_usd + spent(ahead[:, _ON_DEMAND], self._restart))
            market = ahead[:, :, CLASSES:]
            starting = spot_usd + spent(market[:, _SPOT + self._phases - 1], self._overhead(self._phases - 1))
            from_none[:, CLASSES:] = np.minimum(from_none[:, CLASSES:], starting)
            value = np.repeat(from_none[:, None], _SPOT + self._phases, axis=1)
            value[:, _ON_DEMAND] = np.minimum(from_none, on_demand_usd + ahead[:, _ON_DEMAND])
            value[:, _SPOT, CLASSES:] = np.minimum(from_none[:, CLASSES:], spot_usd + market[:, _SPOT])
            for phase in range(1, self._phases):
                running = spot_usd + spent(market[:, _SPOT + phase - 1], self._overhead(phase - 1))
                value[:, _SPOT + phase, CLASSES:] = np.minimum(from_none[:, CLASSES:], running)
            complete = self._slack >= left
            unneeded = (self._slack[complete] - left).astype(np.float32)[:, None, None, None]
            value[complete, :, :CLASSES], value[complete, :, CLASSES:] = -on_demand_usd * unneeded, -spot_usd * unneeded

    def _overhead(self, phase: int) -> float:
        """Of the step that is followed by so many steps of the start."""
        return self._restart - (self._phases - 1) if phase == 0 else 1.0

    def _shift(self, amount: float) -> tuple[NDArray[np.intp], NDArray[np.float32], NDArray[np.float32]]:
        """Where so much less slack is on the grid: the point below, the share of the next, and the cost of what is missing."""
        below, share = self._between(self._slack - amount)
        penalty = self._penalty(self._slack - amount)
        return below, share.astype(np.float32), penalty.astype(np.float32)

    def _between(self, slack: Hours) -> tuple[NDArray[np.intp], Hours]:
        points = self._slack
        below = np.clip(np.searchsorted(points, slack, side="right") - 1, 0, len(points) - 2)
        share: Hours = np.clip((slack - points[below]) / (points[below + 1] - points[below]), 0.0, 1.0)
        return below, share

    def _penalty(self, slack: Hours) -> Hours:
        return np.maximum(-slack, 0.0) * _LATE * self.step_h

    def expected(
        self, choice: SpotChoice, *, time_left_h: float, slack_h: Hours, pending_h: Hours, market: NDArray[np.intp]
    ) -> Hours:
        """Scenario x kind: the cost of all that comes after a choice. `pending_h`: of a spot machine's start, after the tick;
        `market`: the age class, plus `CLASSES` where spot is present."""
        time = min(max(time_left_h / self.step_h, 0.0) / _SAVED_STEP, len(self._table) - 2.0)
        early = int(time)
        late_share = np.float32(time - early)
        slack = slack_h / self.step_h
        below, share = self._between(slack)
        phases = np.minimum(np.ceil(pending_h / self.step_h - 1e-9).astype(np.intp), self._phases - 1)
        mode = {SpotChoice.WAIT: np.zeros_like(phases), SpotChoice.ON_DEMAND: np.full_like(phases, _ON_DEMAND)}.get(
            choice, _SPOT + phases
        )
        costs = np.zeros((len(slack), KINDS))
        for time_at, time_share in ((early, 1.0 - late_share), (early + 1, late_share)):
            for point, point_share in ((below, 1.0 - share), (below + 1, share)):
                costs += self._table[time_at, point, mode, market] * (point_share * time_share)[:, None]
        return costs + self._penalty(slack)[:, None]
