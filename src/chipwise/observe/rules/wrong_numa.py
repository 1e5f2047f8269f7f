"""The program runs on cores that are far from its device."""

from __future__ import annotations

from collections.abc import Iterator

from chipwise.observe.evidence import Evidence
from chipwise.observe.finding import Finding, Severity
from chipwise.observe.judging import Explains, fact, removed

ABOUT = "The program's cores are on another NUMA node than its device."
EXPLAINS = Explains.PLACEMENT
SAME_NODE = 10.5
MOVING = 2e9  # bytes/s over PCIe from which on it matters
LOST = 0.15  # of the time in transfers, as memory of another node is slower


def examine(evidence: Evidence) -> Iterator[Finding]:
    distance = evidence.program.mean("device_numa_distance")
    if distance is None or distance <= SAME_NODE:
        return
    moved = max((device.pcie_bytes_per_s or 0.0 for device in evidence.devices), default=0.0)
    waits = 1 - (evidence.active if evidence.active is not None else 1.0)
    lost = LOST * waits if moved >= MOVING else 0.0
    facts = [fact(evidence.program, "device_numa_distance", "distance {} between its cores and its device (10 is near)")]
    if moved >= MOVING:
        facts.append(fact(evidence.devices[0], "pcie_received", "{} go over PCIe", moved))
    yield Finding(
        rule="wrong-numa",
        severity=Severity.WARNING if moved >= MOVING else Severity.NOTE,
        cause="The program runs on cores of another NUMA node than its device.",
        evidence=tuple(facts),
        span_s=evidence.window_s,
        confidence=0.85,
        lost_share=lost,
        speedup=removed(lost, least_share=0.2) if lost else None,
        next_step="Bind it to the node of its device: numactl --cpunodebind=N --membind=N (nvidia-smi topo -m shows N).",
    )
