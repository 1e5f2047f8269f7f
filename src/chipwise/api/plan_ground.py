"""What plans of every kind stand on: the market beside the offers, what may be spent, and the data that must be fed."""

from __future__ import annotations

from chipwise.catalog.catalog import Catalog
from chipwise.money.carbon import Grids
from chipwise.money.interruption import Rates
from chipwise.money.storage import Tiers
from chipwise.money.transfer import Gravity
from chipwise.perf.feeding import tiers
from chipwise.plan.assembling import Stored
from chipwise.plan.fleet import Fleet
from chipwise.plan.pricing import Market
from chipwise.units import DAY, HOUR, MONTH
from chipwise.workload.data import Access
from chipwise.workload.goals import Period
from chipwise.workload.kinds import Common


def market_of(fleet: Fleet) -> Market:
    catalog = fleet.catalog
    return Market(
        fleet, Rates(catalog.rows("interruptions"), catalog.machines), Gravity(catalog.rows("storage"), catalog.regions),
        Grids(catalog.regions, catalog.rows("energy")),
    )  # fmt: skip


def tiers_of(catalog: Catalog) -> Tiers:
    return Tiers(catalog.rows("storage"), tiers())


def budget_usd(work: Common, monthly: bool) -> float | None:
    """Of the job or, where a month is planned, of a month."""
    budget = work.goals.budget
    if budget is None:
        return None
    seconds = {Period.HOUR: HOUR, Period.DAY: DAY, Period.MONTH: MONTH, Period.YEAR: 12 * MONTH}.get(budget.per)
    return budget.usd if seconds is None or not monthly else budget.usd * MONTH / seconds


def stored(tiers: Tiers, work: Common, units: float) -> Stored | None:
    """The workload's data, if it names any, over so many units of work."""
    data = work.data
    if data is None:
        return None
    passes = float(getattr(work, "epochs", 1.0)) if data.access is Access.EPOCHS else 1.0
    return Stored(tiers, data.size, data.size * passes / max(units, 1e-9), passes, data.files)
