"""Autoscaling of a service: what is decided, and what a rule may know.

At every tick a rule is asked how many replicas there should be, those that are starting included. A replica that is ordered
answers `cold_start_s` later and is paid for from the order on. A rule is a pure function of the signals; what it has learned
is its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite

from chipwise.errors import BadInput

LONGEST_S = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaledService:
    """A service, its goal, and how fast its replicas are."""

    replica_per_s: float  # requests of mean work that a busy replica completes
    concurrency: float = 16.0  # requests that a replica works on at once
    cold_start_s: float = 180.0
    goal_wait_s: float = 10.0
    goal_share: float = 0.99  # of the requests that wait at most so long
    tick_s: float = 15.0
    least_replicas: int = 1  # replicas
    most_replicas: int = 100_000

    def __post_init__(self) -> None:
        positive = {
            "speed of a replica": self.replica_per_s,
            "concurrency": self.concurrency,
            "tick": self.tick_s,
            "most replicas": self.most_replicas,
        }
        for name, value in positive.items():
            if not (isfinite(value) and value > 0.0):
                raise BadInput(f"The {name} must be above zero, not {value:g}.")
        for name, value in {
            "cold start": self.cold_start_s,
            "wait": self.goal_wait_s,
            "least replicas": self.least_replicas,
        }.items():
            if not (isfinite(value) and value >= 0.0):
                raise BadInput(f"The {name} must not be below zero, as {value:g} is.")
        if max(self.cold_start_s, self.goal_wait_s) > LONGEST_S:  # each second of a forecast is a number
            raise BadInput("A cold start or wait of more than a day is not simulated.", remedy="Write it like 180s or 30min.")
        if not 0.0 < self.goal_share < 1.0:
            raise BadInput(f"The goal is a share of requests between 0 and 1, not {self.goal_share:g}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeSignals:
    """What a rule may know at one tick. Counts are of requests, in requests of mean work."""

    now_s: float  # since the begin
    clock_s: float  # the same as a time of day, where the trace has one; else as `now_s`
    ready: int  # replicas that answer
    starting: int
    arrived: float  # since the last tick
    waiting: float  # not begun yet
    in_flight: float  # begun or waiting
    utilisation: float  # of the replicas that answered, since the last tick
    wait_s: float  # that a request which comes now will wait, at the present speed

    @property
    def replicas(self) -> int:
        return self.ready + self.starting


Scale = Callable[[ServeSignals], float]  # the replicas that there should be; fractions are rounded up
BeginScaling = Callable[[ScaledService], Scale]
