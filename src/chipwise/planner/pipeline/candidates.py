"""Candidates of one stage of a pipeline: machines of its plan that keep its own goals, with storage once it is asked for, and
services that are paid by use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from chipwise.catalog.offer import PURCHASES, Purchase
from chipwise.perf.arrays import Array
from chipwise.planner.fleet import Index
from chipwise.planner.limits import Mask
from chipwise.planner.pipeline.hand_offs import Place
from chipwise.planner.pipeline.joint import Stage, Wanted, worthwhile
from chipwise.planner.pipeline.services import Offered
from chipwise.planner.tails import BOOT_S
from chipwise.planner.values.choice import Choice
from chipwise.planner.values.plan import Plan, Rows
from chipwise.workload.common import Common


@dataclass(frozen=True, slots=True)
class Counts:
    """What candidates are compared by beside cost."""

    time: bool = True
    carbon: bool = True

    @classmethod
    def of(cls, wanted: Wanted, quotas: bool) -> Counts:
        """Where something cannot be kept, what the fastest would do is told."""
        timed = quotas or wanted.deadline_s is not None or wanted.objective in ("time", "balanced")
        return cls(timed, wanted.objective in ("carbon", "balanced"))


@dataclass(slots=True)
class Candidates:
    """Machines first, then services. `usd` grows when storage is chosen, which takes long for many; what then misses a goal of
    the stage is out."""

    rows: Rows | None  # None: no machine can do it
    positions: Index  # positions of machines among the rows
    offered: Sequence[Offered]
    region: Index  # codes that all stages share
    usd: Array
    seconds: Array  # until what follows can start: a job is done, a service is up
    kg: Array  # of services, whose emissions nobody states, 0
    draws: Array  # of quotas that stages share
    known: Mask  # storage is in `usd`
    fine: Mask
    limited: bool  # the stage has a budget of its own
    choices: dict[int, Choice] = field(default_factory=dict)

    def service(self, row: int) -> Offered | None:
        return self.offered[row - len(self.positions)] if row >= len(self.positions) else None

    def choice(self, row: int) -> Choice:
        if row not in self.choices:
            service = self.service(row)
            self.choices[row] = service.choice if service is not None else self._machine(row)
        return self.choices[row]

    def _machine(self, row: int) -> Choice:
        assert self.rows is not None
        return self.rows.choice(int(self.positions[row]))

    def settle(self, rows: Index) -> None:
        """With storage. A choice in full is made only to hold it against a budget: how bad one run in ten is takes long."""
        if self.rows is None:
            return
        unknown = rows[~self.known[rows]]
        if self.limited:
            self.rows.foresee(self.positions[unknown[unknown < len(self.positions)]])
        for row in unknown.tolist():
            self.known[row] = True
            if self.limited:
                choice = self.choice(row)
                self.usd[row], self.fine[row] = choice.usd, not self.rows.verdict(choice)
            elif self.rows.storage_usd is not None:
                self.usd[row] += self.rows.storage_usd(int(self.positions[row]))

    def stage(self, name: str, share: float) -> Stage:
        """`share`: of what it costs, how much the budget of the whole counts."""
        return Stage(
            name=name,
            region=self.region,
            usd=self.usd,
            seconds=self.seconds,
            kg=self.kg,
            charged=self.usd * share,
            draws=self.draws,
        )


def machines_of(plan: Plan, objective: str) -> Index:
    """Positions of those that keep the stage's goals and may lead, as of the stage alone by the pipeline's objective."""
    if plan.rows is None:
        return np.zeros(0, np.intp)
    return np.sort(plan.rows.eligible if plan.rows.able is None else plan.rows.able(objective))


def candidates_of(
    plan: Plan,
    work: Common,
    positions: Index,
    draws: Array,
    offered: Sequence[Offered],
    counts: Counts | None,
    codes: dict[Place, int],
    own: set[str],
) -> Candidates:
    """Of machines at `positions`, and services; where storage does not enter, only those that none in the same region beats in
    what counts; None: all. `codes` of places and `own` providers, who stand on sites of one's own, grow with every stage."""
    monthly = plan.per == "month"
    open_storage = plan.rows is not None and plan.rows.storage_usd is not None and not monthly
    region, cost, seconds, kg = np.zeros(0, np.intp), np.zeros(0), np.zeros(0), np.zeros(0)
    if plan.rows is not None:
        priced, regions = plan.rows.priced, plan.rows.fleet.catalog.regions
        used, place = np.unique(priced.region[positions], return_inverse=True)
        region = np.array([codes.setdefault(regions[one].key, len(codes)) for one in used.tolist()], np.intp)[place]
        owned = np.unique(priced.region[positions][priced.purchase[positions] == PURCHASES.index(Purchase.OWNED)])
        own.update(regions[one].provider for one in owned.tolist())
        seconds = BOOT_S + priced.tails.moved[positions] if monthly else priced.seconds[positions]
        cost, kg = priced.usd[positions], priced.kg[positions]
    if not open_storage and counts is not None:
        unbeaten = worthwhile(
            Stage(name="", region=region, usd=cost, seconds=seconds, kg=kg, charged=cost, draws=draws),
            counts.time,
            counts.carbon,
        )
        positions, region, cost, seconds, kg, draws = (
            positions[unbeaten],
            region[unbeaten],
            cost[unbeaten],
            seconds[unbeaten],
            kg[unbeaten],
            draws[unbeaten],
        )
    known = np.concatenate([np.full(len(positions), not open_storage), np.ones(len(offered), dtype=bool)])
    places = np.array([codes.setdefault(one.place, len(codes)) for one in offered], np.intp)
    return Candidates(
        rows=plan.rows,
        positions=positions,
        offered=offered,
        region=np.concatenate([region, places]),
        usd=np.concatenate([cost, [one.choice.usd for one in offered]]),
        seconds=np.concatenate([seconds, [one.ready_s for one in offered]]),
        kg=np.concatenate([kg, np.zeros(len(offered))]),
        draws=np.concatenate([draws, np.zeros((len(offered), draws.shape[1]))]),
        known=known,
        fine=np.ones(len(known), dtype=bool),
        limited=work.goals.budget is not None,
    )
