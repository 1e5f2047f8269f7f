"""How large batches grow as samples are asked for, how long a request then takes, and the highest rate that keeps its goals.

Requests that come one by one are batched as they wait: those that arrive during one pass make up the next. With a rate of r
and T(b) = c + d b seconds for a pass of b samples, the batch settles where b = r T(b) on average. It varies about that as a
branching process with immigration does: u = r d is how much of a longer pass the next one takes over, and the batch that a
request finds under way is near a gamma distribution with scale B^2 / (1 - u^2), B being the burstiness. The request waits for
the rest of that pass and then takes a pass of its own, in which are all who came meanwhile. Where a batch can grow no further,
those who are left over wait as in a queue in heavy traffic. How many requests find the server busy is that of a queue with
gamma-distributed gaps. The sum is taken for a shifted gamma of the same mean and variance; against simulations of such servers,
50 to 99% of the requests at 30 to 85% load, it is at most 20% too low and 55% too high, for Poisson arrivals 15% and 40%.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from operator import le
from statistics import NormalDist

from chipwise.perf.arrays import Array

_NORMAL = NormalDist()


@dataclass(frozen=True)
class Curve:
    """Seconds of a pass by batch, of one of `copies` that work side by side. It is asked thousands of times, one number at a
    time, and has a handful of points: lists are several times as fast as arrays."""

    batches: Array
    seconds: Array
    copies: float

    @cached_property
    def _points(self) -> tuple[list[float], list[float]]:
        return self.batches.tolist(), self.seconds.tolist()

    def seconds_at(self, batch: float) -> float:
        batches, seconds = self._points
        place = bisect_right(batches, batch) - 1
        if place < 0 or place == len(batches) - 1:
            return seconds[max(place, 0)]
        if batches[place] == batch:
            return seconds[place]
        slope = (seconds[place + 1] - seconds[place]) / (batches[place + 1] - batches[place])
        return slope * (batch - batches[place]) + seconds[place]

    @cached_property
    def max_rate(self) -> float:
        """Samples per second that all copies do at best."""
        return float((self.batches / self.seconds).max()) * self.copies

    def settled(self, rate: float) -> float | None:
        """The batch that requests at this rate make up; None: they come faster than they are answered."""
        load, (batches, seconds) = rate / self.copies, self._points
        if load >= self.max_rate / self.copies:
            return None
        before = 0.0
        for place in count():  # to the first batch that keeps up; there is one, as `max_rate` says
            left = load * seconds[place] - batches[place]  # requests that come during a pass, less those it takes
            if left <= 0:
                break
            before = left
        if place == 0:  # below the first of them, a pass takes as long as that one
            return max(load * seconds[0], 1.0)
        return batches[place - 1] + (batches[place] - batches[place - 1]) * before / (before - left)

    def latency(self, rate: float, share: float, burstiness: float = 1.0) -> float | None:
        """Seconds that `share` of the requests stay below."""
        latencies = self._latencies(rate, (share,), burstiness)
        return None if latencies is None else latencies[0]

    def _latencies(self, rate: float, shares: Sequence[float], burstiness: float) -> list[float] | None:
        batch = self.settled(rate)
        if batch is None:
            return None
        load, alone, full = rate / self.copies, self.seconds_at(1.0), self._points[0][-1]
        if burstiness == 0 and load * alone < 1.0:  # on a clock: each is done before the next comes
            return [alone] * len(shares)
        slope = self._slope(batch)
        repeated = min(load * slope, 0.999)
        fixed = max(self.seconds_at(batch) - slope * batch, 0.0)
        busy = min(load * self.seconds_at(batch) / batch, 1.0)
        waiting = _found_busy(busy, burstiness)
        if max(shares) <= 1.0 - waiting:
            return [alone] * len(shares)
        variable = max(burstiness**2 * (busy / waiting) ** 0.25, 1.0)
        scale, mean = variable / (1.0 - repeated**2), load * fixed / (1.0 - repeated)
        shape = 1.0 + mean / scale
        under_way = self.seconds_at(max(min(mean + scale, full), 1.0))
        spread = slope**2 * min(shape * scale**2, (full / 2) ** 2)
        own = min(fixed + slope + repeated * under_way, self.seconds_at(full))
        left_over = 1.0 - _NORMAL.cdf(_normal(full / (shape * scale), shape))
        queue = variable / (2.0 * (self.max_rate - rate) / self.copies)
        variance = under_way**2 / 12 + spread * (1 / 3 + repeated + repeated**2) + queue**2 * left_over * (2.0 - left_over)
        if own < self.seconds_at(full):
            variance += slope**2 * load * under_way * burstiness**2
        beyond = under_way / 2 + own + left_over * queue - alone
        return [
            alone if share <= 1.0 - waiting else alone + _gamma_quantile(beyond, variance, (share - (1.0 - waiting)) / waiting)
            for share in shares
        ]

    def _slope(self, batch: float) -> float:
        """Seconds of one more sample in a pass."""
        batches, seconds = self._points
        if len(batches) == 1:
            return seconds[0] / batches[0]
        place = min(max(bisect_right(batches, batch) - 1, 0), len(batches) - 2)
        slope = (seconds[place + 1] - seconds[place]) / (batches[place + 1] - batches[place])
        return min(max(slope, 0.0), self.seconds_at(batch) / batch)

    def highest_rate(
        self, goals: Mapping[float, float], burstiness: float = 1.0, halvings: int = 60, load: float = 0.0, fewest: int = 1
    ) -> float:
        """Requests per second up to which each goal {share: seconds} is met; 0: never. Of a `load` that as many of these share
        as it takes, at least `fewest`, each sees only its part of a burst, as `queueing.share_of_burst` has it."""
        shares, limits = tuple(goals), tuple(goals.values())

        def keeps(rate: float) -> bool:
            sharing = max(load / rate, fewest)
            own = math.sqrt(1.0 + (burstiness * burstiness - 1.0) / max(sharing, 1.0)) if burstiness > 0 else 0.0
            found = self._latencies(rate, shares, own)
            return found is not None and all(map(le, found, limits))

        low, high = 1e-6, self.max_rate
        if not keeps(low):
            return 0.0
        for _ in range(halvings):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if keeps(middle) else (low, middle)
        return low


def _found_busy(busy: float, burstiness: float) -> float:
    """Of requests, those that find a server busy that is so for `busy` of the time: those of a burst follow each other."""
    if burstiness <= 1.0 or busy <= 0.0:
        return busy
    shape, waiting = burstiness**-2, busy
    for _ in range(30):
        last, waiting = waiting, (1.0 + (1.0 - waiting) / (busy * shape)) ** -shape
        if waiting == last:
            break
    return min(max(waiting, busy), 1.0)


def _normal(ratio: float, shape: float) -> float:
    """The normal deviate with as much below it as a gamma distribution has below `ratio` times its mean (Wilson, Hilferty)."""
    return (math.cbrt(ratio) - 1.0 + 1 / (9 * shape)) * 3 * math.sqrt(shape)


def _gamma_quantile(mean: float, variance: float, share: float) -> float:
    """By Wilson and Hilferty; below a shape of 1, where that fails, of a Weibull distribution with the same mean."""
    if mean <= 0 or variance <= 0:
        return max(mean, 0.0)
    shape, below = mean**2 / variance, min(max(share, 1e-6), 1 - 1e-6)
    if shape >= 1.0:
        return mean * max(1.0 - 1 / (9 * shape) + _NORMAL.inv_cdf(below) / (3 * math.sqrt(shape)), 0.0) ** 3
    power = math.sqrt(shape)
    return float(mean / math.gamma(1.0 + 1.0 / power) * (-math.log(1.0 - below)) ** (1.0 / power))
