"""Jobs that are over are started again in their order, and who waits is told each reason once."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest
from click.testing import CliRunner

from chipwise.adapters.engines.local import folder
from chipwise.api.running import asking, controlling, following, forgetting, giving_up, place, stages, waiting
from chipwise.api.running.held import Runtime
from chipwise.api.session import wiring
from chipwise.api.session.wiring import Session
from chipwise.cli.stop import stop
from chipwise.errors import BadInput, NotFound
from chipwise.runner.events import Again, Ended, Event, Over, Placed, Wished
from chipwise.runner.job import Job, MachinePlace, Outcome, Phase, Spec, Wish
from chipwise.runner.record import Change, Record, Unread, Wanted


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
        assert watched.news(held.job("b")) == [], "nobody else waits: its controller is slow"
        record.submit([("c", Spec(("true",), "c", place=place.this_place(session)))], now[0])
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
    assert named.left == "it has no files on this machine"


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
    assert one.instead == "is being killed, and is no longer damaged: its controller wrote it again"
    kept = record.job("a")
    assert kept is not None
    assert kept.wish is Wish.END, "else it would be started again"
    file.close()


def test_one_that_is_damaged_keeps_no_other_from_being_stopped(session: Session, record: Record) -> None:
    chain(record, session, None, None)
    file = sqlite3.connect(session.config.data_dir / "record.db", isolation_level=None)
    file.execute("DROP TRIGGER events_never_update")
    file.execute("UPDATE jobs SET body = '{half' WHERE id = 'a'")
    file.execute("UPDATE events SET body = '{half' WHERE job = 'a'")
    file.close()
    ids, [trouble] = asking.ask_readable(session, ["a", "b"], Wish.END)
    assert ids == ["b"]
    assert "a" in str(trouble)
    with pytest.raises(Unread):
        asking.ask(session, ["a"], Wish.END)


def test_what_a_controller_that_does_not_answer_was_asked_is_told_as_asked(
    session: Session, record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain(record, session, None)
    silent = controlling.Unanswered(pid=7, owner="", seconds=12.0, limit_s=30.0)
    monkeypatch.setattr(controlling, "unanswered", lambda session, place: silent)
    monkeypatch.setattr(wiring, "open_session", lambda: session)
    said = CliRunner().invoke(stop, ["--now", "a"], catch_exceptions=False)
    assert said.exit_code == 0
    assert "a asked to be killed at once; the controller (process 7) has not answered for 12" in " ".join(said.output.split())
    assert "is ended" not in said.output


def test_a_job_that_never_started_was_not_forgotten(session: Session, record: Record) -> None:
    chain(record, session, None)
    placed = record.job("a")
    assert placed is not None
    events = (
        Placed(1, MachinePlace(), cpus=(0,)),
        Ended(1, Outcome.FAILED, 127, "no such command"),
        Over(Phase.FAILED, "gone"),
    )
    record.write([Change(placed, events)], 2.0)
    with asking.opened(session) as runtime, pytest.raises(NotFound, match="a never started, and printed nothing: gone"):
        following.tail_of(runtime, runtime.job("a"), None, 10)


def damaged(record: Record, session: Session, site: str) -> None:
    """A job `a` that has begun at a place, and that nobody can read any more."""
    [job] = record.submit([("a", Spec(("true",), "a", place=site))], 0.0)
    record.write([Change(job, (Placed(1, MachinePlace(), (), (0,)),))], 1.0)
    file = sqlite3.connect(session.config.data_dir / "record.db", isolation_level=None)
    file.execute("DROP TRIGGER events_never_update")
    file.execute("UPDATE jobs SET body = '{half'")
    file.execute("UPDATE events SET body = '{half'")
    file.close()


def test_a_damaged_row_of_a_machine_that_is_gone_is_cleared_all_the_same(session: Session, record: Record) -> None:
    damaged(record, session, "local:gone:/srv/chipwise")
    [dry] = giving_up.give_up(session, ["a"], dry_run=True)
    [cleared] = giving_up.give_up(session, ["a"])
    assert (
        cleared.left
        == dry.left
        == "the controller of local:gone:/srv/chipwise will kill its remaining processes; its files (run/jobs/a) stay"
    )
    [row] = record.rows(Wanted())
    assert row.phase is Phase.FAILED


def test_a_damaged_row_whose_files_are_another_users_is_cleared_and_they_are_named(
    session: Session, record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    damaged(record, session, place.this_place(session))

    def refused(path: Path) -> int:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(folder, "lock", refused)
    [cleared] = giving_up.give_up(session, ["a"])
    assert f"you may not write to {session.config.run_dir}/jobs/a/1/lock" in cleared.left
    [row] = record.rows(Wanted())
    assert row.phase is Phase.FAILED


def test_a_phase_counts_from_when_it_began(session: Session, record: Record) -> None:
    """Not from the first submission, nor from the end of an attempt that its owner asked to repeat much later."""
    [job] = record.submit([("a", Spec(("true",), "a", place=place.this_place(session)))], 100.0)

    def since(*events: Event, at: float) -> float | None:
        nonlocal job
        [answer] = record.write([Change(job, events)], at)
        assert isinstance(answer, Job)
        job = answer
        return waiting.phase_since(record, record.rows(Wanted())).get("a")

    assert waiting.phase_since(record, record.rows(Wanted())) == {}
    assert since(Placed(1, MachinePlace(), (), (0,)), at=200.0) == 200.0
    assert since(Ended(1, Outcome.LOST), Again(260.0, "was lost"), at=250.0) == 250.0
    assert since(Over(Phase.STOPPED, "on request"), at=300.0) is None
    assert since(Wished(Wish.RUN), at=400.0) == 400.0
    assert since(Placed(2, MachinePlace(), (), (0,)), at=410.0) == 410.0
