"""Samples of this machine for the induced bottlenecks, by the probes of `chipwise watch`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from chipwise.adapters.engines.local import descendants
from chipwise.adapters.probes import host, nvidia, program
from chipwise.observe.probe import Probe
from chipwise.observe.sample import PROGRAM, Sample, SampledDevice

TREE_S = 0.5  # between two looks for new processes: these programs run for seconds
CHIPS = {"H200": "H200", "H100": "H100-SXM"}  # by a word in the driver's name


class Gpu:
    """The first NVIDIA device."""

    def __init__(self) -> None:
        self._probe = nvidia.connect([0])

    def device(self) -> SampledDevice:
        (device,) = self._probe.devices()
        return replace(device, chip=next((chip for word, chip in CHIPS.items() if word in device.name), None))

    def read(self, at_s: float) -> Sequence[Sample]:
        return self._probe.read(at_s)


class Program:
    def __init__(self, pid: int, source: str = PROGRAM) -> None:
        self._probe = program.connect(lambda: [pid, *descendants.below(pid)], closeness=program.Closeness(tree_s=TREE_S))
        self._source = source

    def read(self, at_s: float) -> Sequence[Sample]:
        return [replace(sample, source=self._source) for sample in self._probe.read(at_s)]


@dataclass
class Watcher:
    """Everything of one program, sampled when asked."""

    programs: Sequence[Program]
    gpu: Gpu | None
    host: Probe = field(default_factory=host.connect)
    samples: list[Sample] = field(default_factory=list)
    started_s: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        if self.gpu is not None:
            self.gpu.read(0.0)  # counters start here, and not with the program before

    def look(self) -> None:
        at_s = time.monotonic() - self.started_s
        readers: list[Gpu | Probe | Program] = (
            [self.host, *self.programs] if self.gpu is None else [self.gpu, self.host, *self.programs]
        )
        self.samples += [sample for reader in readers for sample in reader.read(at_s)]
