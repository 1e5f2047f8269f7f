"""A plan's candidates side by side, by provider and purchase option, by region or by generation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from chipwise.errors import UnknownName
from chipwise.perf.arrays import Array
from chipwise.planner.explain.comparing import Cell, by_generation, by_provider, by_region, energy_kwh
from chipwise.planner.ground import grids_of
from chipwise.planner.values.plan import Plan, Rows
from chipwise.spelling import fold, nearest

if TYPE_CHECKING:
    from chipwise.predictor.known import Known


@dataclass(frozen=True, slots=True)
class Comparison:
    plan: Plan  # by cost, whatever the file's objective is
    by: str
    cells: tuple[Cell, ...]


def compare(plan: Plan, grouping: str = "provider", vendor: str | None = None) -> Comparison:
    """`vendor`, as `known_vendor` spells it, leaves out the generations of all others."""
    rows = plan.rows
    if rows is None:
        return Comparison(plan, grouping, ())
    kwh = energy_of(rows)
    match grouping:
        case "region":
            cells = by_region(rows, kwh)
        case "generation":
            cells = by_generation(rows, kwh, plan.losses, vendor)
        case _:
            cells = by_provider(rows, kwh)
    return Comparison(plan, grouping, tuple(cells))


def energy_of(rows: Rows) -> Array:
    """By the regions of the plan's own catalog: devices on site stand in one that the session's has not."""
    return energy_kwh(rows, grids_of(rows.fleet.catalog))


def known_vendor(known: Known, name: str) -> str:
    vendors = {fold(chip.vendor): chip.vendor for chip in known.catalog.chips.values()}
    if fold(name) not in vendors:
        raise UnknownName(
            "vendor", name, nearest(name, vendors.values()), remedy=f"Known: {', '.join(sorted(vendors.values()))}."
        )
    return vendors[fold(name)]
