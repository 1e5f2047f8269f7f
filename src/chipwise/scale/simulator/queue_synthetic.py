"""Jobs for a queue, and failures of machines, by chance. The same seed gives the same.

Jobs are like those of public traces: they come in bursts and more by day than by night, most want one GPU, and their durations
are spread over orders of magnitude (log-normal).
"""

from __future__ import annotations

import numpy as np

from chipwise.errors import BadInput
from chipwise.scale.queue import Cluster, QueueJob
from chipwise.scale.simulator.queue import Failure

_SIZES = (1, 2, 4, 8)
_SHARES = (0.7, 0.1, 0.12, 0.08)
_DAY_S = 86400.0
_MOST_MEDIAN_S, _MOST_SPREAD = 1e8, 5.0
_MOST_FAILURES = 5_000_000


def synthetic_jobs(
    *, count: int, per_hour: float, median_s: float = 900.0, spread: float = 2.0, teams: int = 4, seed: int = 0
) -> list[QueueJob]:
    """`spread`: the standard deviation of the logarithm of durations."""
    if count < 1 or teams < 1 or per_hour <= 0.0 or median_s <= 0.0 or spread < 0.0:
        raise BadInput("Jobs, teams, rate and durations of a synthetic queue must be above zero.")
    if not (1e-6 <= per_hour <= 1e12 and median_s <= _MOST_MEDIAN_S and spread <= _MOST_SPREAD):
        raise BadInput(
            f"A synthetic queue with rate={per_hour:g}, median={median_s:g} and spread={spread:g} is not possible.",
            remedy=f"Allowed: rates from 1e-6 to 1e12, medians up to {_MOST_MEDIAN_S:g}, spreads up to {_MOST_SPREAD:g}.",
        )
    chance = np.random.default_rng(seed)
    gaps = chance.exponential(3600.0 / per_hour, count)
    bursts = np.where(chance.random(count) < 0.3, 0.05, 1.0)
    bursts /= bursts.mean()
    moments = np.cumsum(gaps * bursts)
    moments += 0.1 * _DAY_S / (2.0 * np.pi) * np.sin(2.0 * np.pi * moments / _DAY_S)
    sizes = chance.choice(_SIZES, count, p=_SHARES)
    durations = np.maximum(median_s * np.exp(spread * chance.standard_normal(count)), 1.0)
    team = chance.integers(teams, size=count)
    return [
        QueueJob(
            name=f"job {place + 1}",
            arrival_s=float(moments[place]),
            gpus=int(sizes[place]),
            work_s=float(durations[place]),
            estimate_s=float(durations[place]),
            team=f"team {int(team[place]) + 1}",
        )
        for place in range(count)
    ]


def synthetic_failures(cluster: Cluster, *, between_s: float, repair_s: float, until_s: float, seed: int) -> list[Failure]:
    """Of each machine on its own, with so much time between failures on average (exponential)."""
    nodes = sum(group.count for group in cluster.groups)
    if not (between_s > 0.0 and repair_s >= 0.0):
        raise BadInput("The time between failures must be above zero, and that of a repair not below.")
    if nodes * until_s / (between_s + repair_s) > _MOST_FAILURES:
        raise BadInput(
            f"A failure of each of {nodes:,} machines every {between_s:g} s is too much to simulate.",
            remedy=f"At most {_MOST_FAILURES:,} failures are played: give a longer --failures-every.",
        )
    chance = np.random.default_rng([seed, 1])
    failures = []
    for node in range(nodes):
        moment_s = float(chance.exponential(between_s))
        while moment_s < until_s:
            failures.append(Failure(at_s=moment_s, node=node, repaired_s=moment_s + repair_s))
            moment_s += repair_s + float(chance.exponential(between_s))
    return sorted(failures, key=lambda failure: (failure.at_s, failure.node))
