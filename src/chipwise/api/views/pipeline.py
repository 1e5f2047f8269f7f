"""A pipeline's plan as plain data: what `chipwise plan --json` prints for one. `schema` is that of `plan_views`."""

from __future__ import annotations

from chipwise.api.views.plan import SCHEMA, View, choice_view, missing_view
from chipwise.money.cost import Cost
from chipwise.planner.explain.reason_words import words
from chipwise.planner.pipeline.value import Alternative, PipelinePlan, Totals, by_use, why
from chipwise.planner.reasons import reason_data
from chipwise.planner.values.plan import Choice


def pipeline_view(plan: PipelinePlan) -> View:
    return {
        "schema": SCHEMA,
        "workload": plan.workload,
        "kind": "pipeline",
        "objective": plan.objective,
        "fits": plan.fits,
        "stages": [
            {
                "name": one.name,
                "kind": one.kind,
                "per": one.per,
                "after": list(one.after),
                "starts_s": one.starts_s,
                "ready_s": one.ready_s,
                "choice": _choice(one.choice),
                "alone": _choice(one.alone),
                "paid_by_use": one.per_use,
                "assumed": list(one.assumed),
            }
            for one in plan.stages
        ],
        "hand_offs": [
            {
                "from": one.source,
                "to": one.to,
                "bytes": one.size_bytes,
                "per": one.per,
                "path": one.path,
                "usd": one.usd,
                "seconds": one.seconds,
                "how": one.how,
                "assumed": list(one.assumed),
            }
            for one in plan.hand_offs
        ],
        "totals": None if plan.totals is None else _totals(plan.totals),
        "each_stage_alone": None if plan.alone is None else _alternative(plan.alone),
        "one_region": None if plan.one_region is None else _alternative(plan.one_region),
        "why": why(plan) if plan.fits else None,
        "refused": [f"{one.combination}: {words(one.why)}" for one in plan.refused],
        "refused_reasons": [reason_data(one.why) for one in plan.refused],
        "missing": [
            {
                "stage": one.stage or None,
                **missing_view(one.missing),
            }
            for one in plan.lacks
        ],
        "considered": plan.considered,
        "notes": list(plan.notes),
    }


def _choice(one: Choice) -> View:
    return choice_view(one) | ({"co2e_kg": None} if by_use(one) else {})


def _totals(totals: Totals) -> View:
    return {
        "usd_once": totals.once.usd,
        "usd_per_month": totals.monthly.usd,
        "usd_with_one_month": totals.usd,
        "once": _lines(totals.once),
        "monthly": _lines(totals.monthly),
        "seconds": totals.seconds,
        "co2e_kg_once": totals.kg_once,
        "co2e_kg_per_month": totals.kg_monthly,
        "co2e_not_known_of": list(totals.unknown_kg),
    }


def _lines(cost: Cost) -> list[View]:
    return [{"name": one.name, "usd": one.usd, "how": one.how} for one in cost.lines]


def _alternative(alternative: Alternative) -> View:
    return _totals(alternative.totals) | {
        "stages": [{"name": name, "where": where} for name, where in alternative.where],
        "misses": None if alternative.misses is None else words(alternative.misses),
    }
