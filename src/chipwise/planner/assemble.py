"""From priced rows to a plan: what may win, its order, families, alternatives, and what is missing."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from chipwise.planner.alternatives import alternative, may_save, with_options
from chipwise.planner.case import Described, PlanningCase
from chipwise.planner.choosing import ChoiceMaker, values_of
from chipwise.planner.fleet import Fleet, Index
from chipwise.planner.limits import Allowed, Mask
from chipwise.planner.preference import Advantage, Lead, efforts
from chipwise.planner.pricing import Priced
from chipwise.planner.ranking import first_of, front, order
from chipwise.planner.reasons import Reason
from chipwise.planner.reasons.limits import NotOffered, RuleKind
from chipwise.planner.row_storage import distinct
from chipwise.planner.values.choice import Choice
from chipwise.planner.values.load import Followed
from chipwise.planner.values.plan import CheaperOption, Counts, Grounds, Loss, Missing, NearTie, Plan
from chipwise.planner.why_lost import beaten, bounded, feasible, too_distant, verdict, within_reach


def assemble(
    case: PlanningCase,
    fleet: Fleet,
    priced: Priced,
    describe: Callable[[int], Described],
    ok: Allowed,
    missing: Sequence[Missing],
    counts: Counts,
    top: int,
    unable: Mapping[str, Reason] | None = None,
    grounds: Grounds | None = None,
) -> Plan:
    """`describe` tells of a row of `way`; `missing` what kept ways out before there was a price, `unable` why whole families
    have no way at all. Rows of offers that are set aside take no part, but for the alternatives."""
    everything = priced
    followed: Mapping[int, Followed] = {}
    if case.following is not None and len(priced):
        everything, followed = case.following(everything, fleet, describe)
    priced = everything.only(_among(everything, ok.offers) & ~_narrower(case, everything))
    make = partial(ChoiceMaker, fleet=fleet, describe=describe, followed=followed, efforts=efforts(fleet, case.goals.native))
    grounds = grounds or Grounds(case.goals.rules)
    layered = None
    if case.layered is not None and case.goals.budget_usd is not None and len(priced):
        bare = make(case=case, priced=priced, grounds=grounds)
        layered = case.layered(bare.rows(np.arange(len(priced)), len(priced)))
    fine, late = feasible(case, fleet, priced, layered)
    far = np.zeros(len(fine), dtype=bool)
    if case.reach is not None and fine.any():
        reach = bounded(case.reach, priced, fine)
        case = replace(case, reach=reach)
        near = within_reach(reach, priced)
        fine, far = fine & near, fine & ~near
    maker = make(case=case, priced=priced, grounds=grounds, layered=layered)
    maker.unsure = case.chance is not None and not (fine & (case.chance[priced.way] >= case.goals.sure_enough)).any()
    values = values_of(case, priced, maker.unsure)
    ranked = order(values, case.goals.objective)
    good, rest, beyond = ranked[fine[ranked]], ranked[~fine[ranked]], ranked[far[ranked]]
    if len(beyond) and not len(good):
        late = too_distant(case.reach, fleet, priced, beyond)
    if case.stored is not None and len(good):
        good, dear = maker.storage.ranked(good, values, top)
        rest = np.concatenate([dear, rest])
        late = late if len(good) else maker.storage.too_dear(dear, values)
    heads: Index = good[:0]
    leading: Lead | None = None
    doubtful_row: int | None = None  # that a surer price was preferred to, where money is not all
    if case.goals.objective == "cost" and len(good):
        heads, leading = maker.led(good)
        good = np.concatenate([heads[leading.first : leading.first + 1], good[good != heads[leading.first]]])
    elif len(good):
        first = maker.able(good, case.goals.objective)[:1]
        doubt = priced.prices.doubt[priced.offer]
        doubtful_row = int(good[0]) if doubt[good[0]] > doubt[first[0]] else None
        good = np.concatenate([first, good[good != first[0]]])
    top_rows, optimal = distinct(priced, good)[: max(top, 1)], good[front(values.rows(good))]
    if case.stored is not None and len(good):  # storage may make one of them dearer than another, or than the budget
        optimal = np.array(sorted({*optimal.tolist(), int(good[0])}), dtype=np.intp)
        total = maker.storage.in_all(optimal, values)
        optimal = optimal[case.goals.affords(total.usd + maker.extra[optimal], total.seconds)]
        optimal = optimal[front(maker.storage.in_all(optimal, values))]
    families = fleet.shape_of[priced.machine]
    labels = fleet.families
    codes = {name: at for at, name in enumerate(dict.fromkeys(labels))}
    group = np.array([codes[name] for name in labels], dtype=np.intp)[families]
    leaders = first_of(group, np.concatenate([good, rest]))
    maker.foresee(np.concatenate([top_rows, leaders, optimal]))
    choices, best = [maker.choice(at) for at in top_rows], [maker.choice(at) for at in leaders.tolist()]
    losses = []
    if choices:
        own = choices[0].family
        losses = [
            Loss(
                choice.family,
                choice,
                verdict(case, fleet, choice) or beaten(choices[0], choice, case.goals.objective, case.per),
            )
            for choice in best
            if choice.family != own
        ]
    seen = {one.family for one in best}
    reasons = unable or {}
    losses += [Loss(name, None, reasons.get(name, NotOffered())) for name in codes if name not in seen]
    chosen = [maker.choice(at) for at in optimal.tolist()]
    options = _alternatives(case, make, everything, ok, choices[0] if choices else None)
    return Plan(
        workload=case.workload,
        kind=case.kind,
        objective=case.goals.objective,
        per=case.per,
        choices=tuple(choices),
        front=tuple(chosen),
        losses=tuple(losses),
        refused=ok.refused,
        missing=tuple(missing) if choices else with_options((*missing, *late), options, case.per),
        counts=counts,
        alternatives=options,
        near_tie=_near_tie(maker, heads, leading, doubtful_row),
        porting=_porting_trade(maker, heads, leading),
        rows=maker.rows(np.concatenate([good, rest]), len(good)),
        farther=maker.choice(int(beyond[0])) if len(beyond) else None,
        larger=_larger(maker, choices[0]) if choices else None,
    )


def _larger(maker: ChoiceMaker, winner: Choice) -> Choice | None:
    """What more machines than are taken unasked make of a job that nothing else does within the horizon."""
    case, priced = maker.case, maker.priced
    goals = case.goals
    if goals.horizon_s is None or winner.seconds <= goals.horizon_s or math.isinf(goals.most_machines):
        return None
    unbounded = replace(case, goals=replace(goals, most_machines=math.inf))
    fine = feasible(unbounded, maker.fleet, priced, maker.layered)[0]
    ranked = order(values_of(case, priced), goals.objective)
    good = ranked[fine[ranked]]
    if goals.objective == "cost":
        heads, leading = maker.led(good)
        best = maker.choice(int(heads[leading.first]))
    else:
        best = maker.choice(int(maker.able(good, goals.objective)[0]))
    return best if best.seconds < winner.seconds else None


def _near_tie(maker: ChoiceMaker, heads: Index, leading: Lead | None, doubtful_row: int | None) -> NearTie | None:
    if doubtful_row is not None:
        return NearTie(maker.choice(doubtful_row), (Advantage.SURER,))
    if leading is None or leading.cheaper is None:
        return None
    return NearTie(maker.choice(int(heads[leading.cheaper])), leading.advantages)


def _porting_trade(maker: ChoiceMaker, heads: Index, leading: Lead | None) -> Choice | None:
    return None if leading is None or leading.across is None else maker.choice(int(heads[leading.across]))


def _among(priced: Priced, offers: Index) -> Mask:
    listed = np.zeros(len(priced.prices.counted), dtype=bool)
    listed[offers] = True
    mask: Mask = listed[priced.offer]
    return mask


def _narrower(case: PlanningCase, priced: Priced) -> Mask:
    return np.zeros(len(priced), dtype=bool) if case.unasked is None else case.unasked[priced.way]


def _alternatives(
    case: PlanningCase,
    make: Callable[..., ChoiceMaker],
    everything: Priced,
    ok: Allowed,
    winner: Choice | None,
) -> tuple[CheaperOption, ...]:
    """Of every default that keeps offers out, the cheapest of these that keeps the goals, where it saves enough. What wins by
    another objective than cost has none; where nothing fits, what would help is told by every objective."""
    alternatives = []
    narrower = _narrower(case, everything)
    masks = {kind: _among(everything, offers) & ~narrower for kind, offers in ok.aside.items()}
    masks[RuleKind.PRECISION] = _among(everything, ok.offers) & narrower
    if case.chance is not None:
        unsure = case.chance[everything.way] < case.goals.sure_enough
        masks[RuleKind.CONFIDENCE] = _among(everything, ok.offers) & ~narrower & unsure
    for kind, mask in masks.items() if case.goals.objective == "cost" or winner is None else ():
        priced = everything.only(mask)
        maker = make(case=case, priced=priced, grounds=Grounds(case.goals.rules))
        fine = feasible(case, maker.fleet, priced, None)[0]
        fine = fine if case.reach is None else fine & within_reach(case.reach, priced)
        rows = np.flatnonzero(fine)
        if len(rows):
            heads, leading = maker.led(rows[np.argsort(priced.usd[rows], kind="stable")], stored=False)
            best = int(heads[leading.first])
            if may_save(kind, float(priced.usd[best]), winner):
                alternatives.append(alternative(kind, maker.choice(best), winner))
    return tuple(sorted((one for one in alternatives if one is not None), key=lambda one: -one.saving))
