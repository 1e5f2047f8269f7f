"""Cost against time of a job: the choices of which none is both cheaper and sooner, and the knee of that curve.

The knee is the choice farthest below the straight line from the cheapest to the fastest, both axes logarithmic: up to it a
little money saves much time, beyond it every hour costs more. Where the curve has no bend, there is none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from chipwise.planner.values.choice import Choice

BEND = 0.05  # of the diagonal: less than that below the straight line is no bend


def cost_time_curve(front: Sequence[Choice]) -> tuple[Choice, ...]:
    """Cheapest first. A Pareto front in more than cost and time holds choices that only their carbon keeps there."""
    curve: list[Choice] = []
    for choice in sorted(front, key=lambda one: (one.usd, one.seconds)):
        if math.isfinite(choice.usd) and (not curve or choice.seconds < curve[-1].seconds):
            curve.append(choice)
    return tuple(curve)


def knee(curve: Sequence[Choice]) -> Choice | None:
    if len(curve) < 3 or curve[0].usd <= 0 or curve[-1].seconds <= 0:
        return None
    cheapest, fastest = curve[0], curve[-1]
    dearer, sooner = math.log(fastest.usd / cheapest.usd), math.log(cheapest.seconds / fastest.seconds)

    def below(choice: Choice) -> float:
        return 1.0 - math.log(choice.usd / cheapest.usd) / dearer - math.log(choice.seconds / fastest.seconds) / sooner

    best = max(curve[1:-1], key=below)
    return best if below(best) > BEND else None
