"""What stands in a row of a plan and below it: power, pace, how it runs and what it emits."""

from __future__ import annotations

from chipwise.catalog.offer import Purchase
from chipwise.planner.choice_parts import interruption_words
from chipwise.planner.explain.words import EDGE, PROVENANCE, SELDOM, own_words
from chipwise.planner.tails import BOOT_S
from chipwise.planner.values.choice import Choice
from chipwise.planner.values.plan import Emitted
from chipwise.planner.values.split import GenerationSplit, Streams, TrainingSplit
from chipwise.text import age, amount, count, duration, is_wide, mass, number, round_trip, usd
from chipwise.text import watts as power


def watts(choice: Choice) -> str:
    """What the machines draw while they work, and how that is known."""
    draw = (
        f"{power(choice.machine_watts)} a machine, {power(choice.watts)} in all" if choice.machines > 1 else power(choice.watts)
    )
    scope = "its board included" if choice.provider == EDGE else "chips and host, without cooling"
    scope = scope if choice.own is None else "as its owner states, without cooling"
    return (
        f"{draw} while it works ({scope}{'' if choice.watts_stated else '; assumed, the power of the chip is not published'})"
    )


def brief(choice: Choice, per: str) -> str:
    """What a ranking has no column for, in one line: purchase, split, speed or latency, cost of a unit; circuits, and the
    watts of a small device."""
    ways = choice.split.as_dict().items()
    split = ", ".join(_way(name, value) for name, value in ways if value > 1 and name not in ("recompute", "replicas"))
    unit = choice.unit.replace("million ", "M").removesuffix("s")
    dated = "" if choice.purchase == "owned" or choice.provider == EDGE else f", {age(choice.price_days)} old"
    bought = "bought" if choice.provider == EDGE else choice.purchase
    parts = [f"{bought}{dated}", own_words(choice), split, f"${number(choice.usd_per_unit)}/{unit}"]
    if choice.quantum is not None:
        parts.append(choice.quantum.title)
    if choice.provider == EDGE:
        parts.append(f"{power(choice.machine_watts)} a device")
    if choice.latency:
        parts.append(", ".join(f"{name} {duration(seconds)}" for name, seconds in choice.latency.items()))
    elif per == "job" and choice.pace is not None:
        parts.append(_pace(*choice.pace))
    return "; ".join(part for part in parts if part)


def _pace(low: float, middle: float, high: float, unit: str) -> str:
    """So many a second; of what comes seldom, one every so long: several may run at once."""
    wide = high > low * 1.01
    if middle < SELDOM:
        span = f" ({duration(1 / high)}-{duration(1 / low)})" if wide else ""
        return f"1 {unit.removesuffix('s')} every {duration(1 / middle)}{span}"
    return f"{count(middle)} {unit}/s{f' ({count(low)}-{count(high)})' if wide else ''}"


def single(unit: str) -> str:
    """Of what a price is per: "million tokens" stay many, "frames" become one."""
    return unit if unit.startswith("million ") else unit.removesuffix("s")


def emissions(emitted: Emitted, unit: str) -> list[tuple[str, str]]:
    """By name: the parts, what a unit emits, and greener regions with their price."""
    rows = [(line.name, f"{mass(line.kg)}  ({line.how})") for line in emitted.lines]
    if len(rows) == 1 and emitted.basis:  # electricity alone
        rows.append(("embodied", emitted.basis[0].removeprefix("embodied: ")))
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


_COUNTED = {  # of a split, how its parts are said
    "runs at once": "runs at once",
    "chips a run": "chips per run",
    "frames at once": "frames at once",
    "streams a chip": "streams per chip",
    "seats a chip": "seats per chip",
    "chips a seat": "chips per seat",
    "devices a place": "devices per place",
}
_RECOMPUTE = {0: "none", 1: "selective", 2: "full"}


def _way(name: str, value: object) -> str:
    """Tables are cut, not copied: each chip has its part of them."""
    if name == "slower by percent":
        return f"{value}% slower when all are busy"
    if name == "latency ns" and isinstance(value, int | float):
        return f"latency {duration(value / 1e9)}"
    if name == "tables":
        return f"{name}/{value}"
    return f"{value} {_COUNTED[name]}" if name in _COUNTED else f"{name} {value}"


def time_parts(choice: Choice) -> str:
    """What the time of a job on spot is made of: the parts add up to it."""
    parts = {
        "work": choice.work_s,
        "for machines to start": choice.boot_s,
        "to move the data": choice.moving_s,
        "repeated after interruptions, saving and restarts": choice.repeated_s,
        "until the first spot machines are there, not paid for": choice.first_wait_s,
        "waiting for spot machines after interruptions, not paid for": choice.later_wait_s,
    }
    return "; ".join(f"{duration(seconds)} {name}" for name, seconds in parts.items() if seconds > 0.001 * choice.seconds)


def running(choice: Choice) -> list[tuple[str, str]]:
    """How to run a choice, by name: the split, memory, time, checkpoints, where the data lies, what a unit costs."""
    entries: dict[str, object] = {
        name: value for name, value in choice.split.as_dict().items() if value not in (0, 1) or name == "tp"
    }
    if isinstance(choice.split, TrainingSplit):
        entries["recompute"] = _RECOMPUTE[choice.split.recompute]
    split = ", ".join(_way(name, value) for name, value in entries.items())
    if isinstance(choice.split, GenerationSplit) and choice.rate is not None and choice.chips > 1:
        split += "; of the splits that need as few machines, the one with the most room"
    rows = [("split", split)] if split else []
    if choice.memory_share is not None:
        rows.append(("memory", f"{choice.memory_share:.0%} of a chip"))
    if choice.rate is not None and choice.rate_spread > 1.0:
        low, high = choice.rate / choice.rate_spread, choice.rate * choice.rate_spread
        unit = "streams" if isinstance(choice.split, Streams) else "requests a second"
        rows.append(("rate", f"{amount(choice.rate)} {unit}; 80% between {amount(low)} and {amount(high)}"))
    if choice.high_s > choice.low_s:
        alone = ", if losses and waits are as expected" if choice.p90_s > 1.01 * choice.high_s else ""
        rows.append(
            ("time", f"{duration(choice.seconds)}; 80% between {duration(choice.low_s)} and {duration(choice.high_s)}{alone}")
        )
    if choice.network_s is not None:
        rows.append(("network", f"{round_trip(choice.network_s)} of round trip to {choice.users}, counted in"))
    if choice.boot_s and choice.purchase == Purchase.SPOT:  # a month of something that goes on has no start
        rows.append(("of which", time_parts(choice)))
    elif choice.rate is None and choice.seats is None and choice.provider != EDGE:
        rows.append(("start-up", f"{duration(BOOT_S)} for machines to start, counted in"))
    if choice.checkpoint_s and choice.rate is None and choice.seats is None:  # a month of something that goes on is never done
        often = interruption_words(choice.interruptions, choice.interruptions_assumed, f"{choice.provider} {choice.chip}")
        interval = f"every {duration(choice.checkpoint_s)}, {often}"
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
    scope = ", of prompts and answers together" if isinstance(choice.split, GenerationSplit) else ""
    rows.append(("unit cost", f"${number(choice.usd_per_unit, 4)} per {single(choice.unit)}{scope}"))
    if choice.own is not None:
        rows.append(("own hardware", own_words(choice)))
    if is_wide(choice.low_usd, choice.high_usd):
        rows.append(("cost", f"{usd(choice.usd)}; 80% between {usd(choice.low_usd)} and {usd(choice.high_usd)}"))
    return [*rows, ("price of", choice.price_of), ("estimate", PROVENANCE.get(choice.provenance, choice.provenance))]
