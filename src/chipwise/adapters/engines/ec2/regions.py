"""The regions that an engine acts in, the first of them its own: each with clients of its own.

Machines, templates, subnets, images and queues are a region's; what is kept in S3, and with it all that is decided, is in the
first. A region that does not answer hides its machines and no others, and is left alone for a while: waiting for it at every
look would cost the jobs elsewhere their time.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from chipwise.errors import OutsideFailed
from chipwise.runner.job import Job

from . import seeing
from .cloud import Cloud, Key, key_of
from .config import Config
from .seeing import Instance

RESTS_S = 60.0

Machines = dict[Key, list[Instance]]


@dataclass(slots=True)
class Regions:
    config: Config
    clouds: dict[str, Cloud] = field(init=False)
    _silent: dict[str, tuple[float, OutsideFailed]] = field(init=False, default_factory=dict)  # since when, and what was said

    def __post_init__(self) -> None:
        self.clouds = {name: Cloud(each) for name, each in self.config.by_region().items()}

    @property
    def first(self) -> Cloud:
        return self.clouds[self.config.region]

    def name_of(self, job: Job) -> str:
        """Where its attempt is, or is to be: a place that names no region is in the first."""
        return job.attempts[-1].where.region or self.config.region

    def machines(self, now: float) -> Machines:
        """Of those that answer. Raises what the first one said where none does."""
        machines: Machines = {}
        for name, cloud in self.clouds.items():
            if self.rests(name, now):
                continue
            try:
                machines |= of_attempts(cloud)
            except OutsideFailed as error:  # also one that is not enabled for the account: the others are
                self._silent[name] = (now, error)
            else:
                self._silent.pop(name, None)
        if len(self._silent) == len(self.clouds):
            raise self._silent[self.config.region][1]
        return machines

    def rests(self, name: str, now: float) -> bool:
        """Whether it is left alone. One region alone is asked every time: there is nothing that could be done meanwhile."""
        return len(self.clouds) > 1 and name in self._silent and 0.0 <= now - self._silent[name][0] < RESTS_S

    def silent(self, name: str) -> str:
        """Why nobody knows what is in a region now; empty where somebody does."""
        return f"{name} does not answer: {self._silent[name][1].message}" if name in self._silent else ""


def of_attempts(cloud: Cloud, key: Key | None = None) -> Machines:
    machines: Machines = {}
    for instance in cloud.machines(key):
        if (owner := key_of(instance)) is not None:
            machines.setdefault(owner, []).append(seeing.machine(instance))
    return machines
