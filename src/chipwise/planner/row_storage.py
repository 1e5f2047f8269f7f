"""Storage of priced rows: chosen for the rows that may be shown, and what rows cost with it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from chipwise.catalog.offer import PURCHASES
from chipwise.money.storage import StorageChoice
from chipwise.perf.arrays import Array
from chipwise.planner.case import PlanningCase
from chipwise.planner.fleet import Fleet, Index
from chipwise.planner.pricing import Priced
from chipwise.planner.ranking import Values, order, score
from chipwise.planner.reasons.goals import OverBudget
from chipwise.planner.remedies import Ease
from chipwise.planner.values.plan import Missing, Obstacle
from chipwise.planner.why_lost import row_title
from chipwise.units import HOUR

REFINED = 200  # rows that get their storage chosen at first; more follow while a row without it may be shown


def distinct(priced: Priced, ranked: Index) -> list[int]:
    """The best row of every machine type and purchase option at most: the same machine in thirty regions is one answer."""
    key = priced.machine[ranked] * len(PURCHASES) + priced.purchase[ranked]
    _, first = np.unique(key, return_index=True)
    return [int(at) for at in ranked[np.sort(first)]]


class RowStorage:
    """Chooses storage of rows, each once."""

    def __init__(self, case: PlanningCase, fleet: Fleet, priced: Priced, extra: Array) -> None:
        """`extra`: USD by row that a budget must hold besides, as surely as was asked."""
        self.case, self.fleet, self.priced, self.extra = case, fleet, priced, extra
        self.kept: dict[int, StorageChoice] = {}
        self.storage_usd: Array = np.full(len(priced), np.nan)  # of `kept`, as far as rows were compared by it

    def of(self, row: int) -> StorageChoice | None:
        """None: nothing is stored."""
        if self.case.stored is not None:
            self.usd_of(row)
        return self.kept.get(row)

    def ranked(self, ranked: Index, values: Values, top: int) -> tuple[Index, Index]:
        """With storage reckoned for the best rows, until none behind them can pass those shown; and what it makes too dear."""
        objective, end = self.case.goals.objective, REFINED
        bare, shown = score(values.rows(ranked), objective), min(max(top, 1), len(distinct(self.priced, ranked)))
        while True:
            head = ranked[:end]
            total = self.in_all(head, values)
            fine = self.case.goals.affords(total.usd + self.extra[head], total.seconds)
            inside = np.flatnonzero(fine)
            best = head[inside[order(total.rows(inside), objective)]]
            if end >= len(ranked):
                return best, head[~fine]
            leading = np.array(distinct(self.priced, best)[:shown], dtype=np.intp)
            if len(leading) == shown and bare[end] >= score(self.in_all(leading, values), objective).max():
                return np.concatenate([best, ranked[end:]]), head[~fine]
            end *= 2

    def too_dear(self, rows: Index, values: Values) -> tuple[Missing, ...]:
        """What all rows miss that only their storage puts above the budget."""
        goals, total = self.case.goals, self.in_all(rows, values)
        spent = goals.spent(total.usd + self.extra[rows], total.seconds)
        row, lowest = int(rows[np.argmin(spent)]), float(spent.min())
        reason = OverBudget(lowest, goals.budget_usd or 0.0, goals.period, stored=True, confidence=goals.stated_confidence)
        return (Missing(Obstacle.BUDGET, reason, (Ease(),), row_title(self.fleet, self.priced, row)),)

    def in_all(self, rows: Index, values: Values) -> Values:
        """What rows are compared by, with storage."""
        for row in rows[np.isnan(self.storage_usd[rows])].tolist():
            self.storage_usd[row] = self.usd_of(row)
        picked = values.rows(rows)
        return replace(picked, usd=picked.usd + self.storage_usd[rows])

    def usd_of(self, row: int) -> float:
        if row in self.kept:
            return self.kept[row].usd
        stored = self.case.stored
        assert stored is not None
        machine = self.fleet.catalog.machines[self.priced.machine[row]]
        region = self.fleet.catalog.regions[self.priced.region[row]]
        seconds = float(self.priced.seconds[row] - self.priced.tails.first_wait_s[row])  # nothing is stored before it starts
        needed = stored.bytes_per_unit * self.case.units / max(seconds, 1.0)
        storage = stored.tiers.choose(
            machine.provider,
            region.name,
            stored.size_bytes,
            needed,
            int(self.priced.machines[row]),
            seconds / HOUR,
            machine.disk_bytes,
            machine.memory_bytes,
            stored.passes,
            stored.size_bytes / stored.files if stored.files else None,
            in_place=self._in_place(row),
        )
        self.kept[row] = storage
        return storage.usd

    def _in_place(self, row: int) -> bool:
        """Whether the data lies there already: its place is stated, and bringing it takes no time."""
        data = self.case.data
        return data is not None and bool(data.place) and float(self.priced.tails.moved[row]) == 0.0
