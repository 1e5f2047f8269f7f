"""A pipeline's plan as plain data: what `chipwise plan --json` prints for one. `schema` is that of `plan_views`."""

from __future__ import annotations

from chipwise.api.plan_views import SCHEMA, View, choice_view
from chipwise.money.cost import Cost
from chipwise.plan.pipeline import Alternative, PipelinePlan, Totals, why


def pipeline_view(plan: PipelinePlan) -> View:
    return {
        "schema": SCHEMA, "workload": plan.workload, "kind": "pipeline", "objective": plan.objective, "fits": plan.fits,
        "stages": [
            {
                "name": one.name, "kind": one.kind, "per": one.per, "after": list(one.after), "starts_s": one.starts_s,
                "ready_s": one.ready_s, "choice": choice_view(one.choice), "alone": choice_view(one.alone),
            }
            for one in plan.stages
        ],
        "hand_offs": [
            {
                "from": one.source, "to": one.to, "bytes": one.size_bytes, "per": one.per, "path": one.path, "usd": one.usd,
                "seconds": one.seconds, "how": one.how, "assumed": list(one.assumed),
            }
            for one in plan.hand_offs
        ],
        "totals": None if plan.totals is None else _totals(plan.totals),
        "each_stage_alone": None if plan.alone is None else _alternative(plan.alone),
        "one_region": None if plan.one_region is None else _alternative(plan.one_region),
        "why": why(plan) if plan.fits else None,
        "missing": [
            {
                "stage": one.stage or None, "what": one.missing.what, "how_much": one.missing.how_much,
                "remedy": one.missing.remedy,
            }
            for one in plan.lacks
        ],
        "considered": plan.considered, "notes": list(plan.notes),
    }  # fmt: skip


def _totals(totals: Totals) -> View:
    return {
        "usd_once": totals.once.usd, "usd_per_month": totals.monthly.usd, "usd_with_one_month": totals.usd,
        "once": _lines(totals.once), "monthly": _lines(totals.monthly), "seconds": totals.seconds,
        "co2e_kg_once": totals.kg_once, "co2e_kg_per_month": totals.kg_monthly,
    }  # fmt: skip


def _lines(cost: Cost) -> list[View]:
    return [{"name": one.name, "usd": one.usd, "how": one.how} for one in cost.lines]


def _alternative(one: Alternative) -> View:
    return _totals(one.totals) | {
        "stages": [{"name": name, "where": where} for name, where in one.where],
        "misses": one.misses or None,
    }
