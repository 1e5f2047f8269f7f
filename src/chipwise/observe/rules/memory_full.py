"""Memory of a device or of the host is nearly full, grows, or is given back and taken again."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from chipwise.observe.evidence import Evidence, Observed, ObservedDevice
from chipwise.observe.finding import Fact, Finding, Severity
from chipwise.observe.judging import Explains, fact
from chipwise.text import duration

ABOUT = "Memory is nearly full, grows, or is freed and taken again: the next allocation may fail."
EXPLAINS = Explains.MEMORY
FULL, NEARLY = 0.97, 0.92
FALL = 0.08  # of the memory, given back at once
FALLS = 3
SOON_S = 3600.0


def examine(evidence: Evidence) -> Iterator[Finding]:
    for source in (*evidence.devices, evidence.host):
        finding = _examined(evidence, source)
        if finding is not None:
            yield finding
            return


def _examined(evidence: Evidence, source: Observed) -> Finding | None:
    track, total = source.tracks.get("memory_used"), source.mean("memory_total")
    if track is None or not total:
        return None
    shares = track.values / total
    high = float(np.percentile(shares, 95))
    falls = int((np.diff(shares) < -FALL).sum())
    label = source.label if isinstance(source, ObservedDevice) else "the host"
    facts: list[Fact] = [fact(source, "memory_used", f"{label}: {high:.1%} of its memory in use", high * total)]
    growth = _growth(track.at_s, shares)
    left_s = (1 - high) / growth if growth > 0 else None
    churning = falls >= FALLS and high >= 0.8
    runs_out = left_s is not None and left_s < SOON_S and high >= 0.7
    if churning:
        facts.append(Fact("falls", float(falls), "count", f"{falls} times a large part was given back and taken again"))
    if runs_out and left_s is not None:
        facts.append(Fact("left", left_s, "s", f"it grows, and is full in {duration(left_s)}"))
    if high < NEARLY and not churning and not runs_out:
        return None
    severity = Severity.CRITICAL if runs_out else Severity.WARNING if high >= FULL or churning else Severity.NOTE
    return Finding(
        rule="memory-full",
        severity=severity,
        cause="Memory is nearly full" + (", and large parts are freed and taken again." if churning else "."),
        evidence=tuple(facts),
        span_s=evidence.window_s,
        confidence=0.9 if high >= FULL or churning else 0.75,
        lost_share=max(0.1, 1 - (evidence.active or 1.0)) if churning else 0.0,  # each time all kernels end first
        speedup=None,
        next_step="Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, lower the batch, or checkpoint activations.",
        source=source.name,
    )


def _growth(at_s: np.ndarray[tuple[int], np.dtype[np.float64]], shares: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    """Share per second, where it grows steadily: each quarter above the one before."""
    if len(shares) < 12 or at_s[-1] - at_s[0] < 3:
        return 0.0
    quarters = [float(part.mean()) for part in np.array_split(shares, 4)]
    steady = all(later - earlier > 0.002 for earlier, later in pairwise(quarters))
    return (quarters[-1] - quarters[0]) / (0.75 * float(at_s[-1] - at_s[0])) if steady else 0.0
