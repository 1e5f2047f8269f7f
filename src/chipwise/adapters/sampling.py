"""Takes samples of several probes again and again, in a thread of its own, and hands each group on.

A driver that hangs holds up this thread and nothing else. What a probe or a receiver raises ends neither the thread nor the
program that is watched.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Collection, Sequence
from importlib import import_module

from chipwise.adapters.clock import boottime
from chipwise.errors import BadInput, ChipwiseError
from chipwise.observe.probe import Probe
from chipwise.observe.sample import NoReading, Sample, SampledDevice

VENDORS = ("nvidia", "amd", "neuron")
ENDS_WITHIN_S = 2.0


def device_probes(numbers: Collection[int] | None = None, *, for_long: bool = False) -> tuple[list[Probe], list[ChipwiseError]]:
    """Of the devices of this machine: all, or those with these numbers, of whichever vendor; and why not of the others.
    `for_long`: sampled as long as a job runs, so that what costs much is read less often."""
    probes: list[Probe] = []
    failures: list[ChipwiseError] = []
    for vendor in VENDORS if numbers is None or numbers else ():
        try:
            module = import_module(f"chipwise.adapters.probes.{vendor}")
            rarely = {"counters_s": module.COUNTERS_S} if for_long and hasattr(module, "COUNTERS_S") else {}
            probes.append(module.connect(numbers, **rarely))
        except ChipwiseError as error:
            failures.append(error)
            if isinstance(error, BadInput):
                break  # there is a driver, and it has no such device
        else:
            if numbers is not None:
                break  # one vendor has them
    return probes, failures


class Silent:
    """Devices that nobody can read: each sample says why."""

    def __init__(self, numbers: Sequence[int], reason: str) -> None:
        self._numbers, self._reason = numbers, NoReading(reason)

    def devices(self) -> Sequence[SampledDevice]:
        return [SampledDevice(f"device:{number}", "unknown device") for number in self._numbers]

    def read(self, at_s: float) -> Sequence[Sample]:
        return [Sample(at_s, f"device:{number}", {"busy": self._reason}) for number in self._numbers]

    def close(self) -> None: ...


class ProbeGroup:
    """Several probes by one clock, which begins at 0."""

    def __init__(self, probes: Sequence[Probe]) -> None:
        self.probes = probes
        self._begun = boottime()

    def devices(self) -> list[SampledDevice]:
        return [device for probe in self.probes for device in probe.devices()]

    def read(self) -> list[Sample]:
        at_s = boottime() - self._begun
        return [sample for probe in self.probes for sample in probe.read(at_s)]

    def close(self) -> None:
        for probe in self.probes:
            probe.close()


Receiver = Callable[[Sequence[Sample]], None]


class Sampler:
    def __init__(self, prepare: Callable[[], tuple[ProbeGroup, Sequence[Receiver]]], every_s: float) -> None:
        """`prepare` is called in the thread: a driver may take long to open, or hang."""
        self._prepare, self._every_s = prepare, every_s
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._work, name="samples", daemon=True)
        self._failure = ""

    def begin(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """After one more sample, unless a driver hangs."""
        self._ends.set()
        if self._thread.is_alive():
            self._thread.join(ENDS_WITHIN_S)

    def _work(self) -> None:
        try:
            group, receivers = self._prepare()
        except Exception as error:
            self._say(error)
            return
        due, has_ended = time.monotonic(), False
        while not has_ended:
            has_ended = self._ends.is_set()
            try:
                samples = group.read()
                for receiver in receivers:
                    receiver(samples)
                self._failure = ""
            except Exception as error:  # a full disk, or a bug of ours: the program that is watched goes on
                self._say(error)
            due = max(due + self._every_s, time.monotonic())  # what was missed is not made up for
            if not has_ended:
                self._ends.wait(due - time.monotonic())
        group.close()

    def _say(self, error: Exception) -> None:
        """Once, as long as it is the same."""
        trouble = str(error) if isinstance(error, ChipwiseError) else f"{type(error).__name__}: {error}"
        if trouble != self._failure:
            self._failure = trouble
            print(f"Sampling failed: {trouble}", file=sys.stderr, flush=True)
