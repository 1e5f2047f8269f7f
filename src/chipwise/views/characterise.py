"""A characterisation as plain data, and as sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from chipwise.observe.characterise.answers import MeasuredAnswer, measured_answers
from chipwise.observe.characterise.values import STEP_WORDS, Characterisation, Quantity
from chipwise.observe.sample import Missing
from chipwise.planner.values.plan import Plan
from chipwise.text import duration, number, percent, size

_QUANTITIES = (
    *("step_s", "flop", "moved", "intensity", "parallel", "memory", "device_memory", "read", "read_from_disk", "data_wait"),
    *("transfers", "communication", "steps", "cores"),
)
_NAMES = {"flop": "flop_per_step", "moved": "bytes_per_step", "memory": "memory_bytes", "device_memory": "device_memory_bytes"}


def view(found: Characterisation) -> dict[str, Any]:
    return {
        "command": list(found.command),
        "kind": found.kind,
        "step": found.step,
        "precision": found.precision,
        "pattern": found.pattern,
        **{_NAMES.get(name, name): _plain(getattr(found, name)) for name in _QUANTITIES},
        "network": None if found.network is None else asdict(found.network),
        "hardware": asdict(found.hardware),
        "notes": list(found.notes),
    }


def _plain(quantity: Quantity) -> dict[str, Any]:
    if isinstance(quantity, Missing):
        return {"value": None, "reason": quantity.reason}
    return {"value": quantity.value, "low": quantity.low, "high": quantity.high, "basis": quantity.basis}


def pairs(found: Characterisation) -> list[tuple[str, str]]:
    """What to show of it, by name."""
    writers = {
        "time of a step": (found.step_s, duration),
        "FLOP a step": (found.flop, lambda value: f"{value:.3g}"),
        "bytes a step": (found.moved, size),
        "FLOP per byte": (found.intensity, number),
        "parallel": (found.parallel, percent),
        "memory": (found.memory, size),
        "read a step": (found.read, size),
        "from a disk": (found.read_from_disk, size),
        "steps": (found.steps, number),
        "cores in use": (found.cores, number),
    }
    rows = [("kind", found.kind), ("a step is", STEP_WORDS[found.step])]
    for name, (quantity, write) in writers.items():
        if isinstance(quantity, Missing):
            rows.append((name, f"not known: {quantity.reason}"))
        else:
            rows.append(
                (name, f"{write(quantity.value)} ({write(quantity.low)} to {write(quantity.high)}), by {quantity.basis}")
            )
    return rows


def explained(found: Characterisation, plan: Plan | None) -> list[str]:
    """The four questions, by what was measured and by what a plan adds."""
    planned: Sequence[str] = () if plan is None else [answer.told for answer in plan.answers]
    lines = []
    for index, answer in enumerate(measured_answers(found)):
        further = f" Planned: {planned[index]}" if index < len(planned) else ""
        lines.append(f"{answer.question} {answer.measured}{further}")
    return lines


def answers_view(found: Characterisation, plan: Plan | None) -> list[dict[str, str | None]]:
    planned = [] if plan is None else [answer.told for answer in plan.answers]
    rows: list[MeasuredAnswer] = list(measured_answers(found))
    return [
        {"question": row.question, "measured": row.measured, "planned": planned[index] if index < len(planned) else None}
        for index, row in enumerate(rows)
    ]
