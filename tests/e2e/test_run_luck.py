"""Bad luck and bad company on one machine: what one job, submitter or file does must not reach the others."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable

import psutil
import pytest

from patience import deadline
from run_machine import Machine, machine, python

__all__ = ["machine"]
pytestmark = pytest.mark.e2e
SHOW = "import os; print([os.environ.get(name) for name in ('TOKEN', 'KEY')])"


def wait(what: Callable[[], object], seconds: float = 20.0) -> None:
    late = deadline(seconds)
    while not what():
        assert time.monotonic() < late
        time.sleep(0.05)


def ended(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    wait(lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)


def passed(machine: Machine) -> list[str]:
    folder = machine.home / "data/run/passing"
    return sorted(one.name for one in folder.iterdir()) if folder.is_dir() else []


def test_what_one_submitter_has_set_does_not_reach_the_job_of_another(machine: Machine) -> None:
    mine = {"TOKEN": "canary-value-4711", "KEY": "canary-value-4712"}
    assert machine("run", "--secret", "TOKEN", *python(SHOW), env=mine).stdout == "['[secret]', None]\n"
    assert machine("run", *python(SHOW)).stdout == "[None, None]\n"  # the same controller, which was woken with both
    assert machine("run", "--env", "KEY", *python(SHOW), env={"KEY": "asked-for"}).stdout == "[None, 'asked-for']\n"


def test_a_job_that_lost_everything_around_it_still_has_its_secret(machine: Machine) -> None:
    code = "import os, time; print(len(os.environ['TOKEN'])); time.sleep(8)"
    id = json.loads(machine("run", "--json", "--secret", "TOKEN", *python(code), env={"TOKEN": "canary-value-4711"}).stdout)[0][
        "id"
    ]
    job = machine.until(id, "running")
    controller = machine.controller()
    ended(controller)
    ended(machine.supervisor(job))
    machine("attach", id)
    assert [one["outcome"] for one in machine.job(id)["attempts"]] == ["lost", "done"]
    assert machine("logs", "--attempt", "2", id).stdout == "17\n"
    wait(lambda: not passed(machine))


def test_a_secret_goes_with_a_job_that_was_stopped_before_it_began_and_comes_back_with_it(machine: Machine) -> None:
    holds = machine.submitted("--cpus", "4", *python("import time; time.sleep(30)"))
    machine.until(holds, "running")
    env = {"TOKEN": "canary-value-4711"}
    id = json.loads(machine("run", "--json", "--secret", "TOKEN", *python(SHOW), env=env).stdout)[0]["id"]
    assert passed(machine) == [id]
    machine("stop", "--wait", id)
    machine("stop", "--wait", holds)
    ended(machine.controller())
    assert machine("run", "--", "true").returncode == 0  # the next controller tidies up
    assert passed(machine) == []
    machine("resume", id, env=env)
    machine.until(id, "done")
    assert machine("logs", id).stdout == "['[secret]', None]\n"


@pytest.mark.parametrize("told", ['{"step": 1, "steady": NaN}', '{"step": 1, "steady": 1e999}', "[" * 100_000, '{"step": "x"}'])
def test_nonsense_that_a_program_tells_of_itself_stops_nobody(machine: Machine, told: str) -> None:
    (machine.home / "work" / "told").write_text(told)
    code = "import os, shutil; shutil.copy('told', os.environ['CHIPWISE_RUN_DIR'] + '/progress.json')"
    assert machine("run", *python(code)).returncode == 0
    assert machine("run", *python("print('next')")).stdout == "next\n"


def test_a_record_that_was_taken_away_is_begun_anew_by_whoever_leads(machine: Machine) -> None:
    machine.until(machine.submitted(*python("import time; time.sleep(60)")), "running")
    controller = machine.controller()
    (machine.home / "away").mkdir()
    for one in (machine.home / "data").glob("record.db*"):
        one.rename(machine.home / "away" / one.name)
    assert machine("run", *python("print('anew')"), timeout=90).stdout == "anew\n"
    assert machine.controller() == controller


def test_a_queue_that_nobody_serves_moves_on_when_somebody_looks(machine: Machine) -> None:
    (machine.home / "config" / "queue.yaml").write_text("teams: {")  # while somebody writes it no controller can begin
    assert "not valid YAML" in machine("run", "--", "true", code=2).stderr
    (machine.home / "config" / "queue.yaml").write_text("")
    holds = machine.submitted("--cpus", "4", *python("import time; time.sleep(60)"))
    job = machine.until(holds, "running")
    supervisor = machine.supervisor(job)
    ended(machine.controller())
    ended(supervisor)
    time.sleep(0.5)
    assert machine.job(holds)["phase"] == "lost"  # nobody recorded it yet: whoever asks looks
    machine("ps")
    wait(lambda: len(machine.job(holds)["attempts"]) == 2)
