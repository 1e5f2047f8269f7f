"""Data comes from a disk that is too slow for the device."""

from __future__ import annotations

from collections.abc import Iterator

from chipwise.observe.evidence import Evidence
from chipwise.observe.finding import Fact, Finding
from chipwise.observe.judging import Explains, fact, removed, severity
from chipwise.observe.waiting import SATURATED, waiting
from chipwise.text import decimal_size

ABOUT = "Data comes from a disk that is too slow."
EXPLAINS = Explains.WAITING


def examine(evidence: Evidence) -> Iterator[Finding]:
    seen = waiting(evidence)
    if seen is None or seen.transferring or not seen.disk_waits:
        return
    if seen.cores and seen.program_cores is not None and seen.program_cores >= SATURATED * seen.cores:
        return
    if seen.data_wait is not None and seen.data_wait < 0.1:
        return
    waits = seen.io_wait_cores >= 0.3 or seen.io_pressure >= 0.2
    confidence = 0.9 if waits or seen.data_wait is not None else 0.8
    facts: list[Fact] = [
        Fact("disk_read", seen.disk_bytes_per_s, "bytes/s", f"{decimal_size(seen.disk_bytes_per_s)}/s came from disks"),
    ]
    if seen.io_wait_cores >= 0.05:
        facts.append(fact(evidence.host, "cpu_wait", f"{seen.io_wait_cores:.1f} cores waited for disks"))
    if seen.io_pressure:
        facts.append(fact(evidence.host, "pressure_io", "some process waited for a disk {} of the time"))
    if evidence.devices:
        facts.append(Fact("waiting", seen.share, "share", f"the device had no work {seen.share:.0%} of the time"))
    yield Finding(
        rule="slow-disk",
        severity=severity(seen.share, confidence),
        cause="The program waits for a disk.",
        evidence=tuple(facts),
        span_s=evidence.window_s,
        confidence=confidence,
        lost_share=seen.share,
        speedup=removed(seen.share, least_share=0.4),
        next_step="Pack small files into large ones, read more of them at once, or copy them to local NVMe.",
    )
