"""A scaling rule played on a load: a queue in the order of arrival before all replicas together, exact between events.

Events are arrivals, replicas that become ready, and ticks at which the rule is asked. Replicas share the work evenly, so the
queue is that of one server whose speed is the number of ready replicas times that of one. In terms of the work that could
have been done since the begin, C(t), request i begins at V(i) = max(C(arrival), V(i-1) + work(i-1)): a running maximum, so
that all requests between two events are computed at once. When a request begins, in seconds, follows from C at the end.

A replica that is no longer wanted ends at once: the newest that still starts first. Requests of one instant begin one after
another. What was asked of replicas after the last arrival is not counted, nor paid for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil

import numpy as np

from chipwise.errors import BadInput
from chipwise.scale.load import Floats, Load
from chipwise.scale.serving import BeginScaling, ScaledService, ServeSignals

ROUNDING = 1e-9
FIRST_S = 600.0  # of the load, which the replicas at the begin are for
FIRST_UTILISATION = 0.7


@dataclass(frozen=True, slots=True)
class ScalingOutcome:
    requests: float
    within: float  # of them, those that waited no longer than the goal
    replica_hours: float
    tick_s: Floats  # of every tick: when
    replicas: Floats  # of every tick, after it: those that start included
    waits_s: Floats  # of every instant of the load: its first request

    @property
    def within_goal(self) -> float:
        return self.within / self.requests


def first_replicas(load: Load, service: ScaledService) -> int:
    """What every rule begins with: the load of the first ten minutes at 70%."""
    until = min(FIRST_S, load.duration_s)
    work = float(load.work[: int(np.searchsorted(load.times_s, until))].sum())
    return bounded(service, work / until / service.replica_per_s / FIRST_UTILISATION)


def bounded(service: ScaledService, replicas: float) -> int:
    return min(max(ceil(replicas - ROUNDING), service.least), service.most)


class Fleet:
    """Replicas over time, and the work that they could have done since the begin."""

    __slots__ = ("breaks_s", "cold_start_s", "could", "now_s", "paid_s", "ready", "speed", "starts")

    def __init__(self, service: ScaledService, ready: int) -> None:
        self.speed, self.cold_start_s = service.replica_per_s, service.cold_start_s
        self.ready, self.now_s, self.paid_s = ready, 0.0, 0.0
        self.starts: deque[tuple[float, int]] = deque()  # when they are ready, and how many
        self.breaks_s, self.could = [0.0], [0.0]  # C is straight between these

    @property
    def starting(self) -> int:
        return sum(count for _, count in self.starts)

    def want(self, replicas: int) -> None:
        more = replicas - self.ready - self.starting
        if more > 0:
            self.starts.append((self.now_s + self.cold_start_s, more))
        while more < 0 and self.starts:
            ready_s, count = self.starts.pop()
            fewer = min(count, -more)
            more += fewer
            if count > fewer:
                self.starts.append((ready_s, count - fewer))
        self.ready += min(more, 0)

    def pass_to(self, until_s: float) -> None:
        self.paid_s += (self.ready + self.starting) * (until_s - self.now_s)
        while self.starts and self.starts[0][0] <= until_s:
            ready_s, count = self.starts.popleft()
            self._straight_to(ready_s)
            self.ready += count
        self._straight_to(until_s)

    def _straight_to(self, until_s: float) -> None:
        if until_s > self.now_s:
            self.could.append(self.could[-1] + self.ready * self.speed * (until_s - self.now_s))
            self.breaks_s.append(until_s)
            self.now_s = until_s


def play(
    load: Load,
    service: ScaledService,
    begin: BeginScaling,
    *,
    each_tick: Callable[[int], None] | None = None,
) -> ScalingOutcome:
    decide, fleet = begin(service), Fleet(service, first_replicas(load, service))
    ticks = max(ceil(load.duration_s / service.tick_s - ROUNDING), 1)
    before = np.concatenate([[0.0], np.cumsum(load.work)])  # work that came before each instant
    places = np.searchsorted(load.times_s, np.arange(ticks + 1) * service.tick_s, side="left").tolist()
    places[-1] = len(load.times_s)
    arrived = np.diff(before[places]).tolist()
    begins = np.empty(len(load.times_s))  # V of every instant
    busy_until = 0.0  # in work that could have been done: when all that came is done
    paid_for = np.empty(ticks)
    for tick in range(ticks):
        answering, could = fleet.ready, fleet.could[-1]
        mark = len(fleet.breaks_s) - 1
        fleet.pass_to(min((tick + 1) * service.tick_s, load.duration_s))
        first, last = places[tick], places[tick + 1]
        done = min(busy_until, fleet.could[-1]) - could if busy_until > could else 0.0
        if last > first:
            done, busy_until = _serve(load, before, begins, fleet, mark, (first, last), (could, busy_until))
        could_now = fleet.could[-1]
        utilisation = done / (could_now - could) if could_now > could else 1.0 if busy_until > could_now else 0.0
        backlog = max(busy_until - could_now, 0.0)
        busy = min(utilisation, 1.0) * service.concurrency * max(fleet.ready, answering)
        speed = fleet.ready * service.replica_per_s
        signals = ServeSignals(
            now_s=fleet.now_s,
            clock_s=load.clock_s + fleet.now_s,
            ready=fleet.ready,
            starting=fleet.starting,
            arrived=arrived[tick],
            waiting=backlog,
            in_flight=backlog + busy,
            utilisation=min(utilisation, 1.0),
            wait_s=backlog / speed if speed > 0.0 else (service.cold_start_s if backlog else 0.0),
        )
        fleet.want(bounded(service, _number(decide(signals))))
        paid_for[tick] = fleet.ready + fleet.starting
        if each_tick is not None:
            each_tick(tick)
    return _outcome(load, service, fleet, begins, paid_for)


def _number(replicas: object) -> float:
    if isinstance(replicas, int | float | np.integer | np.floating) and np.isfinite(replicas):
        return float(replicas)
    raise BadInput(f"The policy answered {str(replicas)[:40]!r} replicas.", remedy="Return a number.")


def _serve(
    load: Load,
    before: Floats,
    begins: Floats,
    fleet: Fleet,
    mark: int,
    places: tuple[int, int],
    state: tuple[float, float],
) -> tuple[float, float]:
    """Begins of the instants of a tick; the work done in it, and until when all that came is busy."""
    first, last = places
    could, busy_until = state
    times = load.times_s[first:last]
    if len(fleet.breaks_s) - mark == 2:
        slope = (fleet.could[-1] - could) / (fleet.breaks_s[-1] - fleet.breaks_s[mark])
        coming = could + slope * (times - fleet.breaks_s[mark])
    else:
        coming = np.interp(times, fleet.breaks_s[mark:], fleet.could[mark:])
    came = before[first:last]
    idle_until = np.maximum.accumulate(np.maximum(coming - came, busy_until - came[0]))
    begins[first:last] = idle_until + came
    busy = float(idle_until[-1] + before[last])
    idle = max(float(idle_until[0] + came[0]) - max(busy_until, could), 0.0) + float(idle_until[-1] - idle_until[0])
    end = fleet.could[-1]
    idle += max(end - busy, 0.0)
    return end - could - idle, busy


def _outcome(load: Load, service: ScaledService, fleet: Fleet, begins: Floats, paid_for: Floats) -> ScalingOutcome:
    """When requests began, in seconds: the replicas of the end stay for what is still waiting."""
    speed = max(fleet.ready + fleet.starting, 1) * service.replica_per_s
    most = max(float((begins + load.work).max(initial=0.0)), fleet.could[-1])
    beyond = (most - fleet.could[-1]) / speed + service.goal_wait_s + 1.0
    breaks = np.array([*fleet.breaks_s, fleet.now_s + beyond])
    could = np.array([*fleet.could, fleet.could[-1] + beyond * speed])
    by_goal = np.interp(load.times_s + service.goal_wait_s, breaks, could)
    each = load.work / np.maximum(load.counts, ROUNDING)
    room = np.floor((by_goal - begins) / np.maximum(each, ROUNDING) + 1e-6) + 1.0
    within = np.clip(room, 0.0, load.counts)
    return ScalingOutcome(
        requests=load.requests,
        within=float(within.sum()),
        replica_hours=fleet.paid_s / 3600.0,
        tick_s=np.arange(1, len(paid_for) + 1) * service.tick_s,
        replicas=paid_for,
        waits_s=np.interp(begins, could, breaks) - load.times_s,
    )
