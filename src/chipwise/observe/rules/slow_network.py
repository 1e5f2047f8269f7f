"""Data comes over the network from storage that is too slow or too far away."""

from __future__ import annotations

from collections.abc import Iterator

from chipwise.observe.evidence import Evidence
from chipwise.observe.finding import Fact, Finding
from chipwise.observe.judging import Explains, fact, removed, severity
from chipwise.observe.waiting import waiting
from chipwise.text import decimal_size

ABOUT = "Data comes over the network from storage that is too slow."
EXPLAINS = Explains.WAITING


def examine(evidence: Evidence) -> Iterator[Finding]:
    seen = waiting(evidence)
    if seen is None or seen.transferring or not seen.network_waits or seen.disk_waits:
        return
    if evidence.host.or_zero("network_sent") > 0.5 * seen.network_bytes_per_s:
        return  # both ways: ranks that talk to each other
    confidence = 0.9 if (seen.data_wait or 0.0) >= 0.1 else 0.75
    if seen.data_wait is not None and seen.data_wait < 0.1:
        return
    facts: list[Fact] = [
        fact(evidence.host, "network_received", f"{decimal_size(seen.network_bytes_per_s)}/s came over the network")
    ]
    if seen.program_cores is not None and seen.cores:
        text = f"the program used only {seen.program_cores:.1f} of {seen.cores:.0f} cores"
        facts.append(fact(evidence.program, "cpu", text, seen.program_cores))
    if evidence.devices:
        facts.append(Fact("waiting", seen.share, "share", f"the device had no work {seen.share:.0%} of the time"))
    yield Finding(
        rule="slow-network",
        severity=severity(seen.share, confidence),
        cause="The program waits for storage on the network.",
        evidence=tuple(facts),
        span_s=evidence.window_s,
        confidence=confidence,
        lost_share=seen.share,
        speedup=removed(seen.share, least_share=0.4),
        next_step="Cache the data on a local disk, fetch ahead with more requests at once, or move the bucket nearer.",
    )
