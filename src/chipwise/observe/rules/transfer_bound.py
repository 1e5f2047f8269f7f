"""Transfer-bound: copies between host and device take the time, whatever utilisation says."""

from __future__ import annotations

from collections.abc import Iterator

from chipwise.observe.evidence import Evidence, ObservedDevice
from chipwise.observe.finding import Fact, Finding
from chipwise.observe.judging import Explains, Signs, fact, over_devices, removed, severity
from chipwise.observe.waiting import is_transferring

ABOUT = "Copies between host and device over PCIe take the time."
EXPLAINS = Explains.WAITING
BUSY, LITTLE_MEMORY, LITTLE_POWER = 0.8, 0.1, 0.35


def examine(evidence: Evidence) -> Iterator[Finding]:
    signs = over_devices(evidence, _judge)
    if signs is None:
        return
    yield Finding(
        rule="transfer-bound",
        severity=severity(signs.lost_share, signs.confidence),
        cause="Copies between host and device over PCIe take the time; kernels wait for them.",
        evidence=signs.facts,
        span_s=evidence.window_s,
        confidence=signs.confidence,
        lost_share=signs.lost_share,
        speedup=removed(signs.lost_share, least_share=0.3),
        next_step="Keep data on the device; else pin host memory, copy with non_blocking=True, send bf16 or uint8.",
        source=signs.source,
    )


def _judge(device: ObservedDevice) -> Signs | None:
    active, rate = device.active or 0.0, device.pcie_bytes_per_s
    if is_transferring(device):
        lost = 1 - active if device.has_counters else 1 - min(device.power_share or 0.5, 1.0)
        facts: list[Fact] = []
        for name, words in (("pcie_received", "{} received over PCIe"), ("pcie_sent", "{} sent over PCIe")):
            if device.or_zero(name) >= 0.2 * (rate or 0.0) and device.or_zero(name) > 0:
                facts.append(fact(device, name, f"{device.label}: {words}"))
        if device.has_counters:
            facts.append(fact(device, "graphics_active", "kernels ran {} of the time"))
        if device.mean("busy") is not None:
            facts.append(fact(device, "busy", "nvidia-smi shows {}, which counts copies"))
        return Signs(lost, 0.9 if device.has_counters else 0.8, tuple(facts))
    busy, memory, power = device.mean("busy"), device.mean("memory_busy"), device.power_share
    if device.has_counters or rate is not None or busy is None or memory is None or power is None:
        return None
    if busy < BUSY or memory >= LITTLE_MEMORY or power >= LITTLE_POWER:
        return None
    facts = [
        fact(device, "busy", f"{device.label}: busy {{}} of the time"),
        fact(device, "power", "yet only {} drawn", device.or_zero("power")),
        fact(device, "memory_busy", "and memory in use {}"),
    ]
    return Signs(1 - power, 0.55, tuple(facts))
