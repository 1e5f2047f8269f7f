"""A characterisation as plain data, and as sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from chipwise.observe.characterise.answers import MeasuredAnswer, measured_answers
from chipwise.observe.characterise.values import STEP_WORDS, Characterisation, Quantity
from chipwise.observe.sample import NoReading
from chipwise.planner.values.plan import Plan
from chipwise.text import duration, number, percent, size

_QUANTITIES = (
    *("step_s", "flop", "moved", "intensity", "parallel", "memory", "device_memory", "read", "read_from_disk", "data_wait"),
    *("transfers", "communication", "steps", "cores"),
)
_NAMES = {"flop": "flop_per_step", "moved": "bytes_per_step", "memory": "memory_bytes", "device_memory": "device_memory_bytes"}


def view(character: Characterisation) -> dict[str, Any]:
    return {
        "command": list(character.command),
        "kind": character.kind,
        "step": character.step,
        "precision": character.precision,
        "pattern": character.pattern,
        **{_NAMES.get(name, name): _plain(getattr(character, name)) for name in _QUANTITIES},
        "network": None if character.network is None else asdict(character.network),
        "hardware": asdict(character.hardware),
        "delayed_share": character.delayed,
        "notes": list(character.notes),
    }


def _plain(quantity: Quantity) -> dict[str, Any]:
    if isinstance(quantity, NoReading):
        return {"value": None, "reason": quantity.reason}
    return {"value": quantity.value, "low": quantity.low, "high": quantity.high, "basis": quantity.basis}


def pairs(character: Characterisation) -> list[tuple[str, str]]:
    """What to show of it, by name."""
    writers = {
        "time of a step": (character.step_s, duration),
        "FLOP a step": (character.flop, lambda value: f"{value:.3g}"),
        "bytes a step": (character.moved, size),
        "FLOP per byte": (character.intensity, number),
        "parallel": (character.parallel, percent),
        "memory": (character.memory, size),
        "read a step": (character.read, size),
        "from a disk": (character.read_from_disk, size),
        "steps": (character.steps, number),
        "cores in use": (character.cores, number),
    }
    rows = [("kind", character.kind), ("a step is", STEP_WORDS[character.step])]
    for name, (quantity, write) in writers.items():
        if isinstance(quantity, NoReading):
            rows.append((name, f"not known: {quantity.reason}"))
        else:
            rows.append(
                (name, f"{write(quantity.value)} ({write(quantity.low)} to {write(quantity.high)}), by {quantity.basis}")
            )
    return rows


def explained(character: Characterisation, plan: Plan | None) -> list[str]:
    """The four questions, by what was measured and by what a plan adds."""
    planned: Sequence[str] = () if plan is None else [answer.told for answer in plan.answers]
    lines = []
    for index, answer in enumerate(measured_answers(character)):
        further = f" Planned: {planned[index]}" if index < len(planned) else ""
        lines.append(f"{answer.question} {answer.measured}{further}")
    return lines


def answers_view(character: Characterisation, plan: Plan | None) -> list[dict[str, str | None]]:
    planned = [] if plan is None else [answer.told for answer in plan.answers]
    rows: list[MeasuredAnswer] = list(measured_answers(character))
    return [
        {"question": row.question, "measured": row.measured, "planned": planned[index] if index < len(planned) else None}
        for index, row in enumerate(rows)
    ]
