"""How a job scales: the winner's chip in other numbers, by the same purchase option, and where more of them stop paying."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from chipwise.catalog.offer import Purchase
from chipwise.perf.arrays import Array
from chipwise.planner.defaults import MACHINE_CHIPS
from chipwise.planner.explain.words import EDGE, WAITING
from chipwise.planner.fleet import Index
from chipwise.planner.pricing import Priced
from chipwise.planner.ranking import first_of
from chipwise.planner.values.choice import Choice
from chipwise.planner.values.plan import Rows
from chipwise.text import duration, usd

PAYS = 0.5  # of linear: a doubling that brings less than 1.4 times the speed does not pay


@dataclass(frozen=True, slots=True)
class Point:
    """So many machines of what won."""

    chips: float
    seconds: float
    usd: float
    work_s: float  # of the seconds those in which it makes progress: by them it is told how parallel the work is
    waiting_s: float = 0.0  # of the seconds those in which spot machines are waited for
    fleet: float = 1.0  # machines, where one of more than eight chips counts as several


def scale_curve(rows: Rows | None, winner: Choice) -> list[Point]:
    """The winner's chip in any machine of the provider, same purchase option: of every number of chips the cheapest."""
    if rows is None or not rows.kept:
        return []
    priced, fleet = rows.priced, rows.fleet
    lead = int(rows.ranked[0])
    part = fleet.shapes[fleet.shape_of[priced.machine[lead]]].part
    of_part = np.array([shape.part == part for shape in fleet.shapes], dtype=bool)[fleet.shape_of] & (fleet.shape_of >= 0)
    alike = np.zeros(len(of_part), dtype=bool)
    for machine in np.flatnonzero(of_part).tolist():
        alike[machine] = fleet.catalog.machines[machine].provider == winner.provider
    subset = np.flatnonzero(alike[priced.machine])
    subset = _alike(rows, winner, subset[priced.purchase[subset] == priced.purchase[lead]])
    if winner.purchase == Purchase.OWNED:
        subset = _within_own(rows, subset)
    inside = np.array([shape.chips for shape in fleet.shapes], dtype=np.float64)[fleet.shape_of[priced.machine[subset]]]
    chips = priced.machines[subset] * inside
    best = _best(rows, subset, chips)
    waits_s = priced.tails.first_wait_s[subset] + (
        priced.tails.mean.waiting_s[subset] if winner.purchase == Purchase.SPOT else 0.0
    )
    return [
        Point(
            chips=float(chips[row]),
            seconds=float(priced.seconds[subset[row]]),
            usd=float(usd_of(priced, subset[row : row + 1])[0]),
            work_s=float(priced.tails.risk.work_s[subset[row]]),
            waiting_s=float(waits_s[row]),
            fleet=float(priced.machines[subset[row]] * max(inside[row] / MACHINE_CHIPS, 1.0)),
        )
        for row in best.tolist()
    ]


def own_count(rows: Rows | None, choice: Choice) -> int | None:
    """How many of a machine of the user's own there are; None: it is rented, or not stated."""
    if rows is None or choice.purchase != Purchase.OWNED or choice.provider == EDGE:
        return None
    return rows.fleet.catalog.owned(choice.provider, choice.machine, choice.region)


def _within_own(rows: Rows, subset: Index) -> Index:
    """Without rows of more machines than their owner has."""
    catalog, priced = rows.fleet.catalog, rows.priced
    owned = [
        catalog.machines[priced.machine[row]].owned_in(catalog.regions[priced.region[row]].name) for row in subset.tolist()
    ]
    owned_counts = np.array([math.inf if one is None else float(one) for one in owned])
    return subset[priced.machines[subset] <= owned_counts]


def _alike(rows: Rows, winner: Choice, subset: Index) -> Index:
    """Those whose circuits run where the winner's do: another device has another speed, whatever the chips."""
    if winner.quantum is None:
        return subset
    matching: Index = subset[np.array([rows.quantum(at) == winner.quantum.device for at in subset.tolist()], dtype=bool)]
    return matching


def usd_of(priced: Priced, rows: Index) -> Array:
    """Of some rows only: `Priced.usd` adds up all of them."""
    return priced.compute_usd[rows] + priced.restart_usd[rows] + priced.transfer_usd[rows] + priced.beside_usd[rows]


def _best(rows: Rows, subset: Index, chips: Array) -> Index:
    """Of every number of chips the cheapest row, of equal ones the fastest; the winner's stands for its own."""
    order = np.lexsort((rows.priced.seconds[subset], np.round(usd_of(rows.priced, subset), 6)))
    winner = np.flatnonzero(subset[order] == rows.ranked[0])
    order = np.concatenate([order[winner], np.delete(order, winner)])
    fastest = first_of(np.round(chips).astype(np.intp), order)
    rising: Index = fastest[np.argsort(chips[fastest], kind="stable")]
    return rising


def linear_words(share: float) -> str:
    """More than linear is no mistake: on more chips each has less to hold, and recomputes or waits less."""
    return f"{share:.0%} of linear{', each chip has less to hold' if share >= 1.05 else ''}"


def scaling_words(
    winner: Choice,
    curve: Sequence[Point],
    count: int | None = None,
    most_chips: float | None = None,
    most_machines: float = math.inf,
) -> list[str]:
    """`count`: of the winner's machine that the user owns; `most_chips`: that the workload's limits allow; `most_machines`:
    that a plan takes unasked."""
    total = winner.chips * winner.machines
    own = next((point for point in curve if point.chips == total), None)
    if count is not None and (own is None or curve[-1].chips <= total):
        return [f"You own {counted(count, 'such machine', 'such machines')}: more would be rented, or bought."]
    if own is None or curve[-1].chips <= total:
        if most_chips is not None and 2 * total > most_chips:
            return [f"limits.chip_count allows at most {most_chips:g} chips: what more would bring was not tested."]
        none = f"{winner.provider} has no candidate with more than {total} {winner.chip} and the same purchase option"
        return [f"{none}."]
    larger = [point for point in curve if point.chips > total]
    shown = [point for point in larger if point.chips in (2 * total, 4 * total)] or larger[-1:]
    steps: list[str] = []
    for point in shown:
        share = own.work_s * total / (point.work_s * point.chips)
        times = f"{point.chips / total:g}x" if point.chips in (2 * total, 4 * total) else ""
        name = times if times and steps else f"{times} the chips" if times else f"{point.chips:g} chips"
        steps.append(f"{name}: {_stretch(point, share)}")
    unasked = _unasked(winner, shown, most_machines)
    return [f"{'; '.join(steps)}.", *unasked, _end(winner, [own, *larger])]


def _unasked(winner: Choice, shown: Sequence[Point], most_machines: float) -> list[str]:
    """Which of them are not weighed against the answer, and what allows them."""
    if not any(point.fleet > most_machines for point in shown):
        return []
    most = f"{most_machines:g} machines of {MACHINE_CHIPS} chips"
    return [f"More than {most_machines * MACHINE_CHIPS:g} {winner.chip} ({most}) are planned only with --large or a goal."]


def _stretch(point: Point, share: float) -> str:
    """How long it takes, and of the work alone what more chips bring: waits and repeated work are in the former only."""
    waits = f"spot wait {duration(point.waiting_s)}, " if point.waiting_s >= WAITING * point.seconds else ""
    work = "" if point.seconds <= 1.02 * point.work_s else f"{waits}work {duration(point.work_s)}: "
    return f"{duration(point.seconds)} for {usd(point.usd)} ({work}{linear_words(share)})"


def _end(winner: Choice, curve: Sequence[Point]) -> str:
    """Where more chips stop paying."""
    for smaller, larger in pairwise(curve):
        if math.log(smaller.work_s / larger.work_s) < PAYS * math.log(larger.chips / smaller.chips):
            return f"Beyond {smaller.chips:g} {winner.chip} a doubling brings less than {2**PAYS:.1f}x."
    return f"Still efficient at {curve[-1].chips:g} {winner.chip}, the largest number predicted."


def counted(value: float, one: str, many: str) -> str:
    return f"{value:g} {one if value == 1 else many}"
