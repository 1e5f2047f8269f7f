"""A pipeline's plan as plain data: what `chipwise plan --json` prints for one. `schema` is that of `plan_views`."""

from __future__ import annotations

from chipwise.money.cost import Cost
from chipwise.planner.explain.pipeline_words import pipeline_headline, together_words
from chipwise.planner.explain.reason_words import words
from chipwise.planner.explain.risks import pipeline_risk_line
from chipwise.planner.reasons import reason_data
from chipwise.planner.values.choice import Choice
from chipwise.planner.values.pipeline import Alternative, PipelinePlan, Totals, by_use
from chipwise.views.plan import SCHEMA, View, choice_view, missing_view


def pipeline_view(plan: PipelinePlan) -> View:
    return {
        "schema": SCHEMA,
        "workload": plan.workload,
        "kind": "pipeline",
        "objective": plan.objective,
        "fits": plan.fits,
        "headline": pipeline_headline(plan) if plan.fits else None,
        "stages": [
            {
                "name": stage.name,
                "kind": stage.kind,
                "per": stage.per,
                "after": list(stage.after),
                "starts_s": stage.starts_s,
                "ready_s": stage.ready_s,
                "choice": _choice(stage.choice),
                "alone": _choice(stage.alone),
                "paid_by_use": stage.per_use,
                "assumed": list(stage.assumed),
            }
            for stage in plan.stages
        ],
        "hand_offs": [
            {
                "from": hand_off.source,
                "to": hand_off.to,
                "bytes": hand_off.size_bytes,
                "per": hand_off.per,
                "path": hand_off.path,
                "usd": hand_off.usd,
                "seconds": hand_off.seconds,
                "how": hand_off.how,
                "assumed": list(hand_off.assumed),
            }
            for hand_off in plan.hand_offs
        ],
        "totals": None if plan.totals is None else _totals(plan.totals),
        "each_stage_alone": None if plan.alone is None else _alternative(plan.alone),
        "one_region": None if plan.one_region is None else _alternative(plan.one_region),
        "near_ties": [
            {"stage": tie.stage, "choice": _choice(tie.choice), "usd": tie.usd, "advantages": list(map(str, tie.advantages))}
            for tie in plan.near_ties
        ],
        "risks": pipeline_risk_line(plan) or None,
        "why": together_words(plan) if plan.fits else None,
        "refused": [f"{one.combination}: {words(one.why)}" for one in plan.refused],
        "refused_reasons": [reason_data(one.why) for one in plan.refused],
        "missing": [
            {
                "stage": lack.stage or None,
                **missing_view(lack.missing),
            }
            for lack in plan.lacks
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
