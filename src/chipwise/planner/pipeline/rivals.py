"""What a pipeline's report lists besides the answer: the candidates next to it, and answers to other questions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from chipwise.planner.pipeline.case import Case
from chipwise.planner.pipeline.joint import Joint, Wanted, reckon, solve, swapped
from chipwise.planner.pipeline.value import PipelinePlan, Rival

LISTED = 8  # rivals of a stage
LOOKED_AT = 400  # rows, the best, whose storage is chosen to list them
STEPS = 6  # deadlines between the fastest and the cheapest


def with_rivals(case: Case, joint: Joint, plan: PipelinePlan) -> PipelinePlan:
    stages = tuple(replace(one, rivals=tuple(_rivals(case, joint, at))) for at, one in enumerate(plan.stages))
    return replace(plan, stages=stages, front=tuple((name, case.alternative(one)) for name, one in _front(case, joint)))


def _rivals(case: Case, joint: Joint, at: int) -> list[Rival]:
    """The best row of every machine type and way to buy, by the score of the whole, and the pick in any case."""
    one, stages = case.candidates[at], case.stages
    order = np.argsort(swapped(stages, case.hand_offs, case.wanted, joint, at), kind="stable")
    one.settle(order[:LOOKED_AT])
    stages = case.stages
    scores = swapped(stages, case.hand_offs, case.wanted, joint, at)
    rows = order[:LOOKED_AT][np.argsort(scores[order[:LOOKED_AT]], kind="stable")]
    found: dict[tuple[str, str, str], Rival] = {}
    for row in (joint.picks[at], *rows[one.fine[rows]].tolist()):
        choice = one.choice(int(row))
        key = choice.provider, choice.machine, choice.purchase
        if key not in found:
            whole = reckon(stages, case.hand_offs, [int(row) if here == at else pick for here, pick in enumerate(joint.picks)])
            found[key] = Rival(choice, whole.usd, whole.seconds, whole.kg, case.misses(whole))
        if len(found) == LISTED:
            break
    return list(found.values())


def _front(case: Case, joint: Joint) -> list[tuple[str, Joint]]:
    """The best by each objective, and the cheapest within times between: none of them beats another. By carbon only where what
    every candidate emits is known."""
    wanted, known = case.wanted, not any(one.offered for one in case.candidates)
    asked: list[tuple[str, Wanted]] = [(name, replace(wanted, objective=name)) for name in ("cost", "time")]
    asked += [(name, replace(wanted, objective=name)) for name in ("carbon", "balanced") if known]
    found = [("the answer", joint), *((name, one) for name, goals in asked if (one := case.settled(solve, goals)))]
    by_name = dict(found)
    fast, slow = by_name["time"].seconds, by_name["cost"].seconds
    for step in range(1, STEPS + 1):
        within = fast * (slow / fast) ** (step / (STEPS + 1))
        one = case.settled(solve, replace(wanted, objective="cost", deadline_s=within))
        if one is not None:
            found.append(("cost within a time", one))
    distinct: dict[tuple[int, ...], tuple[str, Joint]] = {}
    for name, one in found:
        distinct.setdefault(one.picks, (name, one))
    return [
        (name, one)
        for name, one in distinct.values()
        if name == "the answer" or not any(_beats(other, one, known) for _, other in distinct.values())
    ]


def _beats(one: Joint, other: Joint, known: bool) -> bool:
    mine = (one.usd, one.seconds, one.kg if known else 0.0)
    its = (other.usd, other.seconds, other.kg if known else 0.0)
    return mine != its and all(a <= b for a, b in zip(mine, its, strict=True))
