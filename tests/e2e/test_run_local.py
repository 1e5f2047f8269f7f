"""Jobs on this machine as a user runs them: the real command, real processes, a record of their own."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pytest

from metadata_stand_ins import serving
from patience import deadline
from run_machine import Machine, machine, python

pytestmark = pytest.mark.e2e
__all__ = ["machine"]  # a fixture, taken by its name


def test_output_and_exit_code_are_passed_on(machine: Machine) -> None:
    done = machine("run", *python("print('hello'); raise SystemExit(7)"), code=7)
    assert done.stdout == "hello\n"
    assert re.search(r"submitted\n.* failed: exit code 7\n", done.stderr)


def test_a_detached_job_outlives_the_command_and_is_followed_later(machine: Machine) -> None:
    id = machine.submitted(*python("import time; print('one'); time.sleep(1.5); print('two')"))
    done = machine("logs", "-f", id)
    assert done.stdout == "one\ntwo\n"
    assert machine.until(id, "done")["attempts"][0]["outcome"] == "done"


def test_stop_asks_first_and_resume_goes_on(machine: Machine) -> None:
    code = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: (print('saved'), sys.exit(75)))\n"
        "print('runs'); time.sleep(60)"
    )
    id = machine.submitted("--name", "long", *python(code))
    machine.until(id, "running")
    _wait(lambda: "runs" in machine("logs", id).stdout)
    machine("stop", "--wait", "long")
    assert machine.job(id)["phase"] == "stopped"
    assert machine("logs", id).stdout == "runs\nsaved\n"
    assert "stopped already" in machine("stop", id, code=2).stderr
    machine("resume", id)
    assert len(machine.until(id, "running")["attempts"]) == 2
    machine("stop", "--wait", id)


def test_devices_are_held_by_one_job_at_a_time(machine: Machine) -> None:
    code = "import os, time; print(os.environ['CUDA_VISIBLE_DEVICES']); time.sleep(1)"
    ids = [machine.submitted("--gpus", "1", *python(code)) for _ in range(4)]
    jobs = [machine.until(id, "done") for id in ids]
    stays = [(job["attempts"][0]["gpus"], job["attempts"][0]["placed"], job["attempts"][0]["ended"]) for job in jobs]
    for number, (gpus, placed, ended) in enumerate(stays):
        assert machine("logs", ids[number]).stdout.split() == [str(gpus[0])]
        for others, begun, over in stays[number + 1 :]:
            assert gpus != others or ended <= begun or over <= placed


def test_a_job_that_waits_says_why(machine: Machine) -> None:
    (machine.home / "config" / "queue.yaml").write_text("teams: {vision: {gpus: 1}}\n")
    first = machine.submitted("--gpus", "1", "--team", "vision", *python("import time; time.sleep(60)"))
    machine.until(first, "running")
    second = machine.submitted("--gpus", "1", "--team", "vision", "--", "true")
    time.sleep(0.5)
    assert "team vision: 1 of 1 GPU in use, and 1 is needed" in machine("describe", second).stdout
    refused = machine("run", "--gpus", "2", "--team", "vision", "--", "true", code=2).stderr
    assert "needs 2 GPUs, and team vision may use 1" in refused
    machine("stop", "--wait", first)
    machine.until(second, "done")


def test_a_lost_supervisor_is_made_good_and_the_story_says_so(machine: Machine) -> None:
    program = machine.program(
        "import os, time\nimport numpy as np\nimport chipwise.job as job\n"
        "state = {'w': np.zeros(4), 'sum': 0}\n"
        "for step in job.steps(state, total=150, every=10):\n"
        "    state['w'] = state['w'] * 0.9 + step; state['sum'] += step; time.sleep(0.01)\n"
        "    if step == 60 and os.environ['CHIPWISE_ATTEMPT'] == os.environ.get('STAYS'): time.sleep(600)\n"
        "print(state['sum'], state['w'].tolist())\n"
    )
    id = machine.submitted("--env", "STAYS=1", "--", sys.executable, program)
    _wait(lambda: (machine.home / "data/run/jobs" / id / "checkpoints").exists())
    time.sleep(0.4)
    os.kill(machine.supervisor(machine.job(id)), signal.SIGKILL)
    job = machine.until(id, "done")
    assert [one["outcome"] for one in job["attempts"]] == ["lost", "done"]
    assert "attempt 1 was lost" in machine("describe", id).stdout
    undisturbed = machine("run", "--checkpoints", str(machine.home / "other"), "--", sys.executable, program).stdout
    assert machine("logs", "--attempt", "2", id).stdout == undisturbed


def test_a_killed_controller_comes_back_by_itself(machine: Machine, tmp_path: Path) -> None:
    end = tmp_path / "end"
    id = machine.submitted(*python(f"import os, time\nwhile not os.path.exists({str(end)!r}): time.sleep(0.05)"))
    machine.until(id, "running")
    first = machine.controller()
    os.kill(first, signal.SIGKILL)
    _wait(
        lambda: machine.controller() not in (0, first) and psutil.pid_exists(machine.controller()), 20
    )  # its supervisor notices
    end.touch()
    assert len(machine.until(id, "done")["attempts"]) == 1


def test_an_own_failure_is_tried_again_as_often_as_asked(machine: Machine) -> None:
    id = machine.submitted("--retries", "1", "--grace", "1s", *python("raise SystemExit(9)"))
    job = machine.until(id, "failed")
    assert [one["code"] for one in job["attempts"]] == [9, 9]
    assert "failed 2 times" in job["reason"]


def test_an_attempt_that_takes_too_long_is_ended(machine: Machine) -> None:
    id = machine.submitted("--longest", "1s", "--grace", "1s", *python("import time; time.sleep(60)"))
    assert "longer than the 1 s" in machine.until(id, "failed")["reason"]


def test_stages_run_in_order_and_a_missing_hand_off_ends_them(machine: Machine) -> None:
    work = machine.home / "work"
    stages = """
  - {kind: hpc, name: make, steps: 1, flop_per_step: 1e9, bytes_per_step: 1MB,
     program: {command: [sh, -c, "COMMAND"], produces: [part.txt]}}
  - {kind: hpc, name: use, steps: 1, flop_per_step: 1e9, bytes_per_step: 1MB,
     program: {command: [sh, -c, "cat part.txt > whole.txt"], produces: [whole.txt]}}
"""
    (work / "good.yaml").write_text(
        "kind: pipeline\nname: flow\nstages:" + stages.replace("COMMAND", "sleep 0.5; echo x > part.txt")
    )
    done = machine("run", "good.yaml", timeout=90)
    assert (work / "whole.txt").read_text() == "x\n", done.stderr
    (work / "part.txt").unlink()
    (work / "bad.yaml").write_text("kind: pipeline\nname: flow2\nstages:" + stages.replace("COMMAND", "true"))
    jobs = json.loads(machine("run", "--json", "--retries", "0", "bad.yaml").stdout)
    assert "part.txt is not there" in machine.until(jobs[0]["id"], "failed")["reason"]
    assert "failed before it" in machine.until(jobs[1]["id"], "failed")["reason"]


def test_a_secret_reaches_the_job_and_nothing_else(machine: Machine) -> None:
    value = "canary-value-4711"
    done = machine(
        "run",
        "--secret",
        "TOKEN",
        *python("import os; print(len(os.environ['TOKEN']), os.environ['TOKEN'])"),
        env={"TOKEN": value},
    )
    assert done.stdout == f"{len(value)} [secret]\n"
    _wait(lambda: not any((machine.home / "data/run/passing").glob("*")))
    for path in machine.home.rglob("*"):
        if path.is_file():
            assert value.encode() not in path.read_bytes(), path


def test_a_secret_stored_by_name_is_found_when_the_job_starts(machine: Machine) -> None:
    stored = machine.home / "config" / "secrets" / "hub"
    stored.mkdir(parents=True)
    (stored / "token").write_text("stored-value-42\n")
    done = machine("run", "--secret", "HUB_TOKEN=hub/token", *python("import os; print(len(os.environ['HUB_TOKEN']))"))
    assert done.stdout == "15\n"
    id = machine.submitted("--secret", "HUB_TOKEN=hub/missing", "--", "true")
    assert "secret for HUB_TOKEN is not there" in machine.until(id, "failed")["reason"]


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("run",), 2, "nothing to run"),
        (("run", "--", "no-such-program"), 3, "'no-such-program' was not found"),
        (("run", "--gpus", "3", "--", "true"), 2, "needs 3 GPUs, and this machine has 2"),
        (("run", "--folder", "/no/such", "--", "true"), 2, "/no/such does not exist"),
        (("run", "--engine", "locall", "--", "true"), 2, "Did you mean local?"),
        (("run", "--env", "A B", "--", "true"), 2, "is not a variable"),
        (("run", "--secret", "NOT_SET_ANYWHERE", "--", "true"), 2, "is not set here"),
        (("run", "--after", "nobody", "--", "true"), 2, "No job is called 'nobody'"),
        (("run", "missing.yaml"), 2, "missing.yaml"),
        (("logs", "nobody"), 2, "No job is called"),
        (("stop", "nobody"), 2, "No job is called"),
        (("describe", ""), 2, "No job is called"),
        (("ps", "--phase", "runing"), 2, "Did you mean running?"),
    ],
)
def test_bad_input_is_one_sentence_and_leaves_nothing_behind(
    machine: Machine, words: tuple[str, ...], code: int, told: str
) -> None:
    done = machine(*words, code=code)
    assert told in done.stderr
    assert "Traceback" not in done.stderr
    assert not (machine.home / "data" / "run").exists()
    assert "No job" in machine("ps").stdout


def test_top_and_ps_show_what_runs(machine: Machine) -> None:
    id = machine.submitted("--gpus", "1", "--name", "busy", *python("while True: pass"))
    machine.until(id, "running")
    _wait(lambda: json.loads(machine("top", "--json").stdout)[0]["cpu_percent"] > 5)
    [one] = json.loads(machine("top", "--json").stdout)
    assert one["id"] == id
    assert id in machine("top", "--once").stdout
    assert one["gpu_percent"] is None, "no driver tells"
    stand_in = machine.home / "programs" / "nvidia-smi"  # a stand-in: there is no driver here
    stand_in.parent.mkdir()
    stand_in.write_text('#!/bin/sh\nprintf "0, 87, 2048, 81920\\n1, [N/A], [N/A], 81920\\n"\n')
    stand_in.chmod(0o755)
    path = {"PATH": f"{stand_in.parent}:{machine.env['PATH']}"}
    [one] = json.loads(machine("top", "--json", env=path).stdout)
    assert (one["gpus"], one["gpu_percent"], one["gpu_memory_bytes"]) == ([0], 87.0, 2048 * 2**20)
    assert re.search(r"87%\s+2 GiB of 80 GiB", machine("top", "--once", env={**path, "COLUMNS": "140"}).stdout)
    assert re.search(rf"{id}\s+running", machine("ps").stdout)
    machine("stop", "--wait", id)


def test_a_notice_of_the_cloud_is_in_the_story_and_nothing_starts_after_it(machine: Machine) -> None:
    with serving("ec2") as cloud:
        machine.env |= {"CHIPWISE_CLOUD": "ec2", "CHIPWISE_METADATA_URL": cloud.url, "CHIPWISE_NOTICE_S": "0.5"}
        code = (
            "import signal, sys, time\n"
            "signal.signal(signal.SIGTERM, lambda *_: (time.sleep(1), print('saved'), sys.exit(75)))\n"
            "print('runs'); time.sleep(60)"
        )
        id = machine.submitted(*python(code))
        machine.until(id, "running")
        _wait(lambda: "runs" in machine("logs", id).stdout)
        at = datetime.now(UTC) + timedelta(seconds=120)
        cloud.say("spot/instance-action", json.dumps({"action": "terminate", "time": at.strftime("%Y-%m-%dT%H:%M:%SZ")}))
        job = machine.until(id, "queued")
        assert job["attempts"][0]["outcome"] == "left"
        assert machine("logs", id).stdout == "runs\nsaved\n"
        assert "AWS is reclaiming the spot machine" in machine("describe", id).stdout
        other = machine.submitted("--", "true")
        time.sleep(1.5)
        assert machine.job(id)["phase"] == machine.job(other)["phase"] == "queued"
        machine("stop", "--wait", id, other)


def test_forget_makes_room_and_the_record_still_knows(machine: Machine) -> None:
    done = machine.submitted("--name", "old", *python("print('x' * 5000)"))
    machine.until(done, "done")
    runs = machine.submitted("--name", "runs", *python("import time; print('y'); time.sleep(60)"))
    machine.until(runs, "running")
    assert "is running" in machine("forget", done, runs, code=2).stderr
    assert "x" in machine("logs", done).stdout, "nothing is removed where one is not over"
    assert "0 jobs" in machine("forget", "--older-than", "1h").stderr
    assert "left alone: it ended later" in machine("forget", done, "--older-than", "1h").stdout
    said = machine("forget", "--older-than", "1ms").stdout
    assert f"{done} forgotten:" in said
    assert runs not in said
    at = machine.home / "data" / "run" / "jobs" / done / "1"
    assert sorted(one.name for one in at.iterdir()) == ["ended.json", "state.json"]
    assert machine.job(done)["phase"] == "done"
    assert "x" not in machine("logs", done, code=None).stdout
    assert "it has no files on this machine" in machine("forget", done).stdout
    assert "No jobs are given" in machine("forget", code=2).stderr
    machine("stop", "--wait", runs)


def _wait(what: Callable[[], object], seconds: float = 15) -> None:
    late = deadline(seconds)
    while not what():
        assert time.monotonic() < late
        time.sleep(0.05)


def test_who_sets_other_devices_is_heard_though_a_controller_lives(machine: Machine) -> None:
    shown = ("run", "--gpus", "2", "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES")
    machine("run", "--", "true", env={"CHIPWISE_GPUS": "none"})
    unset = {"CHIPWISE_GPUS": "", "CHIPWISE_CPUS": ""}
    assert "has 0" in machine(*shown, env=unset, code=2).stderr  # as the controller that lives says
    assert machine(*shown, env={"CHIPWISE_GPUS": "2,3"}).stdout == "2,3\n"
    assert machine(*shown, env=unset).stdout == "2,3\n"


def test_a_job_reads_nothing_of_the_shell_that_woke_its_controller(machine: Machine) -> None:
    """The address of the record and keys are in the environment of that shell, and the job may be another person's."""
    code = (
        "import os, re\n"
        "pid, found = os.getppid(), []\n"
        "while pid > 1:\n"
        "    try:\n"
        "        found.append(b'hush-hush' in open(f'/proc/{pid}/environ', 'rb').read())\n"
        "    except OSError:\n"
        "        found.append(False)\n"
        "    pid = int(re.sub(r'.*\\)', '', open(f'/proc/{pid}/stat').read()).split()[1])\n"
        "print(any(found), len(found), os.environ.get('OTHER_KEY'))"
    )
    machine.env["OTHER_KEY"] = "hush-hush"
    id = machine.submitted(*python(code))
    machine.until(id, "done")
    assert machine("logs", id).stdout.split()[::2] == ["False", "None"]
    assert "hush-hush" not in Path(f"/proc/{machine.controller()}/environ").read_text()
    machine("run", "--name", "thief", "--secret", "OTHER_KEY", *python("import os; print(os.environ['OTHER_KEY'])"))
    assert machine("logs", "thief").stdout == "[secret]\n"
