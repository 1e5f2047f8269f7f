"""A plan as plain data: what `chipwise plan --json` prints. `schema` rises when a key changes its meaning or goes."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from chipwise.planner import quotas
from chipwise.planner.explain.advantages import advantage_words
from chipwise.planner.explain.reason_words import example_words, lost, missing_words, rule_words, words
from chipwise.planner.explain.remedy_words import remedy_words
from chipwise.planner.explain.risks import risk_line
from chipwise.planner.explain.why import Why as Why
from chipwise.planner.explain.why_words import why_words
from chipwise.planner.explain.words import headline
from chipwise.planner.limits import Refused
from chipwise.planner.reasons import reason_data
from chipwise.planner.values.choice import Choice
from chipwise.planner.values.load import OverTime
from chipwise.planner.values.plan import DataMoved, Emitted, Loss, Missing, Plan, Service
from chipwise.planner.values.trade import cost_time_curve, knee
from chipwise.units import MONTH
from chipwise.views.load import load_views

SCHEMA = 1
View = dict[str, Any]


def plan_view(plan: Plan) -> View:
    return {
        "schema": SCHEMA,
        "workload": plan.workload,
        "kind": plan.kind,
        "objective": plan.objective,
        "per": plan.per,
        "confidence": {"goals": plan.confidence, "load": plan.confidence if plan.confidence_stated else None},
        "fits": plan.winner is not None,
        "headline": headline(plan) or None,
        "winner": choice_view(plan.winner) if plan.winner else None,
        "choices": [choice_view(one) for one in plan.choices],
        "front": [choice_view(one) for one in plan.front],
        "knee": choice_view(bend) if plan.per == "job" and (bend := knee(cost_time_curve(plan.front))) else None,
        "losses": [_loss_view(one) for one in plan.losses],
        "refused": [_refused_view(one) for one in plan.refused],
        "missing": [missing_view(one) for one in plan.missing],
        "answers": [{"question": one.question, "text": one.told} for one in plan.answers],
        "risks": risk_line(plan) or None,
        "near_tie": {
            "choice": choice_view(tie.choice),
            "advantages": list(map(str, tie.advantages)),
            "reasons": advantage_words(plan.winner, tie.choice, tie.advantages),
        }
        if (tie := plan.near_tie) and plan.winner
        else None,
        "porting": choice_view(plan.porting) if plan.porting else None,
        "larger": choice_view(plan.larger) if plan.larger else None,
        "turns": [{"what": one.what, "text": one.told} for one in plan.turns],
        "services": [service_view(service) for service in plan.services],
        "alternatives": [
            {
                "kind": str(one.kind),
                "choice": choice_view(one.choice),
                "saving": one.saving,
                "term_years": one.term_years,
                "contract_usd": one.contract_usd,
                "break_even_share": one.break_even,
            }
            for one in plan.alternatives
        ],
        "service_is_cheaper": plan.service is not None,
        "service": service_view(plan.service) if plan.service else None,
        "data": data_view(plan.data) if plan.data else None,
        "considered": plan.counts.considered,
        "pruned": plan.counts.pruned,
        "estimated": plan.counts.estimated,
        "emitted": _emitted_view(plan.emitted) if plan.emitted else None,
        "notes": [*plan.notes, *quotas.notes(plan)],
        **load_views(plan),
    }


def data_view(data: DataMoved) -> View:
    """Bytes and how they are known; `usd` and `seconds` of moving them are in the cost where `counted`."""
    amounts = {name: getattr(data.volume, name) for name in ("read", "written", "checkpoint")}
    return {
        **{
            name: {"bytes": amount.bytes, "formula": amount.formula or None, "derived": bool(amount.formula)}
            if amount
            else None
            for name, amount in amounts.items()
        },
        "monthly": data.volume.monthly,
        "place": data.place,
        "counted": data.counted,
        "usd": list(data.usd) if data.usd else None,
        "seconds": data.seconds,
        "assumed": list(data.assumed),
    }


def service_view(service: Service) -> View:
    """What is paid per use instead of per machine."""
    return {
        "kind": service.kind,
        "provider": service.provider,
        "name": service.name,
        "hardware": service.hardware,
        "usd": service.usd,
        "usd_range": [service.low_usd, service.high_usd],
        "price_of": service.price_of,
        "cold_share": service.cold_share,
        "break_even": service.break_even,
        "assumed": list(service.assumed),
        "refused": [words(reason) for reason in service.refused],
        "unchecked": list(service.unchecked),
        "certain": service.certain,
        "format_known": service.format_known,
        "format_doubted": service.format_doubted,
    }


def choice_view(choice: Choice) -> View:
    return {
        "provider": choice.provider,
        "machine": choice.machine,
        "region": choice.region,
        "country": choice.country,
        "chip": choice.chip,
        "family": choice.family,
        "needs_porting": choice.needs_porting,
        "chips_per_machine": choice.chips,
        "machines": choice.machines,
        "purchase": choice.purchase,
        "precision": choice.precision,
        "split": choice.split.as_dict(),
        "seconds": {"value": choice.seconds, "low": choice.low_s, "high": choice.high_s, "p90": choice.p90_s},
        "usd": choice.usd,
        "usd_range": [choice.low_usd, choice.high_usd],
        "usd_at_confidence": choice.sure_usd,
        "usd_per_machine_hour": choice.hourly_usd,
        "listed_usd_per_machine_hour": choice.listed_usd or choice.hourly_usd,
        "lines": [{"name": one.name, "usd": one.usd, "how": one.how} for one in choice.cost.lines],
        "usd_per_unit": choice.usd_per_unit,
        "unit": choice.unit,
        "co2e_kg": choice.kg,
        "making_co2e_kg": choice.making_kg,
        "speed": _speed_view(choice),
        "requests_per_s": choice.rate,
        "requests_per_s_range": choice.rate and [choice.rate / choice.rate_spread, choice.rate * choice.rate_spread],
        "answer_terms_s": dict(choice.answer_s) or None,
        "replicas": choice.replicas,
        "memory_share": choice.memory_share,
        "provenance": choice.provenance,
        "price_of": choice.price_of,
        "price_days": choice.price_days,
        "interruptions": choice.interruptions,
        "interruptions_assumed": choice.interruptions_assumed,
        "first_wait_s": choice.first_wait_s,
        "later_wait_s": choice.later_wait_s,
        "checkpoint_every_s": choice.checkpoint_s or None,
        "storage": choice.storage or None,
        "feeding": asdict(choice.feeding) if choice.feeding else None,
        "latency_s": dict(choice.latency),
        "network_s": choice.network_s,
        "goals_probability": choice.goals_chance,
        "request_probability": choice.request_chance,
        "load_probability": choice.load_chance,
        "late_probability": choice.late_share,
        "watts": {"machine": choice.machine_watts, "all": choice.watts, "stated": choice.watts_stated},
        "quantum": asdict(choice.quantum) if choice.quantum else None,
        "layered_usd": choice.layered_usd,
        "over_time": _over_time_view(choice.over_time) if choice.over_time else None,
        "own": asdict(choice.own) if choice.own else None,
    }


def _speed_view(choice: Choice) -> View | None:
    """Of a job: what it does a second while it works, and what its seconds are made of."""
    if choice.pace is None or not 0 < choice.work_s != MONTH:  # a service works all the month
        return None
    low, middle, high, unit = choice.pace
    return {"value": middle, "low": low, "high": high, "unit": f"{unit}/s", "terms_s": choice.parts_s}


def _over_time_view(following: OverTime) -> View:
    return {
        "fewest_machines": following.fewest,
        "machine_hours": following.machine_hours,
        "always_usd": following.always_cost.usd,
        "always_co2e_kg": following.always_kg,
    }


def _loss_view(loss: Loss) -> View:
    return {
        "family": loss.family,
        "why": lost(loss),
        "reason": reason_data(loss.why),
        "choice": choice_view(loss.choice) if loss.choice else None,
    }


def missing_view(missing: Missing) -> View:
    return {
        "what": missing.what,
        "how_much": missing_words(missing),
        "remedy": remedy_words(missing),
        "reason": reason_data(missing.reason),
        "nearest": missing.nearest or None,
        "remedies": [reason_data(one) for one in missing.remedies],
    }


def why_view(answer: Why, per: str) -> View:
    """The answer to `--why NAME`."""
    return {
        "subject": answer.subject,
        "outcome": str(answer.outcome),
        "text": why_words(answer, per),
        "reason": None if answer.reason is None else reason_data(answer.reason),
        "offers": answer.offers,
        "refused": [_refused_view(one) for one in answer.refused],
        "rank": answer.rank,
        "candidates": answer.candidates,
        "choice": choice_view(answer.best) if answer.best else None,
    }


def _refused_view(refused: Refused) -> View:
    return {
        "rule": rule_words(refused.rule),
        "limit": asdict(refused.rule),
        "offers": refused.offers,
        "example": example_words(refused),
        "reason": None if refused.reason is None else reason_data(refused.reason),
    }


def _emitted_view(emitted: Emitted) -> View:
    return {
        "kg": emitted.kg,
        "lines": [
            {"name": line.name, "kg": line.kg, "kg_range": line.range_kg and list(line.range_kg), "how": line.how}
            for line in emitted.lines
        ],
        "basis": list(emitted.basis),
        "g_per_unit": emitted.g_per_unit,
        "greener": [one._asdict() for one in emitted.greener],
    }
