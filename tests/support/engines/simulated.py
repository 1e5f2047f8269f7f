"""The simulated engine under contract: its clock goes on when somebody waits.

Which engine that is says the name of this file: a copy of it is the harness of a copy of the engine.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from chipwise.runner.engine import Engine
from chipwise.runner.job import Job, MachinePlace, Spec
from run_jobs import SPOT_A

NAME = Path(__file__).stem
package, world = (import_module(f"chipwise.adapters.engines.{NAME}{part}") for part in ("", ".world"))
CAN = frozenset({"lose", "notice"})
PROGRAMS = {
    "steps": world.Program(5, 2.0, 2),
    "long": world.Program(None, 2.0, 2, save_s=1.0),
    "deaf": world.Program(None, 2.0, 2, heeds=False),
    "fails": world.Program(5, 2.0, 2, exits=(world.Exit(3, 2),)),
    "missing": world.Program(5, 2.0, 2, exits=(world.Exit(127),)),
}


def _engine() -> Engine:
    made: Engine = package.connect(world.World((world.Pool(SPOT_A, starts_s=3.0),), PROGRAMS))
    return made


@dataclass
class Played:
    engine: Engine = field(default_factory=_engine)
    patience_s: float = 60.0
    where: MachinePlace = SPOT_A

    @property
    def world(self) -> Any:
        return self.engine

    def again(self) -> Engine:
        return self.engine

    def spec(self, behaviour: str) -> Spec:
        return Spec(("program",), behaviour, NAME, NAME, places=(SPOT_A,))

    def ready(self, job: Job) -> bool:
        return True

    def now(self) -> float:
        return float(self.world.now)

    def wait(self, seconds: float) -> None:
        self.world.advance(self.world.now + seconds)

    def lose(self, job: Job) -> None:
        self.world._lose(world.Loss(self.now(), job=job.id))
        self.wait(0.0)

    def notice(self, job: Job) -> None:
        self.world._lose(world.Loss(self.now(), notice_s=30.0, job=job.id))

    def lives(self, job: Job) -> int:
        return sum(stay.lives for stay in self.world.history if stay.key == (job.id, len(job.attempts)))

    def close(self) -> None:
        pass


def harness(folder: Path) -> Played:
    return Played()
