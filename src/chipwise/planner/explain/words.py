"""Why a candidate lost, in one sentence with the number that decided."""

from __future__ import annotations

from chipwise.planner.values.plan import Choice, Emitted, Plan, QuantumPart
from chipwise.planner.values.split import TrainingSplit
from chipwise.text import count, duration, mass, number, usd
from chipwise.text import watts as power

EDGE = "edge"  # the provider of small devices, as `devices` names it
SELDOM = 0.01  # a second: below this a rate is told as the time between two


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
    return f" Cheaper still is {found.title}, paid {found.kind}: {usd(found.usd)} a month; {found.break_even}."


def no_service(plan: Plan) -> str:
    """Where none may be used: the cheapest of the clouds asked for, against the machines, and what refuses it."""
    first = plan.services[0]
    against = f" against {usd(plan.winner.usd)}" if plan.winner is not None else ""
    return f"none may be used; {first.title}, {first.kind}, would cost {usd(first.usd)} a month{against}: {first.refused[0]}"


def sentence(plan: Plan) -> str:
    """The winner in one sentence with its decisive numbers."""
    one = plan.winner
    assert one is not None
    many = f"{one.machines} x " if one.machines > 1 else ""
    precision = f", {one.precision}" if one.precision else ""
    what = f"{many}{one.provider} {one.machine} ({one.chips * one.machines} {one.chip}{precision}) in {one.place}"
    if one.quantum is not None:
        what += _circuits(one.quantum)
    second = plan.choices[1] if len(plan.choices) > 1 else None
    beats = f"; next best {usd(second.usd)}" if second is not None else ""
    if plan.per == "month":
        able = f" for up to {one.rate:,.3g} {RATES[plan.kind]}" if one.rate and plan.kind in RATES else ""
        over = _over_time(plan, one)
        return f"Rent {what}, {one.purchase}: {usd(one.usd)} a month{over}{able}{beats}.{_service(plan)}"
    return f"Run on {what}, {one.purchase}: {duration(one.seconds)} for {usd(one.usd)}, {mass(one.kg)} CO2e{beats}."


def _over_time(plan: Plan, one: Choice) -> str:
    """Where a budget was held against the load's curve, so that the first figure may be above it."""
    layered = plan.layered_usd
    return (
        "" if layered is None or layered >= 0.995 * one.usd else f" for the peak at all times, {usd(layered)} as the load goes"
    )


def _circuits(part: QuantumPart) -> str:
    paid = f" ({usd(part.usd)})" if part.usd else ""
    return f" with circuits on {part.told}{paid}" if part.managed else f" with circuits {part.told}"


def watts(one: Choice) -> str:
    """What the machines draw while they work, and how that is known."""
    many = f"{power(one.machine_watts)} a machine, {power(one.watts)} in all" if one.machines > 1 else power(one.watts)
    what = "its board included" if one.provider == EDGE else "chips and host, without cooling"
    return f"{many} while it works ({what}{'' if one.watts_stated else '; assumed, the power of the chip is not published'})"


def brief(one: Choice, per: str) -> str:
    """What a ranking has no column for, in one line: purchase, split, speed or latency, cost of a unit; circuits, and the
    watts of a small device."""
    ways = one.split.as_dict().items()
    split = ", ".join(_way(name, value) for name, value in ways if value > 1 and name not in ("recompute", "replicas"))
    parts = [one.purchase, split, f"${number(one.usd_per_unit)}/{one.unit.replace('million ', 'M').removesuffix('s')}"]
    if one.quantum is not None:
        parts.append(one.quantum.told)
    if one.provider == EDGE:
        parts.append(f"{power(one.machine_watts)} a device")
    if one.latency:
        parts.append(", ".join(f"{name} {duration(seconds)}" for name, seconds in one.latency.items()))
    elif per == "job" and one.usd_per_unit > 0:
        done = one.usd / one.usd_per_unit
        scale, what = (1e6, one.unit.removeprefix("million ")) if one.unit.startswith("million ") else (1.0, one.unit)
        low, middle, high = (scale * done / max(seconds, 1e-9) for seconds in (one.high_s, one.seconds, one.low_s))
        parts.append(_pace(low, middle, high, what))
    return "; ".join(part for part in parts if part)


def _pace(low: float, middle: float, high: float, what: str) -> str:
    """So many a second; of what comes seldom, one in so long."""
    wide = high > low * 1.01
    if middle < SELDOM:
        span = f" ({duration(1 / high)}-{duration(1 / low)})" if wide else ""
        return f"1 {what.removesuffix('s')} in {duration(1 / middle)}{span}"
    return f"{count(middle)} {what}/s{f' ({count(low)}-{count(high)})' if wide else ''}"


def single(unit: str) -> str:
    """Of what a price is per: "million tokens" stay many, "frames" become one."""
    return unit if unit.startswith("million ") else unit.removesuffix("s")


def emissions(found: Emitted, unit: str) -> list[tuple[str, str]]:
    """By name: the parts, what a unit emits, and greener regions with their price."""
    told = [(line.name, f"{mass(line.kg)}  ({line.how})") for line in found.lines]
    told.append(("per unit", f"{mass(found.g_per_unit / 1e3)} per {single(unit)}"))
    for one in found.greener:
        more = f"{usd(one.extra_usd)} more" if one.extra_usd > 0 else f"{usd(-one.extra_usd)} less"
        told.append(("greener", f"{one.region}: {mass(one.kg)}, {mass(one.saved_kg)} less, for {more}"))
    return told


def _fed(one: Choice) -> str:
    if one.feeding is None:
        return ""
    fed = one.feeding
    parts = [
        f"{fed.workers} worker{'s' if fed.workers > 1 else ''}",
        f"{fed.prefetch} files each under way",
        "" if fed.compression == "none" else fed.compression,
    ]
    parts += [
        "kept in memory after the first pass" if fed.resident else "streamed",
        "" if fed.keeps_up else "the chips wait for it",
    ]
    return f": {', '.join(part for part in parts if part)}; {fed.why}"


_RECOMPUTE = {0: "none", 1: "selective", 2: "full"}


def _way(name: str, value: object) -> str:
    """Tables are cut, not copied: each chip has its part of them."""
    if name == "slower by percent":
        return f"{value}% slower when all are busy"
    return f"{name}/{value}" if name == "tables" else f"{name} {value}"


def running(one: Choice) -> list[tuple[str, str]]:
    """How to run a choice, by name: the split, memory, time, checkpoints, where the data lies, what a unit costs."""
    shown = {name: str(value) for name, value in one.split.as_dict().items() if value not in (0, 1) or name == "tp"}
    if isinstance(one.split, TrainingSplit):
        shown["recompute"] = _RECOMPUTE[one.split.recompute]
    split = ", ".join(_way(name, value) for name, value in shown.items())
    found = [("split", split)] if split else []
    if one.memory_share is not None:
        found.append(("memory", f"{one.memory_share:.0%} of a chip"))
    if one.rate is not None and one.rate_spread > 1.0:
        low, high = one.rate / one.rate_spread, one.rate * one.rate_spread
        found.append(("rate", f"{one.rate:,.3g} requests a second; 80% between {low:,.3g} and {high:,.3g}"))
    if one.high_s > one.low_s:
        found.append(("time", f"{duration(one.seconds)}; 80% between {duration(one.low_s)} and {duration(one.high_s)}"))
    if one.checkpoint_s and one.rate is None and one.seats is None:  # a month of something that goes on is never done
        every = f"every {duration(one.checkpoint_s)}, {one.interruptions:.1f} interruptions expected"
        found.append(("checkpoint", f"{every}; done within {duration(one.p90_s)} nine times in ten"))
    if one.quantum is not None:
        part = one.quantum
        runs = (
            f"{part.tasks:,} circuits x {part.shots:,} shots of {part.qubits} qubits: {duration(part.seconds)}, {usd(part.usd)}"
        )
        found.append(("circuits", f"{part.told}; {runs}"))
    if one.storage:
        found.append(("data", f"from {one.storage}{_fed(one)}"))
    found.append(("power", watts(one)))
    found.append(("unit cost", f"${number(one.usd_per_unit, 4)} per {single(one.unit)}"))
    return [*found, ("price of", one.price_of), ("estimate", one.provenance)]
