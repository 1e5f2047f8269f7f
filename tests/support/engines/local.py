"""The local engine under contract: real processes on this machine, in a folder of the test.

Which engine that is says the name of this file: a copy of it is the harness of a copy of the engine.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from chipwise.runner.engine import Engine
from chipwise.runner.job import Job, Spec, Where
from patience import deadline

NAME = Path(__file__).stem
ENGINE = f"chipwise.adapters.engines.{NAME}"
engine, folder, processes = (import_module(f"{ENGINE}.{part}") for part in ("engine", "folder", "processes"))
READY = "import os, signal, sys, time; open(os.environ['READY_' + os.environ['CHIPWISE_JOB']], 'w').close(); "
CAN = frozenset({"lose"})
PROGRAMS = {
    "steps": READY + "time.sleep(0.6)",
    "long": "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(75)); " + READY + "time.sleep(60)",
    "deaf": "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + READY + "time.sleep(60)",
    "fails": READY + "sys.exit(3)",
}


@dataclass
class Real:
    root: Path
    patience_s: float = 20.0
    where: Where = field(default_factory=Where)

    def __post_init__(self) -> None:
        self.engine: Engine = self.again()

    @property
    def local(self) -> Any:
        assert isinstance(self.engine, engine.Local)
        return self.engine

    def again(self) -> Engine:
        config = engine.Config(self.root / "attempts", cpus=(0, 1), place=f"{NAME}:test", pin=False)
        again: Engine = engine.connect(config)
        return again

    def spec(self, behaviour: str) -> Spec:
        ready = {f"READY_{id}": str(self.root / f"{id}.ready") for id in ("j1", "one", "other")}
        command = ("no-such-command-here",) if behaviour == "missing" else (sys.executable, "-S", "-c", PROGRAMS[behaviour])
        return Spec(command, behaviour, NAME, f"{NAME}:test", env=ready)

    def ready(self, job: Job) -> bool:
        return (self.root / f"{job.id}.ready").exists()

    def now(self) -> float:
        return time.time()

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)

    def lose(self, job: Job) -> None:
        """The supervisor that this test started, by the id that it wrote down."""
        state = folder.read(self._folder(job), folder.STATE) or {}
        if processes.lives(state.get("pid"), state.get("identity")):
            os.kill(state["pid"], signal.SIGKILL)

    def notice(self, job: Job) -> None:
        raise NotImplementedError

    def lives(self, job: Job) -> int:
        return len(processes.marked(str(self._folder(job))))

    def _folder(self, job: Job) -> Path:
        return Path(self.local.folder(job.id, len(job.attempts)))

    def close(self) -> None:
        """Supervisors and processes of this test's own folder, and nothing else."""
        for at in (self.root / "attempts").glob("*/*"):
            state = folder.read(at, folder.STATE) or {}
            if processes.lives(state.get("pid"), state.get("identity")):
                os.kill(state["pid"], signal.SIGKILL)
            end = deadline(5.0)
            while (left := processes.marked(str(at))) and time.monotonic() < end:
                processes.end(left)
                time.sleep(0.02)
        for one in self.local._started:
            one.kill()  # one that has not written down who it is yet
            one.wait(timeout=10)


def harness(folder: Path) -> Real:
    return Real(folder)
