"""A comparison as plain data: what `chipwise compare --json` prints."""

from __future__ import annotations

from chipwise.planner.explain.compare import Comparison as Comparison
from chipwise.planner.explain.comparing import Cell as Cell
from chipwise.planner.explain.reason_words import words
from chipwise.planner.reasons import reason_data
from chipwise.planner.values.plan import Service
from chipwise.views.plan import View, choice_view, missing_view, service_view

SCHEMA = 1
KEYS = {
    "provider": ("provider", "purchase"),
    "region": ("provider", "region", "country"),
    "generation": ("vendor", "generation"),
}


def comparison_view(comparison: Comparison) -> View:
    """What `chipwise compare --json` prints."""
    plan = comparison.plan
    return {
        "schema": SCHEMA,
        "workload": plan.workload,
        "kind": plan.kind,
        "per": plan.per,
        "by": comparison.by,
        "fits": plan.winner is not None,
        "winner": choice_view(plan.winner) if plan.winner else None,
        "cells": [cell_view(one, KEYS[comparison.by]) for one in comparison.cells],
        "services": [service_view(one) for one in plan.services],
        "missing": [missing_view(one) for one in plan.missing],
        "notes": list(plan.notes),
    }


def comparison_rows(comparison: Comparison) -> list[View]:
    """What `chipwise compare --csv` prints: a line for every cell, then one for everything that is paid per use."""
    keys = KEYS[comparison.by]
    return [*(_row(one, keys) for one in comparison.cells), *(_service_row(one, keys) for one in comparison.plan.services)]


def _row(cell: Cell, keys: tuple[str, ...]) -> View:
    view, choice = cell_view(cell, keys), cell.choice
    return {
        **view["key"],
        **({"year": cell.year} if "generation" in keys else {}),
        "fits": cell.fits,
        "usd": view["usd"],
        "usd_low": choice.low_usd if choice else None,
        "usd_high": choice.high_usd if choice else None,
        "seconds": view["seconds"],
        "kwh": cell.kwh,
        "co2e_kg": view["co2e_kg"],
        "machines": choice.machines if choice else None,
        "machine": choice.machine if choice else None,
        "machine_region": choice.region if choice else None,
        "chips_per_machine": choice.chips if choice else None,
        "chip": choice.chip if choice else None,
        "purchase": choice.purchase if choice else view["key"].get("purchase"),
        "price_of": choice.price_of if choice else None,
        "why": view["why"],
    }


def _service_row(service: Service, keys: tuple[str, ...]) -> View:
    """In the columns of the cells: what is paid per use has no machine, no region and no time of its own."""
    known = {
        "provider": service.provider,
        "fits": not service.refused,
        "usd": service.usd,
        "usd_low": service.usd,
        "usd_high": service.usd,
        "machine": service.name,
        "chip": service.hardware or None,
        "purchase": service.kind,
        "price_of": service.price_of or None,
        "why": words(service.refused[0]) if service.refused else None,
    }
    return {name: known.get(name) for name in _row(Cell(("",) * len(keys), None), keys)}


def cell_view(cell: Cell, keys: tuple[str, ...]) -> View:
    """`key` names the cell; `choice` is the best of it, with what it costs by line."""
    return {
        "key": {name: value or None for name, value in zip(keys, cell.key, strict=True)},
        **({"year": cell.year} if "generation" in keys else {}),
        "fits": cell.fits,
        "why": None if cell.why is None else words(cell.why),
        "reason": None if cell.why is None else reason_data(cell.why),
        "usd": cell.choice.usd if cell.choice else None,
        "doubt": (cell.choice.doubt or None) if cell.choice else None,
        "seconds": cell.choice.seconds if cell.choice else None,
        "kwh": cell.kwh,
        "co2e_kg": cell.choice.kg if cell.choice else None,
        "choice": choice_view(cell.choice) if cell.choice else None,
    }
