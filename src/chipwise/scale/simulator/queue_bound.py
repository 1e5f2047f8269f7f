"""A mean completion time that no queue can fall below, however it orders, stops and places its jobs.

The GPUs are taken as one server of their speed together, on which any schedule of the real GPUs could be carried out too. Three
bounds hold at once, and the largest counts:

- Each job takes at least its own duration.
- On one server, the least work left first with free preemption has the lowest sum of completion times (Schrage, 1968).
- A job on its own GPUs works at most at their speed, so it ends at least half its duration after the mean moment at which it is
  worked on. The sum of these mean moments is lowest on one server that always works on the job with the least work in all, with
  free preemption (Goemans, 1997).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from math import inf

import numpy as np
from numpy.typing import NDArray


def least_mean_s(
    arrivals_s: Sequence[float],
    gpus: Sequence[int],
    works_s: Sequence[float],
    total: int,
    each_job: Callable[[int], None] | None = None,
) -> float:
    """`works_s`: the duration of each job on its GPUs; `total`: GPUs of the cluster."""
    arrivals, works = np.array(arrivals_s, np.float64), np.array(works_s, np.float64)
    served_s = works * np.array(gpus) / total  # on the one server
    ends_s, _ = _served(arrivals, served_s, by_rest=True, each_job=each_job)
    _, middles_s = _served(arrivals, served_s, by_rest=False)
    bounds = (works.mean(), (ends_s - arrivals).mean(), (middles_s + works / 2.0 - arrivals).mean())
    return float(max(bounds))


def _served(
    arrivals: NDArray[np.float64],
    served_s: NDArray[np.float64],
    *,
    by_rest: bool,
    each_job: Callable[[int], None] | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Ends, and the mean moments of work, on one server: the least that is left first, else the least in all."""
    order = np.argsort(arrivals, kind="stable").tolist()
    comes, rest = arrivals.tolist(), served_s.tolist()
    ends, moments = np.zeros(len(order)), np.zeros(len(order))
    waiting: list[tuple[float, int]] = []  # rank, job
    place, ended, now = 0, 0, 0.0
    while ended < len(order):
        if not waiting:
            now = max(now, comes[order[place]])
        while place < len(order) and comes[order[place]] <= now:
            heappush(waiting, (rest[order[place]], order[place]))
            place += 1
        rank, job = heappop(waiting)
        next_s = comes[order[place]] if place < len(order) else inf
        moment = min(now + rest[job], next_s)
        moments[job] += (moment - now) * (moment + now) / 2.0
        if now + rest[job] <= next_s:
            ends[job], ended = moment, ended + 1
            if each_job is not None:
                each_job(ended)
        else:
            rest[job] -= moment - now
            heappush(waiting, (rest[job] if by_rest else rank, job))
        now = moment
    return ends, moments / served_s
