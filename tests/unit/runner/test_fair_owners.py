"""Devices of one place between owners: what one of them asks for does not keep the others waiting."""

from __future__ import annotations

from typing import Any

import pytest

from chipwise.adapters.engines.simulated.engine import Simulated
from chipwise.adapters.engines.simulated.world import Program, World
from chipwise.adapters.stores.memory_record import MemoryRecord
from chipwise.runner.engine import Room
from chipwise.runner.events import Again, Ended
from chipwise.runner.job import Job, MachinePlace, Needs, Outcome, Phase, Retry, Spec
from chipwise.runner.loop import Controller
from chipwise.runner.queue import MOST_WITHOUT_DEVICES, Rules, Share, admit, why_waiting
from chipwise.runner.record import Wanted
from run_jobs import added, asking, running

ONE = Room((), (0,))
WORLD = World(gpus=0, cpus=1, other=Program(1, 1.0))


def order(jobs: list[Job], now: float = 10.0, rules: Rules | None = None) -> list[str]:
    """In which they get the one CPU, each ending at once."""
    started: list[str] = []
    served: dict[tuple[str, str], float] = {}
    rules = rules or Rules()
    while jobs:
        [seat] = admit(jobs, ONE, Rules(rules.teams, rules.default_share, rules.patience_s, served), now)
        started.append(seat.job.id)
        jobs = [job for job in jobs if job.id != seat.job.id]
        served[seat.job.spec.team, seat.job.spec.owner] = now
        now += 1.0
    return started


def failed(job: Job, at: float) -> Job:
    ended = added(running(job, MachinePlace(), cpus=(0,), at=at), Ended(1, Outcome.FAILED, 1), at=at)
    return added(ended, Again(at, "failed"), at=at)


def test_a_job_that_failed_waits_behind_the_jobs_of_others() -> None:
    again = failed(asking("bobs", at=0.0, owner="bob"), at=9.0)
    assert order([again, asking("vics", at=5.0, owner="vic")]) == ["vics", "bobs"]


def test_a_job_that_failed_keeps_its_place_among_those_of_its_owner() -> None:
    again = failed(asking("first", at=0.0, owner="bob"), at=9.0)
    assert order([again, asking("second", at=5.0, owner="bob")]) == ["first", "second"]


@pytest.mark.parametrize("priority", [1, 1000, 2**53])
def test_priority_counts_between_jobs_of_one_owner_alone(priority: int) -> None:
    jobs = [asking(f"bob{n}", at=float(n), owner="bob", priority=n * priority) for n in range(3)]
    assert order([*jobs, asking("vic", at=1.0, owner="vic")]) == ["vic", "bob2", "bob1", "bob0"]


def test_many_jobs_of_one_owner_take_turns_with_those_of_others() -> None:
    many = [asking(f"bob{n}", at=0.0, owner="bob") for n in range(5)]
    few = [asking(f"vic{n}", at=5.0, owner="vic") for n in range(2)]
    assert order(many + few) == ["bob0", "vic0", "bob1", "vic1", "bob2", "bob3", "bob4"]


def test_owners_share_what_their_team_may_hold() -> None:
    rules = Rules({"a": Share(), "b": Share()})
    jobs = [asking(f"{owner}{n}", at=0.0, owner=owner, team="a") for owner in ("bob", "mia") for n in range(2)]
    jobs += [asking(f"vic{n}", at=9.0, owner="vic", team="b") for n in range(2)]
    seats = admit(jobs, Room((), (0, 1, 2, 3)), rules, 10.0)
    assert [seat.job.id for seat in seats] == ["bob0", "vic0", "mia0", "vic1"]


EIGHT = Room((), tuple(range(8)))


def held_back(*holders: Job) -> int:
    """How many of seven CPUs another owner gets, where a job for all eight has waited for longer than the patience."""
    jobs = [*holders, asking("big", at=0.0, owner="bob", cpus=8)]
    jobs += [asking(f"vic{n}", at=5.0, owner="vic") for n in range(7)]
    return sum(seat.job.spec.owner == "vic" for seat in admit(jobs, EIGHT, Rules(), 4000.0))


def holder(owner: str, **asked: Any) -> Job:
    return running(asking("holder", at=0.0, owner=owner, **asked), MachinePlace(), cpus=(0,), at=0.0)


def test_nothing_is_kept_for_a_job_that_waits_for_another_of_its_owner() -> None:
    assert held_back(holder("bob")) == 7
    assert held_back(holder("bob", expected_s=1.0)) == 7  # and was over long ago, if that were so


def test_nothing_is_kept_for_a_job_whose_owner_did_not_keep_to_what_they_said() -> None:
    lies, known = holder("bob", expected_s=1.0), asking("known", at=0.0, owner="vic", longest_s=100.0)
    jobs = [lies, running(known, MachinePlace(), cpus=(1,), at=3990.0), asking("big", at=10.0, owner="bob", cpus=8)]
    jobs += [asking(f"vic{n}", at=5.0, owner="vic") for n in range(6)]
    assert len(admit(jobs, EIGHT, Rules(), 4000.0)) == 6
    assert len(admit([holder("bob", longest_s=4050.0), *jobs[1:]], EIGHT, Rules(), 4000.0)) < 6  # who keeps to it is served


def test_nothing_is_kept_for_a_job_that_waits_for_a_service() -> None:
    assert held_back(holder("ann", service=True)) == 7


def test_devices_are_kept_for_a_job_that_waits_for_those_of_others() -> None:
    assert held_back(holder("ann")) < 7


def test_jobs_without_devices_start_a_bounded_number_at_a_time() -> None:
    many = [asking(f"bob{n}", at=float(n), owner="bob", cpus=0) for n in range(5000)]
    seats = admit([*many, asking("vic", at=6000.0, owner="vic", cpus=0)], EIGHT, Rules(), 9000.0)
    assert len(seats) == MOST_WITHOUT_DEVICES
    assert {seat.job.spec.owner for seat in seats} == {"bob", "vic"}
    placed = [running(seat.job, MachinePlace(), at=9000.0) for seat in seats]
    waits = asking("late", at=6000.0, owner="vic", cpus=0)
    jobs = [*placed, waits, asking("with", at=6000.0, owner="vic")]
    assert [seat.job.id for seat in admit(jobs, EIGHT, Rules(), 9001.0)] == ["with"]
    assert why_waiting(waits, jobs, EIGHT, Rules(), 9001.0).startswith("64 jobs without devices run here at once, and no more")
    assert [seat.job.id for seat in admit([*placed[1:], waits], EIGHT, Rules(), 9001.0)] == ["late"]


def test_jobs_that_are_over_count_as_a_turn_of_their_owner() -> None:
    """A thousand short jobs of one owner, submitted first, and one job of another."""
    record = MemoryRecord()
    specs = [(f"bob{n:03}", Spec(("true",), "b", place=WORLD.place, owner="bob", needs=Needs(0, 1))) for n in range(20)]
    record.submit(specs, 0.0)
    record.submit([("vic", Spec(("true",), "v", place=WORLD.place, owner="vic", needs=Needs(0, 1)))], 1.0)
    controller = Controller(record, Simulated(WORLD), "a")
    now = 2.0
    while (vic := record.job("vic")) is not None and not vic.attempts and now < 200.0:
        controller.turn(now)
        now += 1.0
    begun = [row for row in record.rows(Wanted(owner="bob")) if row.phase is not Phase.QUEUED]
    assert vic is not None
    assert vic.attempts
    assert len(begun) <= 2


@pytest.mark.parametrize("retry", [Retry(failures=100, wait_s=0.0), Retry(failures=100, wait_s=0.0, longest_wait_s=0.0)])
def test_between_two_attempts_of_a_failing_job_there_is_a_wait(retry: Retry) -> None:
    from chipwise.runner import recovery
    from chipwise.runner.engine import Sight, State

    job = running(asking("bobs", owner="bob", retry=retry), MachinePlace(), cpus=(0,), at=5.0)
    for event in recovery.after_end(job, Sight(State.EXITED, 1, until=6.0), 6.0):
        job = added(job, event, at=6.0)
    assert job.phase is Phase.QUEUED
    assert job.ready_at(6.0) == 7.0
