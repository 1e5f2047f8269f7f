"""Which of the cheapest rows leads.

A price that is doubtful leads only where no surer one is within so much of it (`OfferPrices.doubt`): an expert signs what can
be checked. A speed that nobody measured on such chips, and whose interval is very wide, leads only where none that is known
better is within `UNKNOWN_COST` of it. What lacks a hair of the usual headroom leads only where all of it costs `SPARED_COST`
more, and machines that may well be too few for a load only where enough of them cost `CARRIED_COST` more. Nobody moves a
program to other software for a small saving: what needs porting leads only where it saves `PORTING_SAVES` of the cost and
`PORTING_USD`. Of what then costs nearly the same as the cheapest, the row leads that carries a service's load more surely, has
another machine when one restarts, is sooner, fresher in price, of fewer machines or of less porting. The first of these that
differs is its reason: never a difference too small to be told.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from chipwise.catalog.machine import runs_arm
from chipwise.catalog.names import find_retired
from chipwise.catalog.offer import PURCHASES, Purchase
from chipwise.perf.arrays import Array
from chipwise.perf.part import Part
from chipwise.planner.defaults import (
    CARRIED_COST,
    NEARLY,
    OLD_GPU,
    OTHER_GPU,
    PORTING_SAVES,
    PORTING_USD,
    SPARED_COST,
    UNKNOWN_COST,
    UNSURE_LOAD,
)
from chipwise.planner.fleet import Fleet, Index
from chipwise.planner.limits import Mask
from chipwise.planner.pricing import Priced

SOONER, FRESH_DAYS = 0.1, 90.0  # steps in which time and the age of a price count
CARRIES = 0.1  # step in which the probability counts that a load is carried
SOON_ENOUGH = 0.5  # of a stated deadline: what is done by then is no better for being done sooner, and takes fewer machines
PORTED = 2  # the effort from which a program must be moved to other software
OLD = {"RDNA1", "GCN5 (Vega)"}  # architectures of AMD that the present ROCm does not support
_EFFORT = {"tpu": 2, "neuron": 2, "gaudi": 2, "fpga": 3}  # by kind of part; other GPUs than NVIDIA's 1


class Advantage(StrEnum):
    """What a row that is nearly as cheap is better in."""

    CARRIES = "surer to carry the load"
    REDUNDANT = "another machine when one restarts"
    SOONER = "sooner"
    FRESHER = "fresher price"
    FEWER = "fewer machines"
    LESS_PORTING = "less porting"
    SURER = "a price that is more certain"
    HEADROOM = "all of the headroom"
    KNOWN = "a speed that was measured on similar chips"


@dataclass(frozen=True, slots=True)
class Traits:
    """Of rows that keep the goals, the cheapest first."""

    usd: Array
    seconds: Array
    days: Array  # since the price was read
    machines: Array
    porting: Array  # effort; 0: none
    ended: Mask  # new software no longer supports it
    doubt: Array  # of the price: how much dearer a surer one may be and still lead; 0: none
    times: float = 1.0  # that the bill is paid while a port pays for itself
    deadline_s: float = 0.0  # 0: none is stated
    carries: Array | None = None  # probability that the load is carried, up to what is sure enough; None: there is no load
    sure_load: float = 0.0  # what is sure enough
    unknown: Mask | None = None  # how fast it is was never measured on such chips, and is very unsure; None: of none
    short: Mask | None = None  # a hair of the usual headroom is missing; None: of none
    enough: float = 1.0  # machines of which fewer are no better: of a service two, since one that restarts answers nobody

    @property
    def needs_porting(self) -> Mask:
        return np.asarray(self.porting >= PORTED, dtype=bool)


@dataclass(frozen=True, slots=True)
class Lead:
    """Places among the rows: the first, the cheapest that it was preferred to, and the best on the other side of porting."""

    first: int
    cheaper: int | None = None  # by less than `NEARLY`, or by as much as its price is doubtful
    advantages: tuple[Advantage, ...] = ()  # over `cheaper`
    across: int | None = None


def lead(rows: Traits) -> Lead:
    ported = rows.needs_porting
    native, moved = np.flatnonzero(~ported), np.flatnonzero(ported & ~rows.ended)
    cheapest_ported = int(np.flatnonzero(ported)[0]) if ported.any() else None
    if not len(native):
        return _nearest(rows, moved if len(moved) else np.arange(len(ported)))
    cheapest = int(native[0])
    if len(moved) and _pays(rows, int(moved[0]), cheapest):
        near = _nearest(rows, moved)
        if not _pays(rows, near.first, cheapest):  # the cheapest of them does
            near = Lead(int(moved[0]))
        known = not _is_unknown(rows, near.first) or rows.usd[cheapest] > (1.0 + UNKNOWN_COST) * rows.usd[near.first]
        if known and (not rows.doubt[near.first] or _pays(rows, near.first, _nearest(rows, native).first)):
            return Lead(near.first, near.cheaper, near.advantages, cheapest)
    near = _nearest(rows, native)
    across = cheapest_ported if cheapest_ported is not None and cheapest_ported < near.first else None
    return Lead(near.first, near.cheaper, near.advantages, across)


def _is_unknown(rows: Traits, place: int) -> bool:
    return rows.unknown is not None and bool(rows.unknown[place])


def _pays(rows: Traits, ported: int, native: int) -> bool:
    return bool(pays(rows.usd[ported], float(rows.usd[native]), rows.times))


def pays(usd: Array, native: float, times: float) -> Mask:
    """Whether what costs `usd` after porting saves enough of what the cheapest without it costs."""
    saved = native - usd
    return np.asarray((saved >= PORTING_SAVES * native) & (saved * times >= PORTING_USD), dtype=bool)


def _nearest(rows: Traits, among: Index) -> Lead:
    """Of some rows, by steps from the cheapest of them: what is less than a step away counts as equal."""
    cheapest = int(among[0])
    doubt = float(rows.doubt[cheapest])
    surer = among[rows.doubt[among] < doubt]
    if len(surer) and rows.usd[surer[0]] <= (1.0 + doubt) * float(rows.usd[cheapest]):
        return Lead(_nearest(rows, surer).first, cheapest, (Advantage.SURER,))
    if rows.unknown is not None and rows.unknown[cheapest]:
        known = among[~rows.unknown[among]]
        if len(known) and rows.usd[known[0]] <= (1.0 + UNKNOWN_COST) * float(rows.usd[cheapest]):
            return Lead(_nearest(rows, known).first, cheapest, (Advantage.KNOWN,))
    if rows.short is not None and rows.short[cheapest]:
        roomy = among[~rows.short[among]]
        if len(roomy) and rows.usd[roomy[0]] <= (1.0 + SPARED_COST) * float(rows.usd[cheapest]):
            return Lead(_nearest(rows, roomy).first, cheapest, (Advantage.HEADROOM,))
    if rows.carries is not None and rows.carries[cheapest] < rows.sure_load - UNSURE_LOAD:
        carrying = among[rows.carries[among] >= rows.sure_load]
        if len(carrying) and rows.usd[carrying[0]] <= (1.0 + CARRIED_COST) * float(rows.usd[cheapest]):
            return Lead(_nearest(rows, carrying).first, cheapest, (Advantage.CARRIES,))
    near = among[rows.usd[among] <= (1.0 + NEARLY) * float(rows.usd[cheapest])]
    near = near[rows.doubt[near] <= doubt]
    seconds, days = np.maximum(rows.seconds[near], max(SOON_ENOUGH * rows.deadline_s, 1e-9)), rows.days[near]
    chance = np.ones(len(near)) if rows.carries is None else rows.carries[near]
    steps = {
        Advantage.CARRIES: np.trunc((chance[0] - chance) / CARRIES),
        Advantage.REDUNDANT: np.maximum(rows.enough - rows.machines[near], 0.0)
        - max(rows.enough - float(rows.machines[cheapest]), 0.0),
        Advantage.SOONER: np.trunc(np.log(seconds / seconds[0]) / -np.log1p(-SOONER) + 1e-9 * np.sign(seconds - seconds[0])),
        Advantage.FRESHER: np.trunc((days - days[0]) / FRESH_DAYS),
        Advantage.FEWER: np.maximum(rows.machines[near], rows.enough) - max(float(rows.machines[cheapest]), rows.enough),
        Advantage.LESS_PORTING: rows.porting[near] - rows.porting[cheapest],
    }
    place = int(np.lexsort((rows.usd[near], *reversed(steps.values())))[0])
    if place == 0:
        return Lead(cheapest)
    return Lead(int(near[place]), cheapest, tuple(name for name, step in steps.items() if step[place] < 0))


def efforts(fleet: Fleet, native: frozenset[str]) -> Array:
    """Of bringing a program for NVIDIA's GPUs there, by shape; none where `native` names the kind of part."""
    return np.array([effort(part, native) for part in fleet.parts_of_shapes], dtype=np.float64)


def effort(part: Part, native: frozenset[str]) -> int:
    """A host of another architecture takes other images, as another vendor's GPU does."""
    plain = part.vendor == "NVIDIA" and not runs_arm(None, part.name)
    if part.kind == "gpu":
        is_proven = part.vendor == "NVIDIA" or OTHER_GPU in native
        able = "gpu" in native and is_proven and (part.architecture not in OLD or OLD_GPU in native)
        return (0 if plain else 1) if able else PORTED
    return 0 if part.kind in native else _EFFORT.get(part.kind, 0 if plain else 1)


def porting_of(fleet: Fleet, priced: Priced, by_shape: Array) -> Array:
    """By row, of `efforts`. Who owns a machine has the software for it."""
    owned = priced.purchase == PURCHASES.index(Purchase.OWNED)
    return np.where(owned, 0.0, by_shape[fleet.shape_of[priced.machine]])


def ended_of(fleet: Fleet, priced: Priced, rows: Index, porting: Array) -> Mask:
    """Of rows that need porting, those of machines that are on their way out."""
    machines = np.unique(priced.machine[rows[porting[rows] >= PORTED]])
    catalog = fleet.catalog
    going = [at for at in machines.tolist() if find_retired(catalog.machines[at].name, catalog.data) is not None]
    return np.isin(priced.machine[rows], going)
