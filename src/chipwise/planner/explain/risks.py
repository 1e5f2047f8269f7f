"""What may go wrong with the answer, in one short line under it; `turning` has the same at length."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import zip_longest

from chipwise.catalog.offer import Purchase
from chipwise.planner import quotas
from chipwise.planner.defaults import FULL_MEMORY, READING_S, SCARCE, UNKNOWN_TIMES, WAITING_S
from chipwise.planner.explain.words import EDGE, leading_layers, software_of
from chipwise.planner.tails import BOOT_S
from chipwise.planner.values.choice import Choice
from chipwise.planner.values.pipeline import PipelinePlan
from chipwise.planner.values.plan import Plan
from chipwise.text import amount, duration

UNSURE = 0.895  # probability of keeping the latency goals, below which it is a risk: nothing on offer was surer
OFTEN = 0.1  # interruptions: fewer are not worth a number
LONGEST = 220  # letters: three lines of a narrow terminal
LIVE = ("serve", "transcode", "stream")  # kinds that somebody notices at once when they stop
STAGE_LONGER = 5  # letters more for every stage of a pipeline


def risk_line(plan: Plan) -> str:
    """Empty: none of these. The gravest first; what does not fit stands among what would change the answer."""
    if plan.winner is None:
        return ""
    text = "Risks of the machines" if plan.service is not None else "Risks"
    service = plan.service or plan.unsure_service
    retires = (
        f"{service.title} stops serving this model on {service.retires}" if service is not None and service.retires else ""
    )
    if retires and plan.service is not None:
        text = f"Risks: {retires}. If you rent machines"
    risks: list[str] = [retires] if retires and plan.service is None else []
    for risk in dict.fromkeys(_risks(plan, plan.winner)):  # two quotas may ask for the same
        if len(f"{text}: {'; '.join([*risks, risk])}.") <= LONGEST:
            risks.append(risk)
    if not risks:
        return f"Risks: {retires}." if retires else ""
    return f"{text}: {'; '.join(risks)}."


def pipeline_risk_line(plan: PipelinePlan) -> str:
    """The same of the stages of a pipeline, each with its name, the gravest of every stage first; empty: none."""
    listed = [
        [f"{stage.name}: {risk}" for risk in _risks(replace(stage.plan, choices=(stage.choice,), load=None), stage.choice)]
        for stage in plan.stages
        if not stage.per_use
    ]
    text = ""
    for risk in (one for ranked in zip_longest(*listed) for one in ranked if one is not None):
        longer = f"{text}; {risk}" if text else f"Risks: {risk}"
        text = longer if len(longer) < LONGEST + len(plan.stages) * STAGE_LONGER else text
    return text and f"{text}."


def _risks(plan: Plan, winner: Choice) -> Iterator[str]:
    """What breaks its goals, then what keeps it from starting until somebody else acts, what takes it away while it runs, and
    last what an image is built for once."""
    layers = leading_layers(plan)
    if winner.purchase == Purchase.SPOT or (layers is not None and any(one.name == Purchase.SPOT for one in layers.layers)):
        times = amount(float(f"{winner.interruptions:.2g}"))
        often = f"about {times} spot interruptions" if winner.interruptions >= OFTEN else "spot interruptions"
        often += " a month expected" if plan.per == "month" else " expected" if winner.interruptions >= OFTEN else " possible"
        often += " (assumed)" if winner.interruptions_assumed else ""
        lost = "downtime" if winner.machines == 1 else f"1 of {winner.machines} missing"
        effect = "so keep checkpoints" if plan.per == "job" else f"each time {lost} for {duration(BOOT_S)} or more"
        yield f"{often}, {effect}"
    if plan.kind == "serve" and winner.request_chance is None and (slow := _slow_answers(winner)):
        yield slow
    alone = 1.0 if winner.request_chance is None else winner.request_chance
    carried = 1.0 if winner.load_chance is None else winner.load_chance
    if carried < min(alone, plan.confidence - 0.005):
        yield f"the machines have {percent_words(carried)} chance of carrying the load"
    elif alone < UNSURE:
        yield f"the latency goals have {percent_words(alone)} chance of being met: measure before you rely on them"
    low, high = (winner.pace[0], winner.pace[2]) if winner.pace is not None else (winner.low_s, winner.high_s)
    fold = max(winner.rate_spread**2, high / max(low, 1e-9))
    if fold > UNKNOWN_TIMES:
        yield f"its speed is known to a factor of {fold:.2g} only: measure it first"
    if winner.needs_porting:
        yield f"{winner.chip} needs porting to {software_of(winner.family)}"
    for quota, needed in quotas.raises(plan):
        if quota.maximum is None:
            if quota.unit == "chips":
                amounts = f"{needed:,g} {winner.chip} {'chip' if needed == 1 else 'chips'}"
            else:
                amounts = f"{needed:,g} {quota.unit} for {winner.chip}"
            yield f"{quota.row.provider} must grant a quota of {amounts} first"
            continue
        default = f"the default quota of {quota.row.provider} is {quota.maximum:g} of {needed:,g} {quota.unit}"
        yield f"{default}: request an increase first"
    if plan.kind == "serve" and _fewest_copies(winner) == 1:
        when = "one copy" if winner.replicas == 1 else "one copy at the quietest hours"
        yield f"{when}, no redundancy: downtime during restarts"
    elif winner.machines == 1 and plan.per == "month" and plan.kind in LIVE:
        yield "one machine, no redundancy: downtime during restarts"
    if winner.memory_share is not None and winner.memory_share > FULL_MEMORY:
        yield f"{winner.memory_share:.0%} of a chip's memory is planned for"
    total = winner.machines * winner.chips
    if total > SCARCE and winner.purchase != Purchase.OWNED:
        yield f"{total:,} {winner.catalog_chip or winner.chip} in one region at once are more than most accounts get"
    several_owned = winner.purchase == "owned" and winner.machines > 1 and winner.provider != EDGE  # those are bought
    catalog = plan.rows.fleet.catalog if several_owned and plan.rows is not None else None
    if catalog is not None and catalog.owned(winner.provider, winner.machine, winner.region) is None:
        yield f"that you own {winner.machines} is not stated (`count` in its file)"
    if not winner.needs_porting and winner.family.startswith("AMD"):
        encodes = plan.kind == "transcode"
        untried = f": {plan.untried_on_amd}, which this needs, was not tried there" if plan.untried_on_amd else ""
        yield f"{winner.chip} {'encodes by VA-API or AMF, not by NVENC' if encodes else f'runs ROCm, not CUDA{untried}'}"
    if winner.is_arm and winner.provider != EDGE:
        yield "its processor is Arm: images for x86 do not start"


def _slow_answers(winner: Choice) -> str:
    """Where no latency goal is stated and nobody would wait for an answer; empty: people would."""
    token, first = winner.latency.get("tpot p50", 0.0), winner.latency.get("ttft p50", 0.0)
    whole = winner.latency.get("latency p50", 0.0)
    if token > READING_S:
        return f"{duration(token)} a token is slower than people read: set --tpot, such as 100ms, if they wait"
    if first > WAITING_S:
        return f"the first token comes after {duration(first)}: set --ttft, such as 1s, if people wait"
    if whole > WAITING_S:
        return f"an answer takes {duration(whole)}: set --latency, such as 1s, if people wait"
    return ""


def percent_words(chance: float) -> str:
    """With its article: an 81%, a 75%."""
    text = f"{chance:.0%}"
    return f"{'an' if text.startswith('8') or text in ('11%', '18%') else 'a'} {text}"


def _fewest_copies(winner: Choice) -> int:
    """Of a service, at any time of the day."""
    copies = winner.replicas or 1
    if winner.over_time is None or winner.machines < 1:
        return copies
    return max(round(copies * winner.over_time.fewest / winner.machines), 1)
