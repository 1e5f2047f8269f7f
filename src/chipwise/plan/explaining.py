"""Why a candidate lost, in one sentence with the number that decided."""

from __future__ import annotations

from chipwise.plan.decision import Choice, Plan, Turn
from chipwise.units import DAY, HOUR


def duration(seconds: float) -> str:
    if seconds >= 3 * DAY:
        return f"{seconds / DAY:.1f} d"
    return f"{seconds / HOUR:.1f} h" if seconds >= HOUR else f"{seconds / 60:.0f} min"


def usd(value: float) -> str:
    return f"${value:,.0f}" if value >= 100 else f"${value:.2f}"


def why_lost(winner: Choice, other: Choice, objective: str, per: str) -> str:
    """Against the winner, by what was asked for first."""
    dearer = other.usd / max(winner.usd, 1e-9) - 1
    slower = other.seconds / max(winner.seconds, 1e-9) - 1
    dirtier = other.kg / max(winner.kg, 1e-9) - 1
    cost = f"{_more(dearer, 'dearer', 'cheaper')} ({usd(other.usd)} a {per} against {usd(winner.usd)})"
    time = f"{_more(slower, 'slower', 'faster')} ({duration(other.seconds)} against {duration(winner.seconds)})"
    carbon = f"{_more(dirtier, 'more CO2e', 'less CO2e')} ({other.kg:,.1f} kg against {winner.kg:,.1f} kg)"
    first, *rest = {"cost": (cost, time), "time": (time, cost), "carbon": (carbon, cost)}.get(objective, (cost, time, carbon))
    if per == "month":
        rest = [one for one in rest if one is not time]
        first = cost if first is time else first
    return f"{first}, {rest[0]}" if rest and (abs(slower) > 0.05 or per == "month") and rest[0] != first else first


def _more(share: float, above: str, below: str) -> str:
    if abs(share) < 0.005:
        return f"no {above}"
    if share > 1.5:
        return f"{share + 1:.1f}x as much" if above == "dearer" else f"{share + 1:.1f}x {above}"
    return f"{abs(share):.0%} {above if share > 0 else below}"


def turns(choices: tuple[Choice, ...], objective: str) -> tuple[Turn, ...]:
    """The price at which the next kind of chip would win, and what the answer rests on."""
    if not choices:
        return ()
    one = choices[0]
    found = []
    other = next((choice for choice in choices[1:] if choice.chip != one.chip), None)
    if other is not None and objective == "cost":
        fall = 1.0 - one.usd / max(other.usd, 1e-9)
        found.append(
            Turn("price", f"{other.chip} ({other.where}, {other.purchase}) wins when it gets {fall:.0%} cheaper, or this one "
                          f"{other.usd / max(one.usd, 1e-9) - 1:.0%} dearer")
        )  # fmt: skip
    width = one.high_s / max(one.low_s, 1e-9) - 1
    if one.provenance == "formula":
        found.append(
            Turn("certainty", "nobody measured this model on this chip: the estimate is a formula's; try it before you commit")
        )
    elif width > 0.5:
        found.append(Turn("certainty", f"the estimate's interval is {width:.0%} wide"))
    if one.purchase == "spot":
        found.append(Turn("spot", "the price moves and machines are taken away: without checkpoints this plan does not hold"))
    moving = PORTING.get(one.family.split()[-1]) or PORTING.get(one.family.split()[0], "")
    if moving:
        found.append(Turn("moving there", moving))
    return tuple(found)


# What it takes to bring PyTorch code written for NVIDIA there, by the last or first word of a family.
PORTING = {
    "TPU": "JAX or PyTorch/XLA: a supported model runs in days, own CUDA kernels must be rewritten",
    "Trainium": "Neuron SDK: supported models compile (up to an hour each), others need porting for weeks",
    "Inferentia": "Neuron SDK: supported models compile (up to an hour each), others need porting for weeks",
    "Gaudi": "Optimum Habana or vLLM for Gaudi: supported models in days, others in weeks",
    "AMD": "ROCm: most PyTorch runs unchanged, own CUDA kernels need HIP, quantised formats fewer",
    "FPGA": "the design is a project of months",
}


RATES = {"serve": "requests a second", "transcode": "streams", "stream": "messages a second"}


def _service(plan: Plan) -> str:
    found = plan.service
    if found is None:
        return ""
    return f" Cheaper still is {found.provider} {found.name}, paid {found.kind}: {usd(found.usd)} a month; {found.break_even}."


def sentence(plan: Plan) -> str:
    """The winner in one sentence with its decisive numbers."""
    one = plan.winner
    assert one is not None
    many = f"{one.machines} x " if one.machines > 1 else ""
    precision = f", {one.precision}" if one.precision else ""
    what = f"{many}{one.provider} {one.machine} ({one.chips * one.machines} {one.chip}{precision}) in {one.region}"
    second = plan.choices[1] if len(plan.choices) > 1 else None
    beats = f"; next best {usd(second.usd)}" if second is not None else ""
    if plan.per == "month":
        able = f" for up to {one.rate:,.3g} {RATES[plan.kind]}" if one.rate and plan.kind in RATES else ""
        return f"Rent {what}, {one.purchase}: {usd(one.usd)} a month{able}{beats}.{_service(plan)}"
    return f"Run on {what}, {one.purchase}: {duration(one.seconds)} for {usd(one.usd)}, {one.kg:,.0f} kg CO2e{beats}."


_RECOMPUTE = {0: "none", 1: "selective", 2: "full"}


def running(one: Choice) -> list[tuple[str, str]]:
    """How to run a choice, by name: the split, memory, time, checkpoints, where the data lies, what a unit costs."""
    shown = {name: str(value) for name, value in one.split.items() if value not in (0, 1) or name == "tp"}
    if "recompute" in one.split:
        shown["recompute"] = _RECOMPUTE[one.split["recompute"]]
    split = ", ".join(f"{name} {value}" for name, value in shown.items())
    found = [("split", split)]
    if one.memory_share is not None:
        found.append(("memory", f"{one.memory_share:.0%} of a chip"))
    if one.high_s > one.low_s:
        found.append(("time", f"{duration(one.seconds)}; 80% between {duration(one.low_s)} and {duration(one.high_s)}"))
    if one.checkpoint_s and one.rate is None:
        every = f"every {duration(one.checkpoint_s)}, {one.interruptions:.1f} interruptions expected"
        found.append(("checkpoint", f"{every}; done within {duration(one.p90_s)} nine times in ten"))
    if one.storage:
        found.append(("data", f"from {one.storage}"))
    found.append(("unit cost", f"${one.usd_per_unit:.4g} per {one.unit.removesuffix('s')}"))
    return [*found, ("price of", one.price_of), ("estimate", one.provenance)]
