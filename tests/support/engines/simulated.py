"""The simulated engine under contract: its clock goes on when somebody waits."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from chipwise.adapters.engines.simulated.engine import Simulated, connect
from chipwise.adapters.engines.simulated.world import Exit, Loss, Pool, Program, World
from chipwise.run.engine import Engine
from chipwise.run.job import Job, Spec, Where
from run_jobs import SPOT_A

CAN = frozenset({"lose", "notice"})
PROGRAMS = {
    "steps": Program(5, 2.0, 2),
    "long": Program(None, 2.0, 2, save_s=1.0),
    "deaf": Program(None, 2.0, 2, heeds=False),
    "fails": Program(5, 2.0, 2, exits=(Exit(3, 2),)),
    "missing": Program(5, 2.0, 2, exits=(Exit(127),)),
}


def _engine() -> Simulated:
    return connect(World((Pool(SPOT_A, starts_s=3.0),), PROGRAMS))


@dataclass
class Played:
    engine: Engine = field(default_factory=_engine)
    patience_s: float = 60.0
    where: Where = SPOT_A

    @property
    def world(self) -> Simulated:
        assert isinstance(self.engine, Simulated)
        return self.engine

    def again(self) -> Engine:
        return self.engine

    def spec(self, behaviour: str) -> Spec:
        return Spec(("program",), behaviour, "simulated", "simulated", places=(SPOT_A,))

    def ready(self, job: Job) -> bool:
        return True

    def now(self) -> float:
        return self.world.now

    def wait(self, seconds: float) -> None:
        self.world.advance(self.world.now + seconds)

    def lose(self, job: Job) -> None:
        self.world._lose(Loss(self.now(), job=job.id))
        self.wait(0.0)

    def notice(self, job: Job) -> None:
        self.world._lose(Loss(self.now(), notice_s=30.0, job=job.id))

    def lives(self, job: Job) -> int:
        return sum(stay.lives for stay in self.world.history if stay.key == (job.id, len(job.attempts)))

    def close(self) -> None:
        pass


def harness(folder: Path) -> Played:
    return Played()
