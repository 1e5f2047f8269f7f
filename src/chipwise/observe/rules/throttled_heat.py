"""The device lowers its clock because it is too hot."""

from __future__ import annotations

from collections.abc import Iterator

from chipwise.observe.evidence import Evidence, ObservedDevice
from chipwise.observe.finding import Fact, Finding
from chipwise.observe.judging import Explains, Signs, fact, over_devices, removed, severity

ABOUT = "The device lowers its clock because it is too hot."
EXPLAINS = Explains.CLOCK
OFTEN = 0.1  # of the time


def examine(evidence: Evidence) -> Iterator[Finding]:
    signs = over_devices(evidence, _judge)
    if signs is None:
        return
    yield Finding(
        rule="throttled-heat",
        severity=severity(max(signs.lost_share, 0.1), signs.confidence),  # heat is never just a note: it ages the device
        cause="The device is too hot and lowers its clock.",
        evidence=signs.facts,
        span_s=evidence.window_s,
        confidence=signs.confidence,
        lost_share=signs.lost_share,
        speedup=removed(signs.lost_share, least_share=0.6),
        next_step="Check air flow, fans and dust; until then let the power limit be lowered.",
        source=signs.source,
    )


def _judge(device: ObservedDevice) -> Signs | None:
    share = device.mean("throttled_heat")
    if share is None or share < OFTEN:
        return None
    clock, highest = device.mean("clock"), device.mean("clock_max")
    lost = max(1 - clock / highest, 0.0) * share if clock and highest else 0.15 * share
    facts: list[Fact] = [fact(device, "throttled_heat", f"{device.label}: throttled by heat {{}} of the time")]
    if device.mean("temperature") is not None:
        facts.append(fact(device, "temperature", "at {}", device.percentile("temperature", 0.95)))
    if clock and highest:
        facts.append(fact(device, "clock", f"{{}} of {highest:.0f} MHz"))
    return Signs(lost, 0.95, tuple(facts))
