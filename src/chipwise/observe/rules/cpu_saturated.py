"""All cores are busy preparing data, and the device still waits."""

from __future__ import annotations

from collections.abc import Iterator

from chipwise.observe.evidence import Evidence
from chipwise.observe.finding import Fact, Finding
from chipwise.observe.judging import Explains, fact, removed, severity
from chipwise.observe.waiting import SATURATED, waiting

ABOUT = "All cores prepare data, and the device still waits for it."
EXPLAINS = Explains.WAITING


def examine(evidence: Evidence) -> Iterator[Finding]:
    seen = waiting(evidence)
    if seen is None or not evidence.devices or seen.transferring or not seen.cores or seen.program_cores is None:
        return
    limited = evidence.program.or_zero("cpu") >= 0.8 and evidence.host.or_zero("cpu_limited") >= 0.1
    if seen.program_cores < SATURATED * seen.cores and not limited:
        return
    if seen.cores <= 1.5 and seen.program_cores <= 1.5 and not limited:
        return
    confidence = min(seen.for_data + 0.15, 0.95)
    facts: list[Fact] = [
        fact(
            evidence.program, "cpu", f"the program used {seen.program_cores:.1f} of {seen.cores:.0f} cores", seen.program_cores
        ),
        Fact("waiting", seen.share, "share", f"the device had no work {seen.share:.0%} of the time"),
    ]
    if limited:
        facts.append(fact(evidence.host, "cpu_limited", "the limit of the control group stopped it"))
    yield Finding(
        rule="cpu-saturated",
        severity=severity(seen.share, confidence),
        cause="All cores are busy preparing data, and the device waits for it.",
        evidence=tuple(facts),
        span_s=evidence.window_s,
        confidence=confidence,
        lost_share=seen.share,
        speedup=removed(seen.share, least_share=0.4),
        next_step="Decode and augment on the device, store prepared data, or take more cores per device.",
    )
