"""Two bounds of scaling: the bare work, and the plan of who knows the whole load.

The plan has, in every tick, the fewest replicas with which nobody waits longer than the goal, counted in cells of a second
that come at their begin. A replica that would be missed again before a new one could have started stays. Each is ordered a
cold start before it is needed. Replayed request by request, a few wait longer all the same: those of a second do not come at
its begin, and replicas that are no pool have queues of their own. A rule that lets one percent wait may cost less.
"""

from __future__ import annotations

from math import ceil

import numpy as np

from chipwise.scale.load import Floats, RequestLoad
from chipwise.scale.serving import BeginScaling, Scale, ScaledService, ServeSignals
from chipwise.scale.simulator.scaling import ROUNDING

_CELL_S = 1.0


def bare_work_hours(load: RequestLoad, service: ScaledService) -> float:
    """Replicas that are always busy and never start."""
    return float(load.work.sum()) / service.replica_per_s / 3600.0


def clairvoyant(load: RequestLoad) -> BeginScaling:
    def begin(service: ScaledService) -> Scale:
        wanted = plan(load, service).tolist()

        def decide(signals: ServeSignals) -> float:
            tick = round(signals.now_s / service.tick_s)
            return float(wanted[min(tick, len(wanted) - 1)])

        return decide

    return begin


def plan(load: RequestLoad, service: ScaledService) -> Floats:
    """Replicas of every tick, those that start included."""
    needed = np.maximum(_needed(load, service), service.least_replicas)
    lead = ceil(service.cold_start_s / service.tick_s - ROUNDING)
    return np.minimum(_highest_ahead(_bridged(needed, lead), lead), service.most_replicas)


def _needed(load: RequestLoad, service: ScaledService) -> Floats:
    ticks = max(ceil(load.duration_s / service.tick_s - ROUNDING), 1)
    cells = max(round(service.tick_s / _CELL_S), 1)
    cell_s = service.tick_s / cells
    place = np.minimum((load.times_s / cell_s).astype(np.int64), ticks * cells - 1)
    work = np.bincount(place, weights=load.work, minlength=ticks * cells).reshape(ticks, cells) / service.replica_per_s
    arrived = np.cumsum(work, axis=1)  # in seconds of a replica
    at_s = np.arange(cells) * cell_s
    alone = np.zeros(ticks)  # without those who wait already
    for first in range(cells):
        since = arrived[:, first:] - (arrived[:, first - 1 : first] if first else 0.0)
        alone = np.maximum(alone, (since / (at_s[first:] - at_s[first] + service.goal_wait_s + ROUNDING)).max(axis=1))
    left_s = service.tick_s - at_s
    patience_s = at_s + service.goal_wait_s + ROUNDING
    needed, backlog = np.empty(ticks), 0.0
    for tick in range(ticks):
        row = arrived[tick]
        replicas = (
            ceil(max(float(alone[tick]), float(((backlog + row) / patience_s).max())) - ROUNDING) if row[-1] + backlog else 0
        )
        from_cell = row[-1] - row + work[tick]  # that arrived in this cell or after it
        backlog = max(float((from_cell - replicas * left_s).max()), backlog + float(row[-1]) - replicas * service.tick_s, 0.0)
        needed[tick] = replicas
    return needed


def _bridged(needed: Floats, lead: int) -> Floats:
    """Without falls that last no longer than a start: the lower of the highest just before and just after, over `lead`."""
    if lead < 1:
        return needed
    dilated = _highest_ahead(needed, lead)
    return np.asarray(-_highest_ahead(-dilated[::-1], lead)[::-1])


def _highest_ahead(values: Floats, ahead: int) -> Floats:
    """Of each place and those up to `ahead` after it."""
    if ahead < 1:
        return values
    padded = np.concatenate([values, np.full(ahead, values[-1])])
    return np.asarray(np.lib.stride_tricks.sliding_window_view(padded, ahead + 1).max(axis=1))
