"""What takes samples, as the rest of `observe` sees it; each is a file of `adapters/probes`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

from chipwise.observe.sample import NoReading, Reading, Sample, SampledDevice

MOST_SHARE = 1.05  # rounding and two clocks; more than that cannot be


class Probe(Protocol):
    def devices(self) -> Sequence[SampledDevice]:
        """Those that it reads; none for a host or a program."""
        ...

    def read(self, at_s: float) -> Sequence[Sample]:
        """One sample of each of its sources; none where the last is too new. A sensor that fails is a `Missing` in it; nothing
        is raised."""
        ...

    def close(self) -> None: ...


def usable(value: object, author: str, highest: float = math.inf) -> Reading:
    """A number that can be, or why it cannot: drivers and exporters answer with anything."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return NoReading(f"{author} reports no number for it")
    if not math.isfinite(value):
        return NoReading(f"{author} reports {value:g}, which is no number")
    if value < 0:
        return NoReading(f"{author} reports {value:g}, which is below zero")
    return float(value) if value <= highest else NoReading(f"{author} reports {value:g}, which cannot be")
