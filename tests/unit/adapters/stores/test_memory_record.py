"""The record in memory keeps the laws of every record."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.adapters.stores.memory_record import MemoryRecord
from chipwise.errors import BadInput
from chipwise.runner.events import Begun, Ended, Impossible, Over, Placed, Waiting, after
from chipwise.runner.job import Job, MachinePlace, Outcome, Phase, Spec
from chipwise.runner.record import Change, Deposed, Lease, Record, Stale, Wanted
from run_jobs import STAYS, queued, spec


def here(name: str, **asked: object) -> Spec:
    return spec(name, place="here", **asked)


def filled(*ids: str) -> tuple[MemoryRecord, list[Job]]:
    record = MemoryRecord()
    return record, record.submit([(id, here(id)) for id in ids], 1.0)


def test_it_is_a_record() -> None:
    record: Record = MemoryRecord()
    assert record.rows(Wanted()) == []


def test_jobs_are_submitted_all_or_none() -> None:
    record, _ = filled("b")
    for ids in (("a", "b"), ("c", "c")):
        with pytest.raises(Stale):
            record.submit([(id, here(id)) for id in ids], 2.0)
    assert [row.id for row in record.rows(Wanted())] == ["b"]


def test_a_change_on_an_old_view_is_left_out_and_the_others_stand() -> None:
    record, [a, b] = filled("a", "b")
    record.write([Change(a, (Waiting("x"),))], 2.0)
    stale, good, gone = record.write(
        [Change(a, (Waiting("late"),)), Change(b, (Waiting("y"),)), Change(queued("z"), (Waiting("z"),))], 3.0
    )
    assert isinstance(stale, Stale)
    assert isinstance(gone, Stale)
    assert record.job("b") == good
    assert [one.event for one in record.events("a")][1:] == [Waiting("x")]


def test_one_job_can_be_changed_twice_in_one_call_if_the_second_knows_the_first() -> None:
    record, [a] = filled("a")
    second = after(a, Waiting("x"), 2.0)
    answers = record.write([Change(a, (Waiting("x"),)), Change(second, (Waiting("y"),)), Change(a, (Waiting("z"),))], 2.0)
    assert [isinstance(answer, Stale) for answer in answers] == [False, False, True]
    assert record.job("a") == answers[1]


def test_an_impossible_event_writes_nothing_of_its_call() -> None:
    record, [a, b] = filled("a", "b")
    with pytest.raises(Impossible):
        record.write([Change(a, (Waiting("x"),)), Change(b, (Waiting("x"), Begun(1)))], 2.0)
    assert [record.job("a"), record.job("b")] == [a, b]


def test_a_lease_is_held_by_one_and_its_number_grows_with_every_change() -> None:
    record, [a] = filled("a")
    one = record.lead("here", "one", 0.0, 10.0)
    assert one == Lease("here", "one", 1, 10.0)
    assert record.lead("here", "two", 9.0, 10.0) is None
    assert record.lead("here", "one", 9.0, 10.0) == Lease("here", "one", 1, 19.0)
    two = record.lead("here", "two", 19.0, 10.0)
    assert two is not None
    assert two.epoch == 2
    with pytest.raises(Deposed, match="two does"):
        record.write([Change(a, (Waiting("late"),))], 20.0, one)
    record.resign(two)
    assert record.leader("here") is None
    again = record.lead("here", "one", 20.0, 10.0)
    assert again is not None
    assert again.epoch == 3
    with pytest.raises(BadInput):
        record.lead("here", "", 0.0, 1.0)


def read_all(record: MemoryRecord, most: int, mark: int | str = 0) -> tuple[list[str], int | str]:
    seen: list[str] = []
    while True:
        found, mark = record.changed(mark, "here", most)
        seen += [job.id for job in found]
        if len(found) < most:
            return seen, mark


@given(st.integers(1, 9))
def test_a_reader_of_changes_gets_each_job_once_in_order(most: int) -> None:
    record, jobs = filled(*"abcdef")
    record.submit([("far", spec("far", place="there"))], 1.0)
    for old in (jobs[0], jobs[4]):
        record.write([Change(old, (Over(Phase.DONE, ""),))], 2.0)
    record.write([Change(jobs[1], (Waiting("x"),))], 2.0)
    found, mark = read_all(record, most)
    assert found == ["c", "d", "f", "b"]
    assert read_all(record, most, mark) == ([], mark)
    record.write([Change(jobs[3], (Over(Phase.DONE, ""),))], 3.0)
    assert read_all(record, most, mark)[0] == ["d"]


def test_a_job_that_ends_while_it_is_first_read_is_told() -> None:
    record, jobs = filled(*"abcd")
    seen, mark = record.changed(0, "here", 2)
    assert [job.id for job in seen] == ["a", "b"]
    for old in (jobs[0], jobs[3]):
        record.write([Change(old, (Over(Phase.DONE, ""),))], 2.0)
    rest, mark = record.changed(mark, "here", 10)
    assert [job.id for job in rest] == ["c", "a", "d"]
    assert record.changed(mark, "here", 10) == ([], mark)


def test_jobs_are_found_by_what_is_asked_for_the_newest_first() -> None:
    record = MemoryRecord()
    for n, owner in enumerate(("ann", "bob", "ann")):
        record.submit([(f"id-{n}", here(f"n{n}", owner=owner, team="t"))], float(n))
    assert [row.id for row in record.rows(Wanted(owner="ann"))] == ["id-2", "id-0"]
    assert [row.id for row in record.rows(Wanted(newest=2))] == ["id-2", "id-1"]
    assert [row.id for row in record.rows(Wanted(name="n1"))] == ["id-1"]
    assert [row.id for row in record.rows(Wanted(name="id"))] == ["id-2", "id-1", "id-0"]
    assert record.rows(Wanted(phases=frozenset({Phase.DONE}))) == []
    assert record.rows(Wanted(team="u")) == []


def test_machine_hours_are_listed_from_when_machines_came() -> None:
    record, [a, b] = filled("a", "b")
    ran = (Placed(1, STAYS), Begun(1, at=20.0, held=15.0), Ended(1, Outcome.LOST, at=50.0))
    record.write([Change(a, ran), Change(b, (Placed(1, MachinePlace()),))], 10.0)
    [use] = record.uses(0.0, 100.0)
    assert (use.job, use.placed, use.ended, use.usd_per_hour) == ("a", 15.0, 50.0, 1.0)
    assert record.uses(50.0, 100.0) == []
    assert record.uses(0.0, 15.0) == []
