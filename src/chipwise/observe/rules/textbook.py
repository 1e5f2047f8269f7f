"""The textbook rule, and where it misleads.

"Memory over 80% and compute under 50%: memory-bound; compute over 90%: compute-bound", where compute is what nvidia-smi calls
utilisation. That figure only says that something ran: copies over PCIe show 100% of it. Where counters or the power draw
disagree with the rule, this says so.
"""

from __future__ import annotations

from collections.abc import Iterator

from chipwise.observe.evidence import Evidence, ObservedDevice
from chipwise.observe.finding import Fact, Finding, Severity
from chipwise.observe.judging import Explains, Signs, fact, over_devices

ABOUT = "What the textbook rule on utilisation would say, where it misleads."
EXPLAINS = Explains.READING
MEMORY, COMPUTE, FULL = 0.8, 0.5, 0.9


def examine(evidence: Evidence) -> Iterator[Finding]:
    signs = over_devices(evidence, _judge)
    if signs is None:
        return
    yield Finding(
        rule="textbook",
        severity=Severity.NOTE,
        cause="Utilisation misleads here: it would be read as compute-bound, and the arithmetic units are not the limit.",
        evidence=signs.facts,
        span_s=evidence.window_s,
        confidence=signs.confidence,
        lost_share=0.0,
        speedup=None,
        next_step="Read matrix units, memory bandwidth and power instead of utilisation.",
        source=signs.source,
    )


def reading(device: ObservedDevice) -> str:
    """What the rule says: memory-bound, compute-bound, or nothing."""
    busy, memory = device.mean("busy"), device.mean("memory_busy")
    if busy is None:
        return ""
    if memory is not None and memory > MEMORY and busy < COMPUTE:
        return "memory-bound"
    return "compute-bound" if busy > FULL else ""


def _judge(device: ObservedDevice) -> Signs | None:
    if reading(device) != "compute-bound":
        return None
    facts: list[Fact] = [fact(device, "busy", f"{device.label}: utilisation {{}}")]
    if device.has_counters:
        used = max(device.or_zero(name) for name in ("tensor_active", "fp16_active", "fp32_active", "fp64_active"))
        if used >= 0.4:
            return None
        facts.append(Fact("arithmetic", used, "share", f"yet arithmetic units {used:.0%} used"))
        facts.append(fact(device, "dram_active", "memory bandwidth {}"))
        return Signs(0.0, 0.9, tuple(facts))
    power = device.power_share
    if power is None or power >= 0.5:
        return None
    facts.append(fact(device, "power", f"yet only {{}} drawn, {power:.0%} of its limit", device.or_zero("power")))
    return Signs(0.0, 0.7, tuple(facts))
