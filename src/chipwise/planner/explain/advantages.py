"""What a cheaper choice lost by, and what the answer is better in: each with its figure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from chipwise.planner.defaults import NEARLY
from chipwise.planner.preference import FRESH_DAYS, SOONER, Advantage
from chipwise.planner.reasons import Beaten
from chipwise.planner.values.choice import Choice
from chipwise.text import duration, long_age
from chipwise.workload.kinds import Serve

ALIKE = 0.005  # of the cost: below it nothing is cheaper
AS_SURE = 0.02  # of a probability: what is nearer than that is as probable


def advantage_words(winner: Choice, cheaper: Choice, advantages: Sequence[Advantage]) -> list[str]:
    """Of the answer over something cheaper."""
    figures = {
        Advantage.CARRIES: f"{_surely(winner.load_chance)} probability, not {_surely(cheaper.load_chance)}",
        Advantage.REDUNDANT: "",
        Advantage.SOONER: f"{duration(winner.seconds)}, not {duration(cheaper.seconds)}",
        Advantage.FRESHER: f"{long_age(winner.price_days)} old, not {long_age(cheaper.price_days)}",
        Advantage.FEWER: f"{winner.machines:,}, not {cheaper.machines:,}",
        Advantage.LESS_PORTING: f"{winner.chip}, not {cheaper.chip}",
        Advantage.HEADROOM: f"the other has {cheaper.headroom or 0.0:.1%}",
        Advantage.KNOWN: f"{cheaper.chip} was not",
        Advantage.SURER: f"the other: {cheaper.doubt}" if cheaper.doubt else "",
    }
    names = {Advantage.HEADROOM: f"the full {Serve.model_fields['headroom'].default:.0%} of headroom"}
    return [f"{names.get(one, one)} ({figures[one]})" if figures[one] else str(one) for one in advantages]


def _surely(chance: float | None) -> str:
    return "more than 99%" if (chance or 0.0) > 0.99 else f"{chance or 0.0:.0%}"


def lost_by(lost: Beaten) -> str:
    """What made something lose that costs less; empty: it does not, or it is porting, which has its own words."""
    saved = 1.0 - lost.usd / max(lost.best_usd, 1e-9)
    if lost.objective != "cost" or saved < ALIKE or lost.porting:
        return ""
    return ", ".join(_causes(lost, saved))


def _causes(lost: Beaten, saved: float) -> Iterator[str]:
    if lost.doubt:
        yield f"its price is uncertain ({lost.doubt}): what costs up to {lost.doubt_share:.0%} more for certain ranks first"
        return
    if lost.chance is not None and lost.best_chance is not None and lost.chance < lost.best_chance - AS_SURE:
        yield f"a single request meets the latency goals with {lost.chance:.0%} against {lost.best_chance:.0%}"
        return
    if lost.headroom is not None and lost.headroom < (usual := Serve.model_fields["headroom"].default):
        yield f"its headroom is {lost.headroom:.1%}, not {usual:.0%}"
        return
    if saved > NEARLY / (1.0 + NEARLY) + 1e-9:
        return
    if lost.per == "job" and lost.seconds * (1.0 - SOONER) >= lost.best_s:
        yield f"it takes {duration(lost.seconds)} against {duration(lost.best_s)}"
    if lost.days - lost.best_days >= FRESH_DAYS:
        yield f"its price is {long_age(lost.days)} old against {long_age(lost.best_days)}"
    if lost.machines > lost.best_machines:
        yield f"{lost.machines:,} machines against {lost.best_machines:,}"
