"""A diagnosis as plain data, what `chipwise doctor --json` prints, and the sentences of it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from chipwise.observe.diagnosis import Diagnosis as Diagnosis
from chipwise.observe.finding import Finding
from chipwise.observe.finding import Severity as Severity
from chipwise.text import duration, number, percent, usd


def view(diagnosis: Diagnosis) -> dict[str, Any]:
    evidence = diagnosis.evidence
    return {
        "schema": 1,
        "healthy": diagnosis.is_healthy,
        "findings": [asdict(finding) | {"page": page(finding)} for finding in diagnosis.findings],
        "steady_s": list(evidence.window_s),
        "length_s": evidence.length_s,
        "devices": [
            {
                "source": device.name,
                "name": device.device.name,
                "chip": device.device.chip,
                "active": device.active,
                "missing": dict(device.missing),
            }
            for device in evidence.devices
        ],
        "usd_per_hour": evidence.usd_per_hour,
        "notes": list(diagnosis.notes),
    }


def page(finding: Finding) -> str:
    return f"docs/doctor/{finding.rule}.md"


def cost(finding: Finding) -> str:
    """What it costs, as far as it is known."""
    if finding.severity is Severity.NOTE or finding.lost_share < 0.005:
        return ""
    money = f", {usd(finding.usd_lost_per_hour)} an hour" if finding.usd_lost_per_hour else ""
    return f"It costs {percent(finding.lost_share)} of the time{money}."


def headline(diagnosis: Diagnosis) -> str:
    first = diagnosis.first
    if first is None:
        return "No cause of lost time was found."
    if diagnosis.is_healthy:
        return f"Nothing need be done. {first.cause}"
    return f"{first.rule}: {first.cause} {cost(first)}".rstrip()


def facts(finding: Finding) -> str:
    return "; ".join(fact.text for fact in finding.evidence)


def gain(finding: Finding) -> str:
    """How sure, and how much faster without it."""
    parts = [f"confidence {percent(finding.confidence).replace('.0%', '%')}"]
    if finding.speedup is not None and finding.speedup.high > 1.005:
        low, high = number(finding.speedup.low, 2), number(finding.speedup.high, 2)
        parts.append(f"without it about {number(finding.speedup.value, 2)} times as fast ({low} to {high})")
    start, end = finding.span_s
    parts.append(f"seen from {duration(start)} to {duration(end)}")
    return "; ".join(parts)
