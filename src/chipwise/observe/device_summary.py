"""A summary that a machine or a pod wrote, made fit for the record: what it holds is anybody's, so that only what a summary has
is taken, within bounds. Several machines of one run become one summary."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from chipwise.observe.summary import PERCENTILES, SHARES

MOST_DEVICES = 64
_LONGEST = 100
_AMOUNTS = ("energy_j", "memory_peak_bytes", "temperature_max_c")
_RANKS = ("mean", *(f"p{rank}" for rank in PERCENTILES))
_LARGEST = 1e18


def read(parts: Sequence[object]) -> dict[str, Any]:
    """One part for each machine; empty where none says anything."""
    summaries = [summary for part in parts if (summary := _summary(part))]
    if not summaries:
        return {}
    devices = {
        name if len(summaries) == 1 else f"{rank}/{name}": device
        for rank, summary in enumerate(summaries)
        for name, device in summary["devices"].items()
    }
    energies = [energy for summary in summaries if (energy := summary.get("energy_kwh")) is not None]
    drivers = sorted({driver for summary in summaries if (driver := summary.get("driver"))})
    return {
        "seconds": max(summary["seconds"] for summary in summaries),
        "devices": dict(list(devices.items())[:MOST_DEVICES]),
        **({"energy_kwh": round(sum(energies), 6)} if energies else {}),
        **({"conditions": {"driver": ", ".join(drivers)[:_LONGEST]}} if drivers else {}),
    }


def _summary(part: object) -> dict[str, Any]:
    if not isinstance(part, Mapping):
        return {}
    seconds, listed = _amount(part.get("seconds")), part.get("devices")
    if seconds is None or not isinstance(listed, Mapping):
        return {}
    entries = [(name, device) for name, device in listed.items() if isinstance(device, Mapping)][:MOST_DEVICES]
    devices = {_text(name): _device(device) for name, device in entries}
    conditions = part.get("conditions")
    driver = _text(conditions.get("driver")) if isinstance(conditions, Mapping) else ""
    return {"seconds": seconds, "devices": devices, "energy_kwh": _amount(part.get("energy_kwh")), "driver": driver}


def _device(told: Mapping[str, Any]) -> dict[str, Any]:
    device: dict[str, Any] = {"name": name} if (name := _text(told.get("name"))) else {}
    for share in SHARES:
        value = told.get(share)
        ranks = {} if not isinstance(value, Mapping) else {rank: _amount(value.get(rank)) for rank in _RANKS}
        amounts = [amount for amount in ranks.values() if amount is not None]
        if len(amounts) == len(_RANKS) and max(amounts) <= 1.0:
            device[share] = ranks
    return device | {name: amount for name in _AMOUNTS if (amount := _amount(told.get(name))) is not None}


def _amount(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value) if 0 <= value < _LARGEST else None


def _text(value: object) -> str:
    return "".join(letter for letter in value[:_LONGEST] if letter.isprintable()) if isinstance(value, str) else ""
