"""How the report says a choice: short enough for a chart's axis, long enough for a tooltip."""

from __future__ import annotations

from chipwise.planner.explain.words import RATES, follows, many_words
from chipwise.planner.values.choice import Choice
from chipwise.planner.values.plan import Plan
from chipwise.text import duration, usd

_LONGEST = 24  # letters of a name on an axis


def mass(kg: float) -> str:
    return f"{kg:,.0f}" if kg >= 10 else f"{kg:.1f}" if kg >= 0.1 else f"{kg:.2g}"


def chips(choice: Choice) -> str:
    if not choice.chips:
        return choice.chip
    fewest = f"{choice.chips * choice.over_time.fewest:,} to " if choice.over_time is not None and follows(choice) else ""
    return f"{fewest}{choice.chips * choice.machines:,} {choice.chip}"


def short(text: str, longest: int = _LONGEST) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def amount(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def rated(plan: Plan) -> str:
    """What the rate of a service counts."""
    return "people" if plan.kind == "interactive" else RATES.get(plan.kind, "rate")


def speed(choice: Choice, plan: Plan) -> str:
    """What stands beside the cost: the time of a job, the rate of a service; nothing where that is not known."""
    if plan.per == "job":
        return duration(choice.seconds)
    if choice.seats is not None:
        return f"{choice.seats:,} people"
    return "" if choice.rate is None else f"{amount(choice.rate)} {rated(plan)}"


def numbers(one: Choice, plan: Plan) -> str:
    return listed(f"{usd(one.usd)} a {plan.per}", speed(one, plan), f"{mass(one.kg)} kg CO2e")


def full(one: Choice, plan: Plan) -> list[str]:
    """Line by line: where, what and how it is bought, the three numbers."""
    return [f"{many_words(one)}{one.where}", listed(chips(one), one.precision, one.purchase), numbers(one, plan)]


def listed(*parts: str) -> str:
    return ", ".join(part for part in parts if part)
