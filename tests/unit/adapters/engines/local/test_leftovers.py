"""Programs that hide what they start: a new session, an empty environment, another title, no inherited file."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from chipwise.adapters.engines.local import folder
from chipwise.adapters.engines.local.engine import Config, Local
from chipwise.adapters.stores.memory_record import MemoryRecord
from chipwise.runner.engine import End, Start, State
from chipwise.runner.events import Ended, Over, Placed
from chipwise.runner.job import MachinePlace, Outcome, Phase
from chipwise.runner.loop import Controller
from chipwise.runner.record import Change
from patience import deadline
from run_jobs import queued, spec, starting

# Real processes that are killed and waited for.
pytestmark = [pytest.mark.e2e, pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and prctl of Linux")]
TITLE = "[kworker/0:9]"
HIDDEN = "echo kworker/0:9 > /proc/$$/comm; echo $$ > {pid}; {then}"
WAITS = "sleep 600; exit"  # the shell stays: it has something to do afterwards
FORKS = "next() {{ echo >> {beats}; next & }}; next"  # each starts the next one and ends
HIDES = (
    "import os, time\n"
    "if os.fork() == 0:\n"
    "    os.setsid()\n"
    "    if os.fork() == 0:\n"
    "        os.closerange(0, 256)\n"
    "        for _ in range(3): os.open('/dev/null', os.O_RDWR)\n"
    "        os.execve('/bin/sh', [{title!r}, '-c', {hidden!r}], {{}})\n"
    "    os._exit(0)\n"
    "os.wait()\n"
    "while not os.path.exists({pid!r}): time.sleep(0.02)\n"
    "{then}"
)


class Hider:
    """A job of the real engine whose program leaves a hidden process behind, and then does `then`."""

    def __init__(self, home: Path, then: str = "", hidden_then: str = WAITS, code: str = "") -> None:
        self.pid_file = home / "hidden"
        self.engine = Local(Config(home / "jobs", cpus=(0,), place="local:test", pin=False))
        self.beats = home / "beats"
        hidden = HIDDEN.format(pid=self.pid_file, then=hidden_then.format(beats=self.beats))
        hides = HIDES.format(title=TITLE, hidden=hidden, pid=str(self.pid_file), then=then)
        command = (sys.executable, "-S", "-c", hides) if not code else (sys.executable, "-c", code)
        self.job = starting(queued(wanted=spec(command=command, grace_s=1.0)))
        self.engine.do(Start(self.job))

    @property
    def at(self) -> Path:
        return self.engine.folder(self.job.id, 1)

    def hidden(self) -> psutil.Process:
        self.until(lambda: self.pid_file.exists() and self.pid_file.read_text().strip().isdecimal(), 10.0)
        return psutil.Process(int(self.pid_file.read_text()))

    def state(self) -> State:
        return self.engine.look([self.job], time.time()).attempts[(self.job.id, 1)].state

    def until(self, condition: object, seconds: float) -> None:
        late = deadline(seconds)
        while not condition():  # type: ignore[operator]
            assert time.monotonic() < late, (self.at / "supervisor.log").read_text()
            time.sleep(0.05)

    def close(self) -> None:
        supervisor = self.engine.supervisor_of(self.job.id, 1)
        if supervisor is not None:
            os.kill(supervisor, signal.SIGKILL)
        with suppress(OSError, ValueError, psutil.Error):
            hidden = psutil.Process(int(self.pid_file.read_text()))
            if TITLE in hidden.cmdline():
                hidden.kill()
        for process in self.engine._started:
            process.wait(10)


@pytest.fixture
def hiders(tmp_path: Path) -> Iterator[list[Hider]]:
    started: list[Hider] = []
    yield started
    for hider in started:
        hider.close()


def gone(process: psutil.Process) -> bool:
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_a_hidden_process_is_gone_when_its_job_has_ended(tmp_path: Path, hiders: list[Hider]) -> None:
    hiders.append(hider := Hider(tmp_path))
    hidden = hider.hidden()
    hider.until(lambda: folder.read(hider.at, folder.ENDED), 10.0)
    assert gone(hidden)


def test_a_hidden_process_is_gone_when_its_job_was_stopped(tmp_path: Path, hiders: list[Hider]) -> None:
    hiders.append(hider := Hider(tmp_path, "time.sleep(600)"))
    hidden = hider.hidden()
    assert hider.state() is State.RUNNING
    hider.engine.do(End(hider.job))
    hider.until(lambda: folder.read(hider.at, folder.ENDED), 10.0)
    assert gone(hidden)


def test_a_hidden_process_is_ended_after_its_supervisor_was_killed(tmp_path: Path, hiders: list[Hider]) -> None:
    hiders.append(hider := Hider(tmp_path, "time.sleep(600)"))
    hidden = hider.hidden()
    supervisor = hider.engine.supervisor_of(hider.job.id, 1)
    assert supervisor is not None
    os.kill(supervisor, signal.SIGKILL)
    hider.until(lambda: hider.state() is State.LOST, 10.0)
    assert gone(hidden)


def test_a_supervisor_that_was_stopped_is_shown_as_that_and_goes_on(tmp_path: Path, hiders: list[Hider]) -> None:
    """Any process of the same user can stop it, its own job too: the devices would be held until somebody ends the job."""
    hiders.append(hider := Hider(tmp_path, "time.sleep(600)"))
    hidden = hider.hidden()
    supervisor = hider.engine.supervisor_of(hider.job.id, 1)
    assert supervisor is not None
    [program] = psutil.Process(supervisor).children()[:1]
    os.kill(supervisor, signal.SIGSTOP)

    def shown() -> str:
        return hider.engine.glance([hider.job], time.time())[hider.job.id, 1].reason

    hider.until(lambda: "its supervisor is stopped" in shown(), 10.0)
    program.kill()
    hider.until(lambda: hider.state() is State.EXITED, 15.0)
    assert gone(hidden)


@pytest.mark.parametrize("killed", [False, True])
def test_one_that_forks_for_ever_does_not_escape(tmp_path: Path, hiders: list[Hider], killed: bool) -> None:
    hiders.append(hider := Hider(tmp_path, "time.sleep(600)", FORKS))
    hider.until(hider.beats.exists, 10.0)
    supervisor = hider.engine.supervisor_of(hider.job.id, 1)
    assert supervisor is not None
    if killed:
        os.kill(supervisor, signal.SIGKILL)
        hider.until(lambda: hider.state() is State.LOST, 10.0)
    else:
        hider.engine.do(End(hider.job))
        hider.until(lambda: folder.read(hider.at, folder.ENDED), 10.0)
    before = hider.beats.stat().st_size
    time.sleep(0.5)
    assert hider.beats.stat().st_size == before


def test_a_controller_that_a_job_starts_lives_on(tmp_path: Path, hiders: list[Hider]) -> None:
    """A job may itself call `chipwise run` where no controller lives; what that starts is no part of the job."""
    lock = tmp_path / "data" / "run" / "controller.lock"
    code = (
        "import os, sys, time\n"
        "from pathlib import Path\n"
        "from chipwise.adapters import waking\n"
        f"env = dict(os.environ, CHIPWISE_DATA_DIR={str(tmp_path / 'data')!r}, CHIPWISE_CONFIG_DIR={str(tmp_path)!r})\n"
        f"waking.start([sys.executable, '-P', '-m', 'chipwise', 'control'], env, Path({str(tmp_path / 'log')!r}))\n"
    )
    hiders.append(hider := Hider(tmp_path, code=code))
    hider.until(lambda: folder.read(hider.at, folder.ENDED), 20.0)
    hider.until(lambda: lock.exists() and lock.read_text(), 20.0)
    controller = psutil.Process(int(lock.read_text()))
    assert not gone(controller)
    controller.kill()


@pytest.mark.parametrize("killed", [False, True])
def test_what_runs_of_a_job_that_the_record_calls_over_is_found_and_ended(
    tmp_path: Path, hiders: list[Hider], killed: bool
) -> None:
    """By whoever begins to lead, also where the supervisor is gone."""
    hiders.append(hider := Hider(tmp_path, "time.sleep(600)"))
    hidden = hider.hidden()
    assert hider.engine.living() == [(hider.job.id, 1)]
    if killed:
        supervisor = hider.engine.supervisor_of(hider.job.id, 1)
        assert supervisor is not None
        os.kill(supervisor, signal.SIGKILL)
        hider.until(lambda: not folder.locked(hider.at / folder.LOCK), 10.0)  # the hidden one closed it
    record = MemoryRecord()
    wanted = replace(hider.job.spec, place=hider.engine.place)
    [job] = record.submit([(hider.job.id, wanted)], 1.0)
    placed = (Placed(1, MachinePlace(), cpus=(0,)), Ended(1, Outcome.FAILED), Over(Phase.FAILED, "given up elsewhere"))
    record.write([Change(job, placed)], 2.0)
    controller = Controller(record, hider.engine, "me")
    hider.until(lambda: controller.turn(time.time()).live == 0, 20.0)
    assert gone(hidden)
    assert hider.engine.living() == []
