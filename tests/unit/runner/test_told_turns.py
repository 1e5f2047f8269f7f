"""Why jobs wait, as their controller records it where people see only a part of the queue."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import pytest

from chipwise.adapters.engines.simulated.engine import Simulated
from chipwise.adapters.engines.simulated.world import Program, World
from chipwise.adapters.stores.memory_record import MemoryRecord
from chipwise.runner.engine import Room
from chipwise.runner.events import Waiting
from chipwise.runner.job import Job, Lack, Needs, Phase, Spec
from chipwise.runner.loop import SAYS_EVERY_S, SAYS_PLACES, Controller
from chipwise.runner.permits import Permit
from chipwise.runner.queue import NEXT, Rules
from chipwise.runner.record import Wanted
from chipwise.runner.story import event_sentence
from run_jobs import spec

PLACE = "simulated"
ALL = Permit(may_submit=True, secrets=None)


class Shared(MemoryRecord):
    """A record of several people, each with a login."""

    def __init__(self) -> None:
        super().__init__()
        self.refused: set[str] = set()

    def permits(self, place: str, owners: Collection[str]) -> dict[str, Permit]:  # type: ignore[override]
        return {owner: Permit(may_submit=False) if owner in self.refused else ALL for owner in owners}


def asked(owner: str, **more: object) -> Spec:
    return replace(spec(owner, needs=Needs(0, 1), **more), owner=owner, place=PLACE)


@pytest.fixture
def record() -> Shared:
    return Shared()


def controller(record: Shared) -> Controller:
    return Controller(record, Simulated(World(gpus=0, cpus=2, other=Program(1000, 10.0))), "a")


def job(record: Shared, id: str) -> Job:
    found = record.job(id)
    assert found is not None
    return found


def test_one_who_sees_only_his_own_jobs_reads_how_many_are_ahead(record: Shared) -> None:
    record.submit([(f"mia{n}", asked("mia")) for n in range(5)], 0.0)
    record.submit([("eva0", asked("eva")), ("eva1", asked("eva"))], 1.0)
    controller(record).turn(2.0)
    assert [job(record, f"mia{n}").phase for n in range(5)] == [Phase.STARTING] + [Phase.QUEUED] * 4
    assert job(record, "eva0").phase is Phase.STARTING
    short = "1 CPU is needed, and 0 of 2 are free"
    assert (job(record, "eva1").waiting, job(record, "eva1").lack) == (f"{short}; 1 job ahead", Lack.TURN)
    assert job(record, "mia2").waiting == f"{short}; 2 jobs ahead"
    [row] = record.rows(Wanted(name="eva1"))
    assert row.reason == job(record, "eva1").waiting


def test_the_reason_is_recorded_when_it_changes_and_is_no_part_of_the_story(record: Shared) -> None:
    leads = controller(record)
    record.submit([(f"mia{n}", asked("mia")) for n in range(3)], 0.0)
    for now in range(40):
        leads.turn(float(now))
    told = [one.event for one in record.events("mia2") if isinstance(one.event, Waiting)]
    assert told == [Waiting("1 CPU is needed, and 0 of 2 are free", Lack.TURN)]
    assert event_sentence(told[0]) == ""


def test_far_behind_only_that_is_said(record: Shared) -> None:
    record.submit([(f"mia{n:03}", asked("mia")) for n in range(SAYS_PLACES + 10)], 0.0)
    controller(record).turn(2.0)
    assert job(record, f"mia{SAYS_PLACES + 9:03}").waiting == f"{SAYS_PLACES} or more jobs ahead"


def test_a_right_that_is_given_again_ends_the_waiting_for_it(record: Shared) -> None:
    leads = controller(record)
    record.submit([("mia0", asked("mia")), ("mia1", asked("mia")), ("eva", asked("eva"))], 0.0)
    record.refused = {"eva"}
    leads.turn(1.0)
    assert job(record, "eva").lack is Lack.PERMIT
    assert "eva may not run jobs" in job(record, "eva").waiting
    record.refused = set()
    leads.turn(2.0)
    assert "may not" not in job(record, "eva").waiting
    leads.turn(2.0 + SAYS_EVERY_S)
    assert job(record, "eva").waiting == "1 CPU is needed, and 0 of 2 are free"


def test_what_only_the_controller_can_know_is_not_reckoned_from_a_part(record: Shared) -> None:
    from chipwise.api.running import jobs
    from chipwise.runner.waiting import UNSAID

    record.login = "eva"
    record.submit([("eva", asked("eva"))], 0.0)
    room = Room((), (0, 1))
    described = jobs.describe(record, job(record, "eva"), room, Rules())
    assert described.waiting == UNSAID
    record.refused = {"eva"}
    controller(record).turn(1.0)
    described = jobs.describe(record, job(record, "eva"), room, Rules())
    assert "eva may not run jobs" in described.waiting
    record.login = ""
    other = job(record, "eva")
    assert jobs.describe(record, replace(other, waiting="", lack=None), room, Rules()).waiting == NEXT
