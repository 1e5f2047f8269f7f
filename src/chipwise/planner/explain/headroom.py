"""How near a service is to what was asked of it: a rate whose interval begins below the load, a latency goal kept by a hair.

Machines are counted by the middle of an estimate, so they may turn out one short. The turn says by how much, and what one
more copy costs that puts it right.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from chipwise.planner.explain.asking import Asked
from chipwise.planner.values.plan import Choice, Plan, Turn
from chipwise.planner.values.split import DevicesPerPlace, width
from chipwise.text import duration, usd

NARROW = 0.05  # of a goal: less than this between it and the estimate is no room


def headroom(plan: Plan, asked: Asked) -> tuple[Turn, ...]:
    """At most one turn, and none for what has no rate: jobs, notebooks, video, whose rate is what was asked for."""
    one = plan.winner
    if one is None or plan.kind != "serve" or isinstance(one.split, DevicesPerPlace):
        return ()
    load = max(asked.rate or 0.0, plan.load.peak if plan.load is not None else 0.0)  # machines are counted for the peak
    told = [*_rate(one, load), *_goals(one, asked)]
    return (Turn("headroom", f"{'; '.join(told)}. {_one_more(one)}"),) if told else ()


def _rate(one: Choice, load: float) -> Iterator[str]:
    """Where the estimate has an interval and the load lies in it."""
    if not one.rate or not load or one.rate_spread <= 1.0:
        return
    low = one.rate / one.rate_spread
    if low < load:
        yield f"{one.rate:,.3g} req/s are estimated for {load:,.3g} asked, and one time in ten it is {low:,.3g} or less"


def _goals(one: Choice, asked: Asked) -> Iterator[str]:
    for name, limit in asked.goals.items():
        took = one.latency.get(name)
        if took is not None and (1 - NARROW) * limit < took <= limit:
            yield f"{name} is {duration(took)} of {duration(limit)}, {1 - took / limit:.1%} below the goal"


def _one_more(one: Choice) -> str:
    """One more copy, on machines that copies fill or span."""
    copies = max(one.replicas or one.machines, 1)
    across = max(math.ceil(width(one.split) / max(one.chips, 1)), 1)
    inside = max(copies * across // max(one.machines, 1), 1) if across == 1 else 1
    cost = one.usd / max(one.machines, 1) * across
    room = f", {one.rate * (1 + inside / copies):,.3g} req/s in all" if one.rate else ""
    many = f"{across} more machines" if across > 1 else "One more machine"
    return f"{many} would cost {usd(cost)} a month{room}"
