"""Loading a stored snapshot: every command does it at its start."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from datetime import date
from functools import partial
from pathlib import Path

from chipwise.adapters.stores import snapshots
from chipwise.catalog.fact import Fact
from chipwise.catalog.feed import Snapshot
from chipwise.catalog.machine import Machine
from chipwise.catalog.offer import Offer, Purchase
from figure import Figure, cpu_here


def figures() -> Iterator[Figure]:
    machines = tuple(
        Machine("aws", f"p5.{n}xlarge", "H100-SXM", 8, fact=Fact(("a benchmark",), "2026-11-15")) for n in range(500)
    )
    offers = tuple(
        Offer("aws", machine.name, f"region-{n}", Purchase.ON_DEMAND, 1.0 + n, "2026-11-15", source="a benchmark")
        for machine in machines
        for n in range(20)
    )
    with tempfile.TemporaryDirectory() as directory:
        snapshots.save(Path(directory), Snapshot("aws", date(2026, 11, 15), machines, offers))
        yield Figure("snapshot_load_10k_offers_cpu", cpu_here(partial(snapshots.load, Path(directory)), 9), "s", {"max": 0.1})
