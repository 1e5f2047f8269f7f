"""What every record of jobs keeps to: one suite over memory, SQLite and PostgreSQL."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import run_values
from chipwise.catalog.offer import Purchase
from chipwise.errors import BadInput
from chipwise.runner.events import (
    Begun,
    Ended,
    Event,
    Impossible,
    Measured,
    Over,
    Placed,
    Submitted,
    Told,
    Waiting,
    Wished,
    after,
)
from chipwise.runner.events import first as first_of
from chipwise.runner.job import Job, MachinePlace, Needs, Outcome, Phase, Spec, Wish
from chipwise.runner.record import Change, Happened, Mark, Record, Stale, Wanted
from effort import cases

SPEC = Spec(("python", "train.py"), "train", place="here", owner="alice", team="vision", project="p", needs=Needs(1, 4))
_ids = itertools.count()
shared = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=cases(25))


def submitted(record: Record, *ids: str, at: float = 1.0, spec: Spec = SPEC) -> list[Job]:
    return record.submit([(id, spec) for id in ids], at)


def written(record: Record, job: Job, *events: Event, at: float = 2.0) -> Job:
    [answer] = record.write([Change(job, events)], at)
    assert isinstance(answer, Job)
    return answer


def folded(events: list[Happened]) -> Job:
    begin = events[0]
    assert isinstance(begin.event, Submitted)
    job = first_of(begin.job, begin.event, begin.moment)
    for one in events[1:]:
        job = after(job, one.event, one.moment)
    return job


def test_a_submitted_job_is_found_again(record: Record) -> None:
    jobs = submitted(record, "a", "b")
    assert [record.job("a"), record.job("b")] == jobs
    assert record.job("c") is None
    assert record.submit([], 1.0) == []


def test_jobs_are_submitted_all_or_none(record: Record) -> None:
    submitted(record, "b")
    with pytest.raises(Stale, match="Job b is in the database already"):
        submitted(record, "a", "b", "c")
    with pytest.raises(Stale, match="One id was given to two jobs"):
        submitted(record, "d", "d")
    assert [row.id for row in record.rows(Wanted())] == ["b"]


def test_a_change_on_an_old_view_is_left_out_and_the_others_stand(record: Record) -> None:
    a, b = submitted(record, "a", "b")
    newer = written(record, a, Waiting("no room"))
    stale, good, gone = record.write(
        [Change(a, (Told(0, "late"),)), Change(b, (Told(0, "x"),)), Change(replace(a, id="z"), ())], 3
    )
    assert isinstance(stale, Stale)
    assert str(stale) == "Job a was changed by another program: it has version 2, not 1."
    assert isinstance(gone, Stale)
    assert (record.job("a"), record.job("b")) == (newer, good)
    assert [one.event for one in record.events("a")][1:] == [Waiting("no room")]


def test_one_job_can_be_changed_twice_in_one_call_if_the_second_knows_the_first(record: Record) -> None:
    [job] = submitted(record, "a")
    second = after(job, Waiting("x"), 2.0)
    answers = record.write([Change(job, (Waiting("x"),)), Change(second, (Waiting("y"),)), Change(job, (Waiting("z"),))], 2.0)
    assert [isinstance(answer, Stale) for answer in answers] == [False, False, True]
    assert record.job("a") == answers[1] == folded(record.events("a"))


def test_no_events_change_nothing(record: Record) -> None:
    [job] = submitted(record, "a")
    assert record.write([Change(job, ())], 2.0) == [job]
    assert record.write([], 2.0) == []
    assert len(record.events("a")) == 1


def test_an_impossible_event_writes_nothing_of_its_call(record: Record) -> None:
    a, b = submitted(record, "a", "b")
    with pytest.raises(Impossible):
        record.write([Change(a, (Waiting("x"),)), Change(b, (Waiting("x"), Begun(1)))], 2.0)
    assert [record.job("a"), record.job("b")] == [a, b]


@shared
@given(run_values.stories())
def test_adding_up_the_events_gives_the_job_that_is_stored(
    record: Record, story: tuple[Spec, list[tuple[float, tuple[Event, ...]]]]
) -> None:
    spec, groups = story
    [job] = record.submit([(f"s-{next(_ids)}", spec)], 5.0)
    for at, events in groups:
        job = written(record, job, *events, at=at)
    happened = record.events(job.id)
    assert record.job(job.id) == job == folded(happened)
    assert job.version == len(happened)
    numbers = [one.number for one in happened]
    assert numbers == sorted(set(numbers))
    [row] = [row for row in record.rows(Wanted(name=job.id)) if row.id == job.id]
    last = job.attempt
    assert (row.phase, row.attempts, row.submitted, row.ended) == (job.phase, len(job.attempts), 5.0, job.ended)
    assert (row.begun, row.priority, row.owner) == (last.begun if last else None, spec.priority, spec.owner)


def test_events_can_be_read_from_a_number_on(record: Record) -> None:
    [job] = submitted(record, "a")
    submitted(record, "b")
    job = written(record, job, Told(0, "x"), Told(0, "y"))
    happened = record.events("a")
    assert record.events("a", after=happened[1].number) == happened[2:]
    assert record.events("none") == []
    assert {one.job for one in happened} == {"a"}


def test_lists_have_the_newest_first_and_only_what_is_asked_for(record: Record) -> None:
    for number in range(4):
        other = replace(SPEC, name=f"n{number}", owner="ab"[number % 2], team=f"t{number}", project=f"p{number}", engine="e")
        submitted(record, f"job{number}", at=float(number // 2), spec=replace(other, place=f"at{number}"))
    stopped = record.job("job1")
    assert stopped is not None
    written(record, stopped, Over(Phase.STOPPED, "enough"))

    def listed(**wanted: object) -> list[str]:
        rows = record.rows(Wanted(**wanted))  # type: ignore[arg-type]
        assert [job.id for job in record.jobs(Wanted(**wanted))] == [row.id for row in rows]  # type: ignore[arg-type]
        return [row.id for row in rows]

    assert listed() == ["job3", "job2", "job1", "job0"]
    assert listed(newest=2) == ["job3", "job2"]
    assert listed(newest=0) == []
    assert listed(phases=frozenset({Phase.QUEUED, Phase.RUNNING})) == ["job3", "job2", "job0"]
    assert listed(phases=frozenset({Phase.STOPPED})) == ["job1"]
    assert listed(owner="a", newest=1) == ["job2"]
    assert listed(name="n1") == listed(team="t1") == listed(project="p1") == listed(place="at1") == ["job1"]
    assert listed(name="job") == ["job3", "job2", "job1", "job0"]
    assert listed(name="ob") == listed(name="JOB") == listed(name="%") == listed(owner="c") == []
    assert listed(engine="e", name="job2") == ["job2"]
    [row] = record.rows(Wanted(phases=frozenset({Phase.STOPPED})))
    assert (row.name, row.reason, row.gpus, row.cpus, row.ended) == ("n1", "enough", 1, 4, 2.0)


def test_the_ledger_finds_attempts_that_held_machines(record: Record) -> None:
    spot = MachinePlace(Purchase.SPOT, "aws", "us-east-1", "us-east-1a", "p5.48xlarge", 12.5)
    [job] = submitted(record, "a")
    job = written(record, job, Placed(1, spot, machines=2), at=10.0)
    assert record.uses(0, 100) == []  # nothing came yet
    job = written(record, job, Begun(1), at=12.0)
    job = written(record, job, Ended(1, Outcome.LOST), at=20.0)
    job = written(record, job, Placed(2, MachinePlace(), cpus=(0,)), at=30.0)
    lost, now = record.uses(0, 100)
    assert (lost.job, lost.owner, lost.team, lost.project, lost.engine, lost.gpus) == ("a", "alice", "vision", "p", "local", 1)
    assert (lost.purchase, lost.provider, lost.region, lost.machine) == ("spot", "aws", "us-east-1", "p5.48xlarge")
    assert (lost.machines, lost.placed, lost.ended, lost.usd_per_hour) == (2, 12.0, 20.0, 12.5)
    assert (now.purchase, now.placed, now.ended, now.usd_per_hour) == ("owned", 30.0, None, None)
    assert record.uses(0, 12) == []
    assert record.uses(19, 30) == [lost]
    assert record.uses(20, 40) == [now]


def test_the_ledger_counts_what_an_attempt_held_and_not_what_its_job_wanted(record: Record) -> None:
    [job] = submitted(record, "a", spec=replace(SPEC, needs=Needs(4, gpus_least=1)))
    for number, devices in enumerate(((2, 3), (0, 1, 2, 3)), start=1):
        job = written(record, job, Placed(number, MachinePlace(), devices=devices, cpus=(0,)), at=10.0 * number)
        job = written(record, job, Ended(number, Outcome.LEFT), at=10.0 * number + 5.0)
    assert [use.gpus for use in record.uses(0, 100)] == [2, 4]


def _read_all(record: Record, most: int, mark: Mark = 0) -> tuple[list[str], Mark]:
    found: list[str] = []
    while True:
        jobs, next_mark = record.changed(mark, "here", most)
        assert len(jobs) <= most
        assert next_mark != mark or not jobs
        found += [job.id for job in jobs]
        if len(jobs) < most:
            return found, next_mark
        mark = next_mark


@pytest.mark.parametrize("most", [1, 2, 3, 100])
def test_a_reader_of_changes_gets_each_job_once_in_order(record: Record, most: int) -> None:
    jobs = submitted(record, *"abcdef")
    submitted(record, "elsewhere", spec=replace(SPEC, place="there"))
    for old in (jobs[0], jobs[4]):
        written(record, old, Over(Phase.DONE, ""))
    written(record, jobs[1], Waiting("x"))
    found, mark = _read_all(record, most)
    assert found == ["c", "d", "f", "b"]  # not those that are long over
    assert _read_all(record, most, mark) == ([], mark)
    written(record, jobs[3], Over(Phase.DONE, ""))
    written(record, jobs[2], Waiting("x"))
    assert _read_all(record, most, mark)[0] == ["d", "c"]  # one that is over now is told


def test_a_job_that_ends_while_it_is_first_read_is_told(record: Record) -> None:
    jobs = submitted(record, *"abcd")
    seen, mark = record.changed(0, "here", 2)
    assert [job.id for job in seen] == ["a", "b"]
    over = [written(record, old, Over(Phase.DONE, "")) for old in (jobs[0], jobs[3])]
    rest, mark = record.changed(mark, "here", 10)
    assert [job.id for job in rest] == ["c", "a", "d"]
    assert rest[1:] == over
    assert record.changed(mark, "here", 10) == ([], mark)


def test_an_empty_record_has_nothing_to_tell(record: Record) -> None:
    assert record.changed(0, "here", 10)[0] == []
    assert record.rows(Wanted()) == []
    assert record.uses(0, 1) == []


HOSTILE = (
    "it's",
    '"; SELECT 1; --',
    "%s %(x)s ? ?1 :a $1",
    "\\",
    "\\u0000",
    "\ufeff\u202e日本🚀\x01\x7f",
    "\r\n\t",
    "x" * 1_000_000,
)


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: repr(text[:8]))
def test_any_text_is_kept_as_it_is_in_every_field(record: Record, text: str) -> None:
    if getattr(getattr(record, "database", None), "IS_SHARED", False):
        text = text[:50_000]  # a job that a team shares has at most 2,000,000 characters
    short = text[:400]
    spec = Spec(
        (text, text),
        text,
        text,
        short,
        folder=text,
        env={text: text},
        owner=text,
        team=text,
        project=text,
        labels={text: text},
        checkpoints=text,
        health=text,
        produces=(text,),
        objects=({text: text},),
        workload=text,
        predicted={text: [text]},
    )
    [job] = record.submit([(short, spec)], 1.0)
    job = written(record, job, Wished(Wish.RUN, text, text), Waiting(text), Placed(1, MachinePlace(machine=text), cpus=(0,)))
    job = written(record, job, Begun(1, text), Told(1, text), Measured({text: text}, {}), Ended(1, Outcome.FAILED, 1, text))
    job = written(record, job, Over(Phase.FAILED, text))
    assert record.job(short) == job == folded(record.events(short))
    asked = Wanted(owner=text, team=text, project=text, engine=text, place=short, name=text)
    assert [(row.id, row.reason) for row in record.rows(asked)] == [(short, text)]
    assert [use.machine for use in record.uses(0, 9)] == [text]
    lease = record.lead(short, short, 1.0, 5.0)
    assert lease is not None
    record.resign(lease)


@pytest.mark.parametrize("bad", ["a\0b", "\ud800"])
def test_text_that_no_database_holds_is_refused_with_a_sentence(stored: Record, bad: str) -> None:
    [job] = submitted(stored, "a")
    why = "NUL character" if "\0" in bad else "half a character"
    for refused in (
        lambda: stored.submit([(f"b{bad}", SPEC)], 1.0),
        lambda: stored.submit([("b", replace(SPEC, owner=bad))], 1.0),
        lambda: stored.submit([("b", replace(SPEC, env={"A": bad}))], 1.0),
        lambda: stored.write([Change(job, (Told(0, bad),))], 1.0),
        lambda: stored.rows(Wanted(name=bad)),
        lambda: stored.job(bad),
        lambda: stored.lead(bad, "me", 1.0, 1.0),
    ):
        with pytest.raises(BadInput, match=why):
            refused()
    assert [row.id for row in stored.rows(Wanted())] == ["a"]
    assert stored.job("a") == job


@given(number=st.sampled_from([float("nan"), float("inf")]))
@shared
def test_what_is_not_a_number_is_refused_with_a_sentence(stored: Record, number: float) -> None:
    with pytest.raises(BadInput, match="is not a time"):
        submitted(stored, "a", at=number)
    with pytest.raises(BadInput, match="cannot be recorded"):
        submitted(stored, "a", spec=replace(SPEC, deadline=number))
    with pytest.raises(BadInput, match="that no database holds"):
        submitted(stored, "a", spec=replace(SPEC, priority=2**70))
    with pytest.raises(BadInput, match="501 characters, and at most 500"):
        submitted(stored, "a" * 501)
    with pytest.raises(BadInput, match="needs an id"):
        submitted(stored, "")
    assert stored.rows(Wanted()) == []


def test_a_list_shows_what_a_job_has_while_it_is_placed_and_what_it_wants_else(record: Record) -> None:
    wanted = replace(SPEC, needs=Needs(4, 1, gpus_least=2))
    [job] = submitted(record, "few", spec=wanted)
    [row] = record.rows(Wanted())
    assert (row.gpus, row.machines) == (4, 1)
    job = written(record, job, Placed(1, MachinePlace(), devices=(0, 1), cpus=(0,)))
    [row] = record.rows(Wanted())
    assert (row.gpus, row.cpus, row.machines, row.attempts) == (2, 1, 1, 1)
    written(record, job, Ended(1, Outcome.LOST))
    [row] = record.rows(Wanted())
    assert row.gpus == 4
    [wide] = submitted(record, "wide", spec=replace(SPEC, needs=Needs(8, 1, machines=4, machines_least=1)))
    written(record, wide, Placed(1, MachinePlace(), machines=3))
    [row] = record.rows(Wanted(name="wide"))
    assert (row.gpus, row.machines) == (8, 3)
