"""What would be cheaper if a default were lifted: told beside the answer, never instead of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from chipwise.catalog.offer import Purchase
from chipwise.planner.limits import COMMITTED_YEARS
from chipwise.planner.reasons.limits import RuleKind
from chipwise.planner.remedies import Lighter
from chipwise.planner.values.choice import Choice
from chipwise.planner.values.plan import CheaperOption, Missing, Obstacle
from chipwise.text import usd as usd_text
from chipwise.units import HOUR, YEAR

WORTH_TELLING = {
    RuleKind.MARKET: 0.20,
    RuleKind.COMMITMENT: 0.03,
    RuleKind.PRECISION: 0.05,
    RuleKind.CONFIDENCE: 0.20,
}  # saved at least


def may_save(kind: RuleKind, usd: float, winner: Choice | None) -> bool:
    """Whether a choice that costs so much, or more with its storage, may be worth telling."""
    return winner is None or 1.0 - usd / max(winner.usd, 1e-9) >= WORTH_TELLING[kind] - 1e-6


def alternative(kind: RuleKind, choice: Choice, winner: Choice | None) -> CheaperOption | None:
    """None: it saves too little to be told."""
    saving = 1.0 if winner is None else 1.0 - choice.usd / max(winner.usd, 1e-9)
    if saving < WORTH_TELLING[kind]:
        return None
    years = COMMITTED_YEARS.get(Purchase(choice.purchase), 0.0)
    return CheaperOption(
        kind=kind,
        choice=choice,
        saving=saving,
        term_years=years or None,
        contract_usd=choice.hourly_usd * choice.machines * years * YEAR / HOUR if years else None,
        break_even=None if winner is None or not years else choice.usd / max(winner.usd, 1e-9),
    )


def with_options(missing: Sequence[Missing], options: Sequence[CheaperOption], per: str) -> tuple[Missing, ...]:
    """Where nothing is cheap enough or holds the weights, with the options that do: each keeps all goals once its default is
    lifted."""
    period = " a month" if per == "month" else ""

    def helpful(loss: Missing) -> tuple[Lighter, ...]:
        is_told = any(isinstance(one, Lighter) for one in loss.remedies)
        if loss.together or not (loss.what is Obstacle.BUDGET or (loss.what is Obstacle.MEMORY and not is_told)):
            return ()
        able = [one for one in options if loss.what is Obstacle.BUDGET or one.kind is RuleKind.PRECISION]
        return tuple(Lighter(_lifting(one), _hardware_words(one.choice, period)) for one in able)

    return tuple(replace(loss, remedies=(*loss.remedies, *helpful(loss))) for loss in missing)


def _hardware_words(choice: Choice, period: str) -> str:
    return f"{choice.machines} x {choice.provider} {choice.machine}, {usd_text(choice.usd)}{period}"


def _lifting(option: CheaperOption) -> str:
    """The command's option that lifts the default."""
    if option.kind is RuleKind.PRECISION:
        return f"--precision {option.choice.precision}"
    if option.kind is RuleKind.CONFIDENCE:
        return f"--confidence {max(math.floor((option.choice.request_chance or 0.0) * 20) / 20, 0.5):.2g}"
    return "--market any" if option.kind is RuleKind.MARKET else f"--commit {option.term_years:g}y"
