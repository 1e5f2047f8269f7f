"""The device lowers its clock to keep its power limit: usual at the limit of the board, a loss below it."""

from __future__ import annotations

from collections.abc import Iterator

from chipwise.observe.evidence import Evidence, ObservedDevice
from chipwise.observe.finding import Fact, Finding, Severity
from chipwise.observe.judging import Explains, Signs, fact, over_devices, removed

ABOUT = "The device lowers its clock to keep its power limit."
EXPLAINS = Explains.CLOCK
OFTEN = 0.1
LOWERED = 0.93  # of the board's own limit


def examine(evidence: Evidence) -> Iterator[Finding]:
    signs = over_devices(evidence, _judge)
    if signs is None:
        return
    lowered = signs.lost_share > 0
    yield Finding(
        rule="throttled-power",
        severity=Severity.WARNING if signs.lost_share >= 0.03 else Severity.NOTE,
        cause="A power limit below that of the board lowers the clock."
        if lowered
        else "The clock follows the power limit of the board, as it should under full load.",
        evidence=signs.facts,
        span_s=evidence.window_s,
        confidence=signs.confidence,
        lost_share=signs.lost_share,
        speedup=removed(signs.lost_share, least_share=0.5) if lowered else None,
        next_step="Have the limit raised, if cooling and power supply allow it." if lowered else "Nothing need be done.",
        source=signs.source,
    )


def _judge(device: ObservedDevice) -> Signs | None:
    share = device.mean("throttled_power")
    if share is None or share < OFTEN:
        return None
    limit, board = device.mean("power_limit"), device.chip.power_w if device.chip else None
    facts: list[Fact] = [fact(device, "throttled_power", f"{device.label}: throttled by power {{}} of the time")]
    if limit:
        facts.append(fact(device, "power_limit", f"limit {{}}{f' of {board:.0f} W' if board else ''}"))
    clock, highest = device.mean("clock"), device.mean("clock_max")
    if clock and highest:
        facts.append(fact(device, "clock", f"{{}} of {highest:.0f} MHz"))
    lowered = bool(limit and board and limit < LOWERED * board)
    lost = max(1 - clock / highest, 0.05) * share if lowered and clock and highest else 0.05 if lowered else 0.0
    return Signs(lost, 0.9 if board else 0.7, tuple(facts))
