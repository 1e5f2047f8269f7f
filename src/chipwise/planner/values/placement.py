"""The regions that a service stands in, as a value."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf, isfinite

from chipwise.perf.arrays import Array

FARTHER = 1.25  # times as far as the nearest, where nothing is as near as it should be


@dataclass(frozen=True, slots=True, eq=False)
class Reach:
    """How long requests are on their way between the users and each region."""

    seconds: Array  # by region: the round trip that nearly all of the traffic stays within; infinite: its place is not known
    users: str  # "Germany"
    limit_s: float = inf  # the longest that may be
    allowance_s: float = 0.0  # what goals of latency leave for it, where the place is not known

    def of(self, region: int) -> float | None:
        seconds = float(self.seconds[region])
        return seconds if isfinite(seconds) else None


@dataclass(frozen=True, slots=True)
class Stand:
    """One region of the answer."""

    provider: str
    region: str
    country: str | None
    machine: str
    machines: int  # enough for its part when another region is lost
    rate: float  # that these machines answer
    share: float  # of the traffic, while all regions are up
    usd: float
    farthest_s: float  # round trip of the farthest origin it serves


@dataclass(frozen=True, slots=True)
class Lost:
    """What happens without one region."""

    region: str
    farthest_s: float  # round trip that all but FAR_SHARE of the traffic stays within
    carried: float  # by the others, over the peak


@dataclass(frozen=True, slots=True)
class Placement:
    stands: tuple[Stand, ...]  # the largest share first; empty: no set of regions does
    usd: float  # a month, machines for the peak while the schedule is on
    single_usd: float | None  # of the cheapest single region within the limits, which would not outlive its loss
    limit_s: float  # round trip that the goals leave for the network
    basis: str  # whence the limit
    losses: tuple[Lost, ...]
    set_count: int  # sets of regions
    sites: int  # regions that were looked at
    missing: str = ""
    assumed: tuple[str, ...] = field(default=())
