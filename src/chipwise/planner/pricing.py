"""Every way to run a job joined to every offer of its shape: what it costs, how long it takes, what it emits.

Columns, one row per offer, number of machines and precision. Compute, restarts and transfer are reckoned for all rows;
storage is chosen for those that may win (`assemble.py`), since it only adds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from chipwise.catalog.offer import PURCHASES, Purchase
from chipwise.money import spot
from chipwise.money.carbon import Grids
from chipwise.money.interruption import Rates
from chipwise.money.transfer import Gravity
from chipwise.perf.arrays import Array
from chipwise.planner.fleet import Fleet, Index
from chipwise.planner.limits import Mask
from chipwise.units import HOUR, MONTH, YEAR

BOOT_S = 240.0  # from asking for a machine to the first step: boot, image, framework
WAIT_S = 600.0  # until a spot machine is had again, where nothing is known
HOPELESS = 1000.0  # a run that takes so many times its work, and an hour, ends by luck alone
COMMITTED_H = {
    Purchase.RESERVED_1Y: YEAR / HOUR,
    Purchase.RESERVED_3Y: 3 * YEAR / HOUR,
    Purchase.RESERVED_1Y_UPFRONT: YEAR / HOUR,
}


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What is saved, and how fast: it decides how much an interruption costs."""

    bytes: float
    save_bytes_per_s: float = 2e9  # of one machine, to an object store or a shared disk
    every_s: float | None = None  # None: the best by Daly

    def save_s(self, machines: Array) -> Array:
        return self.bytes / (self.save_bytes_per_s * machines)


@dataclass(frozen=True)
class Priced:
    """Rows of candidates. `way` and `offer` say which; times in seconds, money in USD for the whole job."""

    way: Index
    offer: Index
    machine: Index
    region: Index
    purchase: Index
    machines: Array
    seconds: Array  # expected from start to end, restarts and transfer included
    tails: Tails  # as bad as one in ten
    low_s: Array
    high_s: Array
    compute_usd: Array
    restart_usd: Array
    transfer_usd: Array
    kg: Array
    interruptions: Array
    checkpoint_s: Array  # between checkpoints; 0 where nothing is interrupted
    beside_usd: Array  # what is bought besides machines, such as tasks of a quantum processor
    power_w: Array  # of all machines of a row while they work

    def __len__(self) -> int:
        return len(self.way)

    @cached_property
    def usd(self) -> Array:
        return self.compute_usd + self.restart_usd + self.transfer_usd + self.beside_usd


@dataclass(frozen=True, slots=True)
class Work:
    """Ways to run a job, one row per shape, number of machines and precision: what `pricing` needs of them."""

    shape: Index
    machines: Array
    seconds: Array
    low: Array
    high: Array
    power_w: Array
    apart: Mask | bool = False  # machines work each for itself: several need no network, and one lost stops no other
    beside_usd: Array | None = None  # bought besides machines
    monthly: bool = False  # a month of something that goes on: a commitment is paid for the whole month


@dataclass(frozen=True, slots=True)
class Market:
    """What things cost and how they fail, beside the offers themselves."""

    fleet: Fleet
    rates: Rates
    gravity: Gravity
    grids: Grids


def price(
    work: Work, offers: Index, market: Market, checkpoint: Checkpoint | None, place: str | None, size_bytes: float
) -> Priced:
    """`checkpoint` None: interrupted work starts anew with what was not finished (requests, documents)."""
    fleet = market.fleet
    catalog = fleet.catalog
    machine = np.frombuffer(catalog.offers.machine, dtype=np.int32)[offers].astype(np.intp)
    way, position = _joined(work, fleet.shape_of[machine])
    machines = work.machines[way]
    apart = np.broadcast_to(work.apart, work.machines.shape)[way]
    fine = np.isfinite(work.seconds[way]) & (apart | (machines <= fleet.reach[machine[position]]))
    way, position, machines, apart = way[fine], position[fine], machines[fine], apart[fine]
    offer, machine = offers[position], machine[position]
    region = np.frombuffer(catalog.offers.region, dtype=np.int32)[offer].astype(np.intp)
    purchase = np.frombuffer(catalog.offers.purchase, dtype=np.int8)[offer].astype(np.intp)
    work_s = work.seconds[way]
    is_spot = purchase == PURCHASES.index(Purchase.SPOT)
    risk = _risk(market, work_s, machines, machine, region, is_spot, apart, checkpoint)
    run = risk.mean()
    ends = run.expected_s <= HOPELESS * (work_s + HOUR)
    if not ends.all():  # expected times that are endless, or as good as: no candidates
        way, offer, machine, region, purchase = (column[ends] for column in (way, offer, machine, region, purchase))
        machines, work_s, is_spot, risk, run = machines[ends], work_s[ends], is_spot[ends], risk.only(ends), run.only(ends)
    hourly = np.frombuffer(catalog.offers.price, dtype=np.float64)[offer]
    moved_usd, moved_h = _moved(market, region, place, size_bytes)
    boot_s = 0.0 if work.monthly else BOOT_S  # what goes on has started before the month
    expected = np.where(is_spot, run.expected_s, work_s) + boot_s
    paid_h = np.where(is_spot, run.expected_s - run.waiting_s + boot_s, work_s + boot_s) / HOUR
    committed = np.array([COMMITTED_H.get(one, 0.0) for one in PURCHASES])[purchase]
    if work.monthly:
        committed = np.minimum(committed, MONTH / HOUR)
    plain_h = (work_s + boot_s) / HOUR
    compute = np.maximum(plain_h, committed) * machines * hourly
    restarts = np.where(is_spot, np.maximum(paid_h - plain_h, 0.0) * machines * hourly, 0.0)
    kg = market.grids.operational_kg(work.power_w[way], np.maximum(paid_h, plain_h), region)
    stretch = expected / np.maximum(work_s, 1e-9)
    moved_s = moved_h * HOUR
    return Priced(
        way=way,
        offer=offer,
        machine=machine,
        region=region,
        purchase=purchase,
        machines=machines,
        seconds=expected + moved_s,
        tails=Tails(risk, np.where(is_spot, np.nan, expected), work.high[way] / np.maximum(work_s, 1e-9), moved_s),
        low_s=work.low[way] * stretch + moved_s,
        high_s=work.high[way] * stretch + moved_s,
        compute_usd=compute,
        restart_usd=restarts,
        transfer_usd=moved_usd,
        kg=kg,
        interruptions=np.where(is_spot, run.interruptions, 0.0),
        checkpoint_s=np.where(is_spot, run.interval_s, 0.0),
        beside_usd=np.zeros(len(way)) if work.beside_usd is None else work.beside_usd[way],
        power_w=work.power_w[way],
    )


def tally(fleet: Fleet, offers: Index, work: Work, splits: Index) -> int:
    """Distinct candidates, where every row of `work` stands for `splits` ways to split, batch and so on: each with every offer,
    which is a machine, a region and a purchase, unless it needs several machines that cannot be joined."""
    machine = np.frombuffer(fleet.catalog.offers.machine, dtype=np.int32)[offers]
    shape, reach = fleet.shape_of[machine], fleet.reach[machine]
    needed = np.where(np.broadcast_to(work.apart, work.machines.shape), 1.0, work.machines)
    able = np.zeros(len(work.machines), dtype=np.intp)
    for level in set(fleet.reach.tolist()):  # a handful: one, all, and what a rack holds
        offered = np.bincount(shape[reach == level], minlength=len(fleet.shapes))
        able += np.where(needed <= level, offered[work.shape], 0)
    return int(np.sum(able * splits))


def _joined(work: Work, shape: Index) -> tuple[Index, Index]:
    """Every way with every offer of its shape: (row of `work`, place among the offers)."""
    order = np.argsort(work.shape, kind="stable")
    first = np.searchsorted(work.shape[order], shape, side="left")
    last = np.searchsorted(work.shape[order], shape, side="right")
    sizes = last - first
    position = np.repeat(np.arange(len(shape), dtype=np.intp), sizes)
    start = np.repeat(first - np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes)
    return order[start + np.arange(len(position))], position


@dataclass(frozen=True)
class _Mean:
    """Of every row: seconds until the work is done, and of them those that are not paid; interruptions; saving."""

    expected_s: Array
    waiting_s: Array
    interruptions: Array
    interval_s: Array

    def only(self, kept: Mask) -> _Mean:
        return _Mean(self.expected_s[kept], self.waiting_s[kept], self.interruptions[kept], self.interval_s[kept])


@dataclass(frozen=True)
class _Risk:
    """Rows that may be interrupted, in what they differ."""

    work_s: Array  # of all rows
    rows: Index  # that may be interrupted
    rate_per_s: Array  # of each of them
    machines: Array
    save_s: Array
    every_s: float | None
    apart: Mask

    def only(self, mask: Mask) -> _Risk:
        selected = mask[self.rows]
        rows = (np.cumsum(mask) - 1)[self.rows[selected]]
        return _Risk(
            work_s=self.work_s[mask],
            rows=rows,
            rate_per_s=self.rate_per_s[selected],
            machines=self.machines[selected],
            save_s=self.save_s[selected],
            every_s=self.every_s,
            apart=self.apart[selected],
        )

    def run(self, places: Index, together: bool, tail: bool) -> spot.SpotRun:
        """`places` are among `rows`."""
        save = self.save_s[places]
        return spot.run(
            self.work_s[self.rows[places]],
            self.rate_per_s[places],
            self.machines[places],
            save,
            BOOT_S + save,
            self.every_s,
            wait_s=WAIT_S,
            together=together,
            tail=tail,
        )

    def mean(self) -> _Mean:
        """Rows that cannot be interrupted get the run without interruptions."""
        none = np.zeros_like(self.work_s)
        columns = {"expected_s": self.work_s.copy(), "waiting_s": none, "interruptions": none.copy(), "interval_s": none.copy()}
        for together in (True, False):
            places = np.flatnonzero(self.apart != together)
            run = self.run(places, together, False)
            for name, values in columns.items():
                values[self.rows[places]] = getattr(run, name)
        return _Mean(**columns)

    def tails(self, rows: Index) -> Array:
        """Seconds that nine runs in ten stay below, of rows that may be interrupted."""
        places = np.searchsorted(self.rows, rows)
        apart = self.apart[places]
        seconds = np.empty(len(places))
        for together in (True, False):
            seconds[apart != together] = self.run(places[apart != together], together, True).p90_s
        return seconds


@dataclass(frozen=True)
class Tails:
    """The 90th percentile of seconds from start to end. Reckoned for rows that are asked for: it takes long, and decides
    nothing."""

    risk: _Risk
    plain: Array  # not a number: may be interrupted
    stretch: Array  # by which the estimate may be too short
    moved: Array  # seconds that data need to come

    def of(self, rows: Index) -> Array:
        seconds = self.plain[rows]
        risky = np.flatnonzero(np.isnan(seconds))
        seconds[risky] = self.risk.tails(rows[risky]) + BOOT_S
        return seconds * self.stretch[rows] + self.moved[rows]


def _risk(
    market: Market,
    work_s: Array,
    machines: Array,
    machine: Index,
    region: Index,
    is_spot: Mask,
    apart: Mask,
    checkpoint: Checkpoint | None,
) -> _Risk:
    rows = np.flatnonzero(is_spot)
    pairs, place = np.unique(machine[rows] * len(market.fleet.catalog.regions) + region[rows], return_inverse=True)
    rate = np.array([_rate(market, int(pair)) for pair in pairs])[place] / HOUR if len(rows) else np.zeros(0)
    saved = checkpoint or Checkpoint(0.0)
    save_s = np.maximum(saved.save_s(machines[rows]), 1.0)
    return _Risk(
        work_s=work_s,
        rows=rows,
        rate_per_s=rate,
        machines=machines[rows],
        save_s=save_s,
        every_s=saved.every_s,
        apart=apart[rows],
    )


def _rate(market: Market, pair: int) -> float:
    catalog = market.fleet.catalog
    machine_index, region_index = divmod(pair, len(catalog.regions))
    machine, region = catalog.machines[machine_index], catalog.regions[region_index]
    return market.rates.of(machine.provider, region.name, machine.name, machine.chip, machine.chips).per_hour


def _moved(market: Market, region: Index, place: str | None, size_bytes: float) -> tuple[Array, Array]:
    if not size_bytes:
        return np.zeros(len(region)), np.zeros(len(region))
    regions = market.fleet.catalog.regions
    used, inverse = np.unique(region, return_inverse=True)
    usd, hours = market.gravity.columns(place, [regions[at].key for at in used.tolist()], size_bytes)
    return usd[inverse], hours[inverse]
