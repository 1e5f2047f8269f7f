"""Times that have passed: a deadline that is over is refused before anything is recorded, and checkpoints outlive a failure."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from chipwise.adapters.stores.record import connect
from chipwise.runner.engine import Leave, Seen, Sight, State
from chipwise.runner.events import Begun, Ended, Over, Placed
from chipwise.runner.job import Job, MachinePlace, Outcome, Phase, Spec
from chipwise.runner.record import Change
from chipwise.runner.step import step
from command import Chipwise
from run_jobs import queued, running, spec

WORKLOAD = """\
name: late
kind: batch
items: 10
model: llama-3.1-8b
input_tokens: 100
output_tokens: 10
program: {command: ["true"]}
goals: {finish_by: "%s"}
"""


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    return tmp_path / "late.yaml"


@pytest.mark.parametrize("more", [("--detach",), ("--simulate",)])
def test_a_deadline_that_is_over_is_refused_and_nothing_is_recorded(
    chipwise: Chipwise, workload: Path, more: tuple[str, ...]
) -> None:
    workload.write_text(WORKLOAD % (datetime.now(UTC) - timedelta(hours=30)).isoformat(timespec="seconds"))
    done = chipwise("run", *more, str(workload))
    assert done.code == 2, done.err
    assert "late should finish by" in done.err
    assert "ago" in done.err
    assert "Give goals.finish_by a time in the future, or leave it out." in done.err
    assert chipwise("ps", "--all", "--json").json == []


def test_one_that_runs_goes_on_when_its_deadline_passes() -> None:
    job = running(queued(wanted=spec(deadline=50.0, expected_s=1000.0)))
    for now in (40.0, 60.0, 6000.0):
        acts = step({job.id: job}, Seen(now, {(job.id, 1): Sight(State.RUNNING, step=3)}), now)
        assert not [order for act in acts for order in act.orders if isinstance(order, Leave)]


def ended(chipwise: Chipwise, id: str, phase: Phase, outcome: Outcome) -> Path:
    """One that is over, with a log and a checkpoint on this machine."""
    record = connect(f"sqlite://{chipwise.data_dir / 'record.db'}")
    [job] = record.submit([(id, Spec(("true",), id, place="here"))], time.time() - 100.0)
    events = (Placed(1, MachinePlace()), Begun(1), Ended(1, outcome), Over(phase, ""))
    [answer] = record.write([Change(job, events)], time.time() - 50.0)
    assert isinstance(answer, Job)
    record.close()
    home = chipwise.data_dir / "run" / "jobs" / id
    (home / "1").mkdir(parents=True)
    (home / "1" / "log").write_text("x" * 500)
    (home / "checkpoints").mkdir()
    (home / "checkpoints" / "step-1").write_bytes(b"y" * 4096)
    return home / "checkpoints" / "step-1"


def test_checkpoints_from_which_a_job_can_go_on_stay_unless_asked(chipwise: Chipwise) -> None:
    failed = ended(chipwise, "failed", Phase.FAILED, Outcome.FAILED)
    stopped = ended(chipwise, "stopped", Phase.STOPPED, Outcome.STOPPED)
    done = ended(chipwise, "done", Phase.DONE, Outcome.DONE)
    told = chipwise("forget", "--older-than", "1s")
    assert "its checkpoints (4 KiB) stay, since it failed, and `chipwise retry` continues from them" in told.out
    assert "its checkpoints (4 KiB) stay, since it was stopped and can be resumed" in told.out
    assert "Checkpoints of 2 jobs stay, 8 KiB; --checkpoints removes them too." in told.err
    assert (failed.exists(), stopped.exists(), done.exists()) == (True, True, False)
    assert not (failed.parents[1] / "1" / "log").exists()
    again = chipwise("forget", "--older-than", "1s", "--checkpoints")
    assert again.code == 0
    assert (failed.exists(), stopped.exists()) == (False, False)


def test_a_failed_job_that_is_named_is_forgotten_whole(chipwise: Chipwise) -> None:
    kept = ended(chipwise, "failed", Phase.FAILED, Outcome.FAILED)
    assert chipwise("forget", "failed").code == 0
    assert not kept.exists()
