"""Cores are free, and the device waits for data: too few workers prepare it."""

from __future__ import annotations

from collections.abc import Iterator

from chipwise.observe.evidence import Evidence
from chipwise.observe.finding import Fact, Finding
from chipwise.observe.judging import Explains, fact, removed, severity
from chipwise.observe.waiting import SPINNING, moves, waiting

ABOUT = "Cores are free and the device waits for data: too few workers prepare it."
EXPLAINS = Explains.WAITING
PARALLEL = 1.6  # cores in use: more than one thread works
SPARE = 0.7  # of the cores may be in use


def examine(evidence: Evidence) -> Iterator[Finding]:
    seen = waiting(evidence)
    if (
        seen is None
        or seen.transferring
        or seen.disk_waits
        or seen.network_waits
        or not seen.cores
        or seen.program_cores is None
    ):
        return
    if seen.program_cores > SPARE * seen.cores:
        return
    serial = seen.program_cores <= PARALLEL
    if serial and seen.thread >= SPINNING:
        return  # one core is the limit, or launches are
    gets_on = moves(evidence) or evidence.program.or_zero("step") > 0
    if serial and not (gets_on and evidence.devices):
        return
    confidence = 0.9 if (seen.data_wait or 0.0) >= 0.1 else 0.8 if not serial else 0.7
    if seen.data_wait is not None and seen.data_wait < 0.1:
        return
    facts: list[Fact] = [
        fact(
            evidence.program, "cpu", f"the program used {seen.program_cores:.1f} of {seen.cores:.0f} cores", seen.program_cores
        )
    ]
    if evidence.devices:
        facts.append(Fact("waiting", seen.share, "share", f"the device had no work {seen.share:.0%} of the time"))
    if evidence.program.mean("processes") is not None:
        facts.append(fact(evidence.program, "processes", "in {} processes"))
    step = "Raise num_workers to the number of free cores, prefetch_factor to 4, and keep workers alive between epochs."
    yield Finding(
        rule="few-workers",
        severity=severity(seen.share, confidence),
        cause="Too few workers prepare the data: cores are free while the device waits."
        if evidence.devices
        else "Too few workers: cores are free while the program runs.",
        evidence=tuple(facts),
        span_s=evidence.window_s,
        confidence=confidence,
        lost_share=seen.share,
        speedup=removed(seen.share, least_share=0.4, highest=None if serial else seen.cores / seen.program_cores),
        next_step=step if evidence.devices else "Use as many workers as there are cores.",
    )
