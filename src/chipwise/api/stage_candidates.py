"""Candidates of one stage of a pipeline: those of its plan that keep its own goals, with storage once it is asked for."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from chipwise.api.hand_offs import Place
from chipwise.catalog.offer import PURCHASES, Purchase
from chipwise.perf.arrays import Array
from chipwise.plan.decision import Choice, Plan, Rows
from chipwise.plan.fleet import Index
from chipwise.plan.joint import Stage, worthwhile
from chipwise.plan.limits import Mask
from chipwise.plan.pricing import BOOT_S
from chipwise.workload.kinds import Common


@dataclass(slots=True)
class Candidates:
    """`usd` grows when storage is chosen, which takes long for many; what then misses a goal of the stage is out."""

    rows: Rows
    at: Index  # positions among the rows
    region: Index  # codes that all stages share
    usd: Array
    seconds: Array  # until what follows can start: a job is done, a service is up
    kg: Array
    known: Mask  # storage is in `usd`
    fine: Mask
    limited: bool  # the stage has a budget of its own
    choices: dict[int, Choice] = field(default_factory=dict)

    def choice(self, row: int) -> Choice:
        if row not in self.choices:
            self.choices[row] = self.rows.choice(int(self.at[row]))
        return self.choices[row]

    def settle(self, rows: Index) -> None:
        """With storage. A choice in full is made only to hold it against a budget: how bad one run in ten is takes long."""
        for row in rows.tolist():
            if self.known[row]:
                continue
            self.known[row] = True
            if self.limited:
                one = self.choice(row)
                self.usd[row], self.fine[row] = one.usd, not self.rows.verdict(one)
            elif self.rows.storage_usd is not None:
                self.usd[row] += self.rows.storage_usd(int(self.at[row]))

    def stage(self, name: str, share: float) -> Stage:
        """`share`: of what it costs, how much the budget of the whole counts."""
        return Stage(name, self.region, self.usd, self.seconds, self.kg, self.usd * share)


def candidates_of(plan: Plan, work: Common, codes: dict[Place, int], own: set[str]) -> Candidates:
    """Those that keep the stage's goals; where storage does not enter, only those that none in the same region beats. `codes`
    of places and `own` providers, whose machines stand on sites of one's own, grow with every stage."""
    assert plan.rows is not None
    monthly = plan.per == "month"
    open_storage = plan.rows.storage_usd is not None and not monthly
    rows, priced, regions = plan.rows, plan.rows.priced, plan.rows.fleet.catalog.regions
    at = np.sort(rows.ranked[: rows.kept])
    used, place = np.unique(priced.region[at], return_inverse=True)
    region = np.array([codes.setdefault(regions[one].key, len(codes)) for one in used.tolist()], np.intp)[place]
    owned = np.unique(priced.region[at][priced.purchase[at] == PURCHASES.index(Purchase.OWNED)])
    own.update(regions[one].provider for one in owned.tolist())
    seconds = BOOT_S + priced.tails.moved[at] if monthly else priced.seconds[at]
    cost, kg = priced.usd[at], priced.kg[at]
    if not open_storage:
        kept = worthwhile(Stage("", region, cost, seconds, kg, cost))
        at, region, cost, seconds, kg = at[kept], region[kept], cost[kept], seconds[kept], kg[kept]
    return Candidates(
        rows, at, region, cost.copy(), seconds, kg, np.full(len(at), not open_storage), np.ones(len(at), dtype=bool),
        work.goals.budget is not None,
    )  # fmt: skip
