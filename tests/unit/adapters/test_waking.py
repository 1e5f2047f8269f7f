"""Who wakes a controller, and when nobody is to be woken."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from chipwise.adapters import process_identity, state_files, waking
from chipwise.adapters.engines.local import folder
from chipwise.adapters.waking import Waker


def test_where_nobody_said_how_a_controller_is_started_none_is() -> None:
    Waker({}).wake()


def test_a_controller_that_holds_its_lock_is_not_started_again(tmp_path: Path) -> None:
    held = folder.lock(tmp_path / "lock")
    assert held is not None
    order = {"lock": str(tmp_path / "lock"), "command": ["touch", str(tmp_path / "started")], "log": str(tmp_path / "log")}
    Waker(order).wake()
    assert not (tmp_path / "log").exists()


HOLDS = """
import fcntl, os, sys, time
handle = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600)
fcntl.flock(handle, fcntl.LOCK_EX)
os.write(handle, f"{os.getpid()}\\n".encode())
print("holds", flush=True)
time.sleep(600)
"""


class Held:
    """A process that holds the lock of a controller, as one that is known."""

    def __init__(self, folder: Path) -> None:
        self.lock, self.log = folder / "controller.lock", folder / "controller.log"
        self.process = subprocess.Popen([sys.executable, "-S", "-c", HOLDS, str(self.lock)], stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        self.process.stdout.readline()
        self.known_as(process_identity.identity(self.process.pid))

    def known_as(self, identity: str | None) -> None:
        state_files.write(self.lock.parent, waking.HOLDER, {"pid": self.process.pid, "identity": identity})

    def beat(self, ago_s: float) -> None:
        os.utime(self.lock, (time.time() - ago_s, time.time() - ago_s))


@pytest.fixture
def held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Held]:
    monkeypatch.setattr(waking, "_BEATS", {})
    monkeypatch.setattr(waking, "SURE_S", 0.2)
    made = Held(tmp_path)
    yield made
    made.process.kill()
    made.process.wait()
    assert made.process.stdout is not None
    made.process.stdout.close()


def test_one_that_beats_is_not_silent(held: Held) -> None:
    held.beat(0.0)
    assert waking.silence(held.lock) is None
    assert not waking.end_silent(held.lock, held.log, 1.0)
    assert held.process.poll() is None


def test_how_long_one_has_been_silent_is_told_before_it_is_replaced(held: Held) -> None:
    held.beat(20.0)
    silent = waking.silence(held.lock)
    assert silent is not None
    assert silent.pid == held.process.pid
    assert 19.0 < silent.seconds < 29.0
    assert not waking.end_silent(held.lock, held.log, 1.0)
    assert held.process.poll() is None


def test_one_that_is_stopped_is_ended_after_the_stated_time(held: Held) -> None:
    os.kill(held.process.pid, signal.SIGSTOP)
    held.beat(waking.SILENT_S + 1.0)
    assert not waking.end_silent(held.lock, held.log)  # at the first look nobody is sure
    assert waking.end_silent(held.lock, held.log, 2.0)
    assert held.process.wait(10) == -signal.SIGKILL
    assert f"(process {held.process.pid}) did not answer for 31 s and was ended." in held.log.read_text()


def test_a_clock_that_was_set_forward_ends_nobody(held: Held) -> None:
    """Its last beat seems old for a moment; then it beats by the new clock."""
    held.beat(3600.0)
    assert not waking.end_silent(held.lock, held.log)
    held.beat(0.0)
    assert not waking.end_silent(held.lock, held.log, 1.0)
    assert held.process.poll() is None


def test_another_process_with_its_number_is_never_ended(held: Held) -> None:
    held.beat(3600.0)
    held.known_as("another boot:1")
    assert waking.silence(held.lock) is None
    assert not waking.end_silent(held.lock, held.log, 1.0)
    assert not process_identity.kill(held.process.pid, "another boot:1")
    assert held.process.poll() is None


def test_of_one_that_never_told_who_it_is_nothing_is_said(held: Held) -> None:
    """A controller of an older version does not beat."""
    held.beat(3600.0)
    (held.lock.parent / waking.HOLDER).unlink()
    assert waking.silence(held.lock) is None


def test_a_supervisor_replaces_one_that_does_not_answer(held: Held, tmp_path: Path) -> None:
    order = {"lock": str(held.lock), "command": ["touch", str(tmp_path / "started")], "log": str(held.log)}
    held.beat(3600.0)
    waker = Waker(order)
    waker.wake()
    assert held.process.poll() is None
    time.sleep(0.25)
    waker.wake()
    assert held.process.wait(10) == -signal.SIGKILL
    waking._STARTED.pop().wait(10)
    assert (tmp_path / "started").exists()


def test_a_pulse_beats_while_turns_go_on_and_not_when_one_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waking, "BEATS_EVERY_S", 0.01)
    lock = folder.lock(tmp_path / "controller.lock")
    assert lock is not None
    pulse = waking.Pulse(lock, tmp_path)

    def beats() -> bool:
        os.utime(tmp_path / "controller.lock", (1.0, 1.0))
        time.sleep(0.1)
        return (tmp_path / "controller.lock").stat().st_mtime > 1.0

    assert beats()
    monkeypatch.setattr(waking, "HANGS_S", 0.0)
    time.sleep(0.05)
    assert not beats()
    pulse.stop()
    os.close(lock)
