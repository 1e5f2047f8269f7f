"""A job's story, one line per event, in words."""

from __future__ import annotations

from collections.abc import Mapping

from chipwise.run.events import (
    Again,
    Begun,
    Ended,
    Event,
    Leaving,
    Measured,
    Over,
    Placed,
    Submitted,
    Told,
    Waiting,
    Wished,
)  # fmt: skip
from chipwise.run.job import Outcome, Where, Wish
from chipwise.units import show_number, show_seconds, show_usd


def told(event: Event) -> str:
    match event:
        case Submitted(spec):
            return f"submitted by {spec.owner or 'nobody named'}: {' '.join(spec.command)[:200]}"
        case Wished(wish, by, reason):
            what = "asked to stop" if wish is Wish.STOP else "asked to run again"
            return f"{what}{f' by {by}' if by else ''}{f': {reason}' if reason else ''}"
        case Waiting(reason):
            return f"waits: {reason}" if reason else ""
        case Placed(number, where, devices, cpus, machines, reason):
            return f"attempt {number} {_where(where, devices, cpus, machines)}{f' ({reason})' if reason else ''}"
        case Begun(number, _):
            return f"attempt {number} runs"
        case Told(_, text):
            return text
        case Leaving(number, _, _, reason):
            return f"attempt {number} is asked to save and leave: {reason}"
        case Ended(number, outcome, _, reason, step, _):
            reached = f" at step {step:,}" if step is not None else ""
            return f"attempt {number} {_how(outcome)}{reached}{f': {reason}' if reason else ''}"
        case Again(_, reason):
            return f"goes back to the queue, since it {reason}" if reason else "goes back to the queue"
        case Over(phase, reason):
            return f"{phase}{f': {reason}' if reason else ''}"
        case Measured(predicted, measured):
            return _compared(predicted, measured)


def _compared(predicted: Mapping[str, object], measured: Mapping[str, object]) -> str:
    """What was measured, and beside it what had been predicted, where it was."""
    shown = {"seconds": show_seconds, "usd": show_usd}
    parts: list[str] = []
    for name, value in measured.items():
        if not isinstance(value, int | float):
            continue
        thought = predicted.get(name)
        show = shown.get(name, show_number)
        label = "" if name in shown else f" {name[:-1] if value == 1 and name.endswith('s') else name}"
        beside = f" ({show(float(thought))} predicted)" if isinstance(thought, int | float) else ""
        parts.append(f"{show(float(value))}{label}{beside}")
    return f"measured: {', '.join(parts)}"


def _how(outcome: Outcome) -> str:
    return {
        Outcome.DONE: "is done",
        Outcome.FAILED: "failed",
        Outcome.LOST: "was lost",
        Outcome.LEFT: "saved and left",
        Outcome.STOPPED: "was stopped",
        Outcome.OVERDUE: "took too long",
    }[outcome]


def _where(where: Where, devices: tuple[int, ...], cpus: tuple[int, ...], machines: int) -> str:
    if where.machine:
        zone = where.zone or where.region
        return f"on {machines} x {where.provider} {where.machine} in {zone}, {where.purchase}"
    held = []
    if devices:
        held.append(f"GPU{'s' if len(devices) > 1 else ''} {_ids(devices)}")
    if cpus:
        held.append(f"CPU{'s' if len(cpus) > 1 else ''} {_ids(cpus)}")
    return f"gets {' and '.join(held)}" if held else "starts"


def _ids(ids: tuple[int, ...]) -> str:
    if len(ids) > 2 and list(ids) == list(range(ids[0], ids[-1] + 1)):
        return f"{ids[0]}-{ids[-1]}"
    return ",".join(map(str, ids))
