"""The answer to `chipwise plan --why NAME`, in words."""

from __future__ import annotations

from typing import assert_never

from chipwise.planner.explain.reason_words import eased, rule_words, words
from chipwise.planner.explain.why import Outcome, Why
from chipwise.planner.explain.words import watts
from chipwise.planner.values.plan import Choice, Service
from chipwise.text import duration, mass, usd


def why_words(found: Why, per: str) -> list[str]:
    """The best it could do, what it lost by and by how much; then the offers that limits left out."""
    told = [_answer(found, per)]
    if found.refused and found.outcome is not Outcome.REFUSED:
        left_out = ", ".join(f"{one.offers:,} {rule_words(one.rule)}" for one in found.refused)
        told.append(
            f"Limits leave out {sum(one.offers for one in found.refused):,} of its {found.offers:,} offers: {left_out}."
        )
    if found.service is not None:
        told.append(_paid_per_use(found, found.service))
    return told


def _answer(found: Why, per: str) -> str:
    match found.outcome:
        case Outcome.WINS:
            assert found.best is not None
            return f"{found.subject}: this is the answer, {_did(found.best, per)}."
        case Outcome.BEATEN:
            assert found.best is not None
            assert found.reason is not None
            rank = f"candidate {found.rank:,} of {found.candidates:,}"
            return f"{found.subject}: at best {_did(found.best, per)}; {rank}. It lost: {words(found.reason)}{_extra(found)}."
        case Outcome.MISSES:
            assert found.best is not None
            assert found.reason is not None
            helps = f" Would help: {more}." if (more := eased(found.reason)) else ""
            return f"{found.subject}: at best {_did(found.best, per)}. It {words(found.reason)}.{helps}"
        case Outcome.REFUSED:
            rules = "; ".join(f"{one.offers:,} {rule_words(one.rule)}" for one in found.refused)
            example = found.refused[-1].why
            such = f" ({words(example)})" if example is not None else ""
            return f"{found.subject}: limits refuse all of its {found.offers:,} offers: {rules}{such}."
        case Outcome.UNABLE:
            assert found.reason is not None
            helps = f" Would help: {more}." if (more := eased(found.reason)) else ""
            return f"{found.subject}: none of its offers can do it: {words(found.reason)}.{helps}"
        case Outcome.NO_OFFER:
            return f"{found.subject}: the catalog has no machine of it on offer."
    assert_never(found.outcome)


def _paid_per_use(found: Why, service: Service) -> str:
    told = f"Paid {service.kind}, {service.title} costs {usd(service.usd)} a month"
    if found.winner is not None:
        told += f" against {usd(found.winner.usd)} for the machines that win"
    return f"{told}; it may not be used: {service.refused[0]}." if service.refused else f"{told}."


def _did(one: Choice, per: str) -> str:
    many = f"{one.machines} x " if one.machines > 1 else ""
    chips = f"{one.chips * one.machines} {one.chip}"
    time = "" if per == "month" else f"{duration(one.seconds)} for "
    return f"{many}{one.where}, {one.purchase} ({chips}): {time}{usd(one.usd)} a {per}, {mass(one.kg)} CO2e, {watts(one)}"


def _extra(found: Why) -> str:
    """By how much in money and carbon, whatever was asked to be small."""
    assert found.best is not None
    if found.winner is None:
        return ""
    dollars, kg = found.best.usd - found.winner.usd, found.best.kg - found.winner.kg
    return (
        f"; {usd(abs(dollars))} {'more' if dollars >= 0 else 'less'} and {mass(abs(kg))} CO2e {'more' if kg >= 0 else 'less'}"
    )
