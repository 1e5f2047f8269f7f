"""A table has no column that says nothing, and a job holds what it holds."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from chipwise.cli.describe import _cells, _holds, _leaves, _show_compared, _waits
from chipwise.runner.comparing import Compared
from chipwise.runner.job import Attempt, Job, Lack, LeaveReason, MachinePlace, Needs, Phase, Spec


def test_of_a_plain_command_only_what_was_measured_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    _show_compared([Compared("steps_per_s", measured=5.0)], "")
    head = capsys.readouterr().out.splitlines()[1]
    assert head.split() == ["measured"]
    _show_compared([Compared("usd", predicted=1.778e-05, measured=0.02)], "")
    out = capsys.readouterr().out
    assert "< $0.01" in out
    assert "$0.02" in out
    assert "from" not in out


@pytest.mark.parametrize(
    ("needs", "attempt", "said"),
    [
        (Needs(4, 1, gpus_least=2), None, "2 to 4 GPUs, 1 CPU"),
        (Needs(4, 1, processes=4, gpus_least=2), Attempt(1, MachinePlace(), (0, 1), (0,)), "2 of 4 GPUs, 1 CPU, 2 processes"),
        (
            Needs(8, 2, 4, machines_least=2),
            Attempt(1, MachinePlace(), machines=3),
            "8 GPUs, 2 CPUs, on each of 3 of 4 machines",
        ),
        (Needs(1, 1), None, "1 GPU, 1 CPU"),
    ],
)
def test_what_is_held_is_told_while_it_is(needs: Needs, attempt: Attempt | None, said: str) -> None:
    phase = Phase.QUEUED if attempt is None else Phase.RUNNING
    job = Job("a", Spec(("true",), "a", needs=needs), 0.0, phase=phase, attempts=() if attempt is None else (attempt,))
    assert _holds(job) == said


@pytest.mark.parametrize(
    ("reason", "lack", "said"),
    [
        ("waits for make", None, "for make"),
        ("waiting: vision has 8 of 8 GPUs in use", None, "vision has 8 of 8 GPUs in use"),
        ("1 GPU is needed", None, "1 GPU is needed"),
        ("it does not pass its health check yet (here)", Lack.CHECK, "it does not pass its health check yet (here), for 90 s"),
        ("", None, ""),
    ],
)
def test_behind_its_label_the_reason_stands_alone(reason: str, lack: Lack | None, said: str) -> None:
    job = Job(
        "a", Spec(("true",), "a"), 0.0, phase=Phase.RUNNING, lack=lack, attempts=(Attempt(1, MachinePlace(), begun=10.0),)
    )
    assert _waits(job, reason, 100.0) == said


def test_one_that_is_leaving_is_told_with_its_time() -> None:
    job = Job("a", Spec(("true",), "a"), 0.0, phase=Phase.LEAVING, leave_by=130.0, leaving=LeaveReason.WISH)
    at = time.strftime("%m-%d %H:%M:%S", time.localtime(130.0))
    assert _leaves(job, 100.0) == f"by {at}, in 30 s; then it is killed"
    assert _leaves(job, 131.0) == f"by {at}, which has passed: it is being killed"
    assert _leaves(replace(job, leaving=LeaveReason.END), 100.0) == "at once, without time to save"
    assert _leaves(replace(job, phase=Phase.RUNNING), 100.0) == ""


@pytest.mark.parametrize(("measured", "said"), [(125.0, "1.25"), (12.0, "0.12"), (0.312, "0.0031"), (0.0, "0")])
def test_a_small_ratio_is_not_none(measured: float, said: str) -> None:
    assert _cells(Compared("throughput", "tokens", predicted=100.0, measured=measured))[-1] == said


def test_what_nobody_names_is_counted_in_units() -> None:
    assert _cells(Compared("throughput", predicted=1.0))[0] == "units/s"
