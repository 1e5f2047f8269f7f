"""Each replica in turn, whatever a request needs: the yardstick for the others."""

from __future__ import annotations

from collections.abc import Sequence

from chipwise.serving.policy import Draw, Policy, RouteQuery
from chipwise.serving.replica import Replica

ABOUT = "each replica in turn"


def policy(draw: Draw) -> Policy:
    return RoundRobin()


class RoundRobin:
    needs_blocks = False

    def __init__(self) -> None:
        self._turn = -1

    def choose(self, ask: RouteQuery, candidates: Sequence[Replica]) -> Replica:
        self._turn += 1
        return candidates[self._turn % len(candidates)]
