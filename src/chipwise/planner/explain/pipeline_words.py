"""What planning the stages of a pipeline together changed, in words."""

from __future__ import annotations

from chipwise.planner.explain.advantages import advantage_words
from chipwise.planner.explain.reason_words import words
from chipwise.planner.values.pipeline import Alternative, PipelinePlan, Totals, what
from chipwise.text import duration, plural, usd


def pipeline_headline(plan: PipelinePlan) -> str:
    """The answer in a sentence: how long all stages take, what they cost once and by the month, and what they emit."""
    assert plan.totals is not None
    totals = plan.totals
    parts = [usd(totals.once.usd)] if totals.once.lines else []
    parts += [f"{usd(totals.monthly.usd)} a month"] if totals.monthly.lines else []
    carbon = f"{totals.kg:,.1f} kg CO2e{without(totals)}"
    stages = plural(len(plan.stages), "stage")
    circuits = "".join(
        f" Of that {usd(part.usd)} is for the circuits of {stage.name}, on {part.title}."
        for stage in plan.stages
        if (part := stage.choice.quantum) is not None and part.usd > 0
    )
    return f"{stages} in {duration(totals.seconds)} for {' and then '.join(parts) or 'nothing'}, {carbon}.{circuits}"


def together_words(plan: PipelinePlan, brief: bool = False) -> str:
    """What planning the stages together changed, in one paragraph with the numbers. `brief`: without the machines of each."""
    assert plan.totals is not None
    sentences = []
    moved = plan.moved_together
    if not moved:
        sentences.append("Every stage uses the machine that it would use alone.")
    else:
        changes = "; ".join(f"{one.name} on {what(one.choice)}, alone on {what(one.alone)}" for one in moved)
        changes = ", ".join(one.name for one in moved) if brief else changes
        count = "1 stage uses another machine" if len(moved) == 1 else f"{len(moved)} stages use other machines"
        sentences.append(f"Planned together, {count} than alone: {changes}.")
    if plan.alone is not None and moved:
        sentences.append(f"Each stage planned alone: {_against(plan, plan.alone)}.")
    for tie in plan.near_ties:
        own = next(one.choice for one in plan.stages if one.name == tie.stage)
        extra_usd = own.usd - tie.choice.usd
        price = (
            f"{usd(extra_usd)} ({extra_usd / max(tie.choice.usd, 1e-9):.1%}) more" if extra_usd >= 0.005 else "the same cost"
        )
        better = ", ".join(advantage_words(own, tie.choice, tie.advantages))
        sentences.append(f"{tie.stage}: chosen over {what(tie.choice)} for {price}: {better}.")
    if len(plan.stages) == 1:
        return " ".join(sentences)
    if plan.one_region is None:
        sentences.append("No single region is known to have room for all stages within limits and goals.")
    elif all(
        one.where == other[1] for one, other in zip((one.choice for one in plan.stages), plan.one_region.where, strict=True)
    ):
        sentences.append("It stays in one region: no other region is worth the transfer.")
    else:
        region = plan.one_region.region
        sentences.append(f"All in one region, at best {region}: {_against(plan, plan.one_region)}.")
    return " ".join(sentences)


def without(totals: Totals) -> str:
    """What the sum of emissions does not hold."""
    return f" without {' and '.join(totals.unknown_kg)}" if totals.unknown_kg else ""


def _against(plan: PipelinePlan, alternative: Alternative) -> str:
    assert plan.totals is not None
    totals, other_totals = plan.totals, alternative.totals
    text = f"{usd(other_totals.usd)}, {duration(other_totals.seconds)}, {other_totals.kg:,.1f} kg CO2e{without(other_totals)}"
    values = {
        "cost": (totals.usd, other_totals.usd),
        "time": (totals.seconds, other_totals.seconds),
        "carbon": (totals.kg, other_totals.kg),
    }
    value, other_value = values.get(plan.objective, (totals.balanced, other_totals.balanced))
    excess = other_value / max(value, 1e-9) - 1
    name = "" if plan.objective in values else " by the mean of the three"
    worse = f"{excess:.1%} worse{name}" if excess > 0.0005 else f"better{name}" if excess < -0.0005 else f"no better{name}"
    return f"{text} ({worse}{f'; it {words(alternative.misses)}' if alternative.misses is not None else ''})"
