"""Memory-bound: kernels wait for device memory while arithmetic units idle."""

from __future__ import annotations

from collections.abc import Iterator

from chipwise.observe.evidence import Evidence, ObservedDevice
from chipwise.observe.finding import Fact, Finding
from chipwise.observe.judging import Explains, Signs, fact, over_devices, severity
from chipwise.predictor.interval import Interval

ABOUT = "Kernels wait for device memory; arithmetic units idle."
EXPLAINS = Explains.ARITHMETIC
BUSY_MEMORY = 0.55  # of the bandwidth while kernels run; 0.9 is what copies reach
BUSY_ARITHMETIC = 0.4
DRIVER_BUSY = 0.8  # what the driver reports where there are no counters
HALVED_BYTES = 2.0  # what half the bytes give at best: 16 instead of 32 bits, or two passes fused into one


def examine(evidence: Evidence) -> Iterator[Finding]:
    signs = over_devices(evidence, _judge)
    if signs is None:
        return
    half = signs.lost_share / 0.5  # of the time in which memory limits
    yield Finding(
        rule="memory-bound",
        severity=severity(signs.lost_share, signs.confidence),
        cause="Kernels are limited by the bandwidth of device memory.",
        evidence=signs.facts,
        span_s=evidence.window_s,
        confidence=signs.confidence,
        lost_share=signs.lost_share,
        speedup=Interval(low=1.1, value=1 / (1 - 0.5 * half * 0.6), high=HALVED_BYTES),
        next_step="Move fewer bytes: fuse elementwise operations (torch.compile), use bf16, raise the batch for decoding.",
        source=signs.source,
    )


def _judge(device: ObservedDevice) -> Signs | None:
    memory, tensor, active = device.while_active("dram_active"), device.while_active("tensor_active"), device.active
    if memory is not None and active is not None:
        if memory < BUSY_MEMORY or (tensor or 0.0) >= BUSY_ARITHMETIC or active < 0.3:
            return None
        confidence = 0.95 if memory >= 0.7 else 0.75
        facts: list[Fact] = [fact(device, "dram_active", f"{device.label}: memory bandwidth {{}} used")]
        if tensor is not None:
            facts.append(fact(device, "tensor_active", "matrix units {} used"))
        return Signs(0.5 * min(active, 1.0), confidence, tuple(facts))
    traffic, busy, power = device.mean("memory_busy"), device.mean("busy"), device.power_share
    if traffic is None or busy is None or traffic < DRIVER_BUSY or busy < DRIVER_BUSY:
        return None
    if power is not None and (power < 0.4 or power > 0.93):
        return None
    facts = [fact(device, "memory_busy", f"{device.label}: memory in use {{}} of the time (driver, no counters)")]
    if power is not None:
        facts.append(fact(device, "power", "{} drawn", device.or_zero("power")))
    return Signs(0.5 * busy, 0.65, tuple(facts))
