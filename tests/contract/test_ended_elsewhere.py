"""What others write of a job that a controller leads: it ends what the record calls over, follows what it is not shown, and
reads what it can."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from chipwise.adapters.stores.memory_record import MemoryRecord
from chipwise.errors import BadInput, ChipwiseError, NotAllowed, OutsideFailed
from chipwise.runner.engine import End, Order, Room, Seen, Sight, Start, State
from chipwise.runner.events import Ended, Over, Wished
from chipwise.runner.job import Job, Needs, Phase, Spec, Wish
from chipwise.runner.loop import Controller
from chipwise.runner.record import Change, Lease, Record, Stale, Wanted
from chipwise.runner.writing import job_text
from record_harm import Harm, harm_to

PLACE = "here"


@dataclass
class Machine:
    """One GPU. What it starts runs until it is ended, which takes a look."""

    name: str = "local"
    place: str = PLACE
    running: dict[tuple[str, int], tuple[int, ...]] = field(default_factory=dict)
    ending: list[tuple[str, int]] = field(default_factory=list)
    over: dict[tuple[str, int], Sight] = field(default_factory=dict)
    most: int = 0  # that had the GPU at once

    def look(self, jobs: Sequence[Job], now: float) -> Seen:
        for key in self.ending:
            if self.running.pop(key, None) is not None:
                self.over[key] = Sight(State.EXITED, code=137, until=now)
        self.ending = []
        sights = {}
        for job in jobs:
            key = (job.id, len(job.attempts))
            if key in self.running:
                sights[key] = Sight(State.RUNNING, since=now, holds=Room(self.running[key], ()))
            elif key in self.over:
                sights[key] = self.over[key]
        return Seen(now, sights, Room((0,), (0, 1)))

    def do(self, order: Order) -> None:
        match order:
            case Start(job):
                self.running[order.key] = job.attempts[-1].devices
                self.most = max(self.most, len(self.running))
            case End(job):
                self.ending.append((job.id, len(job.attempts)))
            case _:
                pass

    def living(self) -> Sequence[tuple[str, int]]:
        return list(self.running)

    def close(self) -> None:
        pass


def spec(name: str, **more: object) -> Spec:
    return Spec(("true",), name, place=PLACE, needs=Needs(gpus=1), **more)  # type: ignore[arg-type]


@pytest.fixture
def harm(url: str) -> Harm:
    return harm_to(url)


def job_of(record: Record, id: str) -> Job:
    job = record.job(id)
    assert job is not None
    return job


@pytest.mark.parametrize("leads", ["the same", "another"])
def test_what_runs_of_a_job_that_was_given_up_elsewhere_is_ended_and_keeps_its_devices_until_then(
    stored: Record, harm: Harm, leads: str
) -> None:
    """As `forget --damaged` of an admin under another system user leaves it."""
    stored.submit([("bad", spec("bad"))], 1.0)
    engine = Machine()
    controller = Controller(stored, engine, "me")
    controller.turn(2.0)
    controller.turn(3.0)
    stored.submit([("next", spec("next"))], 4.0)
    harm("jobs", "body = '[' WHERE id = 'bad'")
    harm("events", "body = '[' WHERE job = 'bad'")
    [damaged] = stored.damaged(Wanted())
    stored.give_up(damaged, "given up", 5.0)
    if leads == "another":
        controller.resign()
        controller = Controller(stored, engine, "you")
    turns = [controller.turn(float(now)) for now in range(6, 10)]
    assert engine.over.keys() == {("bad", 1)}
    assert engine.running.keys() == {("next", 1)}
    assert engine.most == 1
    assert turns[0].live == 2
    assert job_of(stored, "bad").phase is Phase.FAILED


def test_a_controller_follows_a_job_that_changed_without_being_shown(stored: Record, harm: Harm) -> None:
    """A row whose mark was set back is read by nobody, and what its controller decides would stand on an old version."""
    stored.submit([("a", spec("a"))], 1.0)
    engine = Machine()
    controller = Controller(stored, engine, "me")
    controller.turn(2.0)
    controller.turn(3.0)
    job = job_of(stored, "a")
    hidden = job_text(replace(job, version=job.version + 1, wish=Wish.END))
    harm("jobs", f"version = version + 1, mark = 1, body = '{hidden}' WHERE id = 'a'")
    engine.over[("a", 1)] = Sight(State.EXITED, code=0, until=4.0)
    engine.running.clear()
    for now in range(4, 8):
        controller.turn(float(now))
    assert job_of(stored, "a").phase.over


@pytest.mark.parametrize("wish", ["1e17", '{"stop": 1e400}', "[[[[]]]]", '"pause"', "null"])
def test_a_wish_that_cannot_be_read_is_none_and_the_job_can_be_stopped(stored: Record, harm: Harm, wish: str) -> None:
    stored.submit([("a", spec("a"))], 1.0)
    engine = Machine()
    controller = Controller(stored, engine, "me")
    controller.turn(2.0)
    controller.turn(3.0)
    job = job_of(stored, "a")
    held = {**json.loads(job_text(job)), "wish": "@", "version": job.version + 1}
    text = json.dumps(held).replace('"@"', wish)
    harm("jobs", f"version = version + 1, body = '{text}' WHERE id = 'a'")
    assert job_of(stored, "a").wish is Wish.RUN
    stored.write([Change(job_of(stored, "a"), (Wished(Wish.END, "me"),))], 4.0)
    for now in range(5, 9):
        controller.turn(float(now))
    assert engine.running == {}
    assert job_of(stored, "a").phase is Phase.STOPPED


@pytest.mark.parametrize("moment", ["-1e18", "1e18", "-1"])
def test_an_event_at_no_time_is_told_at_the_beginning_of_time(stored: Record, harm: Harm, url: str, moment: str) -> None:
    stored.submit([("a", spec("a"))], 1.0)
    if not url.startswith("sqlite:"):
        import psycopg

        with psycopg.connect(url) as owner:
            owner.execute("ALTER TABLE chipwise.events DROP CONSTRAINT in_time")
    harm("events", f"at = {moment} WHERE job = 'a'")
    assert [one.moment for one in stored.events("a")] == [0.0]


@pytest.mark.parametrize("processes", [0, 1025, 100_000])
def test_more_processes_than_can_be_started_are_refused_at_each_door(record: Record, processes: int) -> None:
    wrong = replace(spec("a"), needs=Needs(processes=processes))
    if not isinstance(record, MemoryRecord):
        with pytest.raises(BadInput, match="processes"):
            record.submit([("a", wrong)], 1.0)
        return
    record.submit([("a", wrong)], 1.0)  # as one of an older chipwise
    engine = Machine()
    Controller(record, engine, "me").turn(2.0)
    assert engine.running == {}
    assert job_of(record, "a").phase is Phase.FAILED
    assert job_of(record, "a").reason == f"{processes:,} processes were asked for, and 1 to 1,024 can be started"


def test_a_job_ends_when_its_attempt_did_whenever_that_is_recorded(stored: Record) -> None:
    """A turn that waited for the record begins before, and one after an outage long after, the end that it sees."""
    for id, seen_at, ended_at in (("before", 10.0, 25.0), ("long-after", 5000.0, 40.0)):
        stored.submit([(id, spec(id))], 1.0)
        engine = Machine()
        controller = Controller(stored, engine, "me")
        controller.turn(8.0)
        controller.turn(9.0)
        engine.running.clear()
        engine.over[(id, 1)] = Sight(State.EXITED, code=0, since=8.5, until=ended_at)
        controller.turn(seen_at)
        controller.resign()
        job = job_of(stored, id)
        assert (job.phase, job.ended, job.attempts[-1].ended) == (Phase.DONE, ended_at, ended_at)
        [row] = stored.rows(Wanted(name=id))
        assert row.ended == ended_at
        assert [one.event.at for one in stored.events(id) if isinstance(one.event, Ended | Over)] == [ended_at, ended_at]


def test_what_a_turn_records_is_of_the_time_at_which_it_looked(stored: Record) -> None:
    """And not of the time at which it began to wait for the record."""
    clock = [100.0]

    class Slow(Machine):
        def look(self, jobs: Sequence[Job], now: float) -> Seen:
            looked.append(now)
            return super().look(jobs, now)

    looked: list[float] = []
    stored.submit([("a", spec("a"))], 1.0)
    controller = Controller(stored, Slow(), "me", elapsed=lambda: clock[0])
    lead = stored.lead

    class Waits:
        def __getattr__(self, name: str) -> object:
            return getattr(stored, name)

        def lead(self, *arguments: object) -> object:
            clock[0] += 4.0
            return lead(*arguments)  # type: ignore[arg-type]

    controller.record = Waits()  # type: ignore[assignment]
    controller.turn(1000.0)
    assert looked == [1004.0]
    assert stored.events("a")[-1].moment == 1004.0


@pytest.mark.parametrize("error", [BadInput, NotAllowed, OutsideFailed])
def test_an_end_that_cannot_be_recorded_keeps_no_devices(error: type[ChipwiseError]) -> None:
    class Refuses(MemoryRecord):
        def write(self, changes: Sequence[Change], moment: float, lease: Lease | None = None) -> list[Job | Stale]:
            if refuses and any(change.job.id == "odd" for change in changes):
                raise error("no such row is taken")
            return super().write(changes, moment, lease)

    refuses: list[bool] = []
    record, engine = Refuses(), Machine()
    record.submit([("odd", spec("odd"))], 1.0)
    controller = Controller(record, engine, "me")
    controller.turn(2.0)
    controller.turn(3.0)
    record.submit([("next", spec("next"))], 4.0)
    refuses.append(True)
    engine.running.clear()
    engine.over[("odd", 1)] = Sight(State.EXITED, code=0, until=5.0)
    trouble = [controller.turn(float(now)).trouble for now in range(5, 9)]
    assert engine.running.keys() == {("next", 1)}
    assert all("odd: no such row is taken" in lines[-1] for lines in trouble)
    refuses.clear()
    controller.turn(100.0)
    assert job_of(record, "odd").phase is Phase.DONE
