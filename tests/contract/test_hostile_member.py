"""A member with direct SQL against the others: what they hold up is ended, and what they write of their own jobs is bounded."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from chipwise.adapters.stores.record import connect
from chipwise.adapters.stores.record.grants import Grant, connect_grants
from chipwise.adapters.stores.record.members import Member, connect_members
from chipwise.errors import NotAllowed, TryLater
from chipwise.runner.events import Wished
from chipwise.runner.job import Spec, Wish
from chipwise.runner.loop import Controller
from chipwise.runner.record import Change, Wanted
from postgres_server import TRUSTED, Server
from simple_machine import HERS, Machine
from team_record import Team, logins

psycopg = pytest.importorskip("psycopg")

HOLD = (
    "SELECT 1 FROM jobs WHERE id = 'held' FOR UPDATE"  # a job of bob's, which a lead, its controller and an admin see as well
)
OTHERS = ["alice", "carol"]


@pytest.fixture(scope="module", autouse=True)
def _logins(postgres: Server) -> Iterator[None]:
    yield from logins(postgres, TRUSTED)


@pytest.fixture(scope="module")
def team(postgres: Server, lasting_database: str) -> Iterator[Team]:
    team = Team(postgres, lasting_database)
    members = connect_members(team.url("admin"))
    for member in (
        Member("alice", "vision", "lead"),
        Member("bob", "vision"),
        Member("carol", "", "controller", HERS),
        Member("dora", "", "admin"),
    ):
        members.add(member)
    members.close()
    grants = connect_grants(team.url("carol"))
    grants.allow(Grant(HERS, team="vision"))
    grants.close()
    team.by("bob").submit([("held", Spec(("true",), "a", place=HERS, owner="bob", team="vision"))], 2.0)
    yield team
    team.close()


def client(team: Team, login: str) -> Any:
    return psycopg.connect(team.url(login), options="-c search_path=chipwise")


def test_who_has_a_team_submits_for_no_other_and_for_none(team: Team) -> None:
    """Else the limits of a team would not hold for its members."""
    for of_team in ("", "speech"):
        with pytest.raises(NotAllowed, match="row-level security"):
            team.by("bob").submit([("free", Spec(("true",), "a", place=HERS, owner="bob", team=of_team))], 2.0)
    team.by("carol").submit([("hers", Spec(("true",), "a", place=HERS, owner="carol"))], 2.0)  # who has none


# Who holds up the others.


@pytest.mark.parametrize("waits_for", ["SELECT pg_advisory_lock(4242)", "SELECT pg_advisory_xact_lock_shared(4242)"])
def test_who_holds_the_record_and_waits_for_something_else_is_ended(team: Team, waits_for: str) -> None:
    """As seconds would pass: the limits are those of the function, with the numbers replaced."""
    ends = _impatient(team)
    with client(team, "bob") as beside, client(team, "bob") as holder:
        beside.execute("SELECT pg_advisory_lock(4242)")
        holder.execute("SET lock_timeout = 0; SET statement_timeout = 0")
        holder.execute(HOLD)
        pid = holder.info.backend_pid
        ended: list[BaseException] = []

        def wait() -> None:
            try:
                holder.execute(waits_for)
            except psycopg.Error as error:
                ended.append(error)

        waiting = threading.Thread(target=wait, daemon=True)
        waiting.start()
        time.sleep(1.6)
        assert [row[0] for row in team.sql("alice", ends)] == [f"bob (process {pid})"]
        waiting.join(10.0)
        assert ended
        assert beside.execute("SELECT 1").fetchone() == (1,)  # it holds nothing of the record


@pytest.mark.e2e  # with the limits as they are
def test_others_write_within_half_a_minute_whatever_a_member_holds(team: Team) -> None:
    team.by("alice")
    with client(team, "bob") as beside, client(team, "bob") as holder:
        beside.execute("SELECT pg_advisory_lock(4243)")
        holder.execute("SET lock_timeout = 0; SET statement_timeout = 0")
        holder.execute(HOLD)

        def wait() -> None:
            with suppress(psycopg.Error):
                holder.execute("SELECT pg_advisory_lock(4243)")

        waiting = threading.Thread(target=wait, daemon=True)
        waiting.start()
        began = time.monotonic()
        try:
            team.by("alice").submit([("through", Spec(("true",), "a", place=HERS, owner="alice", team="vision"))], 2.0)
            assert time.monotonic() - began < 35.0
        finally:
            holder.cancel()  # nobody has to wait for it any more, so nobody ended it
            waiting.join(10.0)
        assert not waiting.is_alive()


def test_writers_in_the_line_are_not_ended_for_whoever_is_before_them(team: Team) -> None:
    ends = _impatient(team)
    with client(team, "dora") as first, client(team, "bob") as second:  # an admin is left alone
        first.execute(HOLD)
        done: list[int] = []

        def wait() -> None:
            done.append(second.execute(HOLD).fetchone()[0])

        waiting = threading.Thread(target=wait, daemon=True)
        waiting.start()
        time.sleep(1.6)
        assert team.sql("alice", ends) == []
        first.rollback()
        waiting.join(10.0)
        assert done


def test_whoever_is_older_than_any_of_ours_is_ended_whatever_it_waits_for(team: Team) -> None:
    ends = _impatient(team, busy=1)
    with client(team, "dora") as first, client(team, "bob") as second:
        first.execute(HOLD)
        second.execute("SET lock_timeout = 0")
        pid = second.info.backend_pid

        def wait() -> None:
            with suppress(psycopg.Error):
                second.execute(HOLD)

        waiting = threading.Thread(target=wait, daemon=True)
        waiting.start()
        time.sleep(1.6)
        assert [row[0] for row in team.sql("alice", ends)] == [f"bob (process {pid})"]
        waiting.join(10.0)


@pytest.mark.parametrize("holds", ["SELECT 1", "SELECT pg_sleep(30)", "SELECT count(*) FROM generate_series(1, 100000000)"])
def test_who_holds_the_line_with_many_sessions_goes_with_all_of_them(team: Team, holds: str) -> None:
    """Each of them alone would be short enough, and one of them would always be next."""
    ends = _impatient(team)
    sessions = [client(team, "bob") for _ in range(4)]
    pids = [one.info.backend_pid for one in sessions]
    threads = [threading.Thread(target=_hold, args=(one, holds), daemon=True) for one in sessions]
    try:
        for thread in threads:
            thread.start()
        time.sleep(1.6)
        ended = {row[0] for row in team.sql("alice", ends)}
        assert ended == {f"bob (process {pid})" for pid in pids}
    finally:
        for thread in threads:
            thread.join(10.0)
        for one in sessions:
            one.close()


def test_who_holds_the_line_with_one_short_statement_after_another_is_ended(team: Team) -> None:
    ends = _impatient(team, idle=60, held=1)
    with suppress(psycopg.OperationalError), client(team, "bob") as bob:
        pid = bob.info.backend_pid
        bob.execute(HOLD)
        for _ in range(16):
            bob.execute("SELECT pg_sleep(0.1)")
        assert [row[0] for row in team.sql("alice", ends)] == [f"bob (process {pid})"]


def _hold(session: Any, statement: str) -> None:
    with suppress(psycopg.Error):
        session.execute("SET lock_timeout = 0; SET statement_timeout = 0")
        session.execute(HOLD)
        session.execute(statement)


@pytest.mark.e2e  # with the limits as they are
def test_others_write_within_a_minute_however_many_sessions_of_a_member_hold_the_line(team: Team) -> None:
    over = threading.Event()

    def again() -> None:
        while not over.is_set():
            with suppress(psycopg.Error), client(team, "bob") as bob:
                bob.execute("SET lock_timeout = 0; SET statement_timeout = 0")
                bob.execute(HOLD)
                over.wait(14.0)

    threads = [threading.Thread(target=again, daemon=True) for _ in range(8)]
    try:
        team.by("alice")
        for thread in threads:
            thread.start()
        time.sleep(1.0)
        for number in range(3):
            began = time.monotonic()
            team.by("alice").submit([(new("line"), Spec(("true",), "a", place=HERS, owner="alice", team="vision"))], 2.0)
            assert time.monotonic() - began < 60.0, number
    finally:
        over.set()
        for thread in threads:
            thread.join(20.0)


def _impatient(team: Team, busy: int = 60, owner: str = "admin", *, idle: int = 1, held: int = 60) -> str:
    """A call of the function as it is, but for its limits."""
    from chipwise.adapters.stores.record import stalls

    text = stalls.end_stalled(idle, held, busy).replace("end_stalled()", "end_stalled_soon()")
    team.sql(owner, text.replace("%", "%%"))
    team.sql(owner, "GRANT EXECUTE ON FUNCTION end_stalled_soon() TO PUBLIC")
    return "SELECT end_stalled_soon()"


def _ends_an_idle_one(team: Team) -> bool:
    """Whether the function can, of an owner who is no superuser."""
    members = connect_members(team.url("eve"))
    members.add(Member("bob"))
    members.close()
    ends = _impatient(team, owner="eve")
    with client(team, "bob") as bob:
        bob.execute(HOLD)
        time.sleep(1.2)
        found = team.sql("eve", ends)
        with suppress(psycopg.Error):
            bob.rollback()
    return bool(found)


def test_rights_that_the_owner_lacks_are_named(postgres: Server) -> None:
    with psycopg.connect(postgres.url("postgres"), autocommit=True) as admin:
        admin.execute("CREATE DATABASE of_eve TEMPLATE template0")
        try:
            admin.execute("GRANT CREATE ON DATABASE of_eve TO eve")
            for granted, missing in (
                ((), ["pg_signal_backend", "pg_read_all_stats"]),
                (("pg_signal_backend",), ["pg_read_all_stats"]),
                (("pg_read_all_stats",), []),
            ):
                for right in granted:
                    admin.execute(f"GRANT {right} TO eve".encode())
                members = connect_members(postgres.url("of_eve", "eve"))
                try:
                    said = [warning for warning in members.unprotected() if "members protect" not in warning]
                finally:
                    members.close()
                assert ([] if not said else said[0].split("GRANT ")[1].split(" TO ")[0].split(", ")) == missing
                assert not said or "eve" in said[0]
                assert _ends_an_idle_one(Team(postgres, "of_eve")) is not bool(said)
        finally:
            admin.execute("DROP DATABASE of_eve WITH (FORCE)")
            admin.execute("REVOKE pg_signal_backend, pg_read_all_stats FROM eve")


HOARD = "SELECT count(pg_advisory_lock(i)) FROM generate_series(1, 1000000) i"
OBJECTS = "SELECT lo_create(0) FROM generate_series(1, 20000)"


def test_who_takes_all_locks_of_the_server_stops_everybody_unless_its_admin_forbids_it(
    postgres: Server, team: Team, new_database: Callable[[], str]
) -> None:
    """A stranger needs no right for it, and then nobody can connect any more, not even an admin of the server."""
    record, spec = team.by("alice"), Spec(("true",), "a", place=HERS, owner="alice", team="vision")
    record.submit([(new("before"), spec)], 2.0)
    hoarder = psycopg.connect(postgres.url(team.name, "eve"), autocommit=True)
    with pytest.raises(psycopg.Error, match="shared memory"):
        hoarder.execute(HOARD)
    with pytest.raises(TryLater, match="no room for locks left") as refused:
        record.submit([(new("meanwhile"), spec)], 2.0)
    assert "ends it" in str(refused.value.remedy)
    with pytest.raises(TryLater, match="no room for locks left"):
        connect(team.url("alice"))
    hoarder.close()
    until = time.monotonic() + 20.0
    while True:
        with suppress(TryLater):
            record.submit([(new("after"), spec)], 2.0)
            break
        assert time.monotonic() < until
    closed = Team(postgres, new_database())
    members = connect_members(closed.url("admin"))
    members.protect()
    members.close()
    for statement in (HOARD, OBJECTS):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            closed.sql("eve", statement)


def test_large_objects_take_all_locks_of_the_server_as_well(
    postgres: Server, team: Team, new_database: Callable[[], str]
) -> None:
    """Each that is removed is a lock until the transaction ends. Where there is no room for the next, all others stay."""
    team.by("alice")
    with psycopg.connect(postgres.url(new_database(), "eve")) as hoarder:
        made = [object for [object] in hoarder.execute(OBJECTS).fetchall()]
        hoarder.commit()
        at, many = 0, 2000
        while many:
            hoarder.execute("SAVEPOINT before")
            try:
                hoarder.execute("SELECT count(lo_unlink(o)) FROM unnest(%s::oid[]) o", (made[at : at + many],))
                at += many
            except psycopg.errors.OutOfMemory:
                hoarder.execute("ROLLBACK TO before")
                many //= 2
        assert at < len(made)
        with pytest.raises(TryLater, match="no room for locks left"):
            connect(team.url("alice"))
        hoarder.rollback()
    connect(team.url("alice")).close()


@pytest.mark.parametrize("login", ["alice", "bob", "carol"])
@pytest.mark.parametrize("table", ["jobs", "events", "attempts", "leases", "meta", "members", "grants"])
def test_nobody_but_an_admin_locks_a_table_against_others(team: Team, login: str, table: str) -> None:
    for mode in ("SHARE", "SHARE ROW EXCLUSIVE", "EXCLUSIVE", "ACCESS EXCLUSIVE"):
        with client(team, login) as session, pytest.raises(psycopg.errors.InsufficientPrivilege):
            session.execute(f"LOCK TABLE {table} IN {mode} MODE NOWAIT".encode())


def test_a_place_is_closed_by_whoever_acts_for_it_alone(team: Team) -> None:
    team.sql("carol", "INSERT INTO grants (place, login) VALUES (%s, 'eve')", HERS)
    for login in ("alice", "bob"):
        assert team.sql(login, "SELECT close_place(%s, 'eve', '')", HERS) == [(False,)]
    grants = connect_grants(team.url("carol"))
    try:
        assert grants.refuse(Grant(HERS, login="eve"))
        assert not grants.refuse(Grant(HERS, login="eve"))
    finally:
        grants.close()


# What they write of their own jobs.


def test_a_job_too_large_for_a_controller_that_reads_many_is_refused(team: Team) -> None:
    with pytest.raises(psycopg.errors.CheckViolation, match="characters"):
        insert(team, "large", {"env": {"A": "a" * 2_000_000}})
    insert(team, "large", {"env": {"A": "a" * 1_900_000}})


def insert(team: Team, id: str, spec: dict[str, Any], time_text: str = "1.0", **columns: object) -> None:
    whole = {"command": ["true"], "name": "odd", "place": HERS, "owner": "bob", "team": "vision", **spec}
    body = json.dumps({"id": id, "spec": whole, "submitted": "@", "version": 1}).replace('"@"', time_text)
    with client(team, "bob") as bob:
        row = {"id": id, "born": 1, "version": 1, "mark": 1, "place": HERS, "name": "odd", "phase": "queued"}
        row |= {"engine": "local", "owner": "bob", "team": "vision", "project": "", "priority": 0, "gpus": 0, "cpus": 1}
        row |= {"machines": 1, "attempts": 0, "submitted": 1.0, "reason": "", "body": body, **columns}
        names, places = ", ".join(row), ", ".join(["%s"] * len(row))
        bob.execute(f"INSERT INTO jobs ({names}) VALUES ({places})".encode(), list(row.values()))
        event = json.dumps({"spec": whole})
        bob.execute("INSERT INTO events (job, version, at, kind, body) VALUES (%s, 1, 1, 'submitted', %s)", (id, event))


REFUSED = (psycopg.errors.CheckViolation, psycopg.errors.InsufficientPrivilege, psycopg.DataError)


@pytest.mark.parametrize(
    "spec",
    [
        {"places": [[[1]]]},
        {"places": [{"usd_per_hour": "cheap"}]},
        {"places": [{"purchase": "stolen"}]},
        {"places": [{"machine": 5}]},
        {"objects": [None]},
        {"objects": [1]},
        {"recover": ["zzz"]},
        {"work": {"unit": []}},
        {"work": {"amount": "many"}},
        {"deadline": "soon"},
        {"needs": {"processes": 100_000}},
        {"needs": {"processes": 0}},
        {"needs": {"processes": 1025}},
    ],
    ids=str,
)
def test_a_specification_that_no_controller_reads_is_refused(team: Team, spec: dict[str, Any]) -> None:
    with pytest.raises(psycopg.errors.CheckViolation, match="cannot be in a job"):
        insert(team, "unread", spec)


def test_what_is_nested_as_deep_as_it_may_be_is_read_and_nothing_deeper_comes_in(team: Team) -> None:
    def nested(depth: int) -> dict[str, Any]:
        return {"a": nested(depth - 1)} if depth > 1 else {"a": 1}

    insert(team, "deepest", {"predicted": nested(32)})
    assert team.by("bob").job("deepest") is not None
    with pytest.raises(psycopg.errors.CheckViolation, match="within each other"):
        insert(team, "deeper", {"predicted": nested(33)})


def test_a_specification_with_all_that_may_be_in_it_is_taken(team: Team) -> None:
    places = [{"purchase": "spot", "provider": "aws", "region": "eu", "zone": "a", "machine": "m", "usd_per_hour": 1.5}]
    work = {"unit": "samples", "amount": 5, "per_step": None}
    more = {"places": places, "work": work, "recover": ["same", "fewer"], "objects": [{"kind": "Job"}], "deadline": None}
    insert(team, "full", {**more, "needs": {"processes": 1024}})
    job = team.by("bob").job("full")
    assert job is not None
    assert job.spec.needs.processes == 1024


@pytest.mark.parametrize("submitted", ['"x"', "1e400", "-5", "[[[]]]", "null", "2.0", "[" * 900 + "]" * 900])
def test_a_time_of_submission_that_is_none_is_refused(team: Team, submitted: str) -> None:
    with pytest.raises(REFUSED):
        insert(team, "timeless", {}, submitted)


@pytest.mark.parametrize("columns", [{"submitted": 1e18}, {"submitted": -1e18}], ids=str)
def test_columns_of_a_new_job_beyond_what_they_count_are_refused(team: Team, columns: dict[str, object]) -> None:
    submitted = f"{columns.get('submitted', 1.0):.0f}"
    with pytest.raises(REFUSED):
        insert(team, "counted", {}, submitted, **columns)


DEEP = "[" * 900 + "]" * 900


@pytest.mark.parametrize("wish", ["1e17", '{"stop": 1e400}', DEEP, '"pause"', "null", "true"], ids=lambda one: one[:20])
def test_a_wish_that_is_none_is_refused(team: Team, wish: str) -> None:
    job = _running(team, new("wishes"))
    with client(team, "bob") as bob:
        [body] = bob.execute("SELECT body FROM jobs WHERE id = %s", (job,)).fetchone()
        held = {**json.loads(body), "wish": "@"}
        held["version"] += 1
        text = json.dumps(held).replace('"@"', wish)
        with pytest.raises(REFUSED):
            bob.execute("UPDATE jobs SET version = version + 1, body = %s WHERE id = %s", (text, job))


def test_a_change_has_a_number_and_a_transaction_of_its_own_whatever_is_written(team: Team) -> None:
    job = _running(team, "unseen")
    [[before, _]] = team.sql("admin", "SELECT mark, xact::text FROM jobs WHERE id = %s", job)
    team.sql(
        "bob",
        """UPDATE jobs SET version = version + 1, mark = 1,
        body = (body::jsonb || jsonb_build_object('version', version + 1))::text WHERE id = %s""",
        job,
    )
    [[mark, is_own]] = team.sql("admin", "SELECT mark, xact::text = xmin::text FROM jobs WHERE id = %s", job)
    assert mark > before
    assert is_own


@pytest.mark.parametrize(
    ("version", "moment", "body"),
    [
        (0, 1.0, '{"wish": "stop"}'),
        (-5, 1.0, '{"wish": "stop"}'),
        (-(2**53), 1.0, '{"wish": "stop"}'),
        (None, -1e18, '{"wish": "stop"}'),
        (None, 1e18, '{"wish": "stop"}'),
        (None, 1.0, "garbage"),
        (None, 1.0, "[" * 900),
        (None, 1.0, '{"wish": 1e999}'),
        (None, 1.0, '{"wish": "stop", "reason": [[]]}'),
        (None, 1.0, "{}"),
        (None, 1.0, '{"wish": "stop", "more": ' + DEEP + "}"),
    ],
    ids=lambda one: str(one)[:24],
)
def test_an_event_that_nobody_could_read_is_refused(team: Team, version: int | None, moment: float, body: str) -> None:
    job = _running(team, new("tells"))
    with client(team, "bob") as bob:
        [number] = bob.execute(
            """UPDATE jobs SET version = version + 1,
            body = (body::jsonb || jsonb_build_object('version', version + 1, 'wish', 'stop'))::text
            WHERE id = %s RETURNING version""",
            (job,),
        ).fetchone()
        values = (job, number if version is None else version, moment, body)
        with pytest.raises(REFUSED):
            bob.execute("INSERT INTO events (job, version, at, kind, body) VALUES (%s, %s, %s, 'wished', %s)", values)


def test_owner_and_lead_stop_a_job_and_start_it_again(team: Team) -> None:
    for login in ("bob", "alice"):
        id = _running(team, f"stopped-by-{login}")
        job = team.by(login).job(id)
        assert job is not None
        [stopped] = team.by(login).write([Change(job, (Wished(Wish.END, login, "now"),))], 30.0)
        assert getattr(stopped, "wish", None) is Wish.END
        held = json.loads(team.sql("admin", "SELECT body FROM jobs WHERE id = %s", id)[0][0])
        over = json.dumps({**held, "phase": "failed", "ended": 31.0, "reason": "x"})
        team.sql("admin", "UPDATE jobs SET phase = 'failed', ended = 31, reason = 'x', body = %s WHERE id = %s", over, id)
        failed = team.by(login).job(id)
        assert failed is not None
        [again] = team.by(login).write([Change(failed, (Wished(Wish.RUN, login),))], 32.0)
        assert getattr(again, "phase", None) == "queued"


_numbers = itertools.count()


def new(name: str) -> str:
    return f"{name}-{next(_numbers)}"


def _running(team: Team, id: str) -> str:
    spec = Spec(("true",), "a", place=HERS, owner="bob", team="vision")
    team.by("bob").submit([(id, spec)], 2.0)
    controller = Controller(team.by("carol"), Machine(), "carol-1")
    controller.turn(10.0)
    controller.resign()
    job = team.by("bob").job(id)
    assert job is not None
    assert job.phase.placed
    return id


def test_what_was_wanted_of_a_job_before_wishes_were_bounded_is_taken_out_of_it(postgres: Server) -> None:
    from chipwise.adapters.stores.record import connect
    from chipwise.adapters.stores.record.address import Server as Address
    from chipwise.adapters.stores.record.address import read_address
    from chipwise.adapters.stores.record.postgres import PostgresDatabase
    from chipwise.adapters.stores.record.schema import for_postgres

    with psycopg.connect(postgres.url("postgres"), autocommit=True) as admin:
        admin.execute("CREATE DATABASE older TEMPLATE template0")
        try:
            url = postgres.url("older")
            address = read_address(url)
            assert isinstance(address, Address)
            PostgresDatabase(address, migrations=for_postgres()[:6]).close()
            with psycopg.connect(url, autocommit=True, options="-c search_path=chipwise") as owner:
                for id, wish in (("deep", DEEP), ("large", "1e17"), ("good", '"stop"'), ("broken", "")):
                    body = f'{{"id":"{id}","spec":{{"command":["x"],"name":"x"}},"submitted":1.0,"version":1,"wish":{wish}}}'
                    columns = "0, 0, 1, 1, 0, 1, NULL, NULL, ''"
                    owner.execute(
                        f"INSERT INTO jobs VALUES (%s, 1, 1, 1, '', 'x', 'queued', 'local', '', '', '', {columns}, %s)",
                        (id, body),
                    )
            record = connect(url)
            wishes = {job.id: job.wish for job in record.jobs(Wanted())}
            record.close()
            assert wishes == {"deep": Wish.RUN, "large": Wish.RUN, "good": Wish.STOP}
        finally:
            admin.execute("DROP DATABASE older WITH (FORCE)")


# What they learn of the others.


@pytest.mark.parametrize(
    "question",
    ["teams_of(%s)", "teams_led_by(%s)", "places_of(%s)", "secrets_for(%s, 'x')"],
)
@pytest.mark.parametrize("other", OTHERS)
def test_a_member_asks_only_about_themselves(team: Team, question: str, other: str) -> None:
    assert team.sql("bob", f"SELECT {question}", other) == []


@pytest.mark.parametrize("question", ["acts_for(%s, %s)", "may_submit(%s, %s)"])
def test_a_member_learns_nothing_about_what_others_may_do(team: Team, question: str) -> None:
    for other in OTHERS:
        assert team.sql("bob", f"SELECT {question}", other, HERS) == [(False,)]
    for yes_or_no in ("belongs", "sees_all", "is_admin"):
        assert team.sql("bob", f"SELECT {yes_or_no}('dora')") == [(False,)]
    assert team.sql("carol", "SELECT may_submit('bob', %s)", HERS) == [(True,)]
    assert team.sql("dora", "SELECT acts_for('carol', %s)", HERS) == [(True,)]
