"""What the winner emits, by its parts, and which regions would emit less for what price.

A region stands for the cheapest candidate there that keeps the goals, whatever machine that is: moving a job is the cheapest
way to make it cleaner. Making is counted for the winner alone: it does not change with the region.
"""

from __future__ import annotations

import numpy as np

from chipwise.catalog.region import readable
from chipwise.money.carbon import CarbonLine, Greener, Grid, Grids, Making, greener
from chipwise.planner.fleet import Index
from chipwise.planner.ranking import first_of
from chipwise.planner.values.plan import Choice, Emitted, Plan, Rows
from chipwise.text import number
from chipwise.units import HOUR

SHOWN = 3


def emitted(plan: Plan, making: Making, grids: Grids) -> Emitted | None:
    """None where nothing fits, or the plan has no rows to compare."""
    one, rows = plan.winner, plan.rows
    if one is None or rows is None:
        return None
    at = int(rows.ranked[0])
    machine = rows.fleet.catalog.machines[rows.priced.machine[at]]
    chip = rows.fleet.catalog.chips.get(one.chip)
    lines = [CarbonLine("operational", one.kg, _drawn(one, grids.of(rows.fleet.catalog.regions[rows.priced.region[at]])))]
    basis: tuple[str, ...] = ("embodied: no chip of the catalog",)
    if chip is not None:
        made = making.share(chip, one.chips * one.machines, one.machines, machine.memory_bytes, one.seconds / HOUR)
        lines += made.lines
        basis = made.basis
    total = sum(line.kg for line in lines)
    return Emitted(tuple(lines), basis, 1e3 * total / max(rows.units, 1e-12), _greener(rows, one.usd, one.kg)[:SHOWN])


def _drawn(one: Choice, grid: Grid) -> str:
    """The product, each factor that is not the region's own with what stands in for it."""
    each = max(one.watts * grid.pue * grid.g_per_kwh / 1e6, 1e-12)  # kg an hour
    told = f"{number(one.watts, 4)} W x {number(one.kg / each, 4)} h x PUE {number(grid.pue)}"
    of_grid, of_pue = grid.grid_assumed, grid.pue_assumed
    told += f" ({of_pue})" if of_pue else ""
    known = f"assumed, {of_grid}: the grid of {one.place} is not stated" if of_grid else f"of {one.place}"
    return f"{told} x {number(grid.g_per_kwh)} g/kWh {known}"


def _greener(rows: Rows, usd: float, kg: float) -> tuple[Greener, ...]:
    priced, kept = rows.priced, rows.ranked[: rows.kept]
    clean = kept[priced.kg[kept] < kg]
    cheapest: Index = first_of(priced.region, clean[np.argsort(priced.usd[clean], kind="stable")])
    regions = rows.fleet.catalog.regions
    options = [("", usd, kg)]
    options += [
        (
            f"{regions[priced.region[at]].provider} {readable(regions[priced.region[at]].name)}",
            float(priced.usd[at]),
            float(priced.kg[at]),
        )
        for at in cheapest.tolist()
    ]
    return tuple(greener(options))
