"""Launch-bound: kernels are so short that the host cannot start them fast enough."""

from __future__ import annotations

from collections.abc import Iterator

from chipwise.observe.evidence import Evidence
from chipwise.observe.finding import Fact, Finding
from chipwise.observe.judging import Explains, fact, removed, severity
from chipwise.observe.waiting import SPINNING, Waiting, waiting

ABOUT = "Many tiny kernels: the host cannot start them fast enough."
EXPLAINS = Explains.WAITING
SMALL = 0.5  # of the multiprocessors while kernels run
ACTIVE_AT_ALL = 0.02  # of the time


def examine(evidence: Evidence) -> Iterator[Finding]:
    seen = waiting(evidence)
    if (
        seen is None
        or not evidence.devices
        or seen.transferring
        or (seen.active or 0.0) < ACTIVE_AT_ALL
        or seen.thread < SPINNING
    ):
        return
    confidence = _confidence(seen)
    if confidence is None:
        return
    device = evidence.devices[0]
    facts: list[Fact] = [
        fact(device, "graphics_active" if device.has_counters else "busy", f"{device.label}: kernels ran {{}} of the time")
    ]
    if seen.filled is not None:
        facts.append(Fact("filled", seen.filled, "share", f"they filled {seen.filled:.0%} of the multiprocessors"))
    facts.append(fact(evidence.program, "cpu_highest_thread", "one thread of the program used {} of a core"))
    yield Finding(
        rule="launch-bound",
        severity=severity(seen.share, confidence),
        cause="The program starts many tiny kernels, and the host cannot start them fast enough.",
        evidence=tuple(facts),
        span_s=evidence.window_s,
        confidence=confidence,
        lost_share=seen.share,
        speedup=removed(seen.share, least_share=0.3),
        next_step="Start fewer, larger kernels: torch.compile(mode='reduce-overhead'), CUDA graphs, a larger batch.",
    )


def _confidence(seen: Waiting) -> float | None:
    if seen.data_wait is not None and seen.data_wait >= 0.5 * seen.share:
        return None
    certain = seen.data_wait is not None
    if not seen.counted:
        return 0.6 if (seen.active or 0.0) >= 0.08 and not seen.is_fed else 0.35
    if seen.filled is None or seen.filled < SMALL:
        return 0.9 if certain else 0.65 if seen.is_fed else 0.85
    return 0.45 if not seen.is_fed else None
