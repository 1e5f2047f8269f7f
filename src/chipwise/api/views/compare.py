"""A comparison as plain data: what `chipwise compare --json` prints."""

from __future__ import annotations

from chipwise.api.views.plan import View, choice_view, missing_view
from chipwise.planner.explain.compare import Comparison as Comparison
from chipwise.planner.explain.comparing import Cell as Cell
from chipwise.planner.explain.reason_words import words
from chipwise.planner.reasons import reason_data

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
        "missing": [missing_view(one) for one in plan.missing],
        "notes": list(plan.notes),
    }


def cell_view(cell: Cell, keys: tuple[str, ...]) -> View:
    """`key` names the cell; `choice` is the best of it, with what it costs by line."""
    return {
        "key": {name: value or None for name, value in zip(keys, cell.key, strict=True)},
        **({"year": cell.year} if "generation" in keys else {}),
        "fits": cell.fits,
        "why": None if cell.why is None else words(cell.why),
        "reason": None if cell.why is None else reason_data(cell.why),
        "usd": cell.choice.usd if cell.choice else None,
        "seconds": cell.choice.seconds if cell.choice else None,
        "kwh": cell.kwh,
        "co2e_kg": cell.choice.kg if cell.choice else None,
        "choice": choice_view(cell.choice) if cell.choice else None,
    }
