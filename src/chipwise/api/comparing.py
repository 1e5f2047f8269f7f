"""The verb `compare`: a plan's candidates side by side, by provider and purchase option, by region or by generation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from chipwise.api.plan_views import View, choice_view
from chipwise.api.planning import plan
from chipwise.errors import UnknownName
from chipwise.money.carbon import Grids
from chipwise.perf.arrays import Array
from chipwise.plan.comparing import Cell, by_generation, by_provider, by_region, energy_kwh
from chipwise.plan.decision import Plan, Rows
from chipwise.spelling import fold, nearest

if TYPE_CHECKING:
    from chipwise.api.wiring import Session

SCHEMA = 1
WAYS = ("provider", "region", "generation")
KEYS = {
    "provider": ("provider", "purchase"),
    "region": ("provider", "region", "country"),
    "generation": ("vendor", "generation"),
}


@dataclass(frozen=True, slots=True)
class Comparison:
    plan: Plan  # by cost, whatever the file's objective is
    by: str
    cells: tuple[Cell, ...]


def compare(
    session: Session,
    path: str,
    by: str = "provider",
    vendor: str | None = None,
    environment: str | None = None,
    text: str | None = None,
) -> Comparison:
    """`vendor` leaves out the generations of all others; `text` stands for the file."""
    wanted = known_vendor(session, vendor) if vendor else None
    found = plan(session, path, "cost", 1, environment, text)
    rows = found.rows
    if rows is None:
        return Comparison(found, by, ())
    kwh = energy_of(session, rows)
    match by:
        case "region":
            cells = by_region(rows, kwh)
        case "generation":
            cells = by_generation(rows, kwh, found.losses, wanted)
        case _:
            cells = by_provider(rows, kwh)
    return Comparison(found, by, tuple(cells))


def energy_of(session: Session, rows: Rows) -> Array:
    return energy_kwh(rows, Grids(session.catalog.regions, session.catalog.rows("energy")))


def known_vendor(session: Session, name: str) -> str:
    known = {fold(chip.vendor): chip.vendor for chip in session.catalog.chips.values()}
    if fold(name) not in known:
        raise UnknownName("vendor", name, nearest(name, known.values()), remedy=f"Known: {', '.join(sorted(known.values()))}.")
    return known[fold(name)]


def comparison_view(found: Comparison) -> View:
    """What `chipwise compare --json` prints."""
    made = found.plan
    return {
        "schema": SCHEMA,
        "workload": made.workload,
        "kind": made.kind,
        "per": made.per,
        "by": found.by,
        "fits": made.winner is not None,
        "winner": choice_view(made.winner) if made.winner else None,
        "cells": [cell_view(one, KEYS[found.by]) for one in found.cells],
        "missing": [{"what": one.what, "how_much": one.how_much, "remedy": one.remedy} for one in made.missing],
        "notes": list(made.notes),
    }


def cell_view(cell: Cell, keys: tuple[str, ...]) -> View:
    """`key` names the cell; `choice` is the best of it, with what it costs by line."""
    return {
        "key": {name: value or None for name, value in zip(keys, cell.key, strict=True)},
        **({"year": cell.year} if "generation" in keys else {}),
        "fits": cell.fits,
        "why": cell.why or None,
        "usd": cell.choice.usd if cell.choice else None,
        "seconds": cell.choice.seconds if cell.choice else None,
        "kwh": cell.kwh,
        "co2e_kg": cell.choice.kg if cell.choice else None,
        "choice": choice_view(cell.choice) if cell.choice else None,
    }
