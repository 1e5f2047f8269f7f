"""The answer to `chipwise plan --why NAME`, in words."""

from __future__ import annotations

from typing import assert_never

from chipwise.planner.explain.reason_words import rule_words, words
from chipwise.planner.explain.remedy_words import eased
from chipwise.planner.explain.row_words import watts
from chipwise.planner.explain.why import Outcome, Why
from chipwise.planner.explain.words import many_words
from chipwise.planner.values.choice import Choice
from chipwise.planner.values.plan import Service
from chipwise.text import duration, mass, usd


def why_words(finding: Why, per: str) -> list[str]:
    """The best it could do, what it lost by and by how much; then the offers that limits left out."""
    sentences = [_answer(finding, per)]
    if finding.refused and finding.outcome is not Outcome.REFUSED:
        left_out = ", ".join(f"{one.offers:,} {rule_words(one.rule)}" for one in finding.refused)
        sentences.append(
            f"{sum(one.offers for one in finding.refused):,} of its {finding.offers:,} offers were left out: {left_out}."
        )
    if finding.service is not None:
        sentences.append(_paid_per_use(finding, finding.service))
    return sentences


def _answer(finding: Why, per: str) -> str:
    match finding.outcome:
        case Outcome.WINS:
            assert finding.best is not None
            return f"{finding.subject}: this is the answer, {_did(finding.best, per)}."
        case Outcome.BEATEN:
            assert finding.best is not None
            assert finding.reason is not None
            rank = f"; number {finding.rank:,} of {finding.candidates:,} candidates" if finding.rank is not None else ""
            lost = f"{words(finding.reason)}{_extra(finding)}"
            return f"{finding.subject}: at best {_did(finding.best, per)}{rank}. {lost[0].upper()}{lost[1:]}."
        case Outcome.MISSES:
            assert finding.best is not None
            assert finding.reason is not None
            helps = f" Would help: {remedy}." if (remedy := eased(finding.reason)) else ""
            return f"{finding.subject}: at best {_did(finding.best, per)}. It was refused: {words(finding.reason)}.{helps}"
        case Outcome.REFUSED:
            rules = "; ".join(f"{one.offers:,} {rule_words(one.rule)}" for one in finding.refused)
            example = finding.refused[-1].reason
            detail = f" ({words(example)})" if example is not None else ""
            all_offers = "its only offer" if finding.offers == 1 else f"all of its {finding.offers:,} offers"
            return f"{finding.subject}: limits exclude {all_offers}: {rules}{detail}.{_without_limits(finding, per)}"
        case Outcome.UNABLE:
            assert finding.reason is not None
            helps = f" Would help: {remedy}." if (remedy := eased(finding.reason)) else ""
            return f"{finding.subject}: none of its offers can do it: {words(finding.reason)}.{helps}"
        case Outcome.NO_OFFER if finding.own_unpriced:
            remedy = "state its hourly cost, or its purchase price and lifetime, in the file that lists it"
            return f"{finding.subject}: no price: {remedy}."
        case Outcome.NO_OFFER if finding.is_service:
            return f"{finding.subject}: paid per use, and no machine of the catalog."
        case Outcome.NO_OFFER:
            return f"{finding.subject}: the catalog has no machine of it on offer."
    assert_never(finding.outcome)


def _without_limits(finding: Why, per: str) -> str:
    """The best it could do if the limits that refuse it were lifted, and by how much it would win or lose."""
    freed, winner = finding.freed, finding.winner
    if freed is None or (freed.best is None and freed.reason is None):
        return ""
    if freed.best is None:
        return f" Without them: {words(freed.reason)}." if freed.reason is not None else ""
    text = f" Without them, at best {_did(freed.best, per)}"
    if freed.outcome is Outcome.MISSES:
        return f"{text}; it would miss a goal: {words(freed.reason)}." if freed.reason is not None else f"{text}."
    if winner is None:
        return f"{text}; it would meet the goals."
    difference = freed.best.usd - winner.usd
    more = f"{usd(abs(difference))} {'more' if difference >= 0 else 'less'} than the answer"
    porting = ", after porting" if freed.best.needs_porting and not winner.needs_porting else ""
    return f"{text}: {more}{porting}."


def _paid_per_use(finding: Why, service: Service) -> str:
    text = f"Paid {service.kind}, {service.title} costs {usd(service.usd)} a month"
    if finding.winner is not None:
        text += f" against {usd(finding.winner.usd)} for the machines that win"
    return f"{text}; not allowed: {words(service.refused[0])}." if service.refused else f"{text}."


def _did(choice: Choice, per: str) -> str:
    chips = f"{choice.chips * choice.machines} {choice.chip}"
    time = "" if per == "month" else f"{duration(choice.seconds)} for "
    machines = f"{many_words(choice)}{choice.where}, {choice.purchase} ({chips})"
    return f"{machines}: {time}{usd(choice.usd)} a {per}, {mass(choice.kg)} CO2e, {watts(choice)}"


def _extra(finding: Why) -> str:
    """By how much in money and carbon, whatever was asked to be small."""
    assert finding.best is not None
    if finding.winner is None:
        return ""
    dollars, kg = finding.best.usd - finding.winner.usd, finding.best.kg - finding.winner.kg
    emits = f"emits {mass(abs(kg))} {'more' if kg >= 0 else 'less'} CO2e"
    if usd(finding.best.usd) == usd(finding.winner.usd):
        return f"; {emits}"
    return f"; costs {usd(abs(dollars))} {'more' if dollars >= 0 else 'less'} and {emits}"
