"""Kernels run all the time and fill only a part of the device."""

from __future__ import annotations

from collections.abc import Iterator

from chipwise.observe.evidence import Evidence, ObservedDevice
from chipwise.observe.finding import Fact, Finding
from chipwise.observe.judging import Explains, Signs, fact, over_devices, removed, severity

ABOUT = "Kernels run all the time and fill only a part of the device."
EXPLAINS = Explains.ARITHMETIC
ACTIVE, FILLED = 0.6, 0.6
DRIVER_BUSY, LITTLE_POWER, LITTLE_MEMORY = 0.85, 0.5, 0.4


def examine(evidence: Evidence) -> Iterator[Finding]:
    signs = over_devices(evidence, _judge)
    if signs is None:
        return
    yield Finding(
        rule="batch-too-small",
        severity=severity(signs.lost_share, signs.confidence),
        cause="Kernels run all the time and fill only a part of the device: each handles too little work.",
        evidence=signs.facts,
        span_s=evidence.window_s,
        confidence=signs.confidence,
        lost_share=signs.lost_share,
        speedup=removed(signs.lost_share, least_share=0.3),
        next_step="Raise the batch until memory is 80% full, run several models at once, or take a smaller device.",
        source=signs.source,
    )


def _judge(device: ObservedDevice) -> Signs | None:
    active, filled = device.active, device.filled
    if device.has_counters:
        memory, links = device.while_active("dram_active") or 0.0, device.or_zero("nvlink_sent")
        if active is None or filled is None or active < ACTIVE or filled >= FILLED or memory >= 0.5 or links >= 20e9:
            return None
        facts: list[Fact] = [
            fact(device, "graphics_active", f"{device.label}: kernels ran {{}} of the time"),
            fact(device, "sm_active", "on {} of the multiprocessors"),
        ]
        if device.memory_share is not None:
            facts.append(Fact("memory_share", device.memory_share, "share", f"memory {device.memory_share:.0%} full"))
        confidence = 0.85 if active >= 0.8 else 0.65
        return Signs((1 - filled) * active, confidence, tuple(facts))
    power, memory_busy, rate = device.power_share, device.mean("memory_busy"), device.pcie_bytes_per_s
    if (
        active is None
        or power is None
        or active < DRIVER_BUSY
        or power >= LITTLE_POWER
        or (memory_busy or 0.0) >= LITTLE_MEMORY
    ):
        return None
    if rate is not None and rate >= 2e9:
        return None
    facts = [
        fact(device, "busy", f"{device.label}: busy {{}} of the time"),
        fact(device, "power", "with only {} drawn (no counters)", device.or_zero("power")),
    ]
    return Signs(1 - power, 0.5, tuple(facts))
