"""From priced rows to a plan: goals held against them, storage for those that may win, order, families, and what is missing."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from chipwise.catalog.offer import PURCHASES, iso_day
from chipwise.money.cost import Cost, Line
from chipwise.money.storage import StorageChoice, Tiers
from chipwise.perf.arrays import Array
from chipwise.perf.part import Part
from chipwise.planner.fleet import Fleet, Index
from chipwise.planner.limits import Mask, Refused, Rules, offer_title
from chipwise.planner.pricing import Priced
from chipwise.planner.quotas import QuotaCheck, above, quota_checks
from chipwise.planner.ranking import Values, first_of, front, order, score
from chipwise.planner.reasons import Beaten, MissesDeadline, MissesThroughput, NotOffered, OverBudget, Reason
from chipwise.planner.remedies import Ease
from chipwise.planner.values.plan import Choice, Counts, Feeding, Grounds, Loss, Missing, Obstacle, Plan, QuantumPart, Rows
from chipwise.planner.values.split import Split
from chipwise.text import number
from chipwise.text import price as exact_price
from chipwise.units import DAY, HOUR, MONTH, YEAR

NO_RULES = Rules()
REFINED = 200  # rows that get their storage chosen at first; more follow while a row without it may be shown


@dataclass(frozen=True, slots=True)
class Described:
    """What a way of running adds to a choice, by its row."""

    precision: str
    split: Split
    memory_share: float | None
    provenance: str
    rate: float | None = None
    replicas: int | None = None
    lines: tuple[Line, ...] = ()  # bought besides machines; they sum to the row's `beside_usd`
    latency: Mapping[str, float] | None = None  # seconds at the asked load
    rate_spread: float = 1.0
    quantum: QuantumPart | None = None


@dataclass(frozen=True, slots=True)
class Goals:
    """What every choice must keep, and what to make small."""

    objective: str = "cost"
    deadline_s: float | None = None
    budget_usd: float | None = None  # of the job, of a month, or of a period of `budget_s`
    budget_s: float = math.inf
    throughput: float | None = None  # items a second on average, from start to end
    items: float = 0.0  # of the job
    item: str = "item"
    rules: Rules = NO_RULES  # quotas are held against candidates here, offers were before

    def spent(self, usd: Array, seconds: Array) -> Array:
        """In the dearest period: the cost is spread evenly over the time from start to end, and a job shorter than the period
        pays all of it in one. A commitment that outlasts the job is charged to the job's own time, which errs on the dear
        side."""
        return np.asarray(usd * np.minimum(self.budget_s / np.maximum(seconds, 1e-9), 1.0))

    def affords(self, usd: Array, seconds: Array) -> Mask:
        fine: Mask = self.spent(usd, seconds) <= (math.inf if self.budget_usd is None else self.budget_usd)
        return fine

    @property
    def period(self) -> str:
        names = {HOUR: " an hour", DAY: " a day", MONTH: " a month", YEAR: " a year"}
        return names.get(self.budget_s, "")


@dataclass(frozen=True, slots=True)
class Stored:
    """The data that must be fed, if there is any."""

    tiers: Tiers
    size_bytes: float
    bytes_per_unit: float  # of the data per unit of work
    passes: float
    files: float | None


@dataclass(frozen=True, slots=True)
class PlanningCase:
    """What all choices of a plan have in common."""

    workload: str
    kind: str
    per: str
    units: float  # of work in a job or month
    unit: str
    goals: Goals
    stored: Stored | None = None
    layered: Callable[[Rows], Array] | None = None  # USD by row over the load's curve, which a budget is held against
    room: Array | None = None  # by way: what its machines can take, such as requests a second


def family_of(part: Part) -> str:
    names = {
        "tpu": "Google TPU",
        "neuron": f"AWS {part.name.rstrip('0123456789')}",
        "gaudi": "Intel Gaudi",
        "cpu": "CPU",
        "fpga": "FPGA",
        "edge": f"edge {part.name.split('-')[0]}",
    }
    return names.get(part.kind) or f"{part.vendor} {part.architecture}"


def assemble(
    case: PlanningCase,
    fleet: Fleet,
    priced: Priced,
    describe: Callable[[int], Described],
    refused: Sequence[Refused],
    missing: Sequence[Missing],
    counts: Counts,
    top: int,
    unable: Mapping[str, Reason] | None = None,
    grounds: Grounds | None = None,
) -> Plan:
    """`describe` tells of a row of `way`; `missing` what kept ways out before there was a price, `unable` why whole families
    have no way at all."""
    maker = _Maker(case=case, fleet=fleet, priced=priced, describe=describe, grounds=grounds or Grounds(case.goals.rules))
    if case.layered is not None and case.goals.budget_usd is not None and len(priced):
        maker.layered = case.layered(maker.rows(np.arange(len(priced)), len(priced)))
    fine, late = _feasible(case, fleet, priced, maker.layered)
    values = Values(
        usd=priced.usd,
        seconds=priced.seconds,
        kg=priced.kg,
        doubt=priced.high_s / np.maximum(priced.low_s, 1e-9),
        machines=priced.machines,
        room=np.zeros(len(priced)) if case.room is None else case.room[priced.way],
    )
    ranked = order(values, case.goals.objective)
    good, rest = ranked[fine[ranked]], ranked[~fine[ranked]]
    if case.stored is not None and len(good):
        good, dear = maker.stored(good, values, top)
        rest = np.concatenate([dear, rest])
        late = late if len(good) else maker.too_dear(dear, values)
    top_rows, optimal = _distinct(priced, good)[: max(top, 1)], good[front(_rows(values, good))]
    if case.stored is not None and len(good):  # storage may make one of them dearer than another, or than the budget
        optimal = np.array(sorted({*optimal.tolist(), int(good[0])}), dtype=np.intp)
        total = maker.in_all(optimal, values)
        optimal = optimal[case.goals.affords(total.usd, total.seconds)]
        optimal = optimal[front(maker.in_all(optimal, values))]
    families = fleet.shape_of[priced.machine]
    labels = [family_of(fleet.part(at)) for at in range(len(fleet.shapes))]
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
                _verdict(case, fleet, choice) or beaten(choices[0], choice, case.goals.objective, case.per),
            )
            for choice in best
            if choice.family != own
        ]
    seen = {one.family for one in best}
    reasons = unable or {}
    losses += [Loss(name, None, reasons.get(name, NotOffered())) for name in codes if name not in seen]
    chosen = [maker.choice(at) for at in optimal.tolist()]
    return Plan(
        workload=case.workload,
        kind=case.kind,
        objective=case.goals.objective,
        per=case.per,
        choices=tuple(choices),
        front=tuple(chosen),
        losses=tuple(losses),
        refused=tuple(refused),
        missing=tuple(missing) if choices else (*missing, *late),
        counts=counts,
        rows=maker.rows(np.concatenate([good, rest]), len(good)),
    )


@dataclass(frozen=True)
class _Test:
    """A goal against all rows: what each comes to, what is allowed, and by how much a row misses it."""

    obstacle: Obstacle
    value: Array
    limit: float
    miss: Callable[[int], Reason]

    @property
    def fine(self) -> Mask:
        found: Mask = self.value <= self.limit
        return found


def _tests(case: PlanningCase, fleet: Fleet, priced: Priced, layered: Array | None) -> list[_Test]:
    goals, seconds = case.goals, priced.seconds
    tests = []
    if (deadline := goals.deadline_s) is not None:

        def late(at: int) -> Reason:
            return MissesDeadline(float(seconds[at]), deadline)

        tests.append(_Test(Obstacle.DEADLINE, seconds, deadline, late))
    if (rate := goals.throughput) is not None:

        def slow(at: int) -> Reason:
            return MissesThroughput(goals.items / float(seconds[at]), rate, goals.item)

        tests.append(_Test(Obstacle.THROUGHPUT, seconds, goals.items / rate, slow))
    if (budget := goals.budget_usd) is not None:
        spent = goals.spent(priced.usd, seconds) if layered is None else layered

        def dear(at: int) -> Reason:
            return OverBudget(float(spent[at]), budget, goals.period, layered=layered is not None)

        tests.append(_Test(Obstacle.BUDGET, spent, budget, dear))
    for quota in quota_checks(fleet, priced, goals.rules):

        def above(at: int, quota: QuotaCheck = quota) -> Reason:
            return quota.miss(float(quota.needed[at]))

        tests.append(_Test(Obstacle.QUOTA, quota.needed, quota.maximum, above))
    return tests


def _feasible(case: PlanningCase, fleet: Fleet, priced: Priced, layered: Array | None) -> tuple[Mask, tuple[Missing, ...]]:
    """Rows that keep everything; and, should there be none, the smallest changes after which there would be one.

    A change of one goal alone comes first: of the rows that keep all others, the one nearest to it. Where no single change
    helps, the row that is least off, by the product of its excesses, tells all that it misses.
    """
    tests = _tests(case, fleet, priced, layered)
    masks = [one.fine for one in tests]
    fine = np.logical_and.reduce([np.ones(len(priced), dtype=bool), *masks])
    if fine.any() or not len(priced):
        return fine, ()
    misses = np.sum([~mask for mask in masks], axis=0)

    def missing(test: _Test, index: int, together: bool = False) -> Missing:
        return Missing(
            what=test.obstacle,
            reason=test.miss(index),
            remedies=(Ease(),),
            nearest=_label(fleet, priced, index),
            together=together,
        )

    alone = []
    for test, mask in zip(tests, masks, strict=True):
        rows = np.flatnonzero(~mask & (misses == 1))
        if len(rows):
            alone.append(missing(test, int(rows[np.argmin(test.value[rows])])))
    if alone:
        return fine, tuple(alone)
    excess = np.sum([np.log(np.maximum(one.value / max(one.limit, 0.5), 1.0)) for one in tests], axis=0)
    row = int(np.argmin(excess))
    missed = [test for test, mask in zip(tests, masks, strict=True) if not mask[row]]
    return fine, tuple(missing(test, row, together=True) for test in missed)


def _label(fleet: Fleet, priced: Priced, at: int) -> str:
    many = f"{priced.machines[at]:g} x " if priced.machines[at] > 1 else ""
    return f"{many}{offer_title(fleet.catalog, int(priced.offer[at]))}"


def _verdict(case: PlanningCase, fleet: Fleet, choice: Choice) -> Reason | None:
    """The first goal or quota that a choice misses; None: it keeps all."""
    goals = case.goals
    if goals.deadline_s is not None and choice.seconds > goals.deadline_s:
        return MissesDeadline(choice.seconds, goals.deadline_s)
    if goals.throughput is not None and choice.seconds > goals.items / goals.throughput:
        return MissesThroughput(goals.items / max(choice.seconds, 1e-9), goals.throughput, goals.item)
    spent = choice.layered_usd
    if spent is None:
        spent = float(goals.spent(np.array(choice.usd), np.array(choice.seconds)))
    if goals.budget_usd is not None and spent > goals.budget_usd:
        return OverBudget(spent, goals.budget_usd, goals.period, layered=choice.layered_usd is not None)
    return above(fleet, choice, goals.rules)


def beaten(winner: Choice, loser: Choice, objective: str, per: str) -> Beaten:
    return Beaten(
        objective=objective,
        per=per,
        usd=loser.usd,
        best_usd=winner.usd,
        seconds=loser.seconds,
        best_s=winner.seconds,
        kg=loser.kg,
        best_kg=winner.kg,
    )


def _device(told: Described) -> str:
    return told.quantum.device if told.quantum is not None else ""


def _feeding(storage: StorageChoice) -> Feeding:
    return Feeding(
        workers=storage.workers,
        prefetch=storage.prefetch,
        compression=storage.compression,
        resident=storage.resident,
        keeps_up=storage.feeds,
        why=storage.why,
    )


def _distinct(priced: Priced, ranked: Index) -> list[int]:
    """The best row of every machine type and purchase option at most: the same machine in thirty regions is one answer."""
    key = priced.machine[ranked] * len(PURCHASES) + priced.purchase[ranked]
    _, first = np.unique(key, return_index=True)
    return [int(at) for at in ranked[np.sort(first)]]


def _rows(values: Values, selected: Index) -> Values:
    return Values(
        usd=values.usd[selected],
        seconds=values.seconds[selected],
        kg=values.kg[selected],
        doubt=values.doubt[selected],
        machines=values.machines[selected],
        room=values.room[selected],
    )


class _Maker:
    """Makes choices of rows, each once."""

    def __init__(
        self, case: PlanningCase, fleet: Fleet, priced: Priced, describe: Callable[[int], Described], grounds: Grounds
    ) -> None:
        self.case, self.fleet, self.priced, self.describe, self.grounds = case, fleet, priced, describe, grounds
        self.kept: dict[int, StorageChoice] = {}
        self.storage_usd: Array = np.full(len(priced), np.nan)  # of `kept`, as far as rows were compared by it
        self.tails: dict[int, float] = {}
        self.layered: Array | None = None  # USD by row, where a budget is held against the load's curve

    def rows(self, ranked: Index, good_count: int) -> Rows:
        case, way = self.case, self.priced.way
        return Rows(
            fleet=self.fleet,
            priced=self.priced,
            ranked=ranked,
            kept=good_count,
            units=case.units,
            choice=self.choice,
            verdict=partial(_verdict, case, self.fleet),
            precision=lambda at: self.describe(int(way[at])).precision,
            quantum=lambda at: _device(self.describe(int(way[at]))),
            storage_usd=self.storage_of if case.stored is not None else None,
            grounds=self.grounds,
        )

    def foresee(self, rows: Index) -> None:
        """How bad one run in ten is, for many rows at once."""
        picked = np.array(sorted(set(rows.tolist())), dtype=np.intp)
        self.tails.update(zip(picked.tolist(), self.priced.tails.of(picked).tolist(), strict=True))

    def _tail(self, row: int) -> float:
        if row not in self.tails:
            self.foresee(np.array([row]))
        return self.tails[row]

    def stored(self, ranked: Index, values: Values, top: int) -> tuple[Index, Index]:
        """With storage reckoned for the best rows, until none behind them can pass those shown; and what it makes too dear."""
        objective, end = self.case.goals.objective, REFINED
        bare, shown = score(_rows(values, ranked), objective), min(max(top, 1), len(_distinct(self.priced, ranked)))
        while True:
            head = ranked[:end]
            total = self.in_all(head, values)
            fine = self.case.goals.affords(total.usd, total.seconds)
            inside = np.flatnonzero(fine)
            best = head[inside[order(_rows(total, inside), objective)]]
            if end >= len(ranked):
                return best, head[~fine]
            leading = np.array(_distinct(self.priced, best)[:shown], dtype=np.intp)
            if len(leading) == shown and bare[end] >= score(self.in_all(leading, values), objective).max():
                return np.concatenate([best, ranked[end:]]), head[~fine]
            end *= 2

    def too_dear(self, rows: Index, values: Values) -> tuple[Missing, ...]:
        """What all rows miss that only their storage puts above the budget."""
        goals, total = self.case.goals, self.in_all(rows, values)
        spent = goals.spent(total.usd, total.seconds)
        row, lowest = int(rows[np.argmin(spent)]), float(spent.min())
        reason = OverBudget(lowest, goals.budget_usd or 0.0, goals.period, stored=True)
        return (Missing(Obstacle.BUDGET, reason, (Ease(),), _label(self.fleet, self.priced, row)),)

    def in_all(self, rows: Index, values: Values) -> Values:
        """What rows are compared by, with storage."""
        for row in rows[np.isnan(self.storage_usd[rows])].tolist():
            self.storage_usd[row] = self.storage_of(row)
        picked = _rows(values, rows)
        return replace(picked, usd=picked.usd + self.storage_usd[rows])

    def storage_of(self, row: int) -> float:
        if row in self.kept:
            return self.kept[row].usd
        stored = self.case.stored
        assert stored is not None
        machine = self.fleet.catalog.machines[self.priced.machine[row]]
        region = self.fleet.catalog.regions[self.priced.region[row]]
        hours = float(self.priced.seconds[row]) / 3600.0
        needed = stored.bytes_per_unit * self.case.units / max(float(self.priced.seconds[row]), 1.0)
        storage = stored.tiers.choose(
            machine.provider,
            region.name,
            stored.size_bytes,
            needed,
            int(self.priced.machines[row]),
            hours,
            machine.disk_bytes,
            machine.memory_bytes,
            stored.passes,
            stored.size_bytes / stored.files if stored.files else None,
        )
        self.kept[row] = storage
        return storage.usd

    def choice(self, row: int) -> Choice:
        priced, catalog = self.priced, self.fleet.catalog
        machine, region = catalog.machines[priced.machine[row]], catalog.regions[priced.region[row]]
        shape = self.fleet.shapes[self.fleet.shape_of[priced.machine[row]]]
        hourly, count = catalog.offers.price[priced.offer[row]], int(priced.machines[row])
        if self.case.stored is not None and row not in self.kept:
            self.storage_of(row)
        storage = self.kept.get(row)
        compute = float(priced.compute_usd[row])
        hours = number(compute / max(hourly * count, 1e-9), 4)
        formula = f"{hours} h x {count} x {exact_price(hourly)}/h"
        described = self.describe(int(priced.way[row]))
        cost = Cost.of(
            (
                Line("compute", compute, formula),
                Line("restarts", float(priced.restart_usd[row]), f"{priced.interruptions[row]:.1f} interruptions expected"),
                Line("transfer", float(priced.transfer_usd[row])),
                *(storage.lines if storage else ()),
                *described.lines,
            )
        )
        choice = Choice(
            provider=machine.provider,
            machine=machine.name,
            region=region.name,
            country=region.country,
            chip=shape.part,
            family=family_of(self.fleet.parts[shape.part]),
            chips=shape.chips,
            machines=count,
            purchase=str(PURCHASES[priced.purchase[row]]),
            precision=described.precision,
            split=described.split,
            seconds=float(priced.seconds[row]),
            low_s=float(priced.low_s[row]),
            high_s=float(priced.high_s[row]),
            p90_s=self._tail(row),
            cost=cost,
            usd_per_unit=cost.usd / max(self.case.units, 1e-9),
            unit=self.case.unit,
            kg=float(priced.kg[row]),
            rate=described.rate,
            replicas=described.replicas,
            memory_share=described.memory_share,
            provenance=described.provenance,
            price_of=iso_day(catalog.offers.as_of[priced.offer[row]]),
            interruptions=float(priced.interruptions[row]),
            checkpoint_s=float(priced.checkpoint_s[row]),
            storage=storage.tier if storage else "",
            feeding=_feeding(storage) if storage else None,
            latency=described.latency or {},
            rate_spread=described.rate_spread,
            watts=float(priced.power_w[row]),
            watts_stated=self.fleet.parts[shape.part].power_stated,
            quantum=described.quantum,
            layered_usd=None if self.layered is None else float(self.layered[row]),
            catalog_chip=shape.chip,
        )
        return replace(choice, rate=None if choice.rate is None else choice.rate * (choice.replicas or 1))
