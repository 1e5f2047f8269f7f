"""The clock stays low though neither heat nor power asks for it: a brake outside the chip, or a locked clock."""

from __future__ import annotations

from collections.abc import Iterator

from chipwise.observe.evidence import Evidence, ObservedDevice
from chipwise.observe.finding import Finding
from chipwise.observe.judging import Explains, Signs, fact, over_devices, removed, severity

ABOUT = "The clock stays low without heat or a power limit: an external brake, or a locked clock."
EXPLAINS = Explains.CLOCK
OFTEN = 0.05
LOW = 0.8  # of the highest clock, while kernels run
OTHER_REASON = 0.1  # of the time


def examine(evidence: Evidence) -> Iterator[Finding]:
    signs = over_devices(evidence, _judge)
    if signs is None:
        return
    yield Finding(
        rule="throttled-clock",
        severity=severity(signs.lost_share, signs.confidence),
        cause="The clock is held low by a lock or by hardware outside the chip.",
        evidence=signs.facts,
        span_s=evidence.window_s,
        confidence=signs.confidence,
        lost_share=signs.lost_share,
        speedup=removed(signs.lost_share, least_share=0.4),
        next_step="Look at nvidia-smi -q -d PERFORMANCE; undo a lock (nvidia-smi -rgc), else check the power supply.",
        source=signs.source,
    )


def _judge(device: ObservedDevice) -> Signs | None:
    clock, highest, braked = device.percentile("clock", 0.9), device.mean("clock_max"), device.or_zero("throttled_hardware")
    if not clock or not highest or (device.active or 0.0) < 0.2:
        return None
    has_other_reason = max(device.or_zero("throttled_power"), device.or_zero("throttled_heat")) >= OTHER_REASON
    low = clock < LOW * highest and not has_other_reason
    if braked < OFTEN and not low:
        return None
    facts = [fact(device, "clock", f"{device.label}: {{}} of {highest:.0f} MHz while it works", clock)]
    if braked >= OFTEN:
        facts.append(fact(device, "throttled_hardware", "a brake outside the chip held it {} of the time"))
    active = device.active or 0.0
    return Signs((1 - clock / highest) * min(active, 1.0), 0.9 if braked >= OFTEN else 0.75, tuple(facts))
