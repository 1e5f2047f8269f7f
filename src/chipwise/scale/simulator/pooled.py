"""All replicas together as one server whose speed is that of one times their number: a fluid, exact for any load.

In terms of the work that could have been done since the begin, C(t), request i begins at V(i) = max(C(arrival), V(i-1) +
work(i-1)): a running maximum, so that all requests between two events are computed at once. When a request begins, in seconds,
follows from C at the end. Requests of one instant begin one after another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from chipwise.scale.load import Floats, RequestLoad
from chipwise.scale.serving import ScaledService
from chipwise.scale.simulator.scaling import ROUNDING, TickSeen


class CapacityAtEnd(Protocol):
    """In replicas, also in fractions of them."""

    @property
    def ready(self) -> float: ...

    @property
    def starting(self) -> float: ...


class PooledQueue:
    def __init__(self, load: RequestLoad, service: ScaledService, ready: float) -> None:
        self.load, self.service, self.ready = load, service, ready
        self.before = np.concatenate([[0.0], np.cumsum(load.work)])  # work that came before each instant
        self.breaks_s, self.could = [0.0], [0.0]  # C is straight between these
        self.begins = np.empty(len(load.times_s))  # V of every instant
        self.place, self.busy_until = 0, 0.0  # in work that could have been done: when all that came is done

    def end(self, replicas: float) -> None:
        self.ready -= replicas

    def pass_to(self, until_s: float, place: int, became_ready: Sequence[tuple[float, float]]) -> TickSeen:
        mark, could = len(self.breaks_s) - 1, self.could[-1]
        for ready_s, count in became_ready:
            self._straight_to(ready_s)
            self.ready += count
        self._straight_to(until_s)
        now = self.could[-1]
        worked = max(min(self.busy_until, now) - could, 0.0)
        if place > self.place:
            worked = self._serve(mark, place)
            self.place = place
        backlog = max(self.busy_until - now, 0.0)
        return TickSeen(min(worked / (now - could), 1.0) if now > could else float(backlog > 0.0), backlog)

    def _straight_to(self, until_s: float) -> None:
        if until_s > self.breaks_s[-1]:
            speed = self.ready * self.service.replica_per_s
            self.could.append(self.could[-1] + speed * (until_s - self.breaks_s[-1]))
            self.breaks_s.append(until_s)

    def _serve(self, mark: int, place: int) -> float:
        """Begins of what came since the break of that mark; the work done since then."""
        first, could, end = self.place, self.could[mark], self.could[-1]
        times = self.load.times_s[first:place]
        if len(self.breaks_s) - mark == 2:
            slope = (end - could) / (self.breaks_s[-1] - self.breaks_s[mark])
            coming = could + slope * (times - self.breaks_s[mark])
        else:
            coming = np.interp(times, self.breaks_s[mark:], self.could[mark:])
        earlier = self.before[first:place]
        idle_until = np.maximum.accumulate(np.maximum(coming - earlier, self.busy_until - earlier[0]))
        self.begins[first:place] = idle_until + earlier
        idle = max(float(idle_until[0] + earlier[0]) - max(self.busy_until, could), 0.0) + float(idle_until[-1] - idle_until[0])
        self.busy_until = float(idle_until[-1] + self.before[place])
        return end - could - idle - max(end - self.busy_until, 0.0)

    def begins_s(self, fleet: CapacityAtEnd) -> tuple[Floats, float]:
        load, goal_s = self.load, self.service.goal_wait_s
        speed = max(fleet.ready + fleet.starting, 1) * self.service.replica_per_s
        latest = max(float((self.begins + load.work).max(initial=0.0)), self.could[-1])
        beyond = (latest - self.could[-1]) / speed + goal_s + 1.0
        breaks = np.array([*self.breaks_s, self.breaks_s[-1] + beyond])
        could = np.array([*self.could, self.could[-1] + beyond * speed])
        by_goal = np.interp(load.times_s + goal_s, breaks, could)
        per_request = load.work / np.maximum(load.counts, ROUNDING)
        room = np.floor((by_goal - self.begins) / np.maximum(per_request, ROUNDING) + 1e-6) + 1.0
        punctual = float(np.clip(room, 0.0, load.counts).sum())
        return np.interp(self.begins, could, breaks), punctual
