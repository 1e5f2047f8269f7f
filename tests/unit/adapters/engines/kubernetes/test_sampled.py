"""What a pod's devices did, sampled inside it: the shell around its command, and what is read of its word."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from chipwise.adapters.engines.kubernetes import hand_off, sampled
from chipwise.adapters.engines.kubernetes.kinds import JOB, POD
from chipwise.adapters.engines.kubernetes.picture import Picture
from chipwise.adapters.engines.kubernetes.progress_reports import MESSAGE, parse_report
from chipwise.adapters.engines.kubernetes.reading import Times, part_of, sight
from chipwise.runner.engine import State
from chipwise.runner.events import Placed, Submitted, after, first
from chipwise.runner.job import MachinePlace, Needs, Spec

GPU = {"limits": {"nvidia.com/gpu": "8"}}
SMI = """#!/bin/sh
echo "0, NVIDIA H200, 570.1, 90, 1000, 500.0, 60"
"""
SHELLS = [
    pytest.param(
        words,
        marks=pytest.mark.skipif(shutil.which(words[0]) is None, reason=f"{words[0]} is not here"),
        id=words[0],
    )
    for words in (["sh"], ["bash", "--posix"], ["busybox", "sh"])
]


def words(command: list[str]) -> list[str]:
    found = sampled.sampling({"command": command, "resources": GPU})["command"]
    return [word.replace("$$", "$") if at == 2 else word for at, word in enumerate(found)]


def ran(shell: list[str], here: Path, script: str, signalled: bool = False) -> tuple[int, str]:
    (here / "nvidia-smi").write_text(SMI)
    (here / "nvidia-smi").chmod(0o755)
    env = {"PATH": f"{here}:{os.environ['PATH']}", MESSAGE: str(here / "message"), "CHIPWISE_SAMPLE_S": "0.1"}
    process = subprocess.Popen([*shell, *words(["sh", "-c", script])[1:]], cwd=here, env=env)
    if signalled:
        while not (here / "began").exists():
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
    code = process.wait(20)
    return code, (here / "message").read_text() if (here / "message").exists() else ""


@pytest.mark.parametrize("shell", SHELLS)
def test_devices_are_sampled_and_the_command_ends_as_it_would(shell: list[str], tmp_path: Path) -> None:
    own = '{"chipwise": 1, "attempt": 1, "step": 7, "saved_step": 5}'
    code, message = ran(shell, tmp_path, f"echo '{own}' >\"${MESSAGE}\"; sleep 0.6; exit 3")
    told = sampled.summary_told(message)
    assert code == 3
    assert told["devices"]["nvidia:0"]["busy"]["p50"] == 0.9
    report = parse_report(message, 1)
    assert report is not None
    assert (report.step, report.saved) == (7, 5)
    deadline = time.monotonic() + 5.0
    while left := [one.pid for one in psutil.process_iter(["cwd"]) if one.info["cwd"] == str(tmp_path)]:
        assert time.monotonic() < deadline, f"what sampled goes on: {left}"
        time.sleep(0.05)


def test_who_asks_it_to_leave_is_heard(tmp_path: Path) -> None:
    script = "trap 'exit 75' TERM; : >began; while :; do sleep 0.05; done"
    assert ran(["sh"], tmp_path, script, signalled=True)[0] == 75


def test_without_devices_or_without_a_shell_nothing_changes() -> None:
    for container in (
        {"command": ["python", "train.py"], "resources": GPU},
        {"command": ["sh", "-c", "x"], "resources": {}},
        {"command": ["sh", "-c", "x"]},
        {"resources": GPU},
        {"command": ["sh", "-c", "x"], "resources": GPU, "env": [{"name": sampled.SETTING, "value": "0"}]},
    ):
        assert sampled.sampling(container) == container


def test_what_is_missing_is_still_read_before_it() -> None:
    message = f"{{}}\n\n{hand_off.SAYS}out is not there\n\n{sampled.SAYS}{{}}\n"
    assert hand_off.missing(66, message) == "it ended well, but out is not there"


@pytest.mark.parametrize("message", [None, 3, "", "\nchipwise-watched: [", "\nchipwise-watched: 7", "chipwise-watched: {}"])
def test_a_word_that_is_none_says_nothing(message: object) -> None:
    assert sampled.summary_told(message) == {}


def pod(index: int, said: str) -> dict[str, Any]:
    own = {"chipwise.dev/job": "j", "chipwise.dev/attempt": "1"}
    notes = {"batch.kubernetes.io/job-completion-index": str(index)}
    ended = {"exitCode": 0, "startedAt": "2026-11-01T10:00:00Z", "finishedAt": "2026-11-01T11:00:00Z", "message": said}
    return {
        "metadata": {"name": f"p{index}", "uid": f"p{index}", "labels": own, "annotations": notes},
        "spec": {"nodeName": "n"},
        "status": {"phase": "Succeeded", "containerStatuses": [{"name": "main", "state": {"terminated": ended}}]},
    }


def test_the_summary_of_all_pods_comes_with_the_end() -> None:
    said = '\nchipwise-watched: {"seconds": 3600, "devices": {"nvidia:0": {"name": "NVIDIA H200", "energy_j": 5}}}\n'
    own = {"chipwise.dev/job": "j", "chipwise.dev/attempt": "1"}
    picture = Picture()
    status = {"conditions": [{"type": "Complete", "status": "True"}], "completionTime": "2026-11-01T11:00:00Z"}
    picture.put(JOB, {"metadata": {"name": "j-a1", "uid": "u", "labels": own}, "spec": {"completions": 2}, "status": status})
    for index in range(2):
        picture.put(POD, pod(index, said))
    spec = Spec(("x",), "j", "kubernetes", needs=Needs(8, machines=2))
    job = after(first("j", Submitted(spec), 0.0), Placed(1, MachinePlace()), 0.0)
    seen = sight(picture, part_of(picture, ("j", 1), JOB), job, Times(0.0, 0.0))
    assert seen is not None
    assert seen.state is State.EXITED
    assert seen.watched["seconds"] == 3600
    assert set(seen.watched["devices"]) == {"0/nvidia:0", "1/nvidia:0"}  # type: ignore[call-overload]
