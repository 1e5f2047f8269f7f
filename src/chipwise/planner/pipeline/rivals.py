"""What a pipeline's report lists besides the answer: the candidates next to it, and answers to other questions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from chipwise.planner.pipeline.case import Case
from chipwise.planner.pipeline.joint import Joint, Wanted, reckon, solve, swapped
from chipwise.planner.values.pipeline import PipelinePlan, Rival

LISTED = 8  # rivals of a stage
CANDIDATE_ROWS = 400  # rows, the best, whose storage is chosen to list them
STEPS = 6  # deadlines between the fastest and the cheapest


def with_rivals(case: Case, joint: Joint, plan: PipelinePlan) -> PipelinePlan:
    stages = tuple(replace(one, rivals=tuple(_rivals(case, joint, at))) for at, one in enumerate(plan.stages))
    return replace(plan, stages=stages, front=tuple((name, case.alternative(one)) for name, one in _front(case, joint)))


def _rivals(case: Case, joint: Joint, index: int) -> list[Rival]:
    """The best row of every machine type and way to buy, by the score of the whole, and the pick in any case."""
    candidates, stages = case.candidates[index], case.stages
    order = np.argsort(swapped(stages, case.hand_offs, case.wanted, joint, index), kind="stable")
    candidates.settle(order[:CANDIDATE_ROWS])
    stages = case.stages
    scores = swapped(stages, case.hand_offs, case.wanted, joint, index)
    rows = order[:CANDIDATE_ROWS][np.argsort(scores[order[:CANDIDATE_ROWS]], kind="stable")]
    rivals: dict[tuple[str, str, str], Rival] = {}
    for row in (joint.picks[index], *rows[candidates.fine[rows]].tolist()):
        choice = candidates.choice(int(row))
        key = choice.provider, choice.machine, choice.purchase
        if key not in rivals:
            total = reckon(
                stages, case.hand_offs, [int(row) if here == index else pick for here, pick in enumerate(joint.picks)]
            )
            rivals[key] = Rival(choice=choice, usd=total.usd, seconds=total.seconds, kg=total.kg, misses=case.misses(total))
        if len(rivals) == LISTED:
            break
    return list(rivals.values())


def _front(case: Case, joint: Joint) -> list[tuple[str, Joint]]:
    """The best by each objective, and the cheapest within times between: none of them beats another. By carbon only where what
    every candidate emits is known."""
    wanted, known = case.wanted, not any(one.offered for one in case.candidates)
    queries: list[tuple[str, Wanted]] = [(name, replace(wanted, objective=name)) for name in ("cost", "time")]
    queries += [(name, replace(wanted, objective=name)) for name in ("carbon", "balanced") if known]
    answers = [("the answer", joint), *((name, answer) for name, goals in queries if (answer := case.settled(solve, goals)))]
    by_name = dict(answers)
    fast, slow = by_name["time"].seconds, by_name["cost"].seconds
    for step in range(1, STEPS + 1):
        deadline_s = fast * (slow / fast) ** (step / (STEPS + 1))
        answer = case.settled(solve, replace(wanted, objective="cost", deadline_s=deadline_s))
        if answer is not None:
            answers.append(("cost within a time", answer))
    distinct: dict[tuple[int, ...], tuple[str, Joint]] = {}
    for name, answer in answers:
        distinct.setdefault(answer.picks, (name, answer))
    return [
        (name, option)
        for name, option in distinct.values()
        if name == "the answer" or not any(_beats(other, option, known) for _, other in distinct.values())
    ]


def _beats(joint: Joint, rival: Joint, known: bool) -> bool:
    values = (joint.usd, joint.seconds, joint.kg if known else 0.0)
    rival_values = (rival.usd, rival.seconds, rival.kg if known else 0.0)
    return values != rival_values and all(a <= b for a, b in zip(values, rival_values, strict=True))
