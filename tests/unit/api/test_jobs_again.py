"""Jobs that are over are started again in their order, and who waits is told each reason once."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from itertools import islice

import pytest

from chipwise.api.running import asking, following, forgetting, giving_up, place, stages, waiting
from chipwise.api.running.held import Runtime
from chipwise.api.session.wiring import Session
from chipwise.errors import BadInput, NotFound
from chipwise.runner.events import Again, Over, Placed
from chipwise.runner.job import Job, MachinePlace, Phase, Spec, Wish
from chipwise.runner.record import Change, Record


def chain(record: Record, session: Session, *ended: Phase | None) -> list[Job]:
    """Jobs a, b, c, each after the one before it."""
    here, names = place.this_place(session), "abc"[: len(ended)]
    specs = [
        (name, Spec(("true",), name, place=here, after=tuple(names[at - 1 : at]), workload="w"))
        for at, name in enumerate(names)
    ]
    made = record.submit(specs, 0.0)
    for job, phase in zip(made, ended, strict=True):
        if phase is not None:
            record.write([Change(job, (Over(phase, "for some reason"),))], 1.0)
    return [found for name in names if (found := record.job(name)) is not None]


@pytest.mark.parametrize(("phase", "verb"), [(Phase.FAILED, "retry"), (Phase.STOPPED, "resume")])
def test_a_job_is_not_started_again_before_those_that_it_comes_after(
    session: Session, record: Record, phase: Phase, verb: str
) -> None:
    chain(record, session, phase, phase, phase)
    with pytest.raises(BadInput, match=f"c comes after b, which is {phase}") as refused:
        asking.ask(session, ["c"], Wish.RUN)
    assert f"`chipwise {verb} a b c`" in str(refused.value)
    assert asking.ask(session, ["c", "a", "b"], Wish.RUN) == ["a", "b", "c"]
    assert {job.phase for id in "abc" if (job := record.job(id))} == {Phase.QUEUED}


def test_what_is_done_or_goes_on_already_need_not_be_named(session: Session, record: Record) -> None:
    chain(record, session, Phase.DONE, None, Phase.FAILED)
    assert asking.ask(session, ["c"], Wish.RUN) == ["c"]


def test_where_one_cannot_be_asked_none_is(session: Session, record: Record) -> None:
    chain(record, session, Phase.STOPPED, None)
    with pytest.raises(BadInput, match=r"a is stopped already\. `chipwise resume` continues it"):
        asking.ask(session, ["b", "a"], Wish.STOP)
    job = record.job("b")
    assert job is not None
    assert job.wish is Wish.RUN


def test_a_stage_that_runs_here_is_waited_for_once(session: Session, record: Record) -> None:
    first, _ = chain(record, session, None, None)
    record.write([Change(first, (Placed(1, MachinePlace(), cpus=(0,)),))], 1.0)
    with asking.opened(session) as held:
        second = held.job("b")
        assert waiting.Watched(held).news(second) == ["b waits for a"]


def test_others_are_ahead_only_of_one_that_nothing_else_held_up(
    session: Session, record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _ = chain(record, session, None, None)
    now = [100.0]
    monkeypatch.setattr(time, "time", lambda: now[0])
    with asking.opened(session) as held:
        watched = waiting.Watched(held, ["a"])
        assert watched.news(held.job("b")) == ["b waits for a"]
        record.write([Change(first, (Over(Phase.DONE, ""),))], now[0])
        now[0] += 0.1
        assert watched.news(held.job("b")) == ["a done"], "at once, so that it stands before what the next one prints"
        now[0] += 1.0
        assert watched.news(held.job("b")) == []
        now[0] += 2.0
        assert watched.news(held.job("b")) == ["b waits: others are ahead of it"]


def test_a_stage_that_printed_nothing_has_no_heading(session: Session, record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    chain(record, session, Phase.DONE, Phase.FAILED, Phase.FAILED)
    printed = {"a": [b"one\n", b"two\n"], "b": [], "c": []}
    monkeypatch.setattr(following, "follow_job", lambda held, look, rank: iter(printed[look().id]))
    with asking.opened(session) as held:
        assert b"".join(stages.follow(held, lambda: held.job("c"))) == b"--- a\none\ntwo\n"

        def gone(held: Runtime, look: object, rank: int | None) -> Iterator[bytes]:
            raise NotFound("Its logs are gone.")
            yield b""

        monkeypatch.setattr(following, "follow_job", gone)
        assert [*islice(stages.follow(held, lambda: held.job("c")), 2)] == [b"--- a\n", b"Its logs are gone.\n"]


def test_of_all_jobs_those_forgotten_before_are_not_told_again(session: Session, record: Record) -> None:
    chain(record, session, Phase.DONE)
    at = session.config.run_dir / "jobs" / "a" / "1"
    at.mkdir(parents=True)
    (at / "log").write_bytes(b"x" * 100)
    (at / "ended.json").write_bytes(b"{}")
    [gone] = forgetting.forget(session, [], 0.0)
    assert (gone.id, gone.bytes, gone.left) == ("a", 100, "")
    assert forgetting.forget(session, [], 0.0) == []
    [named] = forgetting.forget(session, ["a"])
    assert named.left == "nothing of it is on this machine"


def test_one_that_its_controller_wrote_anew_meanwhile_is_ended_as_one_that_can_be_read(
    session: Session, record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What stands in for the controller here writes the job that it still knows, while `forget --damaged` ends what runs."""
    [job] = chain(record, session, None)
    file = sqlite3.connect(session.config.data_dir / "record.db", isolation_level=None)
    [body] = file.execute("SELECT body FROM jobs").fetchone()
    file.execute("DROP TRIGGER events_never_update")
    file.execute("UPDATE jobs SET body = '{half'")
    file.execute("UPDATE events SET body = '{half'")

    def controller_writes(held: Runtime, damaged: object) -> None:
        file.execute("UPDATE jobs SET body = ?", [body])
        record.write([Change(job, (Again(5.0, "failed"),))], 2.0)

    monkeypatch.setattr(giving_up, "_end", controller_writes)
    [one] = giving_up.give_up(session, ["a"])
    assert one.instead == "is ended, and can be read again: its controller knew all of it"
    kept = record.job("a")
    assert kept is not None
    assert kept.wish is Wish.END, "else it would be started again"
    file.close()
