"""What a narrower number format does to the answers of a model, as far as somebody published it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from chipwise.catalog.catalog import Catalog
from chipwise.catalog.tables import Quantised
from chipwise.planner.reasons.limits import RuleKind
from chipwise.planner.values.plan import Plan
from chipwise.spelling import fold

FEWEST = 3  # results of the model itself; below that those of all models are told


def quality(rows: Sequence[Quantised], model: str, precision: str) -> str:
    """Empty: nobody published any."""
    matching = [row for row in rows if row.format == precision and row.recovery_pct is not None]
    name = fold(model)
    own = [row for row in matching if name in fold(row.model)]
    used = own if len(own) >= FEWEST else matching
    if not used:
        return ""
    shares = sorted(float(row.recovery_pct or 0.0) for row in used)
    subject = f"of {model}" if used is own else f"of {len({row.model for row in used})} other models"
    results = f"{len(used)} published results {subject}"
    return f"{results} kept {median(shares):.1f}% of the 16-bit score, the worst {shares[0]:.1f}%"


def with_quality(plan: Plan, catalog: Catalog, model: str) -> Plan:
    if not any(one.kind is RuleKind.PRECISION for one in plan.alternatives):
        return plan
    rows = catalog.rows("quantisation")
    return replace(
        plan,
        alternatives=tuple(
            replace(one, quality=quality(rows, model, one.choice.precision)) if one.kind is RuleKind.PRECISION else one
            for one in plan.alternatives
        ),
    )
