"""Every replica a server of its own that takes one request after another, first come first served: the M/M/k queue where
arrivals and work are exponential. Only for loads of single requests. A replica that is no longer wanted ends when its request
does, the one that is free first.
"""

from __future__ import annotations

from heapq import heappop, heappush, heapreplace

import numpy as np

from chipwise.errors import BadInput
from chipwise.scale.load import Floats, RequestLoad
from chipwise.scale.serving import ScaledService
from chipwise.scale.simulator.scaling import ROUNDING, ReplicaFleet, TickSeen


class ServerQueue:
    def __init__(self, load: RequestLoad, service: ScaledService, ready: int) -> None:
        if (load.counts != 1.0).any():
            raise BadInput(f"{load.name} has rates, and no single requests.", remedy="Use the level pooled, which needs none.")
        self.load, self.service = load, service
        self.times, self.takes = load.times_s.tolist(), (load.work / service.replica_per_s).tolist()
        self.free = [0.0] * ready  # a heap: when each server has ended its request
        self.begins = [0.0] * len(self.times)
        self.next, self.now_s = 0, 0.0
        self.came = np.concatenate([[0.0], np.cumsum(load.work)])

    def end(self, replicas: int) -> None:
        for _ in range(min(replicas, len(self.free))):
            heappop(self.free)

    def pass_to(self, until_s: float, place: int, became_ready: list[tuple[float, int]]) -> TickSeen:
        busy_s = self._busy_s(self.now_s, until_s)  # of requests that began before
        for ready_s, count in became_ready:
            for _ in range(count):
                heappush(self.free, ready_s)
        first = self.next
        self._begin_until(until_s, place)
        began = np.array(self.begins[first : self.next])
        ended = began + np.array(self.takes[first : self.next])
        busy_s += float((np.minimum(ended, until_s) - began).sum())
        paid_s = len(self.free) * (until_s - self.now_s) - sum(count * (when - self.now_s) for when, count in became_ready)
        self.now_s = until_s
        waiting = float(self.came[place] - self.came[self.next])
        return TickSeen(min(busy_s / paid_s, 1.0) if paid_s > 0.0 else float(waiting > 0.0), waiting)

    def _busy_s(self, since_s: float, until_s: float) -> float:
        return sum(min(end, until_s) - since_s for end in self.free if end > since_s)

    def _begin_until(self, until_s: float, place: int) -> None:
        free, times, takes, begins, request = self.free, self.times, self.takes, self.begins, self.next
        while request < place and free:
            begin = free[0] if free[0] > times[request] else times[request]
            if begin > until_s:
                break
            heapreplace(free, begin + takes[request])
            begins[request] = begin
            request += 1
        self.next = request

    def begins_s(self, fleet: ReplicaFleet) -> tuple[Floats, float]:
        for ready_s, count in fleet.starts:
            for _ in range(count):
                heappush(self.free, ready_s)
        self._begin_until(float("inf"), len(self.times))
        begins = np.array(self.begins)
        punctual = (begins - self.load.times_s <= self.service.goal_wait_s + ROUNDING).sum()
        return begins, float(punctual)
