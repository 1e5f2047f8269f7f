"""Every way to run a job joined to every offer of its shape: what it costs, how long it takes, what it emits.

Columns, one row per offer, number of machines and precision. Compute, restarts and transfer are reckoned for all rows;
storage is chosen for those that may win (`storing.py`), since it only adds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from chipwise.catalog.offer import PURCHASES, Purchase
from chipwise.money import spot
from chipwise.money.carbon import Grids
from chipwise.money.interruption import Rates
from chipwise.money.transfer import Gravity
from chipwise.perf.arrays import Array
from chipwise.plan.fleet import Fleet, Index, joins
from chipwise.units import HOUR, YEAR

BOOT_S = 240.0  # from asking for a machine to the first step: boot, image, framework
WAIT_S = 600.0  # until a spot machine is had again, where nothing is known
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
    p90_s: Array  # as bad as one in ten
    low_s: Array
    high_s: Array
    compute_usd: Array
    restart_usd: Array
    transfer_usd: Array
    kg: Array
    interruptions: Array
    checkpoint_s: Array  # between checkpoints; 0 where nothing is interrupted

    def __len__(self) -> int:
        return len(self.way)

    @property
    def usd(self) -> Array:
        return self.compute_usd + self.restart_usd + self.transfer_usd


@dataclass(frozen=True, slots=True)
class Work:
    """Ways to run a job, one row per shape, number of machines and precision: what `pricing` needs of them."""

    shape: Index
    machines: Array
    seconds: Array
    low: Array
    high: Array
    power_w: Array


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
    way, at = _joined(work, fleet.shape_of[machine])
    many = work.machines[way]
    alone = np.array([not joins(one) for one in catalog.machines])
    fine = np.isfinite(work.seconds[way]) & ~((many > 1) & alone[machine[at]])
    way, at, many = way[fine], at[fine], many[fine]
    offer, machine = offers[at], machine[at]
    region = np.frombuffer(catalog.offers.region, dtype=np.int32)[offer].astype(np.intp)
    purchase = np.frombuffer(catalog.offers.purchase, dtype=np.int8)[offer].astype(np.intp)
    hourly = np.frombuffer(catalog.offers.price, dtype=np.float64)[offer]
    work_s = work.seconds[way]
    is_spot = purchase == PURCHASES.index(Purchase.SPOT)
    run = _spot_runs(market, work_s, many, machine, region, is_spot, checkpoint)
    moved_usd, moved_h = _moved(market, region, place, size_bytes)
    expected = np.where(is_spot, run.expected_s, work_s) + BOOT_S
    paid_h = np.where(is_spot, run.expected_s - run.waiting_s + BOOT_S, work_s + BOOT_S) / HOUR
    committed = np.array([COMMITTED_H.get(one, 0.0) for one in PURCHASES])[purchase]
    plain_h = (work_s + BOOT_S) / HOUR
    compute = np.maximum(plain_h, committed) * many * hourly
    restarts = np.where(is_spot, np.maximum(paid_h - plain_h, 0.0) * many * hourly, 0.0)
    kg = market.grids.operational_kg(work.power_w[way], np.maximum(paid_h, plain_h), region)
    stretch = expected / np.maximum(work_s, 1e-9)
    shown = moved_h * HOUR
    return Priced(
        way=way, offer=offer, machine=machine, region=region, purchase=purchase, machines=many, seconds=expected + shown,
        p90_s=np.where(is_spot, run.p90_s + BOOT_S, expected) * work.high[way] / np.maximum(work_s, 1e-9) + shown,
        low_s=work.low[way] * stretch + shown, high_s=work.high[way] * stretch + shown, compute_usd=compute,
        restart_usd=restarts, transfer_usd=moved_usd, kg=kg, interruptions=np.where(is_spot, run.interruptions, 0.0),
        checkpoint_s=np.where(is_spot, run.interval_s, 0.0),
    )  # fmt: skip


def _joined(work: Work, shape: Index) -> tuple[Index, Index]:
    """Every way with every offer of its shape: (row of `work`, place among the offers)."""
    order = np.argsort(work.shape, kind="stable")
    first = np.searchsorted(work.shape[order], shape, side="left")
    last = np.searchsorted(work.shape[order], shape, side="right")
    sizes = last - first
    at = np.repeat(np.arange(len(shape), dtype=np.intp), sizes)
    start = np.repeat(first - np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes)
    return order[start + np.arange(len(at))], at


def _spot_runs(
    market: Market, work_s: Array, many: Array, machine: Index, region: Index, is_spot: Array, checkpoint: Checkpoint | None
) -> spot.SpotRun:
    """Only spot rows are reckoned; the others get the run without interruptions."""
    rows = np.flatnonzero(is_spot)
    pairs, place = np.unique(machine[rows] * len(market.fleet.catalog.regions) + region[rows], return_inverse=True)
    rate = np.array([_rate(market, int(pair)) for pair in pairs])[place] / HOUR if len(rows) else np.zeros(0)
    saved = checkpoint or Checkpoint(0.0)
    save_s = np.maximum(saved.save_s(many[rows]), 1.0)
    found = spot.run(work_s[rows], rate, many[rows], save_s, BOOT_S + save_s, saved.every_s, wait_s=WAIT_S)

    def spread(name: str, plain: Array) -> Array:
        values = plain.copy()
        values[rows] = np.broadcast_to(getattr(found, name), rows.shape)
        return values

    none = np.zeros_like(work_s)
    bases = {"expected_s": work_s, "p90_s": work_s}
    names = (
        "expected_s",
        "p90_s",
        "interruptions",
        "lost_s",
        "saved_s",
        "restarting_s",
        "waiting_s",
        "interval_s",
        "checkpoints",
    )
    return spot.SpotRun(**{name: spread(name, bases.get(name, none)) for name in names})


def _rate(market: Market, pair: int) -> float:
    catalog = market.fleet.catalog
    at, where = divmod(pair, len(catalog.regions))
    machine, region = catalog.machines[at], catalog.regions[where]
    return market.rates.of(machine.provider, region.name, machine.name, machine.chip, machine.chips).per_hour


def _moved(market: Market, region: Index, place: str | None, size_bytes: float) -> tuple[Array, Array]:
    if not size_bytes:
        return np.zeros(len(region)), np.zeros(len(region))
    regions = market.fleet.catalog.regions
    used, where = np.unique(region, return_inverse=True)
    usd, hours = market.gravity.columns(place, [regions[at].key for at in used.tolist()], size_bytes)
    return usd[where], hours[where]


def rows_of(priced: Priced, rows: Sequence[int] | Index) -> Priced:
    picked = np.asarray(rows, dtype=np.intp)
    return Priced(**{name: getattr(priced, name)[picked] for name in Priced.__dataclass_fields__})
