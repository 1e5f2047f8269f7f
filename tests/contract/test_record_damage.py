"""A row that cannot be read, in a real SQLite and a real PostgreSQL: it is made again from its events, or told, and no other
job waits for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from chipwise.adapters.engines.simulated.engine import Simulated
from chipwise.adapters.engines.simulated.world import Program, World
from chipwise.adapters.stores.record import connect
from chipwise.runner.events import Begun, Over, Placed, Told, Wished
from chipwise.runner.job import Job, MachinePlace, Needs, Phase, Spec, Wish
from chipwise.runner.loop import Controller
from chipwise.runner.record import Change, Damaged, Record, Stale, Unread, Wanted
from chipwise.runner.writing import job_text
from record_harm import Harm, harm_to

PLACE = "simulated"
BROKEN = ("", "{", "[]", '{"id": 3, "spec": [', '{"id":"other","spec":{"command":[],"name":"x"},"submitted":1.0,"version":1}')


def spec(name: str, **needs: int) -> Spec:
    return Spec(("true",), name, engine="simulated", place=PLACE, needs=Needs(**needs))


@pytest.fixture
def harm(url: str) -> Harm:
    return harm_to(url)


def damage(harm: Harm, id: str) -> None:
    harm("jobs", f"body = '{{' WHERE id = '{id}'")
    harm("events", f"body = '[' WHERE job = '{id}' AND version = 1")


def moved(record: Record, job: Job) -> Job:
    [answer] = record.write([Change(job, (Placed(1, MachinePlace(), (0,), (0, 1)), Begun(1, "h")))], 2.0)
    assert isinstance(answer, Job)
    return answer


@pytest.mark.parametrize("body", BROKEN)
def test_a_row_that_cannot_be_read_is_made_again_from_its_events(stored: Record, harm: Harm, body: str) -> None:
    job, other = stored.submit([("a", spec("a")), ("b", spec("b"))], 1.0)
    job = moved(stored, job)
    harm("jobs", f"body = '{body}' WHERE id = 'a'")
    assert stored.job("a") == job
    assert stored.damaged(Wanted()) == []
    assert {one.id: one for one in stored.changed(0, PLACE, 10)[0]} == {"a": job, "b": other}
    [after] = stored.write([Change(job, (Wished(Wish.STOP),))], 3.0)
    assert stored.job("a") == after, "whoever writes it next mends it"


def test_a_row_of_an_older_version_than_its_column_is_not_believed(stored: Record, harm: Harm) -> None:
    """It could never be written again: each change would be refused as stale."""
    [job] = stored.submit([("a", spec("a"))], 1.0)
    late = moved(stored, job)
    harm("jobs", f"body = '{job_text(job)}' WHERE id = 'a'")
    assert stored.job("a") == late


def test_one_that_its_events_do_not_give_either_is_told_with_a_remedy_and_the_others_are_read(
    stored: Record, harm: Harm
) -> None:
    job, other = stored.submit([("a", spec("a", gpus=1)), ("b", spec("b"))], 1.0)
    moved(stored, job)
    damage(harm, "a")
    with pytest.raises(Unread, match=r"The database row of a is damaged: neither its row .* nor its events") as told:
        stored.job("a")
    assert "chipwise forget a --damaged" in str(told.value)
    assert stored.jobs(Wanted()) == [other]
    [one] = stored.damaged(Wanted())
    assert (one.id, one.version, one.job.phase, len(one.job.attempts)) == ("a", 3, Phase.RUNNING, 1)
    found, _ = stored.changed(0, PLACE, 10)
    assert [(type(each), each.id) for each in found] == [(Job, "b"), (Damaged, "a")]
    assert {row.id: row.phase for row in stored.rows(Wanted())} == {"a": Phase.RUNNING, "b": Phase.QUEUED}


def test_an_event_that_cannot_be_read_is_told_in_its_place(stored: Record, harm: Harm) -> None:
    [job] = stored.submit([("a", spec("a"))], 1.0)
    moved(stored, job)
    harm("events", "body = '[' WHERE job = 'a' AND version = 2")
    story = [one.event for one in stored.events("a")]
    assert [type(one).__name__ for one in story] == ["Submitted", "Told", "Begun"]
    assert isinstance(story[1], Told)
    assert "cannot be read" in story[1].text
    assert stored.job("a") is not None, "its row is whole"


def test_one_that_is_given_up_is_over_and_its_hours_end(stored: Record, harm: Harm) -> None:
    [job] = stored.submit([("a", spec("a"))], 1.0)
    moved(stored, job)
    damage(harm, "a")
    [one] = stored.damaged(Wanted())
    over = stored.give_up(one, "given up", 60.0)
    assert stored.job("a") == over
    assert (over.phase, over.ended, over.reason, over.version) == (Phase.FAILED, 60.0, "given up", 4)
    assert [use.ended for use in stored.uses(0.0, 1e9)] == [60.0]
    assert stored.events("a")[-1].event == Over(Phase.FAILED, "given up")
    with pytest.raises(Stale):
        stored.give_up(one, "given up again", 61.0)


def test_a_controller_leads_the_others_and_leaves_what_is_damaged_alone(stored: Record, harm: Harm) -> None:
    """Neither started a second time, nor cleared as a stray, nor its devices given to another."""
    engine = Simulated(World(gpus=2, cpus=4, other=Program(60, 10.0, 2)))
    controller = Controller(stored, engine, "me")
    stored.submit([("a", spec("a", gpus=1)), ("late", Spec(("true",), "late", "simulated", PLACE, after=("a",)))], 0.0)
    controller.turn(0.0)
    controller.turn(10.0)
    damage(harm, "a")
    stored.submit([("b", spec("b", gpus=1)), ("c", spec("c", gpus=1))], 20.0)
    turns = []
    following = Controller(stored, engine, "next")
    for one in (controller, following):  # the first knew it before, the second never did
        turns += [one.turn(at) for at in (20.0, 40.0, 60.0)]
        one.resign()
        assert [(stay.handle, stay.lives) for stay in engine.history] == [("a/1", True), ("b/1", True)]
    devices = [set(stay.attempt.devices) for stay in engine.history]
    assert devices[0].isdisjoint(devices[1])
    assert [one.job.phase for one in stored.damaged(Wanted())] == [Phase.RUNNING]
    assert all("The database row of a is damaged" in turn.trouble[0] and turn.live for turn in turns[3:])
    late = stored.job("late")
    assert late is not None
    assert late.waiting == "a, which comes before, cannot be read in the database"
    [left] = stored.damaged(Wanted())
    stored.give_up(left, "given up", 70.0)
    following.turn(80.0)
    assert [stay.lives for stay in engine.history][:2] == [False, True], "given up, it is a stray"
    assert (late := stored.job("late")) is not None
    assert late.phase is Phase.FAILED


@pytest.mark.parametrize("version", [-1, 0, 1, 2, 99, 2**62])
def test_a_wrong_version_is_told_starts_nothing_and_can_be_given_up(stored: Record, harm: Harm, version: int) -> None:
    """By the events up to a lower one it would wait in the queue, and be started a second time."""
    job, other = stored.submit([("a", spec("a")), ("b", spec("b"))], 1.0)
    moved(stored, job)
    harm("jobs", f"version = {version} WHERE id = 'a'")
    assert stored.jobs(Wanted()) == [other]
    [one] = stored.damaged(Wanted())
    assert (one.job.phase, len(one.job.attempts)) == (Phase.RUNNING, 1)
    over = stored.give_up(one, "given up", 60.0)
    assert stored.job("a") == over
    assert over.version > max(version if version < 2**53 else 0, 3), "one beyond all measure counts for nothing"
    assert stored.events("a")[-1].event == Over(Phase.FAILED, "given up")


def test_a_row_older_than_its_events_keeps_no_other_job_waiting_and_is_not_started_again(stored: Record, harm: Harm) -> None:
    """As when a part of a file was put back: each change of it is refused, since what happened is never overwritten."""
    engine = Simulated(World(cpus=4, other=Program(60, 10.0, 2)))
    controller = Controller(stored, engine, "me")
    [job] = stored.submit([("a", spec("a"))], 0.0)
    controller.turn(0.0)
    controller.turn(10.0)
    controller.resign()
    harm("jobs", f"version = 1, phase = 'queued', attempts = 0, body = '{job_text(job)}' WHERE id = 'a'")
    stored.submit([("b", spec("b"))], 20.0)
    following = Controller(stored, engine, "next")
    turns = [following.turn(at) for at in (20.0, 30.0)]
    assert all(one.startswith("a: The database") for turn in turns for one in turn.trouble)
    assert all(turn.trouble for turn in turns)
    assert (other := stored.job("b")) is not None
    assert other.phase is Phase.RUNNING
    assert [stay.handle for stay in engine.history if stay.handle.startswith("a")] == ["a/1"]


@pytest.mark.parametrize("attempts", [2**62, -7])
def test_a_number_of_attempts_that_no_job_had_is_that_of_its_machine_hours(stored: Record, harm: Harm, attempts: int) -> None:
    [job] = stored.submit([("a", spec("a"))], 1.0)
    moved(stored, job)
    damage(harm, "a")
    harm("jobs", f"attempts = {attempts} WHERE id = 'a'")
    [one] = stored.damaged(Wanted())
    assert len(one.job.attempts) == 1


@pytest.fixture
def in_a_file(tmp_path: Path) -> Iterator[tuple[Record, Harm]]:
    """What PostgreSQL does not keep at all: a text that is none, a number that is a text."""
    url = f"sqlite://{tmp_path / 'jobs.db'}"
    record = connect(url)
    record.submit([("a", spec("a")), ("b", spec("b"))], 1.0)
    yield record, harm_to(url)
    record.close()


def test_a_half_written_text_hides_no_other_row(in_a_file: tuple[Record, Harm]) -> None:
    record, harm = in_a_file
    harm("jobs", "body = CAST(X'7BFFFE' AS TEXT), reason = CAST(X'FF' AS TEXT) WHERE id = 'a'")
    assert sorted(job.id for job in record.jobs(Wanted())) == ["a", "b"]
    assert {row.id: row.reason for row in record.rows(Wanted())} == {"a": "?", "b": ""}
    harm("events", "body = CAST(X'7BFFFE' AS TEXT) WHERE job = 'a'")
    assert [one.id for one in record.damaged(Wanted())] == ["a"]
    assert [type(one.event) for one in record.events("a")] == [Told]


@pytest.mark.parametrize(
    ("table", "change"),
    [("events", "body = X'7B'"), ("events", "at = 'x'"), ("events", "kind = X'00'"), ("jobs", "version = 'x'")],
)
def test_whatever_a_row_holds_only_its_job_is_damaged(in_a_file: tuple[Record, Harm], table: str, change: str) -> None:
    record, harm = in_a_file
    harm("jobs", "body = 'x' WHERE id = 'a'")
    harm(table, f"{change} WHERE {'job' if table == 'events' else 'id'} = 'a'")
    assert [one.id for one in record.damaged(Wanted())] == ["a"]
    assert [job.id for job in record.jobs(Wanted())] == ["b"]
    assert [one.id for one in record.changed(0, PLACE, 10)[0]] == ["a", "b"]
    assert all(isinstance(str(one.event), str) for one in record.events("a"))


@pytest.mark.parametrize("change", ["phase = 'gone'", "submitted = 'x'", "gpus = X'00'", "ended = 'never'", "reason = X'FF'"])
def test_a_list_is_shown_whatever_a_column_holds(in_a_file: tuple[Record, Harm], change: str) -> None:
    record, harm = in_a_file
    harm("jobs", f"{change} WHERE id = 'a'")
    found = {row.id: row for row in record.rows(Wanted())}
    assert found.keys() == {"a", "b"}
    assert found["a"].phase is (Phase.RUNNING if "phase" in change else Phase.QUEUED)
    assert isinstance(found["a"].submitted, float)
    assert isinstance(found["a"].gpus, int)
    assert isinstance(found["a"].reason, str)


@pytest.mark.parametrize("change", ["version = 'x'", "name = CAST(X'006100' AS TEXT)", "reason = CAST(X'00' AS TEXT)"])
def test_one_can_be_given_up_whatever_its_columns_hold(in_a_file: tuple[Record, Harm], change: str) -> None:
    record, harm = in_a_file
    damage(harm, "a")
    harm("jobs", f"{change} WHERE id = 'a'")
    [one] = record.damaged(Wanted())
    assert record.give_up(one, "given up", 60.0) == record.job("a")
    assert {row.id: row.phase for row in record.rows(Wanted())} == {"a": Phase.FAILED, "b": Phase.QUEUED}


def test_an_event_without_a_time_is_told_at_the_beginning_of_time(in_a_file: tuple[Record, Harm]) -> None:
    record, harm = in_a_file
    harm("events", "at = 'never' WHERE job = 'a'")
    assert [one.moment for one in record.events("a")] == [0.0]
