"""Two replicas drawn at random, and of these the one with less outstanding work.

Almost as even as asking all of them (M. Mitzenmacher, The Power of Two Choices in Randomized Load Balancing, 2001), and several
gateways that see only their own requests do not all pick the same replica.
"""

from __future__ import annotations

from collections.abc import Sequence

from chipwise.serving.policy import Draw, Policy, RouteQuery
from chipwise.serving.replica import Replica

ABOUT = "the less busy of two replicas drawn at random"


def policy(draw: Draw) -> Policy:
    return TwoChoices(draw)


class TwoChoices:
    needs_blocks = False

    def __init__(self, draw: Draw) -> None:
        self._draw = draw

    def choose(self, ask: RouteQuery, candidates: Sequence[Replica]) -> Replica:
        count = len(candidates)
        if count == 1:
            return candidates[0]
        first = int(self._draw() * count)
        second = int(self._draw() * (count - 1))
        second += second >= first
        left, right = candidates[first], candidates[second]
        return right if right.tokens < left.tokens else left
