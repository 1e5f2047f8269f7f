"""One core is the limit: one thread prepares everything, and all else waits for it."""

from __future__ import annotations

from collections.abc import Iterator

from chipwise.observe.evidence import Evidence
from chipwise.observe.finding import Fact, Finding
from chipwise.observe.judging import Explains, fact, removed, severity
from chipwise.observe.waiting import SPINNING, waiting

ABOUT = "One thread prepares the data, or does all the work; other cores and the device wait for it."
EXPLAINS = Explains.WAITING
ONE_CORE = 1.6  # cores in use, with what the runtime does beside


def examine(evidence: Evidence) -> Iterator[Finding]:
    seen = waiting(evidence)
    if seen is None or seen.transferring or seen.thread < SPINNING or seen.disk_waits:
        return
    if seen.program_cores is not None and seen.program_cores > ONE_CORE:
        return
    if seen.cores is not None and seen.cores < 2:
        return
    confidence = seen.for_data
    if seen.filled is not None and seen.filled < 0.5 and seen.data_wait is None:
        confidence -= 0.3  # tiny kernels look alike
    if not seen.counted:
        confidence -= 0.1
    if confidence < 0.3:
        return
    facts: list[Fact] = [fact(evidence.program, "cpu_highest_thread", "one thread of the program used {} of a core")]
    if seen.cores is not None and seen.program_cores is not None:
        text = f"the whole program used {seen.program_cores:.1f} of {seen.cores:.0f} cores"
        facts.append(fact(evidence.program, "cpu", text, seen.program_cores))
    if evidence.devices:
        facts.append(Fact("waiting", seen.share, "share", f"the device had no work {seen.share:.0%} of the time"))
    if seen.data_wait is not None:
        facts.append(
            fact(evidence.program, "data_wait", f"steps waited for data {seen.data_wait:.0%} of the time", seen.data_wait)
        )
    target = "the device waits for it" if evidence.devices else "the other cores idle"
    step = (
        "Load in parallel: DataLoader(num_workers=8, pin_memory=True, persistent_workers=True), or decode on the device."
        if evidence.devices
        else "Run it in parallel: processes, threads outside the interpreter lock, or a library that uses all cores."
    )
    yield Finding(
        rule="one-core",
        severity=severity(seen.share, confidence),
        cause=f"One core is the limit: one thread does all the work, and {target}.",
        evidence=tuple(facts),
        span_s=evidence.window_s,
        confidence=confidence,
        lost_share=seen.share,
        speedup=removed(seen.share, least_share=0.5, highest=seen.cores),
        next_step=step,
    )
