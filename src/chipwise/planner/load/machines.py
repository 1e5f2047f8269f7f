"""The machines of a plan's rows as what carries a load over time: what one of them does, and every way to pay for it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from chipwise.catalog.machine import Machine
from chipwise.catalog.offer import PURCHASES, Purchase
from chipwise.catalog.region import Region
from chipwise.money.commitment import Commitments
from chipwise.money.layering import Option
from chipwise.planner.fleet import Index
from chipwise.planner.load.curve import Answering, Base, LoadCurve, MachineKind
from chipwise.planner.pricing import COMMITTED_H
from chipwise.planner.values.plan import Choice, Rows
from chipwise.planner.values.split import Seats, width
from chipwise.workload.goals import Buying
from chipwise.workload.kinds import Interactive, Serve

if TYPE_CHECKING:
    from chipwise.predictor.known import Known

MOST_REGIONS = 4  # of one machine type
_OWNED = PURCHASES.index(Purchase.OWNED)
_TERMS = {"1y": Purchase.RESERVED_1Y, "3y": Purchase.RESERVED_3Y}


def answering_of(choice: Choice, work: Serve | Interactive, curve: LoadCurve) -> Answering:
    if isinstance(work, Interactive):
        inside = choice.split.of_machine(choice.chips) if isinstance(choice.split, Seats) else choice.chips
        return Answering(1.0, max(inside, 1), 1)
    replicas = choice.replicas or choice.machines
    rate = (choice.rate or curve.peak) / replicas if curve.unit == "requests/s" else curve.peak / replicas
    fewest = max(work.replicas.min or 1, 1)
    answering = Answering(rate, choice.chips, width(choice.split), fewest)
    if int(answering.machines(np.array([rate * replicas]))[0]) == choice.machines:
        return answering
    return Answering(rate * replicas / choice.machines, 1, 1)


class Kinds:
    """Machines of a plan's rows as what a load can be carried by."""

    def __init__(
        self, known: Known, work: Serve | Interactive, rows: Rows, curve: LoadCurve, span_s: float | None = None
    ) -> None:
        self.known, self.work, self.rows, self.curve, self.span_s = known, work, rows, curve, span_s
        self.made: dict[int, Choice] = {}
        self.by_way: dict[int, Choice] = {}
        catalog = rows.fleet.catalog
        self.commitments = catalog.derived("commitments", lambda: Commitments(catalog.rows("commitments")))
        allowed = work.limits.purchase
        self.may_commit = not allowed or any(one.startswith(Buying.RESERVED) for one in allowed)

    def pairs(self, limit: int) -> tuple[list[int], list[int]]:
        """Rows of different machine and region, the cheapest first: rented ones, and owned ones."""
        priced, first = self.rows.priced, first_of_each(self.rows)
        own = priced.purchase[first] == _OWNED
        rented: list[int] = []
        seen: dict[int, int] = {}
        for row, machine in zip(first[~own].tolist(), priced.machine[first[~own]].tolist(), strict=True):
            if seen.get(machine, 0) < MOST_REGIONS:
                seen[machine] = seen.get(machine, 0) + 1
                rented.append(row)
            if len(rented) >= limit:
                break
        owned: list[int] = first[own].tolist()
        return rented, owned

    def choice(self, row: int) -> Choice:
        if row not in self.made:
            self.made[row] = self.rows.choice(row)
        return self.made[row]

    def answering(self, row: int) -> Answering:
        priced = self.rows.priced
        machines = int(priced.machines[row])
        if self.curve.flat:  # machines never change, and the row says how many: no need to look closer
            return Answering(self.curve.peak / machines, 1, 1)
        return self.close(row)

    def close(self, row: int) -> Answering:
        """What one machine can do, not only that so many are enough."""
        priced = self.rows.priced
        way = int(priced.way[row])
        if way not in self.by_way:  # rows of one way differ in place and price only
            self.by_way[way] = self.choice(row)
        return answering_of(self.by_way[way], self.work, self.curve)

    def kind(self, row: int) -> MachineKind | None:
        machine, region = self._place(row)
        options = tuple(self._options(row))
        if not options:
            return None
        return MachineKind(
            provider=machine.provider,
            machine=machine.name,
            region=region.name,
            chip=machine.chip or "",
            answering=self.answering(row),
            options=options,
        )

    def base(self, row: int) -> Base:
        machine, region = self._place(row)
        price = self.rows.fleet.catalog.offers.price[self.rows.priced.offer[row]]
        return Base(f"{machine.provider} {machine.name} in {region.name}", self.answering(row), price)

    def _place(self, row: int) -> tuple[Machine, Region]:
        catalog, priced = self.rows.fleet.catalog, self.rows.priced
        return catalog.machines[priced.machine[row]], catalog.regions[priced.region[row]]

    def _options(self, index: int) -> Iterable[Option]:
        """Every way to pay for this machine here: as offered, and by promises of the table of commitments."""
        priced, catalog = self.rows.priced, self.rows.fleet.catalog
        rows = np.flatnonzero(
            (priced.way == priced.way[index])
            & (priced.machine == priced.machine[index])
            & (priced.region == priced.region[index])
        )
        prices: dict[Purchase, float] = {}
        for row in rows.tolist():
            purchase = PURCHASES[priced.purchase[row]]
            price = catalog.offers.price[priced.offer[row]]
            if purchase is Purchase.SPOT:  # with the work that is lost when it is taken away
                price *= 1.0 + float(priced.restart_usd[row]) / max(float(priced.compute_usd[row]), 1e-12)
            prices[purchase] = min(price, prices.get(purchase, np.inf))
        for purchase, price in prices.items():
            yield Option(str(purchase), price, committed=purchase in COMMITTED_H or purchase is Purchase.OWNED)
        if (hourly := prices.get(Purchase.ON_DEMAND)) is not None and self.may_commit:
            machine, region = self._place(index)
            for commitment in self.commitments.of(machine.provider, machine.name, region.name, hourly, machine.chips):
                listed = prices.get(_TERMS.get(commitment.term, Purchase.ON_DEMAND), np.inf)
                same_price = abs(commitment.usd_per_hour / listed - 1.0) < 0.01  # the offer says it already
                if commitment.certain and not commitment.bound and commitment.term_years and not same_price:
                    yield Option(
                        f"{commitment.instrument} {commitment.term}, {commitment.payment}",
                        commitment.usd_per_hour,
                        committed=True,
                    )


def first_of_each(rows: Rows) -> Index:
    """The best row of every machine and region, the cheapest first."""
    priced, ranked = rows.priced, rows.ranked[: rows.kept]
    key = priced.machine[ranked] * len(rows.fleet.catalog.regions) + priced.region[ranked]
    first: Index = ranked[np.sort(np.unique(key, return_index=True)[1])]
    return first
