"""Compute-bound: the arithmetic units are the limit. This is how it should be, and a note."""

from __future__ import annotations

from collections.abc import Iterator

from chipwise.observe.evidence import Evidence, ObservedDevice
from chipwise.observe.finding import Finding, Severity
from chipwise.observe.judging import Explains, Signs, fact, over_devices
from chipwise.predictor.interval import Interval

ABOUT = "The arithmetic units are the limit: well used."
EXPLAINS = Explains.ARITHMETIC
MATRIX, DOUBLE = 0.5, 0.5  # of the units' time while kernels run
DRIVER_BUSY, FULL_POWER = 0.9, 0.85


def examine(evidence: Evidence) -> Iterator[Finding]:
    signs = over_devices(evidence, _judge)
    if signs is None:
        return
    yield Finding(
        rule="compute-bound",
        severity=Severity.NOTE,
        cause="The arithmetic units are the limit: the device is well used.",
        evidence=signs.facts,
        span_s=evidence.window_s,
        confidence=signs.confidence,
        lost_share=signs.lost_share,
        speedup=Interval(low=1.0, value=1.1, high=2.0),
        next_step="Nothing need be done; FP8 or a faster chip would be the next step (chipwise compare).",
        source=signs.source,
    )


def _judge(device: ObservedDevice) -> Signs | None:
    active = device.active
    if active is None or active < 0.5:
        return None
    if device.has_counters:
        tensor, double = device.while_active("tensor_active") or 0.0, device.while_active("fp64_active") or 0.0
        if tensor < MATRIX and double < DOUBLE:
            return None
        name, words = ("tensor_active", "matrix units") if tensor >= MATRIX else ("fp64_active", "64-bit arithmetic")
        used = max(tensor, double) * active
        return Signs(1 - min(used / 0.95, 1.0), 0.9, (fact(device, name, f"{device.label}: {words} {{}} used"),))
    power = device.power_share
    if active < DRIVER_BUSY or power is None or power < FULL_POWER or (device.mean("memory_busy") or 0.0) >= 0.8:
        return None
    facts = (
        fact(device, "power", f"{device.label}: {{}} drawn, near its limit"),
        fact(device, "busy", "busy {} of the time"),
    )
    return Signs(0.05, 0.6, facts)
