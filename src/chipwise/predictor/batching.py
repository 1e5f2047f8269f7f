"""How large batches grow as samples are asked for, how long a request then takes, and the highest rate that keeps its goals.

Requests that come one by one are batched as they wait: those that arrive during one pass make up the next. With a rate of r
and T(b) seconds for a pass of b samples, the batch settles where b = r T(b); a request waits for the rest of the pass under
way (evenly spread over it, with the chance that there is one) and then takes T of its own batch, which varies like a Poisson
count scaled by the burstiness.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from chipwise.perf.arrays import Array


@dataclass(frozen=True, slots=True)
class Curve:
    """Seconds of a pass by batch, of one of `copies` that work side by side."""

    batches: Array
    seconds: Array
    copies: float

    def seconds_at(self, batch: float) -> float:
        return float(np.interp(batch, self.batches, self.seconds))

    @property
    def max_rate(self) -> float:
        """Samples per second that all copies do at best."""
        return float(np.max(self.batches / self.seconds)) * self.copies

    def settled(self, rate: float) -> float | None:
        """The batch that requests at this rate make up; None: they come faster than they are answered."""
        load = rate / self.copies
        if load >= self.max_rate / self.copies:
            return None
        left = load * self.seconds - self.batches  # requests that come during a pass, less those it takes
        index = int(np.argmax(left <= 0))  # the first batch that keeps up; there is one, as `max_rate` says
        if index == 0:  # below the first of them, a pass takes as long as that one
            return max(load * float(self.seconds[0]), 1.0)
        before, after = float(left[index - 1]), float(left[index])
        return float(self.batches[index - 1] + (self.batches[index] - self.batches[index - 1]) * before / (before - after))

    def latency(self, rate: float, share: float, burstiness: float = 1.0) -> float | None:
        """Seconds that `share` of the requests stay below."""
        batch = self.settled(rate)
        if batch is None:
            return None
        busy = min(rate / self.copies * self.seconds_at(batch) / batch, 1.0)
        waited = max(share - (1.0 - busy), 0.0) / max(busy, 1e-12) * self.seconds_at(batch)
        extra = NormalDist().inv_cdf(min(max(share, 1e-6), 1 - 1e-6)) * burstiness * math.sqrt(max(batch * busy, 0.0))
        own = batch if batch * busy < 1 else min(max(batch + extra, 1.0), float(self.batches[-1]))
        return waited + self.seconds_at(own)

    def highest_rate(self, goals: Mapping[float, float], burstiness: float = 1.0, halvings: int = 60) -> float:
        """Requests per second up to which each goal {share: seconds} is met; 0: never."""

        def keeps(rate: float) -> bool:
            found = {share: self.latency(rate, share, burstiness) for share in goals}
            return all(one is not None and one <= goals[share] for share, one in found.items())

        low, high = 1e-6, self.max_rate
        if not keeps(low):
            return 0.0
        for _ in range(halvings):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if keeps(middle) else (low, middle)
        return low
