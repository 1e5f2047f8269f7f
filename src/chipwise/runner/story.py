"""A job's story, one line per event, in words."""

from __future__ import annotations

from collections.abc import Mapping

from chipwise.catalog.region import region_phrase
from chipwise.runner.comparing import OF_THE_WHOLE
from chipwise.runner.events import (
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
)
from chipwise.runner.job import Lack, LeaveReason, MachinePlace, Outcome, Wish
from chipwise.runner.recovery import KILLED
from chipwise.text import elapsed, events, number, spent


def event_sentence(event: Event) -> str:
    match event:
        case Submitted(spec):
            command = f": {_cut(' '.join(spec.command))}" if spec.command else ""
            return f"submitted by {spec.owner or 'an unnamed user'}{command}"
        case Wished(wish, author, reason):
            request = {Wish.STOP: "asked to stop", Wish.END: "asked to be killed at once", Wish.RUN: "asked to run again"}[wish]
            return f"{request}{f' by {author}' if author else ''}{f': {reason}' if reason else ''}"
        case Waiting(_, Lack.TURN):
            return ""  # it changes with every start; where the job stands now is told beside its story
        case Waiting(reason):
            return waits(reason) if reason else ""
        case Placed(number, place, devices, cpus, machines, reason):
            return f"attempt {number} {_placement(place, devices, cpus, machines)}{f' ({reason})' if reason else ''}"
        case Begun(number, _):
            return f"attempt {number} is running"
        case Told(_, text):
            return text
        case Leaving(number, _, LeaveReason.END, reason):
            return f"attempt {number} is killed at once, without time to save: {reason}"
        case Leaving(number, _, _, reason):
            return f"attempt {number} is asked to save and exit: {reason}"
        case Ended(number, Outcome.LEFT, code, reason, None, _) if code is not None and code > 128:
            # A signal ended it, and it tells no steps that it could have saved.
            return f"attempt {number} did not exit in time: {reason}"
        case Ended(number, outcome, code, reason, step, _):
            # Of one that is lost or killed the last word counts, and it may have come further.
            position = ", last seen at step" if outcome is Outcome.LOST or code == KILLED else " at step"
            reached = f"{position} {step:,}" if step is not None else ""
            return f"attempt {number} {_ending(outcome)}{reached}{f': {reason}' if reason else ''}"
        case Again(_, reason):
            cause = reason.partition(":")[0]  # why stands with the end of the attempt, one line above
            return f"goes back to the queue, since it {cause}" if cause else "goes back to the queue"
        case Over(phase, reason):
            return f"{phase}{f': {reason}' if reason else ''}"
        case Measured(predicted, measured, complete):
            return _compared(predicted, measured, complete)


def waits(reason: str) -> str:
    """`waits for a`, `waits: no GPU is free`; some reasons begin with that word themselves."""
    first, _, rest = reason.partition(" ")
    if first in ("waits", "waits:", "waiting", "waiting:") and rest:
        return f"waits{':' if first.endswith(':') else ''} {rest}"
    return f"waits: {reason}"


def _compared(predicted: Mapping[str, object], measured: Mapping[str, object], complete: bool) -> str:
    """What was measured, and beside it what had been predicted, where it was and where the two can be compared."""
    formats = {"seconds": elapsed, "usd": spent}
    parts: list[str] = []
    for name, value in measured.items():
        twice = name == "steps_per_s" and measured.get("unit") == "steps"
        if not isinstance(value, int | float) or twice or (name == "attempts" and value == 1) or name.startswith("least_"):
            continue
        prediction = predicted.get(name) if complete or name not in OF_THE_WHOLE else None
        show = formats.get(name) or (events if name == "interruptions" else number)
        label = "" if name in formats else f" {_label(name, str(measured.get('unit') or 'units'), value)}"
        comparison = f" ({show(float(prediction))} predicted)" if isinstance(prediction, int | float) else ""
        parts.append(f"{show(float(value))}{label}{comparison}")
    scope = (
        " (on fewer workers at times)" if "least_share_of_workers" in measured else "" if complete else " (part of the work)"
    )
    return f"measured{scope}: {', '.join(parts)}"


def _cut(text: str, most: int = 200) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _label(name: str, unit: str, value: float) -> str:
    if name == "throughput":
        return f"{unit}/s"
    if name == "steps_per_s":
        return "steps/s"
    return name[:-1] if value == 1 and name.endswith("s") else name


def _ending(outcome: Outcome) -> str:
    return {
        Outcome.DONE: "is done",
        Outcome.FAILED: "failed",
        Outcome.LOST: "was lost",
        Outcome.LEFT: "saved and exited",
        Outcome.STOPPED: "was stopped",
        Outcome.OVERDUE: "took too long",
    }[outcome]


def _placement(place: MachinePlace, devices: tuple[int, ...], cpus: tuple[int, ...], machines: int) -> str:
    if place.machine:
        where = f"in {place.zone}" if place.zone else region_phrase(place.region)
        return f"on {machines} x {place.provider} {place.machine} {where}, {place.purchase}"
    devices_text = []
    if devices:
        devices_text.append(f"GPU{'s' if len(devices) > 1 else ''} {_ids(devices)}")
    if cpus:
        devices_text.append(f"CPU{'s' if len(cpus) > 1 else ''} {_ids(cpus)}")
    return f"gets {' and '.join(devices_text)}" if devices_text else "starts"


def _ids(ids: tuple[int, ...]) -> str:
    if len(ids) > 2 and list(ids) == list(range(ids[0], ids[-1] + 1)):
        return f"{ids[0]}-{ids[-1]}"
    return ",".join(map(str, ids))
