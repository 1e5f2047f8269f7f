"""How near a service is to what was asked of it: a rate whose interval begins below the load, a latency goal kept by a hair.

Machines are counted by the middle of an estimate, so they may turn out one short. The turn says by how much, and what one
more copy costs that puts it right.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from chipwise.planner.explain.asking_latency import Asked
from chipwise.planner.values.choice import Choice
from chipwise.planner.values.plan import Plan, Turn
from chipwise.planner.values.split import DevicesPerPlace, width
from chipwise.text import amount, duration, usd

NARROW = 0.05  # of a goal: less than this between it and the estimate is no room


def headroom(plan: Plan, targets: Asked) -> tuple[Turn, ...]:
    """At most one turn, and none for what has no rate: jobs, notebooks, video, whose rate is what was asked for."""
    winner = plan.winner
    if winner is None or plan.kind != "serve" or isinstance(winner.split, DevicesPerPlace):
        return ()
    load = max(targets.rate or 0.0, plan.load.peak if plan.load is not None else 0.0)  # machines are counted for the peak
    risks = [*_rate(winner, load), *_goals(winner, targets)]
    return (Turn("headroom", f"{'; '.join(risks)}. {_extra_copy(winner)}"),) if risks else ()


def _rate(choice: Choice, load: float) -> Iterator[str]:
    """Where the estimate has an interval and the load lies in it."""
    if not choice.rate or not load or choice.rate_spread <= 1.0:
        return
    low = choice.rate / choice.rate_spread
    if low < load:
        estimate = f"{amount(choice.rate)} req/s are estimated for {amount(load)} asked"
        yield f"{estimate}, and one time in ten it is {amount(low)} or less"


def _goals(choice: Choice, targets: Asked) -> Iterator[str]:
    for name, limit in targets.goals.items():
        seconds = choice.latency.get(name)
        if seconds is not None and (1 - NARROW) * limit < seconds <= limit:
            yield f"{name} is {duration(seconds)} of {duration(limit)}, {1 - seconds / limit:.1%} below the goal"


def _extra_copy(choice: Choice) -> str:
    """One more copy, on machines that copies fill or span."""
    copies = max(choice.replicas or choice.machines, 1)
    span = max(math.ceil(width(choice.split) / max(choice.chips, 1)), 1)
    inside = max(copies * span // max(choice.machines, 1), 1) if span == 1 else 1
    always = choice.over_time.always_cost.usd if choice.over_time is not None else choice.usd
    limit = "at most " if choice.over_time is not None else ""  # it is up in a part of the hours only
    cost = always / max(choice.machines, 1) * span
    room = f", {amount(choice.rate * (1 + inside / copies))} req/s in all" if choice.rate else ""
    machines = f"{span} more machines" if span > 1 else "One more machine"
    return f"{machines} would cost {limit}{usd(cost)} a month{room}"
