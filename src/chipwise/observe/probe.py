"""What takes samples, as the rest of `observe` sees it; each is a file of `adapters/probes`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from chipwise.observe.sample import Device, Sample


class Probe(Protocol):
    def devices(self) -> Sequence[Device]:
        """Those that it reads; none for a host or a program."""
        ...

    def read(self, at_s: float) -> Sequence[Sample]:
        """One sample of each of its sources. A sensor that fails is a `Missing` in it; nothing is raised."""
        ...

    def close(self) -> None: ...
