"""A plan's candidates side by side: by provider and purchase option, by region, by generation.

Every cell is the best of its own candidates in the plan's order, goals and limits kept, so the cell of the winner is the winner
and no other cell beats it by more than a tie (`ranking.TIE`). A cell none of whose candidates keeps the goals shows the first
that would do the work, and which goal it misses; one without any candidate is not there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from chipwise.catalog.chip import Chip, ChipKind
from chipwise.catalog.offer import PURCHASES
from chipwise.money.carbon import Grids
from chipwise.perf.arrays import Array
from chipwise.planner.fleet import Index
from chipwise.planner.ranking import Values, order
from chipwise.planner.reasons import Reason
from chipwise.planner.reasons.goals import MissesGoals
from chipwise.planner.reasons.limits import NotOffered
from chipwise.planner.values.choice import Choice
from chipwise.planner.values.plan import Loss, Rows

DEPTH = 3  # candidates of a cell that get their storage: it is reckoned for the best of all only, and may change the order


@dataclass(frozen=True, slots=True)
class Cell:
    key: tuple[str, ...]
    choice: Choice | None  # None: nothing of it can do the work
    kwh: float | None = None  # drawn by chips and hosts, without cooling
    why: Reason | None = None  # the goal that is missed, or why there is nothing; None: all goals are kept
    year: int | None = None  # of a generation: its first chip's

    @property
    def fits(self) -> bool:
        return self.choice is not None and self.why is None


def energy_kwh(rows: Rows, grids: Grids) -> Array:
    """What chips and hosts draw, told from what their electricity emits; not a number where nobody states a chip's power."""
    priced, catalog = rows.priced, rows.fleet.catalog
    grams = grids.g_per_kwh[priced.region] * grids.pue[priced.region]
    stated = np.array([_power_stated(catalog.chips.get(one.chip or "")) for one in catalog.machines], dtype=bool)
    known = (grams > 0) & stated[priced.machine]
    drawn: Array = np.divide(priced.kg * 1e3, grams, out=np.full(len(priced), np.nan), where=known)
    return drawn


def _power_stated(chip: Chip | None) -> bool:
    """The power of processors is in a table of its own."""
    return chip is not None and (chip.power_w is not None or chip.kind is ChipKind.CPU)


def leaders(rows: Rows, group: Index, depth: int = DEPTH) -> dict[int, tuple[int, Choice]]:
    """Of every group the best candidate, goals before all: its position and itself."""
    good, rest = rows.ranked[: rows.kept], rows.ranked[rows.kept :]
    best = {code: _first(rows, some) for code, some in _heads(group, good, depth)}
    return best | {code: _first(rows, some) for code, some in _heads(group, rest, 1) if code not in best}


def _heads(group: Index, ranked: Index, depth: int) -> Iterator[tuple[int, Index]]:
    """The first rows of every group, in the order of rank."""
    by_group = ranked[np.argsort(group[ranked], kind="stable")]
    codes, starts, counts = np.unique(group[by_group], return_index=True, return_counts=True)
    for code, start, count in zip(codes.tolist(), starts.tolist(), counts.tolist(), strict=True):
        yield code, by_group[start : start + min(depth, count)]


def _first(rows: Rows, head: Index) -> tuple[int, Choice]:
    choices = [rows.choice(int(at)) for at in head]
    if int(head[0]) == int(rows.ranked[0]):  # the answer of the plan stands for its group
        return int(head[0]), choices[0]
    values = Values(*(np.array(column, dtype=np.float64) for column in zip(*map(_values, choices), strict=True)))
    best = int(order(values, "cost")[0])
    return int(head[best]), choices[best]


def _values(one: Choice) -> tuple[float, ...]:
    return one.usd, one.seconds, one.kg, one.high_s / max(one.low_s, 1e-9), one.machines, one.rate or 0.0


def _cells(rows: Rows, kwh: Array, group: Index, key: Callable[[int], tuple[str, ...]]) -> list[Cell]:
    """Those that keep the goals first, the cheapest first, a doubtful price behind surer ones that are no dearer than its doubt
    allows, as in the plan; at one price the one that emits least."""
    good = set(rows.ranked[: rows.kept].tolist())
    cells = []
    for code, (row, choice) in leaders(rows, group).items():
        energy = float(kwh[row])
        missed = None if row in good else rows.verdict(choice) or MissesGoals()
        cells.append(Cell(key(code), choice, energy if np.isfinite(energy) else None, missed))
    return sorted(
        cells, key=lambda one: (not one.fits, *((_surer_usd(one.choice), one.choice.kg) if one.choice else (np.inf,)))
    )


def _surer_usd(choice: Choice) -> float:
    """What a surer price may be and still stand before it."""
    return choice.usd * (1.0 + choice.doubt_share)


def by_provider(rows: Rows, kwh: Array) -> list[Cell]:
    """One cell per provider and purchase option: (provider, purchase)."""
    machines = rows.fleet.catalog.machines
    names = {name: at for at, name in enumerate(dict.fromkeys(one.provider for one in machines))}
    provider = np.array([names[one.provider] for one in machines], dtype=np.intp)
    group = provider[rows.priced.machine] * len(PURCHASES) + rows.priced.purchase
    providers = list(names)

    def key(code: int) -> tuple[str, ...]:
        at, purchase = divmod(code, len(PURCHASES))
        return providers[at], str(PURCHASES[purchase])

    return _cells(rows, kwh, group, key)


def by_region(rows: Rows, kwh: Array) -> list[Cell]:
    """One cell per region: (provider, region, country)."""
    regions = rows.fleet.catalog.regions
    return _cells(rows, kwh, rows.priced.region, lambda at: (*regions[at].key, regions[at].country or ""))


def generation_of(chip: Chip) -> str:
    """Vendor and architecture; what is named by the chip rather than by its cores is a generation by that name."""
    return f"{chip.vendor} {chip.family if chip.kind in (ChipKind.NEURON, ChipKind.EDGE) else chip.architecture}"


def by_generation(rows: Rows, kwh: Array, losses: Iterable[Loss], vendor: str | None = None) -> list[Cell]:
    """One cell per generation, vendor by vendor and along time: (vendor, generation). Those without a candidate tell why."""
    catalog, fleet = rows.fleet.catalog, rows.fleet
    names: dict[str, int] = {}
    group = np.full(len(catalog.machines), -1, dtype=np.intp)
    families: dict[str, str] = {}
    for index, machine in enumerate(catalog.machines):
        chip = catalog.chips.get(machine.chip or "")
        if fleet.shape_of[index] >= 0 and chip is not None:
            name = generation_of(chip)
            group[index] = names.setdefault(name, len(names))
            families.setdefault(name, fleet.families[fleet.shape_of[index]])
    chips = {generation_of(chip): chip.vendor for chip in catalog.chips.values()}
    generations, years = list(names), _years(catalog.chips)
    cells = _cells(rows, kwh, group[rows.priced.machine], lambda code: (chips[generations[code]], generations[code]))
    seen = {one.key[1] for one in cells}
    reasons = {one.family: one.why for one in losses if one.choice is None}
    none = [
        Cell((chips[name], name), None, why=reasons.get(families[name], NotOffered())) for name in names if name not in seen
    ]
    dated = [
        Cell(key=one.key, choice=one.choice, kwh=one.kwh, why=one.why, year=years.get(one.key[1])) for one in (*cells, *none)
    ]
    selected = [one for one in dated if vendor is None or one.key[0] == vendor]
    return sorted(selected, key=lambda one: (one.key[0], one.year is None, one.year or 0, one.key[1]))


def _years(chips: Mapping[str, Chip]) -> dict[str, int]:
    years: dict[str, int] = {}
    for chip in chips.values():
        if chip.year is not None:
            name = generation_of(chip)
            years[name] = min(years.get(name, chip.year), chip.year)
    return years
