"""What completion times are compared with: the least work left first, with free preemption, on pooled GPUs.

Work is GPUs times seconds, known exactly. GPUs are given out in the order of work left, to each job up to its number, and what
is left over goes to the next, which then works on a part of its GPUs: no gang waits for its last GPU. The order is kept between
arrivals and ends. Jobs that work on all of their GPUs are kept by their number of GPUs in the order of their ends, which is the
order of work left among them at any time. It is a yardstick, not a proof: in rare cases another order is a little better.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from math import inf

import numpy as np
from numpy.typing import NDArray

_ROUNDING = 1e-6


def bound_ends_s(
    arrivals_s: Sequence[float],
    gpus: Sequence[int],
    works_s: Sequence[float],
    total: int,
    each_job: Callable[[int], None] | None = None,
) -> NDArray[np.float64]:
    """When each job ends on `total` GPUs."""
    order = sorted(range(len(arrivals_s)), key=lambda job: (arrivals_s[job], job))
    ends = np.full(len(order), inf)
    waiting: list[tuple[float, int]] = []  # work left, job
    by_size: dict[int, list[tuple[float, int]]] = {}  # by GPUs: end, job
    part: tuple[float, int, int] | None = None  # work left, job and GPUs of the one that works on some of its GPUs
    free, place, ended, now = total, 0, 0, 0.0
    while ended < len(order):
        arrival_s = arrivals_s[order[place]] if place < len(order) else inf
        first_end_s = min((jobs[0][0] for jobs in by_size.values() if jobs), default=inf)
        part_end_s = now + part[0] / part[2] if part is not None else inf
        moment = min(arrival_s, first_end_s, part_end_s)
        if part is not None:
            left = part[0] - part[2] * (moment - now)
            free += part[2]
            heappush(waiting, (max(left, 0.0), part[1]))
            part = None
        now = moment
        for size, jobs in by_size.items():
            while jobs and jobs[0][0] <= now + _ROUNDING:
                job = jobs.pop(0)[1]
                ends[job], free, ended = now, free + size, ended + 1
        while waiting and waiting[0][0] <= _ROUNDING:
            job = heappop(waiting)[1]
            ends[job], ended = now, ended + 1
        while place < len(order) and arrivals_s[order[place]] <= now:
            job = order[place]
            heappush(waiting, (works_s[job] * gpus[job], job))
            place += 1
        while waiting:
            left, job = waiting[0]
            if gpus[job] <= free:
                heappop(waiting)
                insort(by_size.setdefault(gpus[job], []), (now + left / gpus[job], job))
                free -= gpus[job]
                continue
            most, size = max((((jobs[-1][0] - now) * size, size) for size, jobs in by_size.items() if jobs), default=(0.0, 0))
            if most > left + _ROUNDING:
                end_s, other = by_size[size].pop()
                heappush(waiting, ((end_s - now) * size, other))
                free += size
                continue
            if free:
                heappop(waiting)
                part, free = (left, job, free), 0
            break
        if each_job is not None:
            each_job(ended)
    return ends
