"""A scaling rule played on a load: it is asked at every tick, and a queue in the order of arrival passes the time between.

How replicas answer is the queue's: all together as one fast server (`pooled`), each one request after another (`servers`), or
token by token with continuous batching (`tokens`). Each is exact between events, which are arrivals, replicas that become
ready, requests that end, and ticks. A replica that is no longer wanted ends, the newest that still starts first. What comes
after the last arrival is neither counted nor paid for; replicas of the end stay for what is still waiting.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Protocol

import numpy as np

from chipwise.errors import BadInput
from chipwise.scale.load import Floats, RequestLoad
from chipwise.scale.serving import BeginScaling, ScaledService, ServeSignals

ROUNDING = 1e-9
FIRST_S = 600.0  # of the load, which the replicas at the begin are for
FIRST_UTILISATION = 0.7


@dataclass(frozen=True, slots=True)
class ScalingOutcome:
    requests: float
    punctual: float  # of them, those that waited no longer than the goal
    replica_hours: float
    replicas: Floats  # of every tick, after it: those that start included
    waits_s: Floats  # of every instant of the load: its first request

    @property
    def within_goal(self) -> float:
        return self.punctual / self.requests


@dataclass(frozen=True, slots=True)
class TickSeen:
    utilisation: float  # of the replicas that answered
    waiting: float  # requests of mean work that have not begun


class ReplicaFleet:
    """Replicas over time: ready ones, and those that start."""

    __slots__ = ("cold_start_s", "now_s", "paid_s", "ready", "starts")

    def __init__(self, service: ScaledService, ready: int) -> None:
        self.cold_start_s, self.ready, self.now_s, self.paid_s = service.cold_start_s, ready, 0.0, 0.0
        self.starts: deque[tuple[float, int]] = deque()  # when they are ready, and how many

    @property
    def starting(self) -> int:
        return sum(count for _, count in self.starts)

    def want(self, replicas: int) -> int:
        """How many ready replicas end."""
        missing = replicas - self.ready - self.starting
        if missing > 0:
            self.starts.append((self.now_s + self.cold_start_s, missing))
        while missing < 0 and self.starts:
            ready_s, count = self.starts.pop()
            fewer = min(count, -missing)
            missing += fewer
            if count > fewer:
                self.starts.append((ready_s, count - fewer))
        ending = -min(missing, 0)
        self.ready -= ending
        return ending

    def pass_to(self, until_s: float) -> list[tuple[float, int]]:
        """When replicas became ready, and how many."""
        self.paid_s += (self.ready + self.starting) * (until_s - self.now_s)
        became = []
        while self.starts and self.starts[0][0] <= until_s:
            became.append(self.starts.popleft())
            self.ready += became[-1][1]
        self.now_s = until_s
        return became


class ReplicaQueue(Protocol):
    """What answers requests between two ticks."""

    def pass_to(self, until_s: float, place: int, became_ready: list[tuple[float, int]]) -> TickSeen:
        """`place`: of the first request that comes later."""

    def end(self, replicas: int) -> None:
        """So many ready replicas are no longer wanted."""

    def begins_s(self, fleet: ReplicaFleet) -> tuple[Floats, float]:
        """When requests began, and how many of them waited no longer than the goal."""


MakeQueue = Callable[[RequestLoad, ScaledService, int], ReplicaQueue]


def first_replicas(load: RequestLoad, service: ScaledService) -> int:
    """What every rule begins with: the load of the first ten minutes at 70%."""
    until = min(FIRST_S, load.duration_s)
    work = float(load.work[: int(np.searchsorted(load.times_s, until))].sum())
    return bounded(service, work / until / service.replica_per_s / FIRST_UTILISATION)


def bounded(service: ScaledService, replicas: float) -> int:
    return min(max(ceil(replicas - ROUNDING), service.least_replicas), service.most_replicas)


def play(
    load: RequestLoad,
    service: ScaledService,
    begin: BeginScaling,
    make_queue: MakeQueue,
    *,
    each_tick: Callable[[int], None] | None = None,
) -> ScalingOutcome:
    decide, fleet = begin(service), ReplicaFleet(service, first_replicas(load, service))
    queue = make_queue(load, service, fleet.ready)
    ticks = max(ceil(load.duration_s / service.tick_s - ROUNDING), 1)
    places = np.searchsorted(load.times_s, np.arange(ticks + 1) * service.tick_s, side="left")
    places[-1] = len(load.times_s)
    arrived = np.diff(np.concatenate([[0.0], np.cumsum(load.work)])[places]).tolist()
    paid_for = np.empty(ticks)
    for tick, place in enumerate(places[1:].tolist()):
        until_s, answering = min((tick + 1) * service.tick_s, load.duration_s), fleet.ready
        seen = queue.pass_to(until_s, place, fleet.pass_to(until_s))
        speed = fleet.ready * service.replica_per_s
        signals = ServeSignals(
            now_s=until_s,
            clock_s=load.clock_s + until_s,
            ready=fleet.ready,
            starting=fleet.starting,
            arrived=arrived[tick],
            waiting=seen.waiting,
            in_flight=seen.waiting + seen.utilisation * service.concurrency * max(fleet.ready, answering),
            utilisation=seen.utilisation,
            wait_s=seen.waiting / speed if speed > 0.0 else (service.cold_start_s if seen.waiting else 0.0),
        )
        if ending := fleet.want(bounded(service, replicas_of(decide(signals)))):
            queue.end(ending)
        paid_for[tick] = fleet.ready + fleet.starting
        if each_tick is not None:
            each_tick(tick)
    begins_s, punctual = queue.begins_s(fleet)
    return ScalingOutcome(
        requests=load.requests,
        punctual=punctual,
        replica_hours=fleet.paid_s / 3600.0,
        replicas=paid_for,
        waits_s=begins_s - load.times_s,
    )


def replicas_of(replicas: object) -> float:
    if isinstance(replicas, int | float | np.integer | np.floating) and np.isfinite(replicas):
        return float(replicas)
    raise BadInput(f"The policy answered {str(replicas)[:40]!r} replicas.", remedy="Return a number.")
