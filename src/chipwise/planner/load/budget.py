"""What a month of every candidate costs over the load's curve: what a budget is held against where a load changes with time.

A budget that covers the layers which `load/plan` recommends must not refuse them. Two figures, the smaller counts:
- of every candidate its own price for the hours in which its machines are up (an upper bound; what is promised is paid in all
  hours);
- of the machine types and regions where that is least, the cheapest layers exactly (`MOST_EXACT` of them). They stand for all
  ways to pay, so they count for the cheapest of these only: the others are not what anybody would take.
Both are of machines of one kind. Owned machines as a base under rented ones are tried only among what keeps the budget so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from chipwise.perf.arrays import Array
from chipwise.planner.fleet import Index
from chipwise.planner.load.curve import LoadCurve, carry
from chipwise.planner.load.machines import Kinds
from chipwise.planner.load.plan import beyond, curve_of, told_apart
from chipwise.planner.pricing import PROMISED
from chipwise.planner.ranking import first_of
from chipwise.planner.values.plan import Rows
from chipwise.workload.common import Common
from chipwise.workload.kinds import Interactive, Serve

if TYPE_CHECKING:
    from chipwise.predictor.known import Known

MOST_EXACT = 40


def layered_of(known: Known, work: Common, path: str) -> Callable[[Rows], Array] | None:
    """USD a month by position of the rows; None where the load over time is not planned, so that the peak's cost counts."""
    if not isinstance(work, Serve | Interactive) or getattr(work, "devices", None) or not told_apart(work):
        return None

    def layered(rows: Rows) -> Array:
        curve = curve_of(known, work, path)
        return _layered(Kinds(known=known, work=work, rows=rows, curve=curve, path=path), rows, curve)

    return layered


def _layered(kinds: Kinds, rows: Rows, curve: LoadCurve) -> Array:
    priced = rows.priced
    usd = priced.usd.copy()
    cheapest = _cheapest(rows, usd)[:MOST_EXACT].tolist()
    if kinds.may_commit and not curve.flat:  # a base that is promised may make the cheapest of what is dear by the hour
        promised = PROMISED[priced.purchase]
        cheapest += _cheapest(rows, np.where(promised, usd, np.inf))[:MOST_EXACT].tolist()
    for row in cheapest:
        kind = kinds.kind(row)
        if kind is not None and not beyond(curve, kind.answering):
            usd[row] = min(usd[row], carry(curve, kind).usd + kinds.other_usd(row))
    return usd


def _cheapest(rows: Rows, usd: Array) -> Index:
    """Of every machine, region and way, among which only the way to pay differs, the cheapest position; the cheapest first."""
    priced = rows.priced
    key = (priced.way * len(rows.fleet.catalog.machines) + priced.machine) * len(rows.fleet.catalog.regions) + priced.region
    return first_of(key, np.argsort(usd, kind="stable"))
