"""The PCIe link runs with fewer lanes or at an older generation than device and slot can."""

from __future__ import annotations

from collections.abc import Iterator

from chipwise.observe.evidence import LANE_BYTES_PER_S, Evidence, ObservedDevice
from chipwise.observe.finding import Finding, Severity
from chipwise.observe.judging import Explains, Signs, fact, over_devices, removed

ABOUT = "The PCIe link has fewer lanes, or an older generation, than it could."
EXPLAINS = Explains.PLACEMENT
USED = 0.2  # of what the link can do now
TRAFFIC = 1e9  # bytes/s
SLACK = 0.5  # means of whole numbers are not whole


def examine(evidence: Evidence) -> Iterator[Finding]:
    signs = over_devices(evidence, _judge)
    if signs is None:
        return
    yield Finding(
        rule="pcie-link",
        severity=Severity.WARNING if signs.lost_share > 0.02 else Severity.NOTE,
        cause="The PCIe link is slower than device and slot allow.",
        evidence=signs.facts,
        span_s=evidence.window_s,
        confidence=signs.confidence,
        lost_share=signs.lost_share,
        speedup=removed(signs.lost_share, least_share=0.5) if signs.lost_share else None,
        next_step="Reseat the card, check riser and BIOS (link speed, bifurcation); on a rented machine ask for another one.",
        source=signs.source,
    )


def _judge(device: ObservedDevice) -> Signs | None:
    lanes, most_lanes = device.percentile("pcie_width", 0.95), device.mean("pcie_width_max")
    generation, newest = device.percentile("pcie_generation", 0.95), device.mean("pcie_generation_max")
    narrow = bool(lanes and most_lanes and lanes < most_lanes - SLACK)
    # A device lowers its generation while it rests: that is a fault only under traffic.
    old = bool(generation and newest and generation < newest - SLACK and (device.pcie_bytes_per_s or 0.0) >= TRAFFIC)
    if not narrow and not old:
        return None
    facts = []
    if narrow:
        facts.append(fact(device, "pcie_width", f"{device.label}: {{}} of {most_lanes:.0f} lanes", lanes))
    if old:
        facts.append(fact(device, "pcie_generation", f"{device.label}: generation {{}} of {newest:.0f}", generation))
    ratio = (lanes / most_lanes if lanes and most_lanes else 1.0) * _slower(generation, newest)
    capacity, rate = device.pcie_capacity, device.pcie_bytes_per_s
    used = rate / capacity if rate and capacity else 0.0
    return Signs((1 - ratio) * min(used, 1.0) if used >= USED else 0.0, 0.9, tuple(facts))


def _slower(generation: float | None, newest: float | None) -> float:
    if generation is None or newest is None:
        return 1.0
    now, best = LANE_BYTES_PER_S.get(round(generation)), LANE_BYTES_PER_S.get(round(newest))
    return now / best if now and best else 1.0
