"""Of combinations that cost nearly the same as the cheapest, the one that is better in other things: as for a single workload
(`planner/preference`), stage by stage. What is nearly the same is a share of the stage's own cost, with what its place changes
of the hand-offs, and a larger one where its machines may well not carry the load; what is sooner is the whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from chipwise.perf.arrays import Array
from chipwise.planner.defaults import CARRIED_COST, NEARLY, UNSURE_LOAD
from chipwise.planner.fleet import Index
from chipwise.planner.pipeline.candidates import Candidates
from chipwise.planner.pipeline.joint import Joint, Stage, StageHandOff, Wanted, beyond, reckon, swapped
from chipwise.planner.preference import PORTED, Advantage, Traits, lead
from chipwise.planner.values.pipeline import Tie

ALIKE = 0.005  # of the cost: below it nothing is cheaper
SETTLED = 200  # candidates of a stage whose storage is chosen to compare them


def preferred(
    candidates: Sequence[Candidates],
    names: Sequence[str],
    shares: Sequence[float],
    sure: Sequence[float],
    hand_offs: Sequence[StageHandOff],
    wanted: Wanted,
    cheapest: Joint,
) -> tuple[Joint, tuple[Tie, ...]]:
    """`shares`: of what each stage costs, how much the budget of the whole counts; `sure`: the probability with which it is
    enough that a service carries its load. By cost alone: other objectives have no
    second place to give."""
    if wanted.objective != "cost":
        return cheapest, ()
    best, ties = cheapest, []
    for index, candidate in enumerate(candidates):
        if candidate.rows is None or candidate.service(best.picks[index]) is not None:
            continue
        stages = [one.stage(name, share) for one, name, share in zip(candidates, names, shares, strict=True)]
        rest_usd = best.usd - float(stages[index].usd[best.picks[index]])
        chance = candidate.rows.load_chance(int(candidate.positions[best.picks[index]]))
        unsure = chance is not None and chance < sure[index] - UNSURE_LOAD
        limit_usd = rest_usd + (1.0 + (CARRIED_COST if unsure else NEARLY)) * (best.usd - rest_usd)
        near = _near(candidate, stages, hand_offs, wanted, best, index, limit_usd)
        if len(near) < 2:
            continue
        candidate.settle(near)
        stages[index] = candidate.stage(names[index], shares[index])
        near = near[candidate.fine[near]]
        usd = swapped(stages, hand_offs, wanted, best, index)[near]
        near, usd = near[order := np.argsort(usd, kind="stable")], usd[order]
        near = near[usd <= limit_usd]
        traits = _traits(candidate, stages, hand_offs, wanted, best, index, near, rest_usd)
        leading = lead(replace(traits, carries=_carries(candidate, near, sure[index]), sure_load=sure[index]))
        pick = int(near[leading.first])
        swap = reckon(stages, hand_offs, (*best.picks[:index], pick, *best.picks[index + 1 :]))
        if pick != best.picks[index] and swap.keeps(wanted) and not beyond(stages, wanted, swap) and swap.usd <= limit_usd:
            if swap.usd > best.usd:
                ties.append(Tie(names[index], candidate.choice(best.picks[index]), cheapest.usd, leading.advantages))
            best = swap
    return best, (*ties, *surer(candidates, names, best))


def surer(candidates: Sequence[Candidates], names: Sequence[str], joint: Joint) -> list[Tie]:
    """Stages that cost more than they would at a price that is doubtful: such offers take no part (`ChoiceMaker.able`)."""
    ties = []
    for candidate, name, pick in zip(candidates, names, joint.picks, strict=True):
        if candidate.rows is None or candidate.service(pick) is not None:
            continue
        row = candidate.rows.doubtful(int(candidate.positions[pick]))
        if row is not None and (choice := candidate.rows.choice(row)).usd < (1.0 - ALIKE) * candidate.choice(pick).usd:
            ties.append(Tie(name, choice, joint.usd - candidate.choice(pick).usd + choice.usd, (Advantage.SURER,)))
    return ties


def _near(
    candidate: Candidates,
    stages: Sequence[Stage],
    hand_offs: Sequence[StageHandOff],
    wanted: Wanted,
    joint: Joint,
    index: int,
    limit_usd: float,
) -> Index:
    """The cheapest machines with which the whole costs no more than `limit_usd`, without storage that is not chosen yet."""
    usd = swapped(stages, hand_offs, wanted, joint, index)[: len(candidate.positions)]
    order = np.argsort(usd, kind="stable")
    near = order[(usd[order] <= limit_usd) & candidate.fine[order]]
    return np.asarray(near if candidate.known.all() else near[:SETTLED], dtype=np.intp)


def _carries(candidate: Candidates, near: Index, sure: float) -> Array | None:
    """How surely machines of a service carry its load; None: there is none."""
    assert candidate.rows is not None
    chances = [candidate.rows.load_chance(int(one)) for one in candidate.positions[near]]
    known = [one for one in chances if one is not None]
    return np.minimum([1.0 if one is None else one for one in chances], sure) if known else None


def _traits(
    candidate: Candidates,
    stages: Sequence[Stage],
    hand_offs: Sequence[StageHandOff],
    wanted: Wanted,
    joint: Joint,
    index: int,
    near: Index,
    rest_usd: float,
) -> Traits:
    """`rest_usd`: USD of the other stages and of all hand-offs as they are."""
    assert candidate.rows is not None
    priced, positions = candidate.rows.priced, candidate.positions[near]
    porting = candidate.rows.needs_porting
    offers = priced.offer[positions]
    return Traits(
        usd=np.maximum(swapped(stages, hand_offs, wanted, joint, index)[near] - rest_usd, 1e-9),
        seconds=swapped(stages, hand_offs, replace(wanted, objective="time"), joint, index)[near],
        days=priced.prices.days[offers],
        machines=priced.machines[positions],
        porting=np.zeros(len(near)) if porting is None else PORTED * porting[positions].astype(np.float64),
        ended=np.zeros(len(near), dtype=bool),
        doubt=priced.prices.doubt[offers],
        deadline_s=wanted.deadline_s or 0.0,
    )
