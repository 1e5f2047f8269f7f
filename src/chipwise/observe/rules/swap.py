"""The host is out of memory and swaps."""

from __future__ import annotations

from collections.abc import Iterator

from chipwise.observe.evidence import Evidence
from chipwise.observe.finding import Fact, Finding, Severity
from chipwise.observe.judging import Explains, fact, removed
from chipwise.text import decimal_size

ABOUT = "The host is out of memory and swaps, or reads its programs again and again."
EXPLAINS = Explains.MEMORY
SWAPPED = 1e6  # bytes/s
FAULTS, PRESSURE = 200.0, 0.05


def examine(evidence: Evidence) -> Iterator[Finding]:
    host = evidence.host
    swapped, faults, pressure = host.or_zero("swapped"), host.or_zero("major_faults"), host.or_zero("pressure_memory")
    thrashing = faults >= FAULTS and pressure >= PRESSURE
    if swapped < SWAPPED and not thrashing:
        return
    lost = max(pressure, min(swapped / 500e6, 0.5), 0.1)
    facts: list[Fact] = []
    if swapped:
        facts.append(fact(host, "swapped", f"{decimal_size(swapped)}/s to and from swap", swapped))
    if pressure:
        facts.append(fact(host, "pressure_memory", "some process waited for memory {} of the time"))
    if faults:
        facts.append(fact(host, "major_faults", f"{faults:.0f} pages a second were read from a disk", faults))
    yield Finding(
        rule="swap",
        severity=Severity.WARNING,
        cause="The host is out of memory: pages go to and from a disk.",
        evidence=tuple(facts),
        span_s=evidence.window_s,
        confidence=0.9,
        lost_share=min(lost, 0.95),
        speedup=removed(lost, least_share=0.4),
        next_step="Use less host memory (fewer workers, smaller prefetch, memory-mapped data) or a machine with more of it.",
    )
