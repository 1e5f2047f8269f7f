"""The questions that decided a plan, in the order in which they were asked, and whom each sent away.

A question that sent nobody away did not decide and is left out; where nothing fits, the last one says what was missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chipwise.planner.explain.reason_words import lost, missing_words, rule_words, words
from chipwise.planner.explain.remedy_words import remedy_words
from chipwise.planner.explain.words import many_words, no_service
from chipwise.planner.reasons.goals import Goal
from chipwise.planner.reasons.limits import NotOffered, OverQuota, RuleKind
from chipwise.planner.values.choice import Choice
from chipwise.planner.values.plan import Loss, Missing, Obstacle, Plan
from chipwise.report.words import full, numbers
from chipwise.text import usd

_OF_GOALS = (Obstacle.DEADLINE, Obstacle.BUDGET, Obstacle.DEADLINE_AND_BUDGET, Obstacle.LATENCY, Obstacle.THROUGHPUT)
_BEST = {
    "cost": "Which costs least?",
    "time": "Which is fastest?",
    "carbon": "Which emits least?",
    "balanced": "Which balances cost, time and carbon best?",
}
_LISTED_LIMIT = 4  # that a question lists by name; the tables list all


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    away: tuple[str, ...]  # whom it sent away, a sentence each
    left: str = ""  # who goes on
    stopped: bool = False  # nobody went on


def questions(plan: Plan) -> tuple[Question, ...]:
    missing = {asked: tuple(_missing(one) for one in plan.missing if _stage(one) == asked) for asked in _STAGES}
    steps = (
        Question(_ALLOWED, missing[_ALLOWED] + _refused(plan), f"{plan.counts.considered:,} candidates"),
        Question(_FITS, missing[_FITS] + _families(plan.losses, _FITS), f"{plan.counts.estimated:,} ways of running estimated"),
        Question(_MEETS, missing[_MEETS] + _families(plan.losses, _MEETS), _kinds(plan)),
    )
    if plan.winner is None:
        last = max((at for at, one in enumerate(_STAGES) if missing[one]), default=len(_STAGES) - 1)
        answered = [one for one in steps[:last] if one.away]
        return (*answered, Question(steps[last].text, steps[last].away or ("nothing was left",), stopped=True))
    best = Question(_BEST.get(plan.objective, f"Which is best by {plan.objective}?"), _beaten(plan), _machine_text(plan.winner))
    return tuple(one for one in (*steps, best, *_purchase(plan, plan.winner), *_per_use(plan)) if one.away)


_ALLOWED, _FITS, _MEETS = "May it be used?", "Can it run it?", "Are the goals met?"
_STAGES = (_ALLOWED, _FITS, _MEETS)


def _stage(missing: Missing) -> str:
    if missing.what in (Obstacle.OFFERS, Obstacle.COMPLIANCE):
        return _ALLOWED
    return _MEETS if missing.what in _OF_GOALS else _FITS


def _missing(one: Missing) -> str:
    return f"{one.what}: {missing_words(one)}. Would help: {remedy_words(one)}."


def _refused(plan: Plan) -> tuple[str, ...]:
    sentences = [f"{one.offers:,} offers: {rule_words(one.rule)}" for one in plan.refused]
    unasked = [one.family for one in plan.losses if _question(one) == _ALLOWED]
    return (*sentences, *([f"{', '.join(unasked)}: no offer is left"] if unasked else ()))


def _question(loss: Loss) -> str:
    """The question that sent a family away; the last one where it was only beaten."""
    if isinstance(loss.why, Goal | OverQuota):
        return _MEETS
    if loss.choice is not None:
        return ""
    return _ALLOWED if isinstance(loss.why, NotOffered) else _FITS


def _families(losses: Sequence[Loss], question: str) -> tuple[str, ...]:
    """A sentence for each reason, with the families it holds for."""
    matches = [one for one in losses if _question(one) == question]
    return tuple(
        f"{', '.join(one.family for one in matches if one.why == reason)}: {words(reason)}"
        for reason in dict.fromkeys(one.why for one in matches)
    )


def _kinds(plan: Plan) -> str:
    families = len({one.family for one in plan.choices})
    return f"{len(plan.choices):,} choices of {families} {'family' if families == 1 else 'families'}"


def _machine_text(one: Choice) -> str:
    return f"{many_words(one)}{one.provider} {one.machine}"


def _beaten(plan: Plan) -> tuple[str, ...]:
    sentences = [f"{one.family}: {lost(one)}" for one in plan.losses if one.choice is not None and not _question(one)]
    second = plan.choices[1] if len(plan.choices) > 1 else None
    if second is not None and plan.winner is not None and second.family == plan.winner.family:
        sentences.insert(0, f"{_machine_text(second)}: {numbers(second, plan)}")
    remaining = len(sentences) - _LISTED_LIMIT
    return (*sentences[:_LISTED_LIMIT], *([f"and {remaining} more, in the table below"] if remaining > 0 else ()))


def _purchase(plan: Plan, winner: Choice) -> tuple[Question, ...]:
    """Spot or not: asked where both were to be had, or where spot was refused."""
    refused = next((one for one in plan.refused if one.rule.kind is RuleKind.INTERRUPTIBLE), None)
    spot = winner.purchase == "spot"
    alternatives = [one for one in plan.choices if (one.purchase == "spot") is not spot]
    if not alternatives and not (refused is not None and not spot):
        return ()
    if refused is not None and not spot:
        away = f"spot: {refused.offers:,} offers refused, as machines may not be taken away"
    else:
        alternative = next((one for one in alternatives if one.machine == winner.machine), alternatives[0])
        away = f"{alternative.purchase}: {', '.join(full(alternative, plan)[::2])}"
    return (Question("Spot or not?", (away,), winner.purchase),)


def _per_use(plan: Plan) -> tuple[Question, ...]:
    """Asked where there are such services and none of them is cheaper; a cheaper one is part of the answer."""
    if not plan.services or plan.service is not None:
        return ()
    best = plan.services[0]
    if best.refused:
        away = f"{len(plan.services):,} services paid per use, {no_service(plan)}"
    else:
        away = "; ".join(filter(None, (f"{best.title}, {best.kind}: {usd(best.usd)} a {plan.per}", best.break_even)))
    return (Question("Machines, or paid per use?", (away,), "machines"),)
