"""What `bench` is asked, and what each place made of it."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass

from chipwise.runner.comparing import number
from chipwise.runner.submission.predicted import Allocation as Allocation
from chipwise.runner.submission.predicted import Unknown as Unknown
from chipwise.workload.common import Common


@dataclass(frozen=True, slots=True)
class BenchPlace:
    """Where it is to run: `--on` as it was written, and what that says."""

    text: str
    engine: str
    gpus: int | None = None
    cpus: int | None = None
    context: str | None = None  # of a kubeconfig
    machine: str | None = None  # of a cloud
    simulated: bool = False  # by the formulas, on the machines of the plan


@dataclass(frozen=True, slots=True)
class BenchRequest:
    path: str
    work: Common
    places: tuple[BenchPlace, ...]
    repeat: int = 1
    steps: int | None = None
    longest: float | None = None
    environment: str | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """One job, over."""

    job: str
    speed: float | None  # units per second
    seconds: float
    steps: int | None
    attempts: int
    usd: float | None
    usd_per_hour: float | None
    neighbours: int  # other jobs that held devices of the same place at its end
    reason: str  # there is no speed; empty where there is one


@dataclass(frozen=True, slots=True)
class Result:
    place: BenchPlace
    unit: str
    runs: tuple[Run, ...]
    predicted: Mapping[str, object]
    allocation: Allocation | Unknown
    formula: bool = False

    @property
    def speeds(self) -> list[float]:
        return [run.speed for run in self.runs if run.speed is not None]

    @property
    def speed(self) -> float | None:
        return statistics.median(self.speeds) if self.speeds else None

    @property
    def spread(self) -> float | None:
        """Between the fastest and the slowest run, relative to the median."""
        speeds = self.speeds
        return (max(speeds) - min(speeds)) / statistics.median(speeds) if len(speeds) > 1 else None

    @property
    def expected(self) -> float | None:
        return number(self.predicted.get("throughput"))

    @property
    def ratio(self) -> float | None:
        return self.speed / self.expected if self.speed and self.expected else None

    @property
    def seconds(self) -> float | None:
        return statistics.median(run.seconds for run in self.runs) if self.runs else number(self.predicted.get("seconds"))

    @property
    def attempts(self) -> int:
        return sum(run.attempts for run in self.runs)

    @property
    def usd_per_unit(self) -> float | None:
        """What the machines cost for as long as one unit takes; None where nobody says what an hour of them costs."""
        hourly = next((run.usd_per_hour for run in self.runs if run.usd_per_hour), None)
        speed = self.speed if not self.formula else self.expected
        if self.formula and isinstance(self.allocation, Allocation):
            hourly = self.allocation.usd_per_hour
        return hourly / 3600.0 / speed if hourly and speed else None

    @property
    def reason(self) -> str:
        """Why it was not measured."""
        if not self.runs and not self.formula and isinstance(self.allocation, Unknown):
            return self.allocation.reason
        return next((run.reason for run in self.runs if run.reason), "")
