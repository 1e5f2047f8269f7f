"""What a person is told of jobs on this machine, as they run: the real command, real processes."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable

import pytest

from patience import deadline
from run_machine import CHIPWISE, Machine, machine, python

pytestmark = pytest.mark.e2e
__all__ = ["machine"]  # a fixture, taken by its name
UNTIL = "import pathlib, time\nwhile not pathlib.Path('go').exists(): time.sleep(0.05)"


def test_a_detached_job_gives_its_id_alone(machine: Machine) -> None:
    done = machine("run", "-d", *python("print('hello')"))
    assert re.fullmatch(r"[a-z0-9-]+\n", done.stdout)
    assert "chipwise logs -f" in done.stderr
    machine.until(done.stdout.strip(), "done")
    assert machine("logs", done.stdout.strip()).stdout == "hello\n"


def test_who_waits_is_told_why_and_a_list_says_so_too(machine: Machine) -> None:
    first = machine.submitted("--gpus", "2", "--name", "first", *python(UNTIL))
    machine.until(first, "running")
    with (machine.home / "err").open("w") as err:
        words = ["run", "--gpus", "1-2", "--name", "second", *python("print('ran')")]
        followed = subprocess.Popen([CHIPWISE, *words], cwd=machine.home / "work", env=machine.env, stderr=err)
    _until(lambda: "waits: 1 GPU is needed, and 0 of 2 are free" in (machine.home / "err").read_text())
    listed = machine("ps").stdout
    [row] = [line for line in listed.splitlines() if line.startswith("second")]
    assert "1 to 2" in row
    assert "1 GPU is" in row
    assert "1 to 2 GPUs" in machine("describe", "second").stdout
    (machine.home / "work" / "go").touch()
    assert followed.wait(30) == 0
    assert (machine.home / "err").read_text().count("waits:") == 1


def test_what_an_elastic_job_has_is_shown_while_it_has_it(machine: Machine) -> None:
    other = machine.submitted("--gpus", "1", *python(UNTIL))
    machine.until(other, "running")
    few = machine.submitted("--gpus", "1-2", "--name", "few", *python(UNTIL))
    assert machine.until(few, "running")["held"] == {"gpus": 1, "machines": 1, "processes": 1}
    assert "1 of 2 GPUs" in machine("describe", few).stdout
    [row] = [line for line in machine("ps").stdout.splitlines() if line.startswith("few")]
    assert row.split()[4] == "1", row
    (machine.home / "work" / "go").touch()
    machine.until(few, "done")
    assert "ratio" not in machine("describe", few).stdout, "nothing was predicted"


def test_stages_before_the_one_that_is_followed_are_told_when_they_are_done(machine: Machine) -> None:
    kept = "kind: hpc, steps: 1, flop_per_step: 1e9, bytes_per_step: 1MB, program: {command: [sleep, '1']}"
    text = f"kind: pipeline\nname: two\nstages:\n  - {{name: first, {kept}}}\n  - {{name: then, {kept}}}\n"
    (machine.home / "work" / "two.yaml").write_text(text)
    done = machine("run", "two.yaml")
    assert re.search(r"two-first-\w+ submitted\n(.*\n)*two-first-\w+ done\n(.*\n)*two-then-\w+ done\n", done.stderr), (
        done.stderr
    )


def test_one_that_is_done_is_submitted_anew_and_not_retried(machine: Machine) -> None:
    id = machine.submitted(*python("pass"))
    machine.until(id, "done")
    refused = machine("stop", id, code=2).stderr
    assert "done already" in refused
    assert "Submit it again with `chipwise run`" in refused
    assert "retry" not in refused


def test_a_stopped_job_keeps_its_checkpoints_and_forgotten_output_is_said_to_be(machine: Machine) -> None:
    code = "import os, pathlib, time\n"
    code += "at = pathlib.Path(os.environ['CHIPWISE_CHECKPOINTS'])\nat.mkdir(parents=True, exist_ok=True)\n"
    code += "(at / 'step-1').write_text('x' * 5000)\nprint('saved', flush=True)\ntime.sleep(60)"
    id = machine.submitted("--grace", "1s", *python(code))
    _until(lambda: "saved" in machine("logs", id).stdout)
    machine("stop", "--wait", id)
    kept = machine.home / "data" / "run" / "jobs" / id / "checkpoints" / "step-1"
    would = machine("forget", "--older-than", "1ms", "--dry-run").stdout
    assert f"{id} would be forgotten" in would
    assert machine("logs", id).stdout == "saved\n"
    done = machine("forget", "--older-than", "1ms").stdout
    assert "stay, since it was stopped and can be resumed" in done
    assert kept.is_file()
    for words in ((), ("-f",), ("--tail", "1")):
        gone = machine("logs", *words, id, code=3)
        assert f"What {id} printed was deleted." in gone.stderr
        assert gone.stdout == ""
    machine("forget", "--older-than", "1ms", "--checkpoints")
    assert not kept.exists()


def _until(found: Callable[[], bool], seconds: float = 30) -> None:
    late = deadline(seconds)
    while not found():
        assert time.monotonic() < late
        time.sleep(0.1)
