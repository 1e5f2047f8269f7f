"""What was predicted of a job beside what was measured, quantity by quantity. Ratios are measured over predicted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from chipwise.runner.events import Measured
from chipwise.runner.job import Job, Spec
from chipwise.runner.record import Happened

# Of a part of the work these say nothing beside a prediction of all of it.
OF_THE_WHOLE = ("seconds", "steps", "usd", "interruptions")
_ORDER = ("seconds", "throughput", "steps_per_s", "steps", "usd", "interruptions", "attempts", "memory_bytes")


@dataclass(frozen=True, slots=True)
class Compared:
    name: str
    unit: str = ""  # of a throughput: what is counted
    predicted: float | None = None
    low: float | None = None
    high: float | None = None
    measured: float | None = None
    is_complete: bool = True  # False: measured of a part, so that a ratio would mislead

    @property
    def ratio(self) -> float | None:
        if not self.is_complete or not self.predicted or self.measured is None:
            return None
        return self.measured / self.predicted

    @property
    def inside(self) -> bool | None:
        """Whether it came out within the interval; None where there is none to hold it against."""
        if self.ratio is None or self.low is None or self.high is None or self.measured is None:
            return None
        return self.low <= self.measured <= self.high


def compare(spec: Spec, measurement: Measured | None) -> tuple[Compared, ...]:
    """In a fixed order. `measurement`: None while it is not over."""
    predicted = measurement.predicted if measurement is not None and measurement.predicted else spec.predicted
    measured: Mapping[str, object] = measurement.measured if measurement is not None else {}
    unit = spec.work.unit or str(predicted.get("unit") or measured.get("unit") or "")  # of a service the prediction says it
    rows = []
    for name in _ORDER:
        prediction, seen = number(predicted.get(name)), number(measured.get(name))
        if seen is None and not prediction:  # what costs nothing is not measured
            continue
        if name == "steps_per_s" and spec.work.unit == "steps":  # as the throughput says
            continue
        rows.append(
            Compared(
                name=name,
                unit=unit if name == "throughput" else "",
                predicted=prediction,
                low=number(predicted.get(f"{name}_low")),
                high=number(predicted.get(f"{name}_high")),
                measured=seen,
                is_complete=measurement is None or measurement.whole or name not in OF_THE_WHOLE,
            )
        )
    return tuple(rows)


def number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def steps_of(spec: Spec) -> int | None:
    """As predicted, or as its workload says; None: nobody does."""
    steps, work = number(spec.predicted.get("steps")), spec.work
    if steps is None and work.amount and work.per_step:
        steps = work.amount / work.per_step
    return max(ceil(steps), 1) if steps is not None else None


def compared(job: Job, happened: Sequence[Happened]) -> tuple[Compared, ...]:
    """By the newest measurement: a job that was started again is measured again."""
    measurements = [one.event for one in happened if isinstance(one.event, Measured)]
    return compare(job.spec, measurements[-1] if measurements and job.phase.over else None)
