"""How surely latency goals are met and a load is carried, in sentences."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from chipwise.planner.chances import sure_factor
from chipwise.planner.explain.scaling import counted, usd_of
from chipwise.planner.explain.words import many_words
from chipwise.planner.values.choice import Choice
from chipwise.planner.values.plan import Plan
from chipwise.planner.values.split import GenerationSplit, width
from chipwise.text import amount, usd

SURER_ROWS = 400  # ranked rows among which machines are looked for that carry the load surely


@dataclass(frozen=True, slots=True)
class Asked:
    """What the workload says that its plan does not hold."""

    deadline_s: float | None = None
    budget_usd: float | None = None  # of the job, of a month, or of each period of a job
    budget_per: str = ""  # hour, day, ...: the period of a job's budget
    period_s: float = 0.0
    goals: Mapping[str, float] = field(default_factory=dict)  # seconds by name, as in `Choice.latency`: "ttft p90"
    rate: float | None = None  # what comes in: requests a second, streams, messages a second
    at_once: float | None = None  # callers who each wait, or people
    confidence: float = 0.0  # with which goals must be met; 0: none is asked for
    sure_enough: float = 0.0  # from which latency goals count as met
    stated: bool = False  # somebody asked for it: the load must be carried with it, too
    headroom: float = 0.0  # above the rate, as a share of it
    most_chips: float | None = None  # that limits.chip_count allows
    splits: float = 1.0  # share of the work that can be split (Amdahl)
    most_machines: float = math.inf  # that a plan takes unasked


def how_surely(plan: Plan, chance: float, winner: Choice, targets: Asked) -> tuple[str, str]:
    """A stated confidence is of all at once: one request that is fast enough, and machines that carry all that come. Else
    machines have headroom, and how surely it is enough is a sentence of its own where it is less than usual."""
    if chance >= targets.sure_enough:
        return f"met with {likely_words(chance)} probability", ""
    alone = winner.request_chance or chance
    if targets.stated or alone < targets.sure_enough:
        near, wish = targets.confidence - chance < 0.01, "asked for" if targets.stated else "usual"
        cause = "a single request may be too slow" if alone < targets.sure_enough else _overrun(targets)
        sure = f"{chance:.1%}" if near else f"{chance:.0%}"
        return "expected to be met", f" The probability is {sure}, {targets.confidence:.0%} is {wish}: {cause}."
    return (
        "expected to be met",
        f" A single request meets them with {likely_words(alone)} probability.{_carrying(plan, winner, targets)}",
    )


def _overrun(targets: Asked) -> str:
    return f"the machines may not carry {_load_words(targets)}"


def _load_words(targets: Asked) -> str:
    return f"{amount(targets.rate)} req/s" if targets.rate else counted(targets.at_once or 1, "caller", "callers")


def _carrying(plan: Plan, winner: Choice, targets: Asked) -> str:
    """How surely the machines carry the load with their headroom, and what carries it surely."""
    if winner.load_chance is None:
        return ""
    share = f"{targets.headroom:.0%}" if winner.headroom is None else f"{winner.headroom:.1%}"
    basis = f"{share} headroom" if targets.headroom else "no headroom"
    sure = f"carry {_load_words(targets)} with {winner.load_chance:.0%} probability"
    text = f" Planned at their expected speed with {basis}, the machines {sure}"
    return f"{text}{surer_words(plan, winner, targets)}."


def surer_words(plan: Plan, winner: Choice, targets: Asked) -> str:
    """The cheapest of the plan's machines that carry the load surely, where no others would for less if more of them were
    bought; else the option that plans for it, whose price this plan does not hold."""
    option = f"; --confidence {targets.confidence:g} plans for {targets.confidence:.0%} certainty"
    rows = plan.rows
    if not targets.rate or not winner.rate or rows is None or plan.objective != "cost":
        return ""
    able = rows.eligible[:SURER_ROWS]
    sure = [at for at in able.tolist() if (rows.load_chance(at) or 0.0) >= targets.sure_enough]
    if not sure or winner.over_time is not None:  # of machines that follow the load more do not cost in proportion
        return option
    surest = rows.choice(rows.leader(np.array(sure, dtype=np.intp)))
    cheaper = able[usd_of(rows.priced, able) < surest.usd]
    if any(_sure_usd(rows.choice(at), targets) < surest.usd for at in cheaper.tolist()):
        return option
    return f"; {choice_label(surest)}, carries it with {likely_words(surest.load_chance or 0.0)} for {usd(surest.usd)}"


def _sure_usd(choice: Choice, targets: Asked) -> float:
    """With as many machines of its type as carry the load surely."""
    if not targets.rate or not choice.rate:
        return math.inf
    copies = choice.replicas or choice.machines
    needed = targets.rate * sure_factor(choice.rate_spread, targets.confidence) * copies / choice.rate
    return choice.usd * max(machines_of(choice, math.ceil(needed - 1e-9)) / choice.machines, 1.0)


def likely_words(chance: float) -> str:
    return "more than 99%" if chance > 0.99 else f"{chance:.0%}"


def machines_of(winner: Choice, copies: float) -> float:
    """Machines for so many copies, as the winner's machines hold them."""
    replicas = winner.replicas or winner.machines
    ways = width(winner.split)
    if ways > winner.chips:
        return copies * math.ceil(ways / winner.chips)
    inside = (
        max(winner.chips // ways, 1)
        if isinstance(winner.split, GenerationSplit)
        else max(replicas / max(winner.machines, 1), 1)
    )
    return math.ceil(copies / inside - 1e-9)


def choice_label(one: Choice) -> str:
    return f"{many_words(one)}{one.provider} {one.machine}, {one.purchase}"
