"""The machines of a plan's rows as what carries a load over time: what one of them does, and every way to pay for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from chipwise.catalog.machine import Machine
from chipwise.catalog.offer import PURCHASES, Purchase
from chipwise.catalog.region import Region
from chipwise.money.commitment import Commitments
from chipwise.money.layering import Option
from chipwise.planner.fleet import Index
from chipwise.planner.limits import COMMITTED_YEARS, Mask
from chipwise.planner.load.curve import Answering, Base, LoadCurve, MachineKind
from chipwise.planner.load.starting import start_s
from chipwise.planner.pricing import PROMISED
from chipwise.planner.reasons.goals import OwnsFewer
from chipwise.planner.tails import BOOT_S
from chipwise.planner.values.choice import Choice
from chipwise.planner.values.load import AtLess
from chipwise.planner.values.plan import Rows
from chipwise.planner.values.split import Seats, Split, width
from chipwise.predictor.kinds.ask import Ask, known_model
from chipwise.workload.goals import Buying
from chipwise.workload.kinds import Interactive, Serve
from chipwise.workload.model.shape import DecoderShape

if TYPE_CHECKING:
    from chipwise.predictor.known import Known

MOST_REGIONS = 4  # of one machine type
_OWNED = PURCHASES.index(Purchase.OWNED)
_TERMS = {"1y": Purchase.RESERVED_1Y, "3y": Purchase.RESERVED_3Y}


def answering_of(choice: Choice, work: Serve | Interactive, curve: LoadCurve) -> Answering:
    replicas = choice.replicas or choice.machines
    per_replica = None if choice.planned is None else choice.planned / replicas
    return answering(work, curve, choice.split, choice.chips, choice.machines, replicas, per_replica, choice.at_less)


def answering(
    work: Serve | Interactive,
    curve: LoadCurve,
    split: Split,
    chips: int,
    machines: int,
    replicas: int,
    per_replica: float | None,
    at_less: AtLess = (),
) -> Answering:
    """Of `machines` with `chips` each; `per_replica`: what a replica answers with its headroom left free, None: not counted;
    `at_less`: the same at lower loads."""
    if isinstance(work, Interactive):
        inside = split.of_machine(chips) if isinstance(split, Seats) else chips
        return Answering(1.0, max(inside, 1), 1)
    counted = bool(per_replica) and curve.unit == "requests/s"
    rate = per_replica if per_replica and counted else curve.peak / replicas
    less = (*at_less, (curve.peak, rate)) if at_less and counted else ()
    by_replica = Answering(
        per_replica=rate, chips=chips, width=width(split), least_replicas=max(work.replicas.min or 1, 1), at_less=less
    )
    if int(by_replica.machines(np.array([rate * replicas]))[0]) == machines:
        return by_replica
    return Answering(rate * replicas / machines, 1, 1, at_less=tuple((load, one * replicas / machines) for load, one in less))


def starting_of(known: Known, work: Serve | Interactive, path: str) -> Callable[[str], float]:
    """By precision the seconds from ordering a machine until it answers, computed when first asked for."""

    @cache
    def starting_s(precision: str) -> float:
        if isinstance(work, Interactive):
            return BOOT_S
        shape = known_model(Ask(known, path, "", {}), work)[2]
        return start_s(float(shape.parameters), precision, isinstance(shape, DecoderShape))

    return starting_s


class Kinds:
    """Machines of a plan's rows as what a load can be carried by."""

    def __init__(self, known: Known, work: Serve | Interactive, rows: Rows, curve: LoadCurve, path: str) -> None:
        self.known, self.work, self.rows, self.curve, self.path = known, work, rows, curve, path
        self.made: dict[int, Choice] = {}
        self.by_way: dict[int, Choice] = {}
        self.starting_s = starting_of(known, work, path)
        catalog = rows.fleet.catalog
        self.commitments = catalog.derived("commitments", lambda: Commitments(catalog.rows("commitments")))
        allowed = work.limits.purchase
        self.longest_term = rows.grounds.rules.committed_years
        self.may_commit = self.longest_term > 0 and (not allowed or any(one.startswith(Buying.RESERVED) for one in allowed))

    def pairs(self, limit: int) -> tuple[list[int], list[int]]:
        """Rows of different machine and region, the cheapest first: rented ones, and owned ones. Of those that can be promised
        for a term as many again: a base of them may make the cheapest of what is dear by the hour."""
        priced, first = self.rows.priced, first_of_each(self.rows)
        own = priced.purchase[first] == _OWNED
        rented = self._spread(first[~own], limit)
        if self.may_commit and not self.curve.flat:
            promised = first_of_each(self.rows, PROMISED)
            places = {self._place(row) for row in rented}
            rented += [row for row in self._spread(promised, limit) if self._place(row) not in places]
        owned: list[int] = first[own].tolist()
        return rented, owned + self._too_few(owned)

    def _too_few(self, enough: list[int]) -> list[int]:
        """Own machines of which there are not enough for all of the load, and others may be rented above them."""
        priced, rest = self.rows.priced, self.rows.ranked[self.rows.kept :]
        found: list[int] = []
        places = {self._place(row) for row in enough}
        for row in rest[priced.purchase[rest] == _OWNED].tolist():
            if self._place(row) not in places and isinstance(self.rows.verdict(self.choice(row)), OwnsFewer):
                places.add(self._place(row))
                found.append(row)
        return found

    def _spread(self, first: Index, limit: int) -> list[int]:
        """The first of them, but of no machine type too many regions."""
        rented: list[int] = []
        seen: dict[int, int] = {}
        for row, machine in zip(first.tolist(), self.rows.priced.machine[first].tolist(), strict=True):
            if seen.get(machine, 0) < MOST_REGIONS:
                seen[machine] = seen.get(machine, 0) + 1
                rented.append(row)
            if len(rented) >= limit:
                break
        return rented

    def row_of(self, choice: Choice) -> int | None:
        """The best row of a choice's machine in its region; None: it keeps no goals."""
        catalog, first = self.rows.fleet.catalog, first_of_each(self.rows)
        machine = catalog.machine_index[choice.provider, choice.machine]
        region = catalog.region_index[choice.provider, choice.region]
        at = first[(self.rows.priced.machine[first] == machine) & (self.rows.priced.region[first] == region)]
        return int(at[0]) if at.size else None

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
        machine, region = self._placed(row)
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
            start_s=self.start_s(row),
        )

    def other_usd(self, row: int) -> float:
        """A month of what is paid beside the machines."""
        return float(self.rows.priced.transfer_usd[row] + self.rows.priced.beside_usd[row])

    def start_s(self, row: int) -> float:
        """From ordering a machine until it answers; 0 where machines never change."""
        if self.curve.flat and not self.curve.opens:
            return 0.0
        return self.starting_s(self.rows.precision(row))

    def base(self, row: int) -> Base:
        machine, region = self._placed(row)
        price = float(self.rows.priced.hourly[row])
        return Base(
            f"{machine.provider} {machine.name} in {region.name}", self.answering(row), price, machine.owned_in(region.name)
        )

    def _place(self, row: int) -> tuple[int, int]:
        return int(self.rows.priced.machine[row]), int(self.rows.priced.region[row])

    def _placed(self, row: int) -> tuple[Machine, Region]:
        catalog, (machine, region) = self.rows.fleet.catalog, self._place(row)
        return catalog.machines[machine], catalog.regions[region]

    def _options(self, index: int) -> Iterable[Option]:
        """Every way to pay for this machine here: as offered, and by promises of the table of commitments."""
        priced = self.rows.priced
        rows = np.flatnonzero(
            (priced.way == priced.way[index])
            & (priced.machine == priced.machine[index])
            & (priced.region == priced.region[index])
        )
        prices: dict[Purchase, float] = {}
        for row in rows.tolist():
            purchase = PURCHASES[priced.purchase[row]]
            price = float(priced.prices.counted[priced.offer[row]])
            if purchase is Purchase.SPOT:  # with the work that is lost when it is taken away
                price *= 1.0 + float(priced.restart_usd[row]) / max(float(priced.compute_usd[row]), 1e-12)
            prices[purchase] = min(price, prices.get(purchase, np.inf))
        for purchase, price in prices.items():
            years = COMMITTED_YEARS.get(purchase, 0.0)
            yield Option(str(purchase), price, committed=years > 0 or purchase is Purchase.OWNED, term_years=years)
        if (hourly := prices.get(Purchase.ON_DEMAND)) is not None and self.may_commit:
            machine, region = self._placed(index)
            for commitment in self.commitments.of(machine.provider, machine.name, region.name, hourly, machine.chips):
                listed = prices.get(_TERMS.get(commitment.term, Purchase.ON_DEMAND), np.inf)
                same_price = abs(commitment.usd_per_hour / listed - 1.0) < 0.01  # the offer says it already
                allowed = 0 < (commitment.term_years or 0.0) <= self.longest_term
                if commitment.certain and not commitment.bound and allowed and not same_price:
                    yield Option(
                        f"{commitment.instrument} {commitment.term}, {commitment.payment}",
                        commitment.usd_per_hour,
                        committed=True,
                        term_years=commitment.term_years or 0.0,
                    )


def first_of_each(rows: Rows, purchases: Mask | None = None) -> Index:
    """The best row of every machine and region, the cheapest first; of some ways to buy, where they are given."""
    priced, ranked = rows.priced, rows.eligible
    if purchases is not None:
        ranked = ranked[purchases[priced.purchase[ranked]]]
    key = priced.machine[ranked] * len(rows.fleet.catalog.regions) + priced.region[ranked]
    first: Index = ranked[np.sort(np.unique(key, return_index=True)[1])]
    return first
