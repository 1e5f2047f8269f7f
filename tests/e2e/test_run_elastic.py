"""A job that takes two to four GPUs, end to end: the real controller, real supervisors, real training processes. The GPUs are
numbers only (CHIPWISE_GPUS), since nothing here computes on one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from chipwise.adapters.engines.local import folder, processes
from chipwise.api.running import place, submitting
from chipwise.api.session import wiring
from chipwise.runner.events import Placed
from chipwise.runner.job import Job, Needs, Outcome, Phase, Retry, Spec
from chipwise.runner.record import Record
from chipwise.runner.story import event_sentence
from patience import deadline

pytestmark = pytest.mark.e2e
PROGRAM = Path(__file__).parents[1] / "support" / "elastic_training.py"
STEPS = 300
WAITS = "import pathlib, sys, time\nwhile not pathlib.Path(sys.argv[1]).exists(): time.sleep(0.05)"


class Machine:
    def __init__(self, home: Path) -> None:
        self.home, self.session = home, wiring.open_session()
        self.record: Record = place.open_record(self.session)
        self.engine = place.engine_here(self.session)
        self.controllers: list[subprocess.Popen[bytes]] = []

    def awake(self) -> None:
        """A controller as a process of its own, as the command starts one."""
        if not self.controllers or self.controllers[-1].poll() is not None:
            with (self.home / "controller.log").open("ab") as log:
                self.controllers.append(subprocess.Popen(place.controller_command(), stdout=log, stderr=log))

    def submit(self, id: str, *command: str, **asked: object) -> None:
        env = submitting.environment(())
        spec = Spec((sys.executable, *command), id, place=self.engine.place, env=env, folder=str(self.home), **asked)  # type: ignore[arg-type]
        submitting.checked(spec, self.engine, place.rules(self.session))
        submitting.submit(self.record, [(id, spec)])
        self.awake()

    def until(self, id: str, *, attempts: int = 0, phase: Phase = Phase.RUNNING, saved: int = 0, seconds: float = 90) -> Job:
        late = deadline(seconds)
        while True:
            job = self.record.job(id)
            assert job is not None
            if len(job.attempts) >= attempts and job.phase is phase and self.saved(job) >= saved:
                return job
            assert time.monotonic() < late, (job.phase, job.attempts, self.told(id), self.logs(id))
            self.awake()
            time.sleep(0.05)

    def saved(self, job: Job) -> int:
        told_ = folder.read(self.engine.folder(job.id, len(job.attempts)), folder.PROGRESS) or {}
        return int(told_.get("saved_step") or 0)

    def told(self, id: str) -> str:
        return "\n".join(event_sentence(one.event) for one in self.record.events(id))

    def logs(self, id: str) -> str:
        found = sorted((self.engine.config.root / id).glob("*/log"))
        return "\n".join(one.read_text()[-1500:] for one in found)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    for name, value in (("DATA_DIR", tmp_path / "data"), ("CONFIG_DIR", tmp_path / "config")):
        value.mkdir()
        monkeypatch.setenv(f"CHIPWISE_{name}", str(value))
    monkeypatch.setenv("CHIPWISE_GPUS", "0,1,2,3")
    monkeypatch.setenv("CHIPWISE_CPUS", "0,1,2,3")
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    made = Machine(tmp_path)
    yield made
    for one in made.controllers:
        one.terminate()
        one.wait(20)
    with suppress(OSError, ValueError, psutil.Error):  # one that a supervisor woke
        pid = int((made.session.config.run_dir / "controller.lock").read_text())
        if "control" in psutil.Process(pid).cmdline():
            os.kill(pid, signal.SIGTERM)
            psutil.Process(pid).wait(10)
    root = str(made.engine.config.root)
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.environ().get(processes.MARK, "").startswith(root) or root in " ".join(process.cmdline()):
                process.kill()
    made.record.close()


def test_two_then_four_then_killed_then_done_and_nobody_can_tell(machine: Machine, tmp_path: Path) -> None:
    alone = tmp_path / "alone.json"
    subprocess.run(
        [sys.executable, str(PROGRAM), str(tmp_path / "alone"), str(alone), str(STEPS), "0"], check=True, timeout=300
    )

    machine.submit("other", "-c", WAITS, str(tmp_path / "enough"), needs=Needs(2))
    machine.until("other")
    training = (str(PROGRAM), str(tmp_path / "checkpoints"), str(tmp_path / "result.json"), str(STEPS), "0.03")
    needs = Needs(4, processes=4, gpus_least=2)
    machine.submit("wide", *training, needs=needs, retry=Retry(grow_after_s=2.0))

    job = machine.until("wide", attempts=1, saved=4)
    assert len(job.attempts[0].devices) == 2
    time.sleep(2.5)
    assert len(machine.until("wide").attempts) == 1, "there is no room yet"
    (tmp_path / "enough").touch()

    job = machine.until("wide", attempts=2, saved=machine.saved(job) + 8)
    assert [len(one.devices) for one in job.attempts] == [2, 4]
    assert job.attempts[0].outcome is Outcome.LEFT
    state = folder.read(machine.engine.folder("wide", 2), folder.STATE)
    assert state is not None
    os.kill(state["pid"], signal.SIGKILL)

    job = machine.until("wide", attempts=3, phase=Phase.DONE)
    assert [one.outcome for one in job.attempts] == [Outcome.LEFT, Outcome.LOST, Outcome.DONE]
    assert [len(one.devices) for one in job.attempts] == [2, 4, 4]
    assert json.loads((tmp_path / "result.json").read_text()) == json.loads(alone.read_text())
    held = [",".join(map(str, one.devices)) for one in job.attempts]
    ran = [line.split() for line in (tmp_path / "result.json.worlds").read_text().splitlines()]
    assert ran == [["2", held[0]], ["4", held[1]], ["4", held[2]]], "torchrun's variables are those of the number given"
    story = machine.told("wide")
    assert "starts with 2 of 4 GPUs: the other 2 are in use by other" in story
    assert "2 more GPUs are free: it continues with 4 of 4" in story
    assert [one.event.devices for one in machine.record.events("wide") if isinstance(one.event, Placed)] == [
        one.devices for one in job.attempts
    ]


def test_one_that_is_left_with_one_process_is_told_so(machine: Machine, tmp_path: Path) -> None:
    """A program that asks for its rank gets an answer, also where it is the only one."""
    machine.submit("other", "-c", WAITS, str(tmp_path / "enough"), needs=Needs(3))
    machine.until("other")
    code = "import os; print([os.environ[one] for one in ('RANK', 'WORLD_SIZE', 'LOCAL_WORLD_SIZE')])"
    machine.submit("wide", "-c", code, needs=Needs(4, processes=4, gpus_least=1))
    machine.until("wide", phase=Phase.DONE)
    assert "['0', '1', '1']" in machine.logs("wide")
    (tmp_path / "enough").touch()
    machine.until("other", phase=Phase.DONE)
