"""A comparison as plain data: what `chipwise compare --json` prints."""

from __future__ import annotations

from chipwise.api.views.plan import View, choice_view, missing_view
from chipwise.planner.explain.compare import Comparison
from chipwise.planner.explain.comparing import Cell
from chipwise.planner.explain.reason_words import words
from chipwise.planner.reasons import reason_data

SCHEMA = 1
KEYS = {
    "provider": ("provider", "purchase"),
    "region": ("provider", "region", "country"),
    "generation": ("vendor", "generation"),
}


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
        "missing": [missing_view(one) for one in made.missing],
        "notes": list(made.notes),
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
