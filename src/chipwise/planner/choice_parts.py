"""Parts of a choice in words and figures: interruptions, an own machine's two prices, transfer, feeding."""

from __future__ import annotations

import math

from chipwise.catalog.machine import Machine
from chipwise.catalog.offer import Purchase
from chipwise.money.storage import StorageChoice
from chipwise.planner.values.choice import Choice, Feeding, OwnCosts
from chipwise.text import decimal_size, duration
from chipwise.workload.data import Data


def interruption_words(expected: float, assumed: bool, of: str) -> str:
    """Few of them with the digits that tell them from none."""
    often = f"{expected:.1f}" if expected >= 0.095 or expected == 0 else f"{expected:.1g}"
    return f"{often} interruptions expected{f', assumed: not published for {of}' if assumed else ''}"


def own_costs(machine: Machine, choice: Choice, by_hour: float) -> OwnCosts | None:
    """`by_hour`: the part of the cost that the machine's price an hour makes. None where the price is not one of its two."""
    counted = machine.energy_usd_per_hour if machine.paid else machine.full_usd_per_hour
    if choice.purchase != Purchase.OWNED or counted is None or not math.isclose(counted, choice.hourly_usd, rel_tol=1e-9):
        return None

    def total(hourly: float | None) -> float | None:
        return None if hourly is None else choice.usd + by_hour * (hourly / counted - 1.0)

    return OwnCosts(sunk_usd=total(machine.energy_usd_per_hour), full_usd=total(machine.full_usd_per_hour), paid=machine.paid)


def transfer_words(data: Data | None, seconds: float) -> str:
    if data is None or not data.place:
        return ""
    back = f" and {decimal_size(data.results)} back" if data.results else ""
    time = f", {duration(seconds)}" if seconds else ""
    return f"{decimal_size(data.read_bytes)} from {data.place}{back}{time}"


def feeding_of(storage: StorageChoice) -> Feeding:
    return Feeding(
        workers=storage.workers,
        prefetch=storage.prefetch,
        compression=storage.compression,
        resident=storage.resident,
        keeps_up=storage.feeds,
        why=storage.why,
    )
