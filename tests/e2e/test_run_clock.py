"""The wall clock is set by an hour or a month, forward and back, under a real controller, supervisor and program.

All of them are Python, and read the time of day with an offset that the test writes into a file; the clock that nobody sets is
the machine's own.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from patience import deadline
from run_machine import Machine
from run_machine import machine as machine

pytestmark = pytest.mark.e2e
SET_CLOCK = """
import time
_time = time.time

def _set():
    try:
        with open({offset!r}) as file:
            return _time() + float(file.read() or 0)
    except OSError:
        return _time()

time.time = _set
"""
SAVES = """
import signal, sys, time
import chipwise.job as job

def leave(*_):
    print("asked", flush=True)
    time.sleep(4)
    print("saved", flush=True)
    sys.exit(75)

signal.signal(signal.SIGTERM, leave)
print("ready", flush=True)
time.sleep(600)
"""
STAYS = "import signal, time; signal.signal(15, signal.SIG_IGN); print('ready', flush=True); time.sleep(600)"


class Clock:
    def __init__(self, machine: Machine) -> None:
        self.offset, site = machine.home / "offset", machine.home / "site"
        site.mkdir()
        (site / "sitecustomize.py").write_text(SET_CLOCK.format(offset=str(self.offset)))
        self.move(0.0)
        machine.env["PYTHONPATH"] = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])

    def move(self, by: float) -> None:
        new = self.offset.with_suffix(".new")
        new.write_text(str(by))
        os.replace(new, self.offset)


@pytest.fixture
def clock(machine: Machine) -> Clock:
    return Clock(machine)


def prints(machine: Machine, id: str, word: str) -> None:
    log, late = machine.home / "data" / "run" / "jobs" / id / "1" / "log", deadline(20.0)
    while not (log.exists() and word in log.read_text().split()):
        assert time.monotonic() < late, f"{word} was never printed"
        time.sleep(0.05)


@pytest.mark.parametrize("by", [3600.0, -3600.0, 30 * 86400.0])
def test_a_job_runs_on_and_has_its_grace_whatever_the_clock_says(machine: Machine, clock: Clock, by: float) -> None:
    program = machine.program(SAVES)
    id = machine.submitted("-d", "--longest", "30m", "--grace", "40s", "--", sys.executable, program)
    prints(machine, id, "ready")
    clock.move(by)
    time.sleep(2.0)  # several turns of the controller and the supervisor
    assert machine.job(id)["phase"] == "running"
    machine("stop", id)
    prints(machine, id, "asked")
    clock.move(-by)
    job = machine.until(id, "stopped", "failed", "done")
    assert (job["phase"], job["attempts"][0]["code"]) == ("stopped", 75)
    assert "saved" in Path(machine.home / "data" / "run" / "jobs" / id / "1" / "log").read_text()


def test_a_grace_ends_also_when_the_clock_is_set_back(machine: Machine, clock: Clock) -> None:
    id = machine.submitted("-d", "--grace", "3s", "--", sys.executable, "-c", STAYS)
    prints(machine, id, "ready")
    machine("stop", id)
    clock.move(-86400.0)
    job = machine.until(id, "stopped", seconds=30.0)
    assert job["attempts"][0]["code"] == 137
