"""Goals held against what a load test saw: the share of all requests that kept each, and whether they were enough to tell.

A request that failed has missed every goal. A percentile needs ten requests beyond it; with fewer, only a share of late ones
that would be surprising if the goal were kept says that it is missed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from chipwise.serving.load_report import CONFIDENCE, LEAST_FOR_INTERVAL, Shots, times_of

Goals = Mapping[tuple[str, float], float]  # seconds, by metric and share of the requests
TRIAL_S = 30.0
LONGEST_TRIAL_S = 600.0


class GoalVerdict(NamedTuple):
    metric: str
    share: float  # of the requests that must keep it
    limit_s: float
    kept_share: float
    requests: int  # that it was held against
    holds: bool
    is_sure: bool


def judged(shots: Shots, goals: Goals, warm_up_s: float = 0.0) -> tuple[GoalVerdict, ...]:
    times = times_of(shots, warm_up_s)
    failed = int((times.counted & ~times.fine).sum())
    by_metric = {"ttft": times.first, "tpot": times.per_token, "latency": times.total}
    verdicts = []
    for (metric, share), limit_s in goals.items():
        values = by_metric[metric]
        values = values[np.isfinite(values)]
        kept_count, requests = int((values <= limit_s).sum()), int(values.size) + failed
        kept_share = kept_count / requests if requests else 0.0
        holds = requests > 0 and kept_share >= share - 1e-9
        is_sure = requests >= needed_requests(share) or (not holds and _is_surprising(kept_count, requests, share))
        verdicts.append(
            GoalVerdict(
                metric=metric,
                share=share,
                limit_s=limit_s,
                kept_share=kept_share,
                requests=requests,
                holds=holds,
                is_sure=is_sure,
            )
        )
    return tuple(verdicts)


def needed_requests(share: float) -> int:
    """All requests keep a goal of 100%, or not: that takes no more of them."""
    return math.ceil(LEAST_FOR_INTERVAL / (1.0 - share) - 1e-6) if share < 1.0 else 1


def trial_seconds(wanted_s: float | None, per_s: float, shares: Iterable[float]) -> float:
    """How long a trial lasts: as wanted, else until it has enough requests for every percentile, within reason."""
    if wanted_s is not None:
        return wanted_s
    needed = max((needed_requests(share) for share in shares), default=1)
    return min(max(TRIAL_S, (needed + 3.0 * math.sqrt(needed)) / per_s), LONGEST_TRIAL_S)


def _is_surprising(kept_count: int, requests: int, share: float) -> bool:
    """So few that kept it would come by chance in less than 5% of tests (binomial) if the goal were just kept."""
    if share >= 1.0 or not requests:
        return requests > 0
    log_all = math.lgamma(requests + 1.0)
    chance = sum(
        math.exp(
            log_all
            - math.lgamma(count + 1.0)
            - math.lgamma(requests - count + 1.0)
            + count * math.log(share)
            + (requests - count) * math.log1p(-share)
        )
        for count in range(kept_count + 1)
    )
    return chance < 1.0 - CONFIDENCE
