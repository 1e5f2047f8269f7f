"""What may go wrong with the answer, in one short line under it; `turning` has the same at length."""

from __future__ import annotations

from collections.abc import Iterator

from chipwise.catalog.offer import Purchase
from chipwise.planner import quotas
from chipwise.planner.defaults import FULL_MEMORY
from chipwise.planner.explain.words import EDGE, leading_layers, software_of
from chipwise.planner.values.plan import Choice, Plan

UNSURE = 0.895  # probability of keeping the latency goals, below which it is a risk: nothing on offer was surer
OFTEN = 0.1  # interruptions: fewer are not worth a number
LONGEST = 220  # letters: three lines of a narrow terminal


def risk_line(plan: Plan) -> str:
    """Empty: none of these. The gravest first; what does not fit stands among what would change the answer."""
    if plan.winner is None:
        return ""
    text = "Risks of the machines" if plan.service is not None else "Risks"
    risks: list[str] = []
    for risk in _risks(plan, plan.winner):
        if len(f"{text}: {'; '.join([*risks, risk])}.") <= LONGEST:
            risks.append(risk)
    return f"{text}: {'; '.join(risks)}." if risks else ""


def _risks(plan: Plan, winner: Choice) -> Iterator[str]:
    layers = leading_layers(plan)
    if winner.purchase == Purchase.SPOT or (layers is not None and any(one.name == Purchase.SPOT for one in layers.layers)):
        often = f", about {winner.interruptions:.2g} times" if winner.interruptions >= OFTEN else ""
        often += " (assumed)" if winner.interruptions_assumed else ""
        keep = ", so keep checkpoints" if plan.per == "job" else ""
        yield f"spot machines are taken back{often}{keep}"
    if winner.goals_chance is not None and winner.goals_chance < UNSURE:
        yield f"the latency goals are kept with a probability of {winner.goals_chance:.0%}: measure before you rely on them"
    if winner.needs_porting:
        yield f"{winner.chip} needs porting to {software_of(winner.family)}"
    elif winner.family.startswith("AMD"):
        yield f"{winner.chip} runs ROCm, not CUDA"
    if winner.is_arm and winner.provider != EDGE:
        yield "its processor is Arm: images for x86 do not start"
    for quota, needed in quotas.raises(plan):
        yield f"{quota.row.provider} grants {quota.maximum:g} of {needed:,g} {quota.unit} unasked: ask for a quota first"
    several_owned = winner.purchase == "owned" and winner.machines > 1 and winner.provider != EDGE  # those are bought
    catalog = plan.rows.fleet.catalog if several_owned and plan.rows is not None else None
    if catalog is not None and catalog.owned(winner.provider, winner.machine, winner.region) is None:
        yield f"that you own {winner.machines} is not stated (`count` in its file)"
    if winner.memory_share is not None and winner.memory_share > FULL_MEMORY:
        yield f"{winner.memory_share:.0%} of a chip's memory is planned for"
    if plan.kind == "serve" and _fewest_copies(winner) == 1:
        when = "one copy" if winner.replicas == 1 else "one copy at the quietest hours"
        yield f"{when}: nobody is answered while it restarts"
    elif plan.kind == "serve" and winner.machines == 1:
        yield "one machine: nobody is answered while it restarts"


def _fewest_copies(winner: Choice) -> int:
    """Of a service, at any time of the day."""
    copies = winner.replicas or 1
    if winner.over_time is None or winner.machines < 1:
        return copies
    return max(round(copies * winner.over_time.fewest / winner.machines), 1)
