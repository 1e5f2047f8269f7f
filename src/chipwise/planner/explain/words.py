"""Why a candidate lost, in one sentence with the number that decided."""

from __future__ import annotations

from chipwise.planner.explain.reason_words import words
from chipwise.planner.pricing import BOOT_S
from chipwise.planner.values.plan import Choice, Emitted, Plan, QuantumPart
from chipwise.planner.values.split import TrainingSplit
from chipwise.text import amount, count, duration, mass, number, usd
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
    service = plan.service
    if service is None:
        return ""
    return f" Cheaper still is {service.title}, paid {service.kind}: {usd(service.usd)} a month; {service.break_even}."


def no_service(plan: Plan) -> str:
    """Where none may be used: the cheapest of the clouds asked for, against the machines, and what refuses it."""
    first = plan.services[0]
    against = f" against {usd(plan.winner.usd)}" if plan.winner is not None else ""
    cost = f"{usd(first.usd)} a month{against}"
    return f"none may be used; {first.title}, {first.kind}, would cost {cost}: {words(first.refused[0])}"


def sentence(plan: Plan) -> str:
    """The winner in one sentence with its decisive numbers."""
    winner = plan.winner
    assert winner is not None
    number_of = f"{winner.machines} x " if winner.machines > 1 else ""
    precision = f", {winner.precision}" if winner.precision else ""
    chips = f"{winner.chips * winner.machines} {winner.chip}{precision}"
    hardware = f"{number_of}{winner.provider} {winner.machine} ({chips}) {winner.placed}"
    if winner.quantum is not None:
        hardware += _circuits(winner.quantum)
    second = plan.choices[1] if len(plan.choices) > 1 else None
    beats = f"; next best {usd(second.usd)}" if second is not None else ""
    if plan.per == "month":
        able = f" for up to {amount(winner.rate)} {RATES[plan.kind]}" if winner.rate and plan.kind in RATES else ""
        detail = _over_time(plan, winner)
        verb = "Use" if winner.purchase == "owned" else "Rent"
        return f"{verb} {hardware}, {winner.purchase}: {usd(winner.usd)} a month{detail}{able}{beats}.{_service(plan)}"
    cost = f"{duration(winner.seconds)} for {usd(winner.usd)}, {mass(winner.kg)} CO2e"
    return f"Run on {hardware}, {winner.purchase}: {cost}{beats}."


def _over_time(plan: Plan, choice: Choice) -> str:
    """Where a budget was held against the load's curve, so that the first figure may be above it."""
    layered = plan.layered_usd
    return (
        ""
        if layered is None or layered >= 0.995 * choice.usd
        else f" for the peak at all times, {usd(layered)} as the load goes"
    )


def _circuits(part: QuantumPart) -> str:
    paid = f" ({usd(part.usd)})" if part.usd else ""
    return f" with circuits on {part.title}{paid}" if part.managed else f" with circuits {part.title}"


def watts(choice: Choice) -> str:
    """What the machines draw while they work, and how that is known."""
    draw = (
        f"{power(choice.machine_watts)} a machine, {power(choice.watts)} in all" if choice.machines > 1 else power(choice.watts)
    )
    scope = "its board included" if choice.provider == EDGE else "chips and host, without cooling"
    return (
        f"{draw} while it works ({scope}{'' if choice.watts_stated else '; assumed, the power of the chip is not published'})"
    )


def brief(choice: Choice, per: str) -> str:
    """What a ranking has no column for, in one line: purchase, split, speed or latency, cost of a unit; circuits, and the
    watts of a small device."""
    ways = choice.split.as_dict().items()
    split = ", ".join(_way(name, value) for name, value in ways if value > 1 and name not in ("recompute", "replicas"))
    parts = [choice.purchase, split, f"${number(choice.usd_per_unit)}/{choice.unit.replace('million ', 'M').removesuffix('s')}"]
    if choice.quantum is not None:
        parts.append(choice.quantum.title)
    if choice.provider == EDGE:
        parts.append(f"{power(choice.machine_watts)} a device")
    if choice.latency:
        parts.append(", ".join(f"{name} {duration(seconds)}" for name, seconds in choice.latency.items()))
    elif per == "job" and choice.usd_per_unit > 0:
        units = choice.usd / choice.usd_per_unit
        scale, unit = (1e6, choice.unit.removeprefix("million ")) if choice.unit.startswith("million ") else (1.0, choice.unit)
        low, middle, high = (
            scale * units / max(seconds - BOOT_S, 1e-9) for seconds in (choice.high_s, choice.seconds, choice.low_s)
        )  # as `predict` has it: once machines are up
        parts.append(_pace(low, middle, high, unit))
    return "; ".join(part for part in parts if part)


def _pace(low: float, middle: float, high: float, unit: str) -> str:
    """So many a second; of what comes seldom, one in so long."""
    wide = high > low * 1.01
    if middle < SELDOM:
        span = f" ({duration(1 / high)}-{duration(1 / low)})" if wide else ""
        return f"1 {unit.removesuffix('s')} in {duration(1 / middle)}{span}"
    return f"{count(middle)} {unit}/s{f' ({count(low)}-{count(high)})' if wide else ''}"


def single(unit: str) -> str:
    """Of what a price is per: "million tokens" stay many, "frames" become one."""
    return unit if unit.startswith("million ") else unit.removesuffix("s")


def emissions(emitted: Emitted, unit: str) -> list[tuple[str, str]]:
    """By name: the parts, what a unit emits, and greener regions with their price."""
    rows = [(line.name, f"{mass(line.kg)}  ({line.how})") for line in emitted.lines]
    rows.append(("per unit", f"{mass(emitted.g_per_unit / 1e3)} per {single(unit)}"))
    for option in emitted.greener:
        difference = f"{usd(option.extra_usd)} more" if option.extra_usd > 0 else f"{usd(-option.extra_usd)} less"
        rows.append(("greener", f"{option.region}: {mass(option.kg)}, {mass(option.saved_kg)} less, for {difference}"))
    return rows


def _fed(choice: Choice) -> str:
    if choice.feeding is None:
        return ""
    fed = choice.feeding
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


def running(choice: Choice) -> list[tuple[str, str]]:
    """How to run a choice, by name: the split, memory, time, checkpoints, where the data lies, what a unit costs."""
    entries = {name: str(value) for name, value in choice.split.as_dict().items() if value not in (0, 1) or name == "tp"}
    if isinstance(choice.split, TrainingSplit):
        entries["recompute"] = _RECOMPUTE[choice.split.recompute]
    split = ", ".join(_way(name, value) for name, value in entries.items())
    rows = [("split", split)] if split else []
    if choice.memory_share is not None:
        rows.append(("memory", f"{choice.memory_share:.0%} of a chip"))
    if choice.rate is not None and choice.rate_spread > 1.0:
        low, high = choice.rate / choice.rate_spread, choice.rate * choice.rate_spread
        rows.append(("rate", f"{amount(choice.rate)} requests a second; 80% between {amount(low)} and {amount(high)}"))
    if choice.high_s > choice.low_s:
        rows.append(("time", f"{duration(choice.seconds)}; 80% between {duration(choice.low_s)} and {duration(choice.high_s)}"))
    if choice.rate is None and choice.seats is None and choice.provider != EDGE:
        rows.append(("start-up", f"{duration(BOOT_S)} for machines to start, counted in"))
    if choice.checkpoint_s and choice.rate is None and choice.seats is None:  # a month of something that goes on is never done
        interval = f"every {duration(choice.checkpoint_s)}, {choice.interruptions:.1f} interruptions expected"
        rows.append(("checkpoint", f"{interval}; done within {duration(choice.p90_s)} nine times in ten"))
    if choice.quantum is not None:
        part = choice.quantum
        runs = (
            f"{part.tasks:,} circuits x {part.shots:,} shots of {part.qubits} qubits: {duration(part.seconds)}, {usd(part.usd)}"
        )
        rows.append(("circuits", f"{part.title}; {runs}"))
    if choice.storage:
        rows.append(("data", f"from {choice.storage}{_fed(choice)}"))
    rows.append(("power", watts(choice)))
    rows.append(("unit cost", f"${number(choice.usd_per_unit, 4)} per {single(choice.unit)}"))
    return [*rows, ("price of", choice.price_of), ("estimate", choice.provenance)]
