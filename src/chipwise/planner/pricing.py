"""Every way to run a job joined to every offer of its shape: what it costs, how long it takes, what it emits.

Columns, one row per offer, number of machines and precision. Compute, restarts and transfer are reckoned for all rows;
storage is chosen for those that may win (`assemble.py`), since it only adds.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from chipwise.catalog.catalog import Catalog
from chipwise.catalog.offer import PURCHASES, Purchase
from chipwise.money.carbon import Grids
from chipwise.money.gathering import all_at_once, all_back, alone_by_size
from chipwise.money.interruption import Rates
from chipwise.money.transfer import Gravity
from chipwise.perf.arrays import Array
from chipwise.planner.failures import Failures
from chipwise.planner.fleet import Fleet, Index
from chipwise.planner.limits import COMMITTED_YEARS, Mask
from chipwise.planner.offer_prices import OfferPrices
from chipwise.planner.tails import BOOT_S, Risk, Tails
from chipwise.units import HOUR, MONTH, YEAR
from chipwise.workload.data import Data

REPAIR_S = 900.0  # until a machine that broke is replaced: the operators of large clusters print up to 15 minutes
SELDOM = 0.05  # interruptions of a run: below it nobody thinks of checkpoints
HOPELESS = 1000.0  # a run that takes so many times its work, and an hour, ends by luck alone
COMMITTED_H = {purchase: years * YEAR / HOUR for purchase, years in COMMITTED_YEARS.items()}
HOURLY = frozenset(one for one in PURCHASES if one not in COMMITTED_H and one is not Purchase.OWNED)  # paid while it is up
PROMISED: Mask = np.array([one in COMMITTED_H for one in PURCHASES])  # by purchase: for a term


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
    seconds: Array  # expected from asking for machines to the end, waits, restarts and transfer included
    tails: Tails  # how far they vary
    low_s: Array
    high_s: Array
    compute_usd: Array
    restart_usd: Array
    transfer_usd: Array
    kg: Array  # by electricity and by the share of making the machines
    making_kg: Array  # of it the latter
    held_h: Array  # for which the machines are there: neither the wait for a spot machine nor that for data
    interruptions: Array
    assumed: Mask  # nobody published how often machines of this provider are taken away
    checkpoint_s: Array  # between checkpoints; 0 where nothing is interrupted
    beside_usd: Array  # what is bought besides machines, such as tasks of a quantum processor
    power_w: Array  # of all machines of a row while they work
    prices: OfferPrices  # by offer

    def __len__(self) -> int:
        return len(self.way)

    @cached_property
    def usd(self) -> Array:
        return self.compute_usd + self.restart_usd + self.transfer_usd + self.beside_usd

    @cached_property
    def hourly(self) -> Array:
        """USD of one machine, as it counts."""
        return self.prices.counted[self.offer]

    def only(self, mask: Mask) -> Priced:
        """Some of the rows."""
        if mask.all():
            return self
        columns = {one.name: getattr(self, one.name) for one in fields(self)}
        picked: dict[str, Any] = {name: column[mask] for name, column in columns.items() if isinstance(column, np.ndarray)}
        return replace(self, tails=self.tails.only(mask), **picked)


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

    @staticmethod
    def of_one_machine(shapes: Index, seconds: float) -> Work:
        """A machine of each shape, up for so long in a month."""
        up_s = np.full(len(shapes), seconds)
        return Work(
            shape=shapes,
            machines=np.ones(len(shapes)),
            seconds=up_s,
            low=up_s,
            high=up_s,
            power_w=up_s,
            apart=True,
            monthly=True,
        )


@dataclass(frozen=True, slots=True)
class Market:
    """What things cost and how they fail, beside the offers themselves."""

    fleet: Fleet
    rates: Rates
    gravity: Gravity
    grids: Grids
    prices: OfferPrices
    failures: Failures
    making: Array  # kg CO2e of an hour of each machine of the catalog


def price(work: Work, offers: Index, market: Market, checkpoint: Checkpoint | None, data: Data | None = None) -> Priced:
    """`checkpoint` None: interrupted work starts anew with what was not finished (requests, documents)."""
    fleet = market.fleet
    catalog = fleet.catalog
    machine = np.frombuffer(catalog.offers.machine, dtype=np.int32)[offers].astype(np.intp)
    way, position = _joined(work, fleet.shape_of[machine])
    machines = work.machines[way]
    apart = np.broadcast_to(work.apart, work.machines.shape)[way]
    fine = np.isfinite(work.seconds[way]) & (apart | (machines <= fleet.reach[machine[position]]))
    if not work.monthly:  # a service may take what there is and rent the rest: verdicts say what alone does not do
        fine &= machines <= own_limits(catalog, offers)[position]
    way, position, machines, apart = way[fine], position[fine], machines[fine], apart[fine]
    offer, machine = offers[position], machine[position]
    region = np.frombuffer(catalog.offers.region, dtype=np.int32)[offer].astype(np.intp)
    purchase = np.frombuffer(catalog.offers.purchase, dtype=np.int8)[offer].astype(np.intp)
    work_s = work.seconds[way]
    is_spot = purchase == PURCHASES.index(Purchase.SPOT)
    odds = _spot_odds(market, machine, region, is_spot, np.where(apart, 1.0, machines))
    risk = _risk(market, work_s, machines, machine, is_spot, odds, apart, checkpoint, work.monthly)
    run = risk.mean()
    ends = run.expected_s <= HOPELESS * (work_s + HOUR)
    if not ends.all():  # expected times that are endless, or as good as: no candidates
        way, offer, machine, region, purchase = (column[ends] for column in (way, offer, machine, region, purchase))
        machines, work_s, is_spot, risk, run = machines[ends], work_s[ends], is_spot[ends], risk.only(ends), run.only(ends)
        odds = odds.only(ends)
    hourly = market.prices.counted[offer]
    moved_usd, moved_h = _moved(market, region, data)
    boot_s = 0.0 if work.monthly else BOOT_S  # what goes on has started before the month
    expected = run.expected_s + boot_s
    paid_h = (
        expected - np.where(is_spot, run.waiting_s, 0.0)
    ) / HOUR  # who waits for a repair pays for the machines that wait too
    committed = np.array([COMMITTED_H.get(one, 0.0) for one in PURCHASES])[purchase]
    if work.monthly:
        committed = np.minimum(committed, MONTH / HOUR)
    plain_h = (work_s + boot_s) / HOUR
    terms = np.ceil(plain_h / np.maximum(committed, 1e-9) - 1e-9)  # a promise is paid for whole terms
    compute = np.where(committed > 0, terms * committed, plain_h) * machines * hourly
    restarts = np.where(committed > 0, 0.0, np.maximum(paid_h - plain_h, 0.0) * machines * hourly)
    held_h = np.maximum(paid_h, plain_h)
    stretch = run.expected_s / np.maximum(work_s, 1e-9)
    power_w = _drawn(market, work.power_w[way], machine, machines)
    making_kg = market.making[machine] * machines * held_h
    moved_s = np.zeros(len(way)) if work.monthly else moved_h * HOUR  # what goes on does not wait for it
    tails = Tails(
        risk=risk,
        mean=run,
        stretch=work.high[way] / np.maximum(work_s, 1e-9),
        boot_s=boot_s,
        moved=moved_s,
        absent=np.zeros(len(way)) if work.monthly else odds.absent,
        absent_s=odds.absent_s,
        seldom=odds.seldom,
        often=odds.often,
    )
    fixed_s = tails.first_wait_s + boot_s + moved_s
    return Priced(
        way=way,
        offer=offer,
        machine=machine,
        region=region,
        purchase=purchase,
        machines=machines,
        seconds=run.expected_s + fixed_s,
        tails=tails,
        low_s=work.low[way] * stretch + fixed_s,
        high_s=work.high[way] * stretch + fixed_s,
        compute_usd=compute,
        restart_usd=restarts,
        transfer_usd=moved_usd,
        kg=market.grids.operational_kg(power_w, held_h, region) + making_kg,
        making_kg=making_kg,
        held_h=held_h,
        interruptions=run.interruptions,
        assumed=odds.assumed,
        checkpoint_s=np.where(is_spot | (run.interruptions > SELDOM), run.interval_s, 0.0),
        beside_usd=np.zeros(len(way)) if work.beside_usd is None else work.beside_usd[way],
        power_w=power_w,
        prices=market.prices,
    )


def own_limits(catalog: Catalog, offers: Index) -> Array:
    """The most machines there are, by offer: of own ones as many as are stated."""
    machine = np.frombuffer(catalog.offers.machine, dtype=np.int32)[offers].astype(np.intp)
    limit = np.full(len(offers), np.inf)
    counted = catalog.derived("counted machines", lambda: np.array([bool(one.owned) for one in catalog.machines]))
    for place in np.flatnonzero(counted[machine]).tolist():
        region = catalog.regions[catalog.offers.region[int(offers[place])]].name
        limit[place] = catalog.machines[machine[place]].owned_in(region) or np.inf
    return limit


def _drawn(market: Market, working_w: Array, machine: Index, machines: Array) -> Array:
    """Of all machines of a row: of own ones what their owner states, which their electricity is paid by, too."""
    catalog = market.fleet.catalog

    def stated_w() -> Array:
        return np.array([one.power_w or 0.0 if one.energy_usd_per_hour is not None else 0.0 for one in catalog.machines])

    stated = catalog.derived("stated power", stated_w)[machine]
    return np.where(stated > 0, stated * machines, working_w)


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
class _SpotOdds:
    """How spot machines are had and lost, by row; nothing of others."""

    per_hour: Array
    seldom: Array  # times that, one time in ten at most
    often: Array  # and one time in ten at least
    wait_s: Array  # after a loss
    absent: Array
    absent_s: Array
    assumed: Mask
    alone: Array  # how far machines come and go by themselves: n of them count as n**alone

    def only(self, kept: Mask) -> _SpotOdds:
        return _SpotOdds(**{one.name: getattr(self, one.name)[kept] for one in fields(self)})


def _spot_odds(market: Market, machine: Index, region: Index, is_spot: Mask, together: Array) -> _SpotOdds:
    """Asked once for every machine in a region; `together` are so many that nothing runs unless all are there."""
    catalog, rates, spots = market.fleet.catalog, market.rates, np.flatnonzero(is_spot)
    pairs, place = np.unique(machine[spots] * len(catalog.regions) + region[spots], return_inverse=True)
    table = np.zeros((len(pairs), 8))
    for index, pair in enumerate(pairs.tolist()):
        kind, place_name = catalog.machines[pair // len(catalog.regions)], catalog.regions[pair % len(catalog.regions)].name
        lost = rates.of(kind.provider, place_name, kind.name, kind.chip, kind.chips)
        again_h = rates.wait_hours(kind.provider, place_name, kind.chip) or 0.0
        first = rates.first_wait(kind.provider, place_name, kind.chip, kind.chips)
        waits = again_h * HOUR, first.absent, first.hours * HOUR
        table[index] = lost.per_hour, lost.seldom, lost.often, *waits, lost.assumed, kind.chips or 1.0
    columns = np.zeros((len(machine), 8))
    columns[:, 1:3] = 1.0
    columns[spots] = table[place]
    per_hour, seldom, often, wait_s, absent, absent_s, assumed, chips = columns.T
    fleets = spots[together[spots] > 1]
    alone = np.where(is_spot, alone_by_size(rates.independence, chips), 1.0)  # what breaks breaks by itself
    counted = together[fleets] ** alone[fleets]
    absent[fleets], absent_s[fleets] = all_at_once(absent[fleets], absent_s[fleets], counted)
    wait_s[fleets] = all_back(per_hour[fleets] / HOUR, wait_s[fleets], counted)
    return _SpotOdds(
        per_hour=per_hour,
        seldom=seldom,
        often=often,
        wait_s=wait_s,
        absent=absent,
        absent_s=absent_s,
        assumed=assumed > 0,
        alone=alone,
    )


def _risk(
    market: Market,
    work_s: Array,
    machines: Array,
    machine: Index,
    is_spot: Mask,
    odds: _SpotOdds,
    apart: Mask,
    checkpoint: Checkpoint | None,
    monthly: bool,
) -> Risk:
    """Spot machines are taken away, and all machines break. What goes on for a month is replaced while it goes on."""
    rows = np.flatnonzero(is_spot) if monthly else np.arange(len(work_s), dtype=np.intp)
    broken = np.zeros(len(rows)) if monthly else market.failures.per_machine_s(market.fleet)[machine[rows]]
    saved = checkpoint or Checkpoint(0.0)
    return Risk(
        work_s=work_s,
        rows=rows,
        rate_per_s=broken + odds.per_hour[rows] / HOUR,
        taken_per_s=odds.per_hour[rows] / HOUR,
        machines=machines[rows],
        save_s=np.maximum(saved.save_s(machines[rows]), 1.0),
        wait_s=np.where(is_spot[rows], odds.wait_s[rows], REPAIR_S),
        every_s=saved.every_s,
        apart=apart[rows],
        alone=odds.alone[rows],
    )


def _moved(market: Market, region: Index, data: Data | None) -> tuple[Array, Array]:
    """(USD, hours) of bringing the data and sending the results back, where the place of the data is stated."""
    if data is None or not data.place:
        return np.zeros(len(region)), np.zeros(len(region))
    regions = market.fleet.catalog.regions
    used, inverse = np.unique(region, return_inverse=True)
    places = [regions[at].key for at in used.tolist()]
    usd, hours = market.gravity.columns(data.place, places, data.read_bytes, results_bytes=data.results or 0.0)
    return usd[inverse], hours[inverse]
