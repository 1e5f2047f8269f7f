"""A member's open transaction: nobody else waits for it, and what it commits late is found by who reads changes."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chipwise.adapters.stores.record.grants import Grant, connect_grants
from chipwise.adapters.stores.record.members import Member, connect_members
from chipwise.runner.engine import Order, Room, Seen, Sight, Start, State
from chipwise.runner.events import Waiting, Wished
from chipwise.runner.job import Job, Phase, Spec, Wish
from chipwise.runner.loop import Controller
from chipwise.runner.record import Change, Held, Mark, Wanted
from effort import cases
from postgres_server import TRUSTED, Server
from simple_machine import HERS, Machine
from team_record import Team, logins

psycopg = pytest.importorskip("psycopg")

SOON_S = 3.0
_ids = itertools.count()
# Two values that the server compares element by element, and not to be interrupted: minutes.
DEAF = """SELECT (j || '{"z": 1}') @> j FROM (SELECT jsonb_build_object('a', jsonb_agg(i)) AS j
    FROM generate_series(1, 30000) AS i) AS s"""


@pytest.fixture(scope="module", autouse=True)
def _logins(postgres: Server) -> Iterator[None]:
    yield from logins(postgres, TRUSTED)


@pytest.fixture(scope="module")
def team(postgres: Server, lasting_database: str) -> Iterator[Team]:
    team = Team(postgres, lasting_database)
    members = connect_members(team.url("admin"))
    for member in (Member("alice"), Member("bob"), Member("carol", "", "controller", HERS)):
        members.add(member)
    members.close()
    grants = connect_grants(team.url("carol"))
    for login in ("alice", "bob"):
        grants.allow(Grant(HERS, login))
    grants.close()
    yield team
    team.close()


def client(team: Team, login: str) -> Any:
    return psycopg.connect(team.url(login), options="-c search_path=chipwise")


def new(team: Team, login: str) -> Job:
    [job] = team.by(login).submit([(f"job-{next(_ids)}", Spec(("true",), "a", place=HERS, owner=login))], 2.0)
    return job


def touch(session: Any, job: Job) -> None:
    """As a member changes their own job with direct SQL."""
    session.execute(
        """UPDATE jobs SET version = version + 1,
        body = (body::jsonb || jsonb_build_object('version', version + 1, 'wish', 'run'))::text WHERE id = %s""",
        (job.id,),
    )


def read_all(team: Team, mark: Mark, limit: int) -> tuple[dict[str, int], Mark]:
    """The versions of what changed."""
    found: dict[str, int] = {}
    while True:
        jobs, mark = team.by("carol").changed(mark, HERS, limit)
        found |= {one.id: one.version for one in jobs}
        if len(jobs) < limit:
            return found, mark


def test_nobody_waits_for_a_session_that_holds_its_job_and_does_not_end_when_told_to(team: Team) -> None:
    hers, his = new(team, "alice"), new(team, "bob")
    with client(team, "bob") as bob, client(team, "admin") as admin:
        bob.execute("SET statement_timeout = 0; SET lock_timeout = 0")
        with suppress(psycopg.errors.InsufficientPrivilege), bob.transaction():
            bob.execute("UPDATE meta SET value = value + 1 WHERE name = 'mark'")
        touch(bob, his)
        new_id = f"job-{next(_ids)}"
        spec = Spec(("true",), "a", place=HERS, owner="bob")
        pid = bob.info.backend_pid
        deaf = threading.Thread(target=lambda: suppress_errors(bob, DEAF), daemon=True)
        deaf.start()
        time.sleep(0.5)
        admin.execute("SELECT pg_terminate_backend(%s)", (pid,))
        began = time.monotonic()
        new(team, "alice")
        team.by("bob").submit([(new_id, spec)], 2.0)
        [answer] = team.by("alice").write([Change(hers, (Wished(Wish.RUN, "alice"),))], 3.0)
        assert isinstance(answer, Job)
        lease = team.by("carol").lead(HERS, "carol-1", 1.0, 1e9)
        assert lease is not None
        written, left_out = team.by("carol").write(
            [Change(answer, (Waiting("no room"),)), Change(his, (Waiting("no room"),))], 4.0, lease
        )
        team.by("carol").resign(lease)
        assert time.monotonic() - began < SOON_S
        assert isinstance(written, Job)
        assert isinstance(left_out, Held)
        alive = admin.execute("SELECT count(*) FROM pg_stat_activity WHERE pid = %s", (pid,)).fetchone()
        assert alive == (1,), "it was told to end, and holds its job all the same"
        deaf.join(120.0)


def suppress_errors(session: Any, statement: str) -> None:
    with suppress(psycopg.Error):
        session.execute(statement)


@dataclass
class OneCpu(Machine):
    """On which programs end."""

    ended: set[str] = field(default_factory=set)

    def look(self, jobs: Sequence[Job], now: float) -> Seen:
        exited = Sight(State.EXITED, 0, since=6.0, until=8.0)
        sights = {(id, 1): exited if id in self.ended else Sight(State.RUNNING) for id in self.started}
        return Seen(now, sights, Room(gpus=(), cpus=(0,)))

    def do(self, order: Order) -> None:
        if isinstance(order, Start):
            super().do(order)


def test_a_job_that_its_owner_holds_keeps_no_devices_and_goes_on_when_it_is_free(team: Team) -> None:
    for job in team.by("carol").jobs(Wanted()):
        team.by("admin").write([Change(job, (Wished(Wish.END, "admin"),))], 3.0)
    record, engine = team.by("carol"), OneCpu()
    controller = Controller(record, engine, "carol-2")
    controller.turn(5.0)
    his = new(team, "bob")
    controller.turn(6.0)
    controller.turn(7.0)
    assert his.id in engine.started
    engine.ended.add(his.id)
    with client(team, "bob") as bob:
        bob.execute("SELECT 1 FROM jobs WHERE id = %s FOR UPDATE", (his.id,))
        began = time.monotonic()
        turn = controller.turn(8.0)
        hers = new(team, "alice")
        controller.turn(9.0)
        controller.turn(10.0)
        assert time.monotonic() - began < SOON_S
        assert any("is held by another session" in trouble for trouble in turn.trouble)
        assert hers.id in engine.started
        bob.rollback()
    controller.turn(100.0)
    ended = record.job(his.id)
    assert ended is not None
    assert ended.phase is Phase.DONE
    controller.resign()


@pytest.mark.parametrize("limit", [1, 2, 100])
def test_what_is_committed_late_is_not_passed_by(team: Team, limit: int) -> None:
    """The first to take a number is the last to commit."""
    jobs = [new(team, "bob") for _ in range(4)]
    _, mark = read_all(team, 0, limit)
    with client(team, "bob") as early, client(team, "bob") as late:
        touch(early, jobs[0])
        touch(late, jobs[1])
        late.commit()
        found, mark = read_all(team, mark, limit)
        assert found == {jobs[1].id: 2}
        with client(team, "bob") as later:
            touch(later, jobs[2])
        found, mark = read_all(team, mark, limit)
        assert found == {jobs[2].id: 2}
        assert read_all(team, mark, limit)[0] == {}
        early.commit()
    found, mark = read_all(team, mark, limit)
    assert found == {jobs[0].id: 2}
    assert read_all(team, mark, limit) == ({}, mark)


def test_a_job_committed_between_two_pages_is_found_after_them(team: Team) -> None:
    jobs = [new(team, "bob") for _ in range(4)]
    _, mark = read_all(team, 0, 100)
    with client(team, "bob") as early, early.transaction(), early.transaction():  # a savepoint has a number of its own
        touch(early, jobs[0])
        for job in jobs[1:]:
            with client(team, "bob") as other:
                touch(other, job)
        page, mark = team.by("carol").changed(mark, HERS, 2)
        assert [one.id for one in page] == [jobs[1].id, jobs[2].id]
    found, mark = read_all(team, mark, 2)
    again, mark = read_all(team, mark, 2)
    assert {jobs[0].id, jobs[3].id} <= found.keys() | again.keys()
    assert read_all(team, mark, 2) == ({}, mark)


@settings(suppress_health_check=list(HealthCheck), max_examples=cases(15), deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["write", "commit", "undo", "read"])), max_size=30), st.integers(1, 3)
)
def test_a_reader_gets_all_that_was_committed_in_any_order(team: Team, acts: list[tuple[int, str]], limit: int) -> None:
    jobs = [new(team, "bob") for _ in range(4)]
    seen, mark = read_all(team, 0, limit)
    sessions = [client(team, "bob") for _ in jobs]
    try:
        for who, act in acts:
            if act == "write":
                touch(sessions[who], jobs[who])
            elif act == "read":
                page, mark = team.by("carol").changed(mark, HERS, limit)
                seen |= {one.id: one.version for one in page}
            else:
                getattr(sessions[who], "commit" if act == "commit" else "rollback")()
        for session in sessions:
            session.commit()
    finally:
        for session in sessions:
            session.close()
    for _ in range(2):  # what was committed while pages were read comes in the next reading
        found, mark = read_all(team, mark, limit)
        seen |= found
    versions = dict(team.sql("admin", "SELECT id, version FROM jobs WHERE id = ANY (%s)", [job.id for job in jobs]))
    assert {id: seen[id] for id in versions} == versions
    assert read_all(team, mark, limit) == ({}, mark)


def test_an_open_transaction_of_a_stranger_keeps_nothing_from_readers(team: Team, postgres: Server) -> None:
    _, mark = read_all(team, 0, 100)
    with psycopg.connect(postgres.url("postgres", "eve")) as eve:
        eve.execute("SELECT pg_current_xact_id()")
        job = new(team, "bob")
        found, mark = read_all(team, mark, 100)
        assert found == {job.id: 1}
        assert read_all(team, mark, 100) == ({}, mark)


def test_rows_of_another_server_are_read_and_not_again_and_again(team: Team) -> None:
    """A restored row may hold the number of a transaction that is still to come."""
    job = new(team, "bob")
    with client(team, "admin") as admin:
        admin.execute("SET session_replication_role = replica")
        admin.execute("UPDATE jobs SET xact = '900000000' WHERE id = %s", (job.id,))
    found, mark = read_all(team, 0, 100)
    assert job.id in found
    assert read_all(team, mark, 100) == ({}, mark)
    with client(team, "bob") as bob:
        touch(bob, job)
    assert read_all(team, mark, 100)[0] == {job.id: 2}


def test_reading_changes_uses_an_index_for_who_sees_a_part(team: Team) -> None:
    """Policies let only such conditions use an index as tell nobody anything."""
    with client(team, "carol") as carol:
        carol.execute("SET enable_seqscan = off")
        plan = carol.execute(
            """EXPLAIN SELECT id FROM jobs WHERE place = 'x' AND (xact, mark) > ('5'::xid8, 0)
            AND xact < pg_snapshot_xmax(pg_current_snapshot()) ORDER BY xact, mark LIMIT 5"""
        ).fetchall()
    text = "\n".join(line for [line] in plan)
    assert "Index Cond" in text
    assert "xact" in text.split("Index Cond")[1].split("\n")[0]
