"""The replica with the least outstanding work in tokens; of equals each in turn."""

from __future__ import annotations

from collections.abc import Sequence

from chipwise.serving.policy import Draw, Policy, RouteQuery
from chipwise.serving.replica import Replica

ABOUT = "the replica with the fewest outstanding tokens"


def policy(draw: Draw) -> Policy:
    return LeastWork()


class LeastWork:
    needs_blocks = False

    def __init__(self) -> None:
        self._turn = 0

    def choose(self, ask: RouteQuery, candidates: Sequence[Replica]) -> Replica:
        self._turn += 1
        start = self._turn % len(candidates)
        best = candidates[start]
        for position in range(start - len(candidates) + 1, start):  # negative positions count from the end: one full round
            replica = candidates[position]
            if replica.tokens < best.tokens:
                best = replica
        return best
