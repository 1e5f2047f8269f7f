"""What the winner emits, by its parts, and which regions would emit less for what price.

A region stands for the cheapest candidate there that keeps the goals, whatever machine that is: moving a job is the cheapest
way to make it cleaner. All kg hold the share of making the machines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from chipwise.catalog.region import UNSTATED, readable
from chipwise.money.carbon import CarbonLine, Greener, Grid, Grids, Making, greener
from chipwise.money.hosts import HostShare
from chipwise.planner.ranking import first_of
from chipwise.planner.values.choice import Choice
from chipwise.planner.values.plan import Emitted, Plan, Rows
from chipwise.text import number

SHOWN = 3


def emitted(plan: Plan, making: Making, grids: Grids, hosts: Sequence[HostShare]) -> Emitted | None:
    """None where nothing fits, or the plan has no rows to compare."""
    winner, rows = plan.winner, plan.rows
    if winner is None or rows is None:
        return None
    row = int(rows.ranked[0])
    machine = rows.fleet.catalog.machines[rows.priced.machine[row]]
    chip = rows.fleet.catalog.chips.get(machine.chip or "")
    region = rows.fleet.catalog.regions[rows.priced.region[row]]
    grid = grids.of(region)
    if not region.country and grids.knows(winner.country):  # ordered in a country that the region does not name
        grid = grids.of(replace(region, country=winner.country))._replace(grid_assumed="")
    lines = [CarbonLine("operational", winner.kg - winner.making_kg, _drawn(winner, grid))]
    basis: tuple[str, ...] = ("embodied: no chip of the catalog",)
    if chip is not None:
        chips, held_h = (machine.chips or 1.0) * winner.machines, float(rows.priced.held_h[row])
        embodied = making.share(chip, chips, winner.machines, machine.memory_bytes, held_h, hosts[rows.priced.machine[row]])
        lines += embodied.lines
        basis = embodied.basis
    total = sum(line.kg for line in lines)
    return Emitted(tuple(lines), basis, 1e3 * total / max(rows.units, 1e-12), _greener(rows, winner.usd, winner.kg)[:SHOWN])


def _drawn(choice: Choice, grid: Grid) -> str:
    """The product, each factor that is not the region's own with what stands in for it."""
    hourly_kg = max(choice.watts * grid.pue * grid.g_per_kwh / 1e6, 1e-12)  # kg an hour
    text = f"{number(choice.watts, 4)} W x {number((choice.kg - choice.making_kg) / hourly_kg, 4)} h x PUE {number(grid.pue)}"
    of_grid, of_pue = grid.grid_assumed, grid.pue_assumed
    text += f" ({of_pue})" if of_pue else ""
    unknown = f"grid of {choice.place} unknown" if choice.place != UNSTATED else "region and grid unknown"
    known = f"assumed, {of_grid}: {unknown}" if of_grid else f"of {choice.place}"
    return f"{text} x {number(grid.g_per_kwh)} g/kWh {known}"


def _greener(rows: Rows, usd: float, kg: float) -> tuple[Greener, ...]:
    regions, by_name = rows.fleet.catalog.regions, {}
    for row, its_usd in _cheapest(rows, kg):
        region = regions[rows.priced.region[row]]
        by_name[f"{region.provider} {readable(region.name)}"] = row, its_usd, float(rows.priced.kg[row])
    while True:  # few of them are looked at in full
        savings = greener([("", usd, kg), *((name, its_usd, its_kg) for name, (_, its_usd, its_kg) in by_name.items())])
        if rows.storage_usd is None:
            return tuple(savings)
        dear = [one.region for one in savings if rows.verdict(rows.choice(by_name[one.region][0])) is not None]
        if not dear:  # a budget holds with storage
            return tuple(savings)
        by_name = {name: option for name, option in by_name.items() if name not in dear}


def _cheapest(rows: Rows, kg: float) -> list[tuple[int, float]]:
    """Of every region the cheapest row below `kg` that keeps the goals but for storage, with what it costs in all."""
    priced, good = rows.priced, rows.ranked[: rows.kept]
    clean = good[priced.kg[good] < kg]
    clean = clean[np.argsort(priced.usd[clean], kind="stable")]
    if rows.storage_usd is None:
        return [(row, float(priced.usd[row])) for row in first_of(priced.region, clean).tolist()]
    best: dict[int, tuple[int, float]] = {}
    for row in clean.tolist():
        region, bare = int(priced.region[row]), float(priced.usd[row])
        if region not in best or bare < best[region][1]:  # else it is dearer without its storage already
            total = bare + rows.storage_usd(row)
            if region not in best or total < best[region][1]:
                best[region] = (row, total)
    return list(best.values())
