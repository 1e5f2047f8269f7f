"""A load before replicas that answer token by token: requests go to the ready ones in turn."""

from __future__ import annotations

import numpy as np

from chipwise.errors import BadInput
from chipwise.scale.load import Floats, RequestLoad
from chipwise.scale.serving import ScaledService
from chipwise.scale.simulator.scaling import ROUNDING, ReplicaFleet, TickSeen
from chipwise.scale.simulator.tokens import TokenLoad, TokenReplica, TokenSpeed, stepping


def token_load(load: RequestLoad) -> TokenLoad:
    if load.tokens is None:
        raise BadInput(f"{load.name} has no input and output tokens.", remedy="Use the level pooled, which needs none.")
    prompts, answers = (np.maximum(np.rint(tokens), 1.0).astype(np.int64) for tokens in load.tokens)
    return TokenLoad(times_s=load.times_s, prompts=prompts, answers=answers)


class TokenQueue:
    """Replicas that are no longer wanted get no more requests, and answer what they have."""

    def __init__(self, load: RequestLoad, service: ScaledService, ready: int, speed: TokenSpeed) -> None:
        self.load, self.service, self.speed, self.requests = load, service, speed, token_load(load)
        self.requests.check(speed)
        self.replicas, self.leaving = [TokenReplica(speed) for _ in range(ready)], list[TokenReplica]()
        self.begins, self.ends = np.zeros(len(load.times_s)), np.zeros(len(load.times_s))
        self.place, self.turn, self.now_s, self.busy_s = 0, 0, 0.0, 0.0
        self.step = stepping()

    def end(self, replicas: int) -> None:
        for _ in range(replicas):
            self.leaving.append(self.replicas.pop())

    def pass_to(self, until_s: float, place: int, became_ready: list[tuple[float, int]]) -> TickSeen:
        answering_s = len(self.replicas) * (until_s - self.now_s)
        for ready_s, count in became_ready:
            self._deal(int(np.searchsorted(self.load.times_s[:place], ready_s)))
            self.replicas += [TokenReplica(self.speed, ready_s) for _ in range(count)]
            answering_s += count * (until_s - ready_s)
        self._deal(place)
        before_s = sum(replica.busy_until(self.now_s) for replica in self.replicas)
        self._pass_to(until_s)
        busy_s = sum(replica.busy_until(until_s) for replica in self.replicas) - before_s
        self.now_s = until_s
        waiting = float(sum(replica.waiting for replica in self.replicas))
        return TickSeen(min(busy_s / answering_s, 1.0) if answering_s > 0.0 else float(waiting > 0.0), waiting)

    def _deal(self, place: int) -> None:
        if place <= self.place or not self.replicas:
            return
        requests, count = np.arange(self.place, place), len(self.replicas)
        for offset, replica in enumerate(self.replicas):
            share = requests[(offset - self.turn) % count :: count]
            if len(share):
                replica.give(share)
        self.turn, self.place = (self.turn + len(requests)) % count, place

    def _pass_to(self, until_s: float) -> None:
        for replica in (*self.replicas, *self.leaving):
            replica.pass_to(until_s, self.requests, self.begins, self.ends, self.step)
        self.leaving = [replica for replica in self.leaving if replica.has_work]

    def begins_s(self, fleet: ReplicaFleet) -> tuple[Floats, float]:
        for ready_s, count in fleet.starts:
            self.replicas += [TokenReplica(self.speed, ready_s) for _ in range(count)]
        self._deal(len(self.load.times_s))
        self._pass_to(np.inf)
        punctual = (self.begins - self.load.times_s <= self.service.goal_wait_s + ROUNDING).sum()
        return self.begins, float(punctual)
