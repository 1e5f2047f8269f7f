"""When an attempt was last seen alive, and what can be told of it without touching it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from chipwise.adapters import clock
from chipwise.adapters.engines.local import folder, processes, sights
from chipwise.adapters.engines.local.engine import STARTS_AT_MOST, Config, Local
from chipwise.errors import BadInput
from chipwise.runner.engine import End, Start, State
from chipwise.runner.events import Ended
from chipwise.runner.job import Job, Outcome, Wish
from chipwise.runner.recovery import after_end
from run_jobs import added, queued, running, starting


@pytest.fixture
def job() -> Job:
    return running(queued(), cpus=(0,), at=100.0)


@pytest.fixture
def engine(tmp_path: Path) -> Local:
    return Local(Config(tmp_path))


def begun(engine: Local, job: Job, pid: int, identity: str | None) -> Path:
    path = engine.folder(job.id, 1)
    path.mkdir(parents=True)
    (path / folder.LOCK).touch()
    folder.write(path, folder.STATE, {"pid": pid, "identity": identity, "begun": 100.0})
    return path


def seen_below(engine: Local, job: Job, starts: str) -> State:
    """What is seen of a job whose program has ended and whose supervisor runs this code, once it printed a line."""
    with subprocess.Popen([sys.executable, "-c", starts], stdout=subprocess.PIPE) as supervisor:
        assert supervisor.stdout is not None
        supervisor.stdout.readline()
        try:
            path = begun(engine, job, supervisor.pid, processes.identity(supervisor.pid))
            state = folder.read(path, folder.STATE) or {}
            folder.write(path, folder.STATE, {**state, "sessions": [4_000_000]})
            return engine.glance([job], time.time())[job.id, 1].state
        finally:
            for child in psutil.Process(supervisor.pid).children():
                child.kill()
            supervisor.kill()


def gone(engine: Local, job: Job) -> Path:
    return begun(engine, job, os.getpid(), "another boot:1")


def test_an_attempt_that_died_ran_until_it_was_last_seen(engine: Local, job: Job) -> None:
    path = gone(engine, job)
    os.utime(path / folder.LOCK, (160.0, 160.0))
    sight = engine.look([job], 1000.0).attempts[job.id, 1]
    assert (sight.state, sight.until) == (State.LOST, 160.0)
    ended = next(event for event in after_end(job, sight, 1000.0) if isinstance(event, Ended))
    assert (ended.outcome, ended.at) == (Outcome.LOST, 160.0)


def test_what_it_printed_counts_as_a_sign_of_life(engine: Local, job: Job) -> None:
    path = gone(engine, job)
    (path / folder.LOG).write_text("still here\n")
    os.utime(path / folder.LOCK, (160.0, 160.0))
    os.utime(path / folder.LOG, (190.0, 190.0))
    assert engine.glance([job], 1000.0)[job.id, 1].until == 190.0


@pytest.mark.parametrize(("moment", "seen"), [(50.0, 100.0), (2000.0, 1000.0)])
def test_a_clock_that_was_set_makes_no_time_before_the_beginning_or_after_now(
    engine: Local, job: Job, moment: float, seen: float
) -> None:
    path = gone(engine, job)
    os.utime(path / folder.LOCK, (moment, moment))
    assert engine.glance([job], 1000.0)[job.id, 1].until == seen


def test_who_only_looks_ends_nothing_and_sees_what_is_left(engine: Local, job: Job) -> None:
    """The supervisor is gone, and a process of the attempt lives: it has the lock from it."""
    path = gone(engine, job)
    lock = folder.lock(path / folder.LOCK)
    assert lock is not None
    mark = {**os.environ, processes.MARK: f"{engine.config.root}/{job.id}/1"}
    command = [sys.executable, "-S", "-c", "input()"]
    with subprocess.Popen(command, env=mark, stdin=subprocess.PIPE, pass_fds=[lock]) as left:
        os.close(lock)
        sight = engine.glance([job], time.time())[job.id, 1]
        assert (sight.state, sight.reason) == (State.RUNNING, "its supervisor is gone")
        assert left.poll() is None
        left.communicate(b"\n")
        assert left.returncode == 0
    assert engine.glance([job], time.time())[job.id, 1].state is State.LOST


def test_who_only_looks_does_not_ask_for_the_lock_of_one_that_starts(
    engine: Local, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A supervisor that finds its lock taken takes it that another one was faster."""
    monkeypatch.setattr(folder, "locked", lambda path: pytest.fail("it asked"))
    engine.folder(job.id, 1).mkdir(parents=True)
    assert engine.glance([job], 0.0)[job.id, 1].state is State.PENDING


def test_one_that_runs_and_one_that_ended_are_told_apart(engine: Local, job: Job) -> None:
    path = begun(engine, job, os.getpid(), processes.identity(os.getpid()))
    with subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE) as program:
        assert engine.glance([job], 0.0)[job.id, 1].state is State.RUNNING
        program.communicate(b"\n")
    folder.write(path, folder.ENDED, {"code": 0, "at": 170.0})
    sight = engine.glance([job], 0.0)[job.id, 1]
    assert (sight.state, sight.code, sight.until) == (State.EXITED, 0, 170.0)


def test_a_supervisor_shows_now_and_then_that_it_lives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = folder.lock(tmp_path / folder.LOCK)
    assert lock is not None
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    beat = folder.Beat(lock)
    for moment, beats in ((0.5, False), (1.0, True), (1.5, False), (2.1, True)):
        os.utime(tmp_path / folder.LOCK, (1.0, 1.0))
        now[0] = moment
        beat.turn()
        assert ((tmp_path / folder.LOCK).stat().st_mtime > 1.0) is beats
    os.close(lock)


def test_a_supervisor_that_died_before_it_started_anything_says_why(engine: Local, job: Job) -> None:
    path = gone(engine, job)
    (path / "supervisor.log").write_text("Traceback ...\nMemoryError: no room\n\n")
    sight = engine.look([job], 1000.0).attempts[job.id, 1]
    assert (sight.state, sight.since) == (State.LOST, None)
    assert sight.reason == "its supervisor was killed before it started anything: MemoryError: no room"


def test_a_supervisor_that_never_begins_is_not_started_for_ever(
    engine: Local, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Local, "_supervise", lambda *_: None)
    for _ in range(STARTS_AT_MOST):
        engine.do(Start(job))
    with pytest.raises(BadInput, match="was started 10 times and never began"):
        engine.do(Start(job))
    assert folder.read(engine.folder(job.id, 1), folder.ENDED)  # one that comes late finds that it is over


def test_a_program_whose_supervisor_is_stopped_is_seen_alive(engine: Local, job: Job) -> None:
    program = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        path, now = begun(engine, job, os.getpid(), processes.identity(os.getpid())), time.time()
        state = folder.read(path, folder.STATE) or {}
        folder.write(path, folder.STATE, {**state, "sessions": [program.pid]})
        os.utime(path / folder.LOCK, (now - 60.0, now - 60.0))
        engine.glance([job], now)
        assert os.stat(path / folder.LOCK).st_mtime == now - 60.0, "who only looks changes nothing"
        assert engine.look([job], now).attempts[job.id, 1].state is State.RUNNING
        assert os.stat(path / folder.LOCK).st_mtime >= now - 1.0
    finally:
        program.kill()
        program.wait()
    os.utime(path / folder.LOCK, (now - 60.0, now - 60.0))
    engine.look([job], now)
    assert os.stat(path / folder.LOCK).st_mtime == now - 60.0, "what ended is not seen alive"


@pytest.mark.skipif(sys.platform != "linux", reason="orphans come to the supervisor on Linux")
def test_a_controller_below_a_supervisor_is_no_program_of_its_job(engine: Local, job: Job) -> None:
    """A supervisor starts controllers, too; one that is stopped or finds the disk full tells nobody that its program ended."""
    waits = "import time; print(1, flush=True); time.sleep(60)"
    controller = (
        f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {waits!r}, '-m', 'chipwise', 'control']); {waits}"
    )
    assert seen_below(engine, job, controller) is State.EXITED


@pytest.mark.skipif(sys.platform != "linux", reason="orphans come to the supervisor on Linux")
def test_what_another_job_left_below_a_supervisor_is_no_program_of_its_job(engine: Local, job: Job) -> None:
    """It started the controller that started the other's supervisor: when those are killed, their orphans come to it."""
    waits = "import time; time.sleep(60)"
    tagged = f"from chipwise.adapters import process_tag as t; t.put_on(t.tag_of('another/1')); print(1, flush=True); {waits}"
    leaves = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {tagged!r}]); {waits}"
    assert seen_below(engine, job, leaves) is State.EXITED


@pytest.mark.skipif(sys.platform != "linux", reason="orphans come to the supervisor on Linux")
def test_what_a_program_left_behind_is_not_the_program(engine: Local, job: Job) -> None:
    """Its supervisor is stopped, so nobody ends it."""
    tag = sights.mark_of(job.id, 1, engine.config.root)
    waits = "import time; time.sleep(60)"
    tagged = f"from chipwise.adapters import process_tag as t; t.put_on(t.tag_of({tag!r})); print(1, flush=True); {waits}"
    leaves = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {tagged!r}]); {waits}"
    assert seen_below(engine, job, leaves) is State.EXITED


def test_a_supervisor_that_could_not_note_its_program_and_has_none_left_runs_nothing(engine: Local, job: Job) -> None:
    """The disk was full before it noted what it started, and still is when that has ended."""
    with subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE) as supervisor:
        path = begun(engine, job, supervisor.pid, processes.identity(supervisor.pid))
        state = {**(folder.read(path, folder.STATE) or {}), "boottime": clock.boottime()}
        folder.write(path, folder.STATE, state)
        assert engine.glance([job], time.time())[job.id, 1].state is State.PENDING, "it may be about to start it"
        folder.write(path, folder.STATE, {**state, "boottime": clock.boottime() - 5.0})
        assert engine.glance([job], time.time())[job.id, 1].state is State.EXITED
        supervisor.communicate(b"\n")


def test_what_ended_before_it_began_did_not_run(engine: Local) -> None:
    job = starting(queued(), cpus=(0,), at=100.0)
    engine.do(End(job))
    sight = engine.look([job], 102.15).attempts[job.id, 1]
    over = added(replace(job, wish=Wish.STOP), *after_end(replace(job, wish=Wish.STOP), sight, 102.15), at=102.15)
    assert (over.attempts[-1].reason, over.runtime_s(200.0)) == ("stopped before it started", 0.0)


def test_an_attempt_whose_files_alone_are_looked_for_gives_back_its_devices(engine: Local, job: Job) -> None:
    path = begun(engine, job, os.getpid(), processes.identity(os.getpid()))
    assert not engine.look([job], time.time()).attempts[job.id, 1].ended
    folder.write(path, folder.STATE, {**(folder.read(path, folder.STATE) or {}), "looks": True})
    sight = engine.look([job], time.time()).attempts[job.id, 1]
    assert (sight.state, sight.ended, sight.reason) == (State.RUNNING, True, "it ended well; looks for what it made")


def test_one_whose_files_are_looked_for_is_told_that_it_was_stopped(
    engine: Local, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = begun(engine, job, os.getpid(), processes.identity(os.getpid()))
    folder.write(path, folder.STATE, {**(folder.read(path, folder.STATE) or {}), "looks": True})
    told: list[int] = []
    monkeypatch.setattr(Local, "_signal", lambda engine, path, number: told.append(number))
    engine.look([job], time.time())
    assert folder.read(path, folder.LEAVE) is None
    engine.look([replace(job, wish=Wish.STOP)], time.time())
    assert folder.read(path, folder.LEAVE) is not None
    assert told == [signal.SIGTERM]
