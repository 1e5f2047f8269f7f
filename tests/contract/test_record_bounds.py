"""Values beyond all measure, in a real SQLite and a real PostgreSQL: no job keeps its devices since it cannot be written."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest

from chipwise.errors import BadInput
from chipwise.runner.engine import End, Order, Room, Seen, Sight, Start, State
from chipwise.runner.events import Begun, Measured, Placed, Told, Wished
from chipwise.runner.job import Job, MachinePlace, Needs, Phase, Spec, Wish, Work
from chipwise.runner.loop import Controller
from chipwise.runner.record import Change, Record, Stale, Wanted
from chipwise.runner.writing import job_text
from postgres_server import Server
from record_harm import Harm, harm_to

PLACE = "here"


@dataclass
class Machine:
    """One GPU. What it starts ends at the next look, with the rate that the test wants."""

    rate: float | None = None
    name: str = "local"
    place: str = PLACE
    started: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    state: State = State.EXITED

    def look(self, jobs: Sequence[Job], now: float) -> Seen:
        sights = {
            (job.id, len(job.attempts)): Sight(
                State.EXITED if job.id in self.ended else self.state, code=0, since=now - 1.0, rate=self.rate, step=10
            )
            for job in jobs
            if job.id in self.started
        }
        return Seen(now, sights, Room((0,), (0, 1)))

    def do(self, order: Order) -> None:
        match order:
            case Start(job):
                self.started.append(job.id)
            case End(job):
                self.ended.append(job.id)
            case _:
                pass

    def close(self) -> None:
        pass


def spec(name: str, **more: object) -> Spec:
    return Spec(("true",), name, place=PLACE, needs=Needs(gpus=1), **more)  # type: ignore[arg-type]


@pytest.fixture
def harm(url: str) -> Harm:
    return harm_to(url)


@pytest.mark.parametrize("rate", [1e17, 1e300, 1.7e308])
def test_a_throughput_that_becomes_infinite_is_left_out_and_the_job_ends(stored: Record, rate: float) -> None:
    endless = Work(amount=1e10, per_step=1e300, unit="samples")
    with pytest.raises(BadInput):
        stored.submit([("a", spec("a", work=endless))], 1.0)
    stored.submit([("b", spec("b"))], 1.0)
    stored.submit([("c", spec("c", work=Work(amount=1e18, per_step=1e18, unit="samples")))], 1.0)
    controller = Controller(stored, Machine(rate), "me")
    for now in range(2, 12):
        controller.turn(float(now))
    assert {job.id: job.phase for job in stored.jobs(Wanted())} == {"b": Phase.DONE, "c": Phase.DONE}
    [measured] = [one.event for one in stored.events("c") if isinstance(one.event, Measured)]
    assert measured.measured["throughput"] is None


@pytest.mark.parametrize(
    "change",
    [
        lambda body: {**body, "spec": {**body["spec"], "labels": _nested(900)}},
        lambda body: {**body, "spec": {**body["spec"], "predicted": _nested(900)}},
        lambda body: {**body, "spec": {**body["spec"], "needs": {"gpus": 10**308}}},
        lambda body: {**body, "submitted": 1e308},
        lambda body: {**body, "spec": {**body["spec"], "grace_s": 1e308}},
    ],
    ids=["labels", "deep", "gpus", "submitted", "grace"],
)
def test_a_poisoned_row_is_set_aside_and_can_be_cleared(
    stored: Record, harm: Harm, change: Callable[[dict[str, object]], dict[str, object]]
) -> None:
    [bad, good] = stored.submit([("bad", spec("bad")), ("good", spec("good"))], 1.0)
    text = json.dumps(change(json.loads(job_text(bad)))).replace("'", "''")
    harm("jobs", f"body = '{text}' WHERE id = 'bad'")
    harm("events", "body = '[' WHERE job = 'bad' AND version = 1")
    controller = Controller(stored, Machine(), "me")
    trouble = [line for now in range(2, 8) for line in controller.turn(float(now)).trouble]
    assert any("The database row of bad is damaged" in line for line in trouble)
    done = stored.job(good.id)
    assert done is not None
    assert done.phase is Phase.DONE
    [damaged] = stored.damaged(Wanted())
    assert stored.give_up(damaged, "cleared", 9.0).phase is Phase.FAILED
    assert stored.job("bad") is not None


def _nested(depth: int) -> dict[str, object]:
    value: dict[str, object] = {}
    for _ in range(depth):
        value = {"x": value}
    return value


def test_a_version_after_which_none_can_follow_is_cleared_by_an_admin(stored: Record, harm: Harm) -> None:
    [job] = stored.submit([("bad", spec("bad"))], 1.0)
    largest = 2**63 - 1
    body = job_text(job).replace('"version":1', f'"version":{largest}')
    harm("jobs", f"version = {largest}, body = '{body}' WHERE id = 'bad'")
    [damaged] = stored.damaged(Wanted())
    assert stored.give_up(damaged, "cleared", 9.0).version < 10
    again = stored.job("bad")
    assert again is not None
    assert isinstance(stored.write([Change(again, (Wished(Wish.RUN),))], 10.0)[0], Job)


def test_what_the_record_does_not_take_of_one_that_runs_ends_it(stored: Record) -> None:
    """Nobody could follow it: it is ended, and then it is over, and its device is the next one's."""

    class Blind(Machine):
        def look(self, jobs: Sequence[Job], now: float) -> Seen:
            seen = super().look(jobs, now)
            return Seen(now, {key: _spoilt(key[0], sight) for key, sight in seen.attempts.items()}, seen.room)

    def _spoilt(id: str, sight: Sight) -> Sight:
        from dataclasses import replace

        return replace(sight, handle="half \ud800", reason="half \ud800") if id == "bad" else replace(sight, state=State.EXITED)

    stored.submit([("bad", spec("bad"))], 1.0)
    stored.submit([("good", spec("good"))], 2.0)
    engine = Blind(state=State.RUNNING)
    controller = Controller(stored, engine, "me")
    for now in range(3, 20):
        controller.turn(float(now))
    bad, good = stored.job("bad"), stored.job("good")
    assert bad is not None
    assert good is not None
    assert engine.ended == ["bad"]
    assert bad.phase is Phase.FAILED
    assert "cannot be recorded" in bad.reason
    assert good.phase is Phase.DONE


@pytest.mark.parametrize(
    "change",
    [
        "version = 9223372036854775807",
        "gpus = 9223372036854775807",
        "submitted = 'NaN'",
        "submitted = 'Infinity'",
        "ended = 1e308",
        "body = repeat('x', 65000000)",
    ],
)
def test_the_database_refuses_what_is_beyond_measure(postgres: Server, new_database: Callable[[], str], change: str) -> None:
    import psycopg

    from chipwise.adapters.stores.record import connect

    url = postgres.url(new_database())
    record = connect(url)
    record.submit([("a", spec("a"))], 1.0)
    record.close()
    with psycopg.connect(url) as owner, pytest.raises(psycopg.errors.CheckViolation):
        owner.execute(f"UPDATE chipwise.jobs SET {change}".encode())


def test_a_value_that_cannot_be_written_is_refused_at_the_door(stored: Record) -> None:
    deep: dict[str, object] = _nested(100)
    for wrong in (spec("a", predicted=deep), spec("a", grace_s=1e300), spec("a", budget_usd=float("inf"))):
        with pytest.raises(BadInput):
            stored.submit([("a", wrong)], 1.0)
    [job] = stored.submit([("a", spec("a"))], 1.0)
    [placed] = stored.write([Change(job, (Placed(1, MachinePlace(), (0,)), Begun(1)))], 2.0)
    assert not isinstance(placed, Stale)
    with pytest.raises(BadInput):
        stored.write([Change(placed, (Told(2**60, "x"),))], 3.0)
