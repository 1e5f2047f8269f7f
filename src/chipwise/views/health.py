"""Verdicts as plain data: what `chipwise health --json` prints."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from chipwise.observe.health.verdict import Verdict


def view(verdicts: Iterable[Verdict], notes: Sequence[str] = ()) -> dict[str, Any]:
    devices = [asdict(verdict) | {"programs_fault": verdict.is_programs_fault} for verdict in verdicts]
    return {"schema": 1, "devices": devices, "notes": list(notes)}
