"""When an attempt was last seen alive, and what can be told of it without touching it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from chipwise.adapters.engines.local import folder, processes
from chipwise.adapters.engines.local.engine import Config, Local
from chipwise.runner.engine import State
from chipwise.runner.events import Ended
from chipwise.runner.job import Job, Outcome
from chipwise.runner.recovery import after_end
from run_jobs import queued, running


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
    assert engine.glance([job], 0.0)[job.id, 1].state is State.RUNNING
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
