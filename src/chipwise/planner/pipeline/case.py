"""A pipeline whose stages have been planned, made ready for `plan/joint` and told from what it answers.

Storage is chosen only for candidates that may win, as it only adds: a joint plan is sought with what is known, the storage of
its picks and of those next to them is chosen, and it is sought again until nothing it picks is without.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from chipwise.catalog.region import UNSTATED, readable
from chipwise.money.cost import Cost, Line
from chipwise.money.transfer import Gravity
from chipwise.planner.fleet import Index
from chipwise.planner.kinds.edge_catalog import PROVIDER as EDGE
from chipwise.planner.pipeline.beside import Excess
from chipwise.planner.pipeline.candidates import Candidates, Counts, candidates_of, machines_of
from chipwise.planner.pipeline.hand_offs import Flow, Place, Ways, tables
from chipwise.planner.pipeline.joint import (
    Joint,
    Stage,
    StageHandOff,
    Wanted,
    able,
    beyond,
    reckon,
    single_region,
    solve,
    swapped,
)
from chipwise.planner.pipeline.near_ties import preferred
from chipwise.planner.pipeline.quotas import shared_quotas
from chipwise.planner.pipeline.services import Offered
from chipwise.planner.quotas import QuotaCheck
from chipwise.planner.reasons import Reason
from chipwise.planner.reasons.goals import DeadlineAndBudget, MissesDeadline, OverBudget, StageOverBudget
from chipwise.planner.reasons.limits import StagesOverQuota
from chipwise.planner.remedies import Advice, Ease
from chipwise.planner.values.pipeline import Alternative, Lack, Moved, Placed, Tie, Totals, by_use, what
from chipwise.planner.values.plan import Missing, Obstacle, Plan
from chipwise.text import duration, usd
from chipwise.units import DAY, HOUR, MONTH
from chipwise.workload.common import Common
from chipwise.workload.goals import Budget, Period

if TYPE_CHECKING:
    from chipwise.predictor.known import Known
    from chipwise.workload.pipeline import Pipeline

AHEAD = 250  # candidates whose storage is chosen at a time; twice as many with every round
_MONTHS = {Period.HOUR: HOUR / MONTH, Period.DAY: DAY / MONTH, Period.YEAR: 12.0}
_OF_A_STAGE = ("latency", "ttft", "tpot", "throughput")
Solver = Callable[[Sequence[Stage], Sequence[StageHandOff], Wanted], Joint | None]


def counted_months(budget: Budget | None) -> float:
    """Months of services that a budget is held against: its own period, or one where it is given in all."""
    return _MONTHS.get(budget.per, 1.0) if budget is not None else 1.0


def assumptions(work: Pipeline, order: Sequence[Common], plans: Sequence[Plan], flows: Sequence[Flow]) -> list[str]:
    """What the plan takes for granted, and what it does not use, in sentences."""
    notes = []
    services = [stage.name for stage, one in zip(order, plans, strict=True) if one.per == "month"]
    budget = work.goals.budget
    if services:
        names = " and ".join(services)
        notes.append(f"{names}: runs without an end: one month of it is counted, and the time until it is up.")
    if budget is not None and services:
        span = {Period.TOTAL: "one month", Period.MONTH: "one month"}.get(budget.per, f"one {budget.per}")
        notes.append(f"The budget covers all jobs and data transfers, once, and {span} of {' and '.join(services)}.")
    if any(flow.size_bytes for flow in flows):
        notes.append("Data transfers: 10 Gbit/s inside a cloud, 5 between clouds and 1 to your own site are assumed; no CO2e.")
    if unused := [name for name in _OF_A_STAGE if getattr(work.goals, name) is not None]:
        notes.append(f"goals.{', '.join(unused)} of the pipeline is not used: give it to the stage that it is meant for.")
    ignored = [stage.name for stage in work.stages if "objective" in stage.goals.model_fields_set]
    if ignored:
        notes.append(f"The objective of {', '.join(ignored)} is not used: the pipeline's holds for the whole.")
    if work.data is not None:
        reading = [one.name for one in order if one.data is work.data]
        notes.append(f"The pipeline's data is read by {', '.join(reading) or 'no stage: each that takes none has its own'}.")
    return [*notes, *(f"{stage.name}: {note}" for stage, one in zip(order, plans, strict=True) for note in one.notes)]


@dataclass(frozen=True)
class Case:
    """Everything that a joint plan is made and told from."""

    order: Sequence[Common]
    plans: Sequence[Plan]
    flows: Sequence[Flow]
    wanted: Wanted
    months: float
    places: Sequence[Place]
    ways: Ways
    candidates: Sequence[Candidates]
    hand_offs: Sequence[StageHandOff]
    unpruned: Sequence[Candidates]  # also what cannot win by cost alone

    @classmethod
    def of(
        cls,
        known: Known,
        work: Pipeline,
        plans: Sequence[Plan],
        order: Sequence[Common],
        flows: Sequence[Flow],
        offered: Sequence[Sequence[Offered]],
        wanted: Wanted,
        complete: bool = False,
    ) -> Case:
        """`complete`: with candidates that cannot win, for those who list them."""
        codes: dict[Place, int] = {}
        own = {EDGE}
        catalog, months = known.catalog, counted_months(work.goals.budget)
        rows = [machines_of(plan, wanted.objective) for plan in plans]
        quotas, draws = shared_quotas(known, work.limits, order, plans, flows, rows)
        counts = None if complete else Counts.of(wanted, bool(quotas))
        candidates = [
            candidates_of(*of_one, counts, codes, own) for of_one in zip(plans, order, rows, draws, offered, strict=True)
        ]
        unpruned = candidates
        if wanted.objective == "cost" and not complete:
            all_candidates = [
                candidates_of(*of_one, None, codes, own) for of_one in zip(plans, order, rows, draws, offered, strict=True)
            ]
            unpruned = [
                one if len(one.usd) == len(all_of.usd) else all_of
                for one, all_of in zip(candidates, all_candidates, strict=True)
            ]
        countries = {region.key: region.country for region in catalog.regions}
        ways = Ways(Gravity(catalog.rows("storage"), catalog.regions), frozenset(own), countries)
        used = [sorted(set(one.region.tolist())) for one in candidates]
        hand_offs = tables(flows, used, list(codes), ways, months)
        goals = replace(wanted, quotas=quotas)
        return cls(
            order=order,
            plans=plans,
            flows=flows,
            wanted=goals,
            months=months,
            places=list(codes),
            ways=ways,
            candidates=candidates,
            hand_offs=hand_offs,
            unpruned=unpruned,
        )

    def _stage(self, at: int) -> Stage:
        return self.candidates[at].stage(self.order[at].name, self.months if self.plans[at].per == "month" else 1.0)

    def settled(self, solver: Solver, wanted: Wanted | None = None, only: int | None = None) -> Joint | None:
        """What a solver answers once the storage of all it picks is in the cost. `only`: of one stage, as if it were alone.

        Costs without storage are never too high, so that what cannot beat an answer whose storage is known is out for good.
        """
        goals = wanted or self.wanted
        if only is not None:  # alone it is within all quotas: its own plan has seen to that
            goals = replace(goals, quotas=())
        places = list(range(len(self.candidates))) if only is None else [only]
        hand_offs = self.hand_offs if only is None else ()
        left = [np.arange(len(self.candidates[at].usd)) for at in places]
        if solver is single_region:
            stated = np.array([readable(region) != UNSTATED for _, region in self.places], dtype=bool)
            left = [rows[stated[self.candidates[at].region[rows]]] for at, rows in zip(places, left, strict=True)]
        best: Joint | None = None
        ahead = AHEAD
        while True:
            left = [rows[self.candidates[at].fine[rows]] for at, rows in zip(places, left, strict=True)]
            stages = [_subset(self._stage(at), rows) for at, rows in zip(places, left, strict=True)]
            joint = solver(stages, hand_offs, goals)
            if joint is None:
                return None
            picks = [int(rows[pick]) for rows, pick in zip(left, joint.picks, strict=True)]
            waiting = [here for here, at in enumerate(places) if not self.candidates[at].known[picks[here]]]
            if not waiting:
                return replace(joint, picks=tuple(picks))
            for index in waiting:
                candidates = self.candidates[places[index]]
                near = left[index][np.argsort(swapped(stages, hand_offs, goals, joint, index), kind="stable")]
                if solver is single_region:
                    near = near[candidates.region[near] == candidates.region[picks[index]]]
                candidates.settle(np.union1d(near[~candidates.known[near]][:ahead], picks[index]))
            stages = [_subset(self._stage(at), rows) for at, rows in zip(places, left, strict=True)]
            true = reckon(stages, hand_offs, joint.picks)
            allowed = true.keeps(goals) and all(self.candidates[at].fine[one] for at, one in zip(places, picks, strict=True))
            better = best is None or true.score(goals.objective) < best.score(goals.objective)
            if solver in (solve, single_region) and allowed and better:
                best = true
                useful = able(stages, hand_offs, goals, true, together=solver is single_region)
                left = [rows[some] for rows, some in zip(left, useful, strict=True)]
            ahead *= 2

    def preferred(self, joint: Joint) -> tuple[Joint, tuple[Tie, ...]]:
        """Of what costs nearly the same as the cheapest combination the one that leads. Its picks are of `unpruned`."""
        picks = tuple(_place(one, of, pick) for one, of, pick in zip(self.candidates, self.unpruned, joint.picks, strict=True))
        shares = [self.months if plan.per == "month" else 1.0 for plan in self.plans]
        names = [stage.name for stage in self.order]
        sure = [stage.goals.sure_share for stage in self.order]
        return preferred(self.unpruned, names, shares, sure, self.hand_offs, self.wanted, replace(joint, picks=picks))

    def wide(self) -> Case:
        """The same with all candidates, of which `preferred` picks."""
        return replace(self, candidates=self.unpruned)

    def each_alone(self) -> Joint:
        """Every stage as it would be were there no other, and what that comes to together."""
        picks = []
        for index in range(len(self.candidates)):
            joint = self.settled(solve, Wanted(self.wanted.objective), index)
            assert joint is not None
            pick = _place(self.candidates[index], self.unpruned[index], joint.picks[0])
            stage, goals, alone = self.order[index], Wanted(self.wanted.objective), replace(joint, picks=(pick,))
            best, _ = preferred([self.unpruned[index]], [stage.name], [1.0], [stage.goals.sure_share], (), goals, alone)
            picks.append(best.picks[0])
        return reckon(self.wide().stages, self.hand_offs, picks)

    def lacks(self) -> list[Lack]:
        """Which goal of the whole cannot be kept, and by how much."""
        dear = Missing(Obstacle.BUDGET, StageOverBudget(), (Advice("a higher budget of the stage"),))
        if spent := [
            Lack(stage.name, dear) for stage, one in zip(self.order, self.candidates, strict=True) if not one.fine.any()
        ]:
            return spent
        goals, missing = self.wanted, []
        if goals.quotas:
            free = self.settled(solve, replace(goals, quotas=()))
            if free is not None:
                missing += [self._too_much(one) for one in beyond(self.stages, goals, free)]
            if self.settled(solve, Wanted("time", quotas=goals.quotas)) is None:
                return [Lack("", one) for one in missing]
        if goals.deadline_s is not None:
            fastest = self.settled(solve, Wanted("time", quotas=goals.quotas))
            if fastest is not None and fastest.seconds > goals.deadline_s:
                late = MissesDeadline(fastest.seconds, goals.deadline_s)
                missing.append(Missing(Obstacle.DEADLINE, late, (Ease(),), "the fastest of the whole"))
        if goals.budget_usd is not None:
            cheapest = self.settled(_by_charge, Wanted(quotas=goals.quotas))
            if cheapest is not None and cheapest.charged > goals.budget_usd:
                overrun = OverBudget(cheapest.charged, goals.budget_usd)
                missing.append(Missing(Obstacle.BUDGET, overrun, (Ease(),), "the cheapest of the whole"))
        if not missing:
            missing.append(Missing(Obstacle.DEADLINE_AND_BUDGET, DeadlineAndBudget(), (Advice("a later deadline"),)))
        return [Lack("", one) for one in missing]

    @property
    def stages(self) -> list[Stage]:
        return [self._stage(at) for at in range(len(self.candidates))]

    def excess(self, joint: Joint) -> StagesOverQuota | None:
        """Which quota of the whole a combination exceeds; None: none."""
        return next((self._crowded(one, one.needed) for one in beyond(self.stages, self.wanted, joint)), None)

    def _quota_check(self, excess: Excess) -> QuotaCheck:
        quota = self.wanted.quotas[excess.cap.quota]
        region = "" if excess.cap.region is None else f" in {self.places[excess.cap.region][1]}"
        return QuotaCheck(
            title=f"{quota.title}{region}", unit=quota.unit, maximum=quota.maximum, needed=np.zeros(0), own=quota.own
        )

    def _crowded(self, excess: Excess, needed: float) -> StagesOverQuota:
        stages = tuple((self.order[at].name, need) for at, need in excess.by_stage)
        return StagesOverQuota(stages, self._quota_check(excess).miss(needed))

    def _too_much(self, excess: Excess) -> Missing:
        """With the least that any combination within the other goals needs of it."""
        cap, quotas = excess.cap, self.wanted.quotas

        def by_need(stages: Sequence[Stage], hand_offs: Sequence[StageHandOff], wanted: Wanted) -> Joint | None:
            needing = [replace(stage, usd=cap.needed(at, stage.draws, stage.region)) for at, stage in enumerate(stages)]
            return solve(needing, [replace(way, usd=np.zeros_like(way.usd)) for way in hand_offs], wanted)

        rest = tuple(replace(quota, crowds=()) if at == cap.quota else quota for at, quota in enumerate(quotas))
        joint = self.settled(by_need, replace(self.wanted, objective="cost", quotas=rest))
        needed = excess.needed
        if joint is not None:
            draws = [stage.draws[pick : pick + 1] for stage, pick in zip(self.stages, joint.picks, strict=True)]
            regions = [stage.region[pick : pick + 1] for stage, pick in zip(self.stages, joint.picks, strict=True)]
            needs = [float(cap.needed(at, *pair)[0]) for at, pair in enumerate(zip(draws, regions, strict=True))]
            needed = max(sum(needs), min(needed, self._quota_check(excess).maximum))
            excess = replace(excess, needed=needed, by_stage=tuple((at, need) for at, need in enumerate(needs) if need))
        return Missing(Obstacle.QUOTA, self._crowded(excess, needed), (Ease(),))

    def placed(self, joint: Joint, alone: Joint) -> tuple[Placed, ...]:
        after = [
            tuple(dict.fromkeys(self.order[flow.giver].name for flow in self.flows if flow.taker == index))
            for index in range(len(self.order))
        ]
        return tuple(
            Placed(
                name=stage.name,
                kind=plan.kind,
                per=plan.per,
                after=after[index],
                choice=self.candidates[index].choice(joint.picks[index]),
                starts_s=joint.starts[index],
                ready_s=joint.ends[index],
                alone=self.candidates[index].choice(alone.picks[index]),
                plan=plan,
                assumed=() if (service := self.candidates[index].service(joint.picks[index])) is None else service.assumed,
            )
            for index, (stage, plan) in enumerate(zip(self.order, self.plans, strict=True))
        )

    def moved(self, joint: Joint) -> tuple[Moved, ...]:
        moves = []
        for flow in self.flows:
            giver, taker = (self.places[self.candidates[at].region[joint.picks[at]]] for at in (flow.giver, flow.taker))
            transfer, seconds = self.ways.move(giver, taker, flow.size_bytes)
            to_own = taker[0] in self.ways.own and giver[0] not in self.ways.own
            path = "to own site" if to_own else transfer.kind
            moves.append(
                Moved(
                    source=self.order[flow.giver].name,
                    to=self.order[flow.taker].name,
                    size_bytes=flow.size_bytes,
                    per="month" if flow.monthly else "once",
                    path=path,
                    usd=transfer.usd,
                    seconds=0.0 if flow.monthly else seconds,
                    how=flow.basis,
                    assumed=transfer.assumed if path != "in place" and flow.size_bytes else (),
                )
            )
        return tuple(moves)

    def totals(self, joint: Joint) -> Totals:
        once: list[Line] = []
        monthly: list[Line] = []
        kg = {"job": 0.0, "month": 0.0}
        unknown = []
        for stage, plan, candidates, pick in zip(self.order, self.plans, self.candidates, joint.picks, strict=True):
            choice = candidates.choice(pick)
            (monthly if plan.per == "month" else once).append(Line(stage.name, choice.usd, choice.where))
            kg[plan.per] += choice.kg
            if by_use(choice):
                unknown.append(stage.name)
        for move in self.moved(joint):
            line = Line(f"{move.source} to {move.to}", move.usd, move.how)
            (monthly if move.per == "month" else once).append(line)
        return Totals(
            once=Cost.of(once),
            monthly=Cost.of(monthly),
            seconds=joint.seconds,
            kg_once=kg["job"],
            kg_monthly=kg["month"],
            unknown_kg=tuple(unknown),
        )

    def summary(self, joint: Joint) -> str:
        """In a few words: what it runs on, and what it comes to."""
        chosen = [one.choice(pick) for one, pick in zip(self.candidates, joint.picks, strict=True)]
        runs = (f"{stage.name} on {what(one)}" for stage, one in zip(self.order, chosen, strict=True))
        return f"{', '.join(runs)} ({usd(joint.usd)}, {duration(joint.seconds)}, {joint.kg:,.1f} kg CO2e)"

    def alternative(self, joint: Joint) -> Alternative:
        places = tuple(
            (stage.name, candidates.choice(pick).where)
            for stage, candidates, pick in zip(self.order, self.candidates, joint.picks, strict=True)
        )
        region = self.candidates[0].choice(joint.picks[0]).place
        return Alternative(self.totals(joint), places, self.misses(joint), region)

    def misses(self, joint: Joint) -> Reason | None:
        """Which goal or quota of the whole a combination misses; None: none."""
        if self.wanted.deadline_s is not None and not joint.keeps(Wanted(deadline_s=self.wanted.deadline_s)):
            return MissesDeadline(joint.seconds, self.wanted.deadline_s)
        if self.wanted.budget_usd is not None and not joint.keeps(Wanted(budget_usd=self.wanted.budget_usd)):
            return OverBudget(joint.charged, self.wanted.budget_usd)
        return self.excess(joint)


def _place(pruned: Candidates, unpruned: Candidates, pick: int) -> int:
    """Of a candidate among all of its stage."""
    if (beyond_machines := pick - len(pruned.positions)) >= 0:
        return len(unpruned.positions) + beyond_machines
    return int(np.searchsorted(unpruned.positions, pruned.positions[pick]))


def _subset(stage: Stage, rows: Index) -> Stage:
    columns = (stage.usd[rows], stage.seconds[rows], stage.kg[rows], stage.charged[rows], stage.draws[rows])
    return Stage(stage.name, stage.region[rows], *columns)


def _by_charge(stages: Sequence[Stage], hand_offs: Sequence[StageHandOff], wanted: Wanted) -> Joint | None:
    """The least that a budget would be charged with; time does not count."""
    charged = [replace(one, usd=one.charged) for one in stages]
    return solve(charged, [replace(one, usd=one.charged) for one in hand_offs], Wanted("cost", quotas=wanted.quotas))
