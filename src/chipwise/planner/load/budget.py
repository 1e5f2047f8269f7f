"""What a month of every candidate costs over the load's curve: what a budget is held against where a load changes with time.

The ranking is by machines for the peak. Of those that somebody would pay for, most are off at night: a budget that covers the
layers which `load/plan` recommends must not refuse them. Two figures, the smaller counts:
- of every candidate its own price for the hours under an autoscaler (an upper bound; what is promised is paid in all hours);
- of the machine types and regions where that is least, the cheapest layers exactly (`MOST_EXACT` of them). They stand for all
  ways to pay, so they count for the cheapest of these only: the others are not what anybody would take.
Both are of machines of one kind. Owned machines as a base under rented ones are tried only among what keeps the budget so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from chipwise.catalog.offer import PURCHASES, Purchase
from chipwise.perf.arrays import Array
from chipwise.planner.fleet import Index
from chipwise.planner.load.curve import LoadCurve, carry, hours_of
from chipwise.planner.load.machines import Kinds
from chipwise.planner.load.plan import beyond, curve_of, told_apart
from chipwise.planner.pricing import COMMITTED_H
from chipwise.planner.ranking import first_of
from chipwise.planner.values.plan import Rows
from chipwise.workload.kinds import Common, Interactive, Serve

if TYPE_CHECKING:
    from chipwise.predictor.known import Known

MOST_EXACT = 40
_FOLLOWS = np.array([one not in COMMITTED_H and one is not Purchase.OWNED for one in PURCHASES])


def layered_of(known: Known, work: Common, path: str) -> Callable[[Rows], Array] | None:
    """USD a month by position of the rows; None where the load over time is not planned, so that the peak's cost counts."""
    if not isinstance(work, Serve | Interactive) or getattr(work, "devices", None) or not told_apart(work):
        return None

    def layered(rows: Rows) -> Array:
        curve = curve_of(known, work, path)
        return _layered(Kinds(known, work, rows, curve), rows, curve)

    return layered


def _layered(kinds: Kinds, rows: Rows, curve: LoadCurve) -> Array:
    priced = rows.priced
    extras = priced.transfer_usd + priced.beside_usd
    hourly = priced.compute_usd + priced.restart_usd
    share = np.ones(len(priced)) if curve.flat else _shares(kinds, rows, curve)[priced.way]
    usd = extras + np.where(_FOLLOWS[priced.purchase], hourly * share, hourly)
    for row in _cheapest(rows, usd)[:MOST_EXACT].tolist():
        kind = kinds.kind(row)
        if kind is not None and not beyond(curve, kind.answering):
            usd[row] = min(usd[row], carry(curve, kind).usd + float(extras[row]))
    return usd


def _cheapest(rows: Rows, usd: Array) -> Index:
    """Of every machine, region and way, among which only the way to pay differs, the cheapest position; the cheapest first."""
    priced = rows.priced
    key = (priced.way * len(rows.fleet.catalog.machines) + priced.machine) * len(rows.fleet.catalog.regions) + priced.region
    return first_of(key, np.argsort(usd, kind="stable"))


def _shares(kinds: Kinds, rows: Rows, curve: LoadCurve) -> Array:
    """By way: machine-hours under an autoscaler, of those that machines for the peak would be on while the schedule is."""
    ways, first = np.unique(rows.priced.way, return_index=True)
    shares = np.ones(int(ways.max(initial=-1)) + 1)
    for way, row in zip(ways.tolist(), first.tolist(), strict=True):
        answering = kinds.close(row)
        if not beyond(curve, answering):
            hours = hours_of(curve, answering)
            shares[way] = hours.autoscaled / max(hours.scheduled, 1e-12)
    return shares
