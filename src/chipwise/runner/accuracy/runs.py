"""Finished runs of the record as measurements: what was predicted, what was measured, and under which conditions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chipwise.runner.comparing import Compared, compare, number
from chipwise.runner.events import Measured
from chipwise.runner.job import Job
from chipwise.runner.record import Happened

# A speed says more than a time, which has starts and interruptions in it.
QUANTITIES = ("throughput", "steps_per_s", "seconds")
AS_COMMAND = "run as a command, without a workload file"


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """One job that is over."""

    job: Job
    measurement: Measured
    figure: Compared | None  # None: nothing of it was both predicted and measured

    @property
    def ended(self) -> float:
        return self.job.ended if self.job.ended is not None else self.job.submitted

    @property
    def watched(self) -> Mapping[str, object]:
        return _mapping(self.measurement.measured.get("watched"))

    @property
    def devices(self) -> list[Mapping[str, object]]:
        """As the drivers of its machine named them."""
        return [_mapping(device) for device in _mapping(self.watched.get("devices")).values()]

    @property
    def series(self) -> tuple[str, ...]:
        """Runs with the same are runs of the same work on the same hardware, of which only the conditions may differ."""
        spec, predicted = self.job.spec, self.measurement.predicted
        figure = self.figure.name if self.figure is not None else ""
        return (spec.name, spec.engine, str(predicted.get("chip", "")), f"{number(predicted.get('chips')) or 0:g}", figure)

    @property
    def log_speed(self) -> float | None:
        """Of measured over predicted speed: above 0 is faster than predicted."""
        if self.figure is None or not self.figure.ratio or self.figure.ratio < 0:
            return None
        return math.log(self.figure.ratio) * (-1.0 if self.figure.name == "seconds" else 1.0)

    @property
    def why_not(self) -> str:
        """Why it cannot be held against a prediction, where it cannot."""
        if not self.job.spec.workload:
            return AS_COMMAND
        if (reason := self.measurement.predicted.get("why_not")) is not None:
            return f"not predicted: {reason}"
        if not any(number(self.measurement.predicted.get(name)) for name in QUANTITIES):
            return "submitted without a prediction"
        return "ended before anything that was predicted was measured"

    @property
    def conditions(self) -> dict[str, str]:
        """What may differ from the run before, by name; what is not known is left out."""
        spec, where = self.job.spec, self.job.attempts[-1].where if self.job.attempts else None
        values = {
            "command": " ".join(spec.command),
            "settings": ", ".join(f"{name}={value}" for name, value in sorted(spec.env.items())) or "none",
            "devices": f"{spec.needs.gpus} GPUs, {spec.needs.cpus} CPUs, {spec.needs.machines} machines",
            "machine": " ".join(filter(None, (where.provider, where.region, where.machine))) if where is not None else "",
            "prediction": _three_digits(self.figure.predicted if self.figure is not None else None),
        }
        stated = {name: value for name, value in _mapping(self.watched.get("conditions")).items() if isinstance(value, str)}
        return {name: value for name, value in (values | stated).items() if value}

    @property
    def levels(self) -> dict[str, float]:
        """What differs from run to run anyway, and counts where it differs by much."""
        host = _mapping(self.watched.get("host"))
        values = {
            "cpu_of_others": number(host.get("cpu_of_others")),
            "device_processes": _highest(self.devices, "processes"),
            "temperature": _highest(self.devices, "temperature_max_c"),
        }
        return {name: value for name, value in values.items() if value is not None}


def measured_run(job: Job, happened: Sequence[Happened]) -> MeasuredRun | None:
    """None where it was not measured: it never ran, or what it did was not recorded."""
    measurements = [one.event for one in happened if isinstance(one.event, Measured)]
    if not measurements or not job.phase.over:
        return None
    rows = {row.name: row for row in compare(job.spec, measurements[-1]) if row.ratio}
    return MeasuredRun(job, measurements[-1], next((rows[name] for name in QUANTITIES if name in rows), None))


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _highest(devices: Sequence[Mapping[str, object]], name: str) -> float | None:
    return max((value for device in devices if (value := number(device.get(name))) is not None), default=None)


def _three_digits(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"
