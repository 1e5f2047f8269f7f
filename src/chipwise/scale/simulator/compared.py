"""What scaling rules come to on loads, side by side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chipwise.scale.load import RequestLoad
from chipwise.scale.serving import ScaledService
from chipwise.scale.simulator.scaling import ScalingOutcome

_POINTS = 400  # of a line that is drawn


@dataclass(frozen=True, slots=True)
class ServeAnswer:
    """Of all loads together."""

    policy: str
    requests: int
    within_goal: float | None  # share of the requests; None for a bound that nobody can play
    replica_hours: float
    ratio_to_bound: float


@dataclass(frozen=True, slots=True)
class MixedAnswer:
    """The same on machines of several types, in dollars; the ratio is of them."""

    policy: str
    purchase: str  # the rule that says which machines
    requests: int
    within_goal: float
    replica_hours: float
    usd: float
    lost: int  # spot replicas that were taken back while they answered
    ratio_to_bound: float


@dataclass(frozen=True, slots=True)
class ReplicaTimeline:
    """Of one rule on one load, as means over equal parts of it."""

    load: str
    policy: str
    hours: tuple[float, ...]
    replicas: tuple[float, ...]
    busy: tuple[float, ...]  # replicas that the arrivals would keep busy


def timeline(load: RequestLoad, service: ScaledService, policy: str, outcome: ScalingOutcome) -> ReplicaTimeline:
    ticks = len(outcome.replicas)
    parts = min(ticks, _POINTS)
    edges = np.linspace(0, ticks, parts + 1).astype(np.int64)
    replicas = np.add.reduceat(outcome.replicas, edges[:-1]) / np.diff(edges)
    part = np.minimum(np.searchsorted(edges[1:] * service.tick_s, load.times_s, side="right"), parts - 1)
    work = np.bincount(part, weights=load.work, minlength=parts)
    busy = work / (np.diff(edges) * service.tick_s * service.replica_per_s)
    hours = edges[:-1] * service.tick_s / 3600.0
    return ReplicaTimeline(
        load=load.name,
        policy=policy,
        hours=tuple(hours.tolist()),
        replicas=tuple(replicas.tolist()),
        busy=tuple(busy.tolist()),
    )
