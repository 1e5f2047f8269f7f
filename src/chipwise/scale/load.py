"""A load over time: requests, or groups of requests that come at one instant, in the order of their arrival."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLoad:
    name: str
    times_s: Floats  # rising, from the begin of the trace
    counts: Floats  # requests that come at each of them
    work: Floats  # of all requests of an instant together; the mean over all requests is 1
    duration_s: float
    clock_s: float = 0.0  # the time of day at the begin
    mean_s: float | None = None  # that a request takes a replica, where the trace says it
    tokens: tuple[Floats, Floats] | None = None  # of each request, in and out, where the trace says them

    @property
    def requests(self) -> float:
        return float(self.counts.sum())

    @property
    def mean_per_s(self) -> float:
        return self.requests / self.duration_s


def load_of(
    name: str,
    times_s: Floats,
    *,
    counts: Floats | None = None,
    work: Floats | None = None,
    duration_s: float | None = None,
    clock_s: float = 0.0,
    mean_s: float | None = None,
    tokens: tuple[Floats, Floats] | None = None,
) -> RequestLoad:
    """`work`: of each instant, in any unit; None: all requests are alike."""
    numbers = np.ones(len(times_s)) if counts is None else counts
    amounts = numbers if work is None else work * (numbers.sum() / work.sum())
    end_s = float(times_s[-1]) if duration_s is None else duration_s
    return RequestLoad(
        name=name,
        times_s=times_s,
        counts=numbers,
        work=amounts,
        duration_s=max(end_s, 1.0),
        clock_s=clock_s,
        mean_s=mean_s,
        tokens=tokens,
    )
