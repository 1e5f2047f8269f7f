"""Diagnoses with what is known of chips: of a recording, and of the last minute of what is watched, again and again."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from chipwise.observe.diagnosis import Diagnosis, diagnose
from chipwise.observe.sample import Recording, Sample, SampledDevice

if TYPE_CHECKING:
    from chipwise.catalog.names import Names

SPAN_S = 60.0
EVERY_S = 5.0  # of the samples' time: a diagnosis takes some 20 ms of the processor
MOST_SAMPLES = 20_000  # in a minute, of all sources; older ones go first


def judged(names: Names, recording: Recording) -> Diagnosis:
    """A device that names no chip of the catalog is looked up by what its driver calls it."""
    devices = tuple(replace(device, chip=_chip(names, device)) for device in recording.devices)
    return diagnose(replace(recording, devices=devices), names.catalog.chips)


def _chip(names: Names, device: SampledDevice) -> str | None:
    name = device.chip or device.name
    return names.one_chip(name).chip.name if names.chips_or_none(name) else None


@dataclass(slots=True)
class CurrentFinding:
    names: Callable[[], Names]  # asked for with the first diagnosis: to load what is known of chips takes a while
    header: Recording
    _samples: deque[Sample] = field(default_factory=lambda: deque(maxlen=MOST_SAMPLES))
    _diagnosis: Diagnosis | None = None
    _at_s: float | None = None

    def add(self, samples: Iterable[Sample], *, is_again: bool = False) -> None:
        """`is_again`: all of them, once more."""
        if is_again:
            self._samples.clear()
        self._samples.extend(samples)
        while self._samples and self._samples[0].at_s < self._samples[-1].at_s - SPAN_S:
            self._samples.popleft()

    def diagnosis(self) -> Diagnosis | None:
        """None while there is too little to judge by."""
        if not self._samples:
            return None
        newest = self._samples[-1].at_s
        if self._at_s is None or not 0 <= newest - self._at_s < EVERY_S:
            diagnosis = judged(self.names(), replace(self.header, samples=tuple(self._samples)))
            self._diagnosis = diagnosis if diagnosis.is_enough else None
            self._at_s = newest if self._diagnosis is not None else None
        return self._diagnosis
