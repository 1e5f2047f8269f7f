"""Whole jobs on stand-in machines: the real controller over a SQLite record, as outside of tests; only its turns are closer.

The metadata, the shutdown and the AWS CLI of the machines are stand-ins (`ec2_machines`); EC2, S3 and SQS are moto's.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from chipwise.adapters.engines.ec2 import machine_choice
from chipwise.adapters.engines.ec2.engine import Ec2
from chipwise.adapters.engines.ec2.notices import REBALANCE, WARNING
from chipwise.adapters.stores.record import connect as open_record
from chipwise.catalog.offer import Purchase
from chipwise.errors import TryLater
from chipwise.runner.engine import End
from chipwise.runner.events import Measured
from chipwise.runner.job import Job, Needs, Outcome, Phase, Retry, Spec
from chipwise.runner.loop import Controller
from chipwise.runner.record import Record
from chipwise.runner.story import event_sentence
from ec2_account import NO_SPOT
from ec2_programs import WAITS, done_at, python
from engines.ec2 import REGION, SPOT, Rented, warning
from faulty_aws import Fault
from patience import deadline

pytestmark = pytest.mark.e2e

ELSEWHERE = replace(SPOT, zone="eu-west-1b", machine="g6.2xlarge", usd_per_hour=0.4)
STAYS = replace(SPOT, purchase=Purchase.ON_DEMAND, usd_per_hour=1.0)


@dataclass
class Play:
    """One job, and whoever leads it."""

    bench: Rented
    record: Record
    controller: Controller = field(init=False)
    ahead_s: float = 0.0  # of the clock that the controller is told

    def __post_init__(self) -> None:
        self.controller = Controller(self.record, self.bench.engine, "one")

    def submit(self, command: tuple[str, ...], **asked: Any) -> None:
        spec = Spec(command, "train", "ec2", self.bench.engine.place, places=(SPOT,), retry=Retry(wait_s=0.1))
        self.record.submit([("j1", replace(spec, **asked))], self.bench.now())

    @property
    def job(self) -> Job:
        found = self.record.job("j1")
        assert found is not None
        return found

    def turns(self, within_s: float = 60.0) -> Iterator[Job]:
        """Until the job is over. Of the job at most one machine runs, whatever happens."""
        end = time.monotonic() + within_s
        while not (job := self.job).phase.over:
            assert time.monotonic() < end, job
            yield job
            self.controller.turn(self.bench.now() + self.ahead_s)
            assert sum(one.state == "running" for one in self.bench.hall.instances()) <= 1
            self.bench.wait(0.1)

    def fresh(self, seen: set[str]) -> list[str]:
        """Machines on which a program began that was not there before."""
        found = [
            one.id
            for one in self.bench.hall.instances()
            if one.state == "running" and one.id not in seen and (self.bench.hall.folder(one.id) / "run" / "ready").exists()
        ]
        seen.update(found)
        return found

    def nothing_is_left(self) -> None:
        self.controller.turn(self.bench.now() + self.ahead_s)  # what could not be cleared then
        assert {one.state for one in self.bench.hall.instances()} <= {"terminated"}
        assert self.bench.engine.look([], self.bench.now()).strays == ()
        assert self.bench.aws.client("ec2", REGION).describe_launch_templates()["LaunchTemplates"] == []
        self.bench.hall.turn()
        assert [one for machine in self.bench.hall.processes for one in self.bench.hall.of(machine)] == []


@pytest.fixture
def play(bench: Rented, tmp_path: Path) -> Iterator[Play]:
    record = open_record(f"sqlite:///{tmp_path}/jobs.db")
    yield Play(bench, record)
    record.close()


def warn(bench: Rented, machine: str, kind: str = WARNING) -> None:
    bench.aws.client("sqs", REGION).send_message(QueueUrl=bench.queue, MessageBody=warning(machine, kind))


LOG = "[ 7.1] NVRM: Xid (PCI:0000:3b:00): {}, pid=7, name=python, as its kernel wrote it\n"


def test_a_machine_with_a_sick_device_is_replaced_and_the_story_says_why(play: Play) -> None:
    """First an error that the device corrected, which changes nothing; then one that takes the device away."""
    play.submit(done_at(2), needs=Needs(gpus=1))
    seen: set[str] = set()
    turns = 0
    for _ in play.turns():
        for machine in play.fresh(seen):
            (play.bench.hall.folder(machine) / "kernel").write_text(LOG.format(92))
        turns += len(seen)
        if turns == 15:  # long after the first was told
            assert len(play.job.attempts) == 1
            with (play.bench.hall.folder(min(seen)) / "kernel").open("a") as kernel:
                kernel.write(LOG.format(79))
    assert (play.job.phase, [one.outcome for one in play.job.attempts]) == (Phase.DONE, [Outcome.LEFT, Outcome.DONE])
    events = [one.event for one in play.record.events("j1")]
    assert any("is unhealthy and is replaced: XID 79" in (event_sentence(event) or "") for event in events)
    [measured] = [event for event in events if isinstance(event, Measured)]
    watched = measured.measured.get("watched")
    if watched is not None:  # of the second attempt, which may have ended before the first sample
        assert isinstance(watched, dict)
        assert watched["devices"]["nvidia:0"]["name"] == "NVIDIA L4"
    play.nothing_is_left()


def test_what_the_devices_of_a_machine_did_comes_into_the_record(play: Play) -> None:
    play.submit(python("import time; time.sleep(3)"), needs=Needs(gpus=1))
    for _ in play.turns():
        pass
    [measured] = [one.event for one in play.record.events("j1") if isinstance(one.event, Measured)]
    watched = measured.measured["watched"]
    assert isinstance(watched, dict)
    assert watched["conditions"] == {"driver": "570.1"}
    assert watched["devices"]["nvidia:0"]["busy"]["p50"] == 0.8


@pytest.mark.parametrize("how", [WARNING, REBALANCE, "metadata"])
def test_however_a_notice_comes_the_job_saves_leaves_and_goes_on(play: Play, how: str) -> None:
    play.submit(done_at(2))
    seen: set[str] = set()
    for _ in play.turns():
        for machine in play.fresh(seen):
            play.bench.hall.metadata.interrupt(machine) if how == "metadata" else warn(play.bench, machine, how)
    assert (play.job.phase, [one.outcome for one in play.job.attempts]) == (Phase.DONE, [Outcome.LEFT, Outcome.DONE])
    [machine] = seen
    assert (play.bench.hall.folder(machine) / "run" / "notice.json").exists()
    play.nothing_is_left()


def test_a_job_taken_twice_goes_on_in_another_zone_on_another_type(play: Play) -> None:
    play.submit(done_at(3), places=(SPOT, ELSEWHERE), budget_usd=5.0)
    seen: set[str] = set()
    for _ in play.turns():
        for machine in play.fresh(seen):
            warn(play.bench, machine)
        if len(seen) == 1 and play.controller.holder == "one":  # the first controller dies, and another goes on
            play.controller.resign()
            play.controller = Controller(play.record, play.bench.again(), "two")
    job = play.job
    assert (job.phase, [one.outcome for one in job.attempts]) == (Phase.DONE, [Outcome.LEFT, Outcome.LEFT, Outcome.DONE])
    assert [one.where.zone for one in job.attempts] == ["eu-west-1a", "eu-west-1a", "eu-west-1b"]
    assert (job.attempts[2].where.machine, job.attempts[2].where.usd_per_hour) == ("g6.2xlarge", 0.4)
    assert (len(seen), len(play.bench.hall.instances())) == (2, 3)
    play.nothing_is_left()


def test_without_spot_machines_a_job_takes_one_that_stays_and_stays_there(play: Play) -> None:
    """Also where its rest is long enough that a policy would like it on spot machines again: nobody knows of any."""
    play.bench.between.faults.append(replace(NO_SPOT))
    play.submit(python("import time; time.sleep(1)"), places=(SPOT, STAYS), expected_s=1e6, predicted={"steps": 10})
    for _ in play.turns():
        pass
    [attempt] = play.job.attempts
    assert (play.job.phase, attempt.where) == (Phase.DONE, STAYS)
    play.nothing_is_left()


def test_without_a_machine_anywhere_a_job_waits_for_nothing_and_its_story_says_why(play: Play) -> None:
    play.bench.between.faults.append(Fault("CreateFleet", 400, "InsufficientInstanceCapacity"))
    play.submit(python("pass"), retry=Retry(wait_s=0.05, longest_wait_s=0.2))
    for turn, job in enumerate(play.turns()):
        if turn == 8:
            assert job.usd(play.bench.now()) == 0.0
            assert any("InsufficientInstanceCapacity" in one.reason for one in job.attempts[:-1])
            play.bench.between.faults.clear()
    assert play.job.phase is Phase.DONE
    assert len(play.bench.hall.instances()) == 1
    play.nothing_is_left()


def test_a_job_leaves_before_its_money_is_spent(play: Play) -> None:
    play.submit(python(WAITS), budget_usd=0.2)
    for _ in play.turns():
        if play.fresh(set()):
            play.ahead_s = 2400.0  # 40 minutes of $0.30 an hour
    assert play.job.phase is Phase.FAILED
    assert "$0.20" in play.job.reason
    assert play.job.attempts[-1].outcome is Outcome.STOPPED
    play.nothing_is_left()


def test_what_is_left_of_a_budget_must_pay_for_a_start(play: Play) -> None:
    dear = replace(SPOT, usd_per_hour=360.0)  # ten cents a second, and two minutes must be there
    play.submit(done_at(2), places=(dear,), budget_usd=12.05, grace_s=0.0)
    seen: set[str] = set()
    for _ in play.turns():
        if play.fresh(seen):
            play.bench.wait(2.0)
            warn(play.bench, *seen)
    job = play.job
    assert (job.phase, len(seen)) == (Phase.FAILED, 1)
    assert "the rest pays for" in job.reason
    play.nothing_is_left()


def test_with_its_controller_dead_a_machine_keeps_to_the_budget(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_choice, "LEAST_MINUTES", 0.2)
    play.submit(python(WAITS), budget_usd=0.015, grace_s=158.0)  # three minutes, of which two seconds are to work
    for _ in play.turns():
        if play.bench.hall.instances():
            break
    end = deadline(40)
    while any(one.state == "running" for one in play.bench.hall.instances()):
        assert time.monotonic() < end, play.job
        play.bench.wait(0.1)
    [machine] = play.bench.hall.instances()
    assert play.bench.hall.shutdowns(machine.id) == ["-h +3", "-c", "-h +3", "-h now"]
    controller = Controller(play.record, play.bench.again(), "two")
    controller.turn(play.bench.now() + 60.0)
    assert (play.job.attempts[0].outcome, play.job.attempts[0].reason) == (Outcome.LEFT, "its time or money is used up")


def test_what_ec2_will_not_end_ends_itself(play: Play) -> None:
    play.submit(python(WAITS))
    for _ in play.turns():
        if play.fresh(set()):
            break
    job = play.job
    play.bench.between.faults.append(Fault("TerminateInstances", 503, "RequestLimitExceeded"))
    with pytest.raises(TryLater):
        play.bench.engine.do(End(job))
    end = deadline(30)
    while any(one.state == "running" for one in play.bench.hall.instances()):
        assert time.monotonic() < end
        play.bench.wait(0.1)
    play.bench.between.faults.clear()
    play.bench.engine.do(End(job))
    [machine] = play.bench.hall.processes
    assert play.bench.hall.of(machine) == []


@pytest.mark.parametrize("seed", range(5))
def test_whatever_request_fails_a_job_runs_once_and_nothing_is_left(play: Play, seed: int) -> None:
    """One request of four is throttled, fails, or is cut off before or after it was heard."""
    play.submit(python("import time; time.sleep(0.3)"), places=(SPOT, STAYS))
    play.bench.between.storm = Random(seed)
    for _ in play.turns():
        pass
    assert (play.job.phase, [one.outcome for one in play.job.attempts]) == (Phase.DONE, [Outcome.DONE])
    assert len(play.bench.between.asked) > 10
    play.bench.between.storm = None
    assert [one.state for one in play.bench.hall.instances()] == ["terminated"]
    assert isinstance(play.bench.engine, Ec2)
    play.bench.engine.reap(list)
    play.nothing_is_left()
