"""Who may see and do what in a team's database, with real logins: held by the server, whatever client is used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from chipwise.adapters.stores.record.grants import Grant, connect_grants
from chipwise.adapters.stores.record.members import Member, connect_members
from chipwise.errors import BadInput, NotAllowed, UnknownName
from chipwise.runner.events import Again, Begun, Ended, Event, Over, Placed, Told, Waiting, Wished
from chipwise.runner.job import Job, MachinePlace, Outcome, Phase, Spec, Wish
from chipwise.runner.record import Change, Deposed, Stale, Unread, Wanted
from postgres_server import TRUSTED, Server
from team_record import Team, logins

psycopg = pytest.importorskip("psycopg")
STOP = Wished(Wish.STOP, "me", "enough")
TEAM = (
    Member("alice", "vision"),
    Member("bob", "vision"),
    Member("bob", "speech"),
    Member("bob", "", "controller", "bobs"),
    Member("carol", "vision", "lead"),
    Member("dora", "", "admin"),
    Member("robot", "", "controller"),
)


@pytest.fixture(scope="module", autouse=True)
def _logins(postgres: Server) -> Iterator[None]:
    yield from logins(postgres, TRUSTED)


@pytest.fixture
def team(postgres: Server, new_database: Callable[[], str]) -> Iterator[Team]:
    yield from _team(postgres, new_database())


@pytest.fixture(scope="module")
def lasting_team(postgres: Server, lasting_database: str) -> Iterator[Team]:
    yield from _team(postgres, lasting_database)


def _team(postgres: Server, database: str) -> Iterator[Team]:
    made = Team(postgres, database)
    members = connect_members(made.url("admin"))
    for member in TEAM:
        members.add(member)
    members.close()
    grants = connect_grants(made.url("robot"))
    for grant in (Grant("shared", team="vision"), Grant("bobs", "alice")):
        grants.allow(grant)
    grants.close()
    for login, group in (("alice", "vision"), ("bob", "speech"), ("carol", "vision")):
        spec = Spec(("true",), "a", place="shared", owner=login, team=group)
        made.by(login).submit([(f"{login}s", spec)], 1.0)
    yield made
    made.close()


def seen(team: Team, login: str) -> set[str]:
    record = team.by(login)
    rows = {row.id for row in record.rows(Wanted())}
    assert rows == {job.id for job in record.jobs(Wanted())}
    assert rows == {id for id in ("alices", "bobs", "carols") if record.job(id) is not None}
    assert rows == {id for id in ("alices", "bobs", "carols") if record.events(id)}
    return rows


def change(team: Team, login: str, job: Job, *events: Event) -> Job | Stale:
    return team.by(login).write([Change(job, events)], 2.0)[0]


def job_of(team: Team, id: str) -> Job:
    job = team.by("robot").job(id)
    assert job is not None
    return job


def test_each_sees_what_their_role_allows(team: Team) -> None:
    assert seen(team, "alice") == {"alices"}
    assert seen(team, "bob") == {"bobs"}
    assert seen(team, "carol") == {"alices", "carols"}  # the team's, and their own
    assert seen(team, "dora") == seen(team, "robot") == seen(team, "admin") == {"alices", "bobs", "carols"}
    with pytest.raises(NotAllowed, match="eve is not a member of this record"):
        team.by("eve")


def test_a_member_stops_their_own_job_and_nobody_elses(team: Team) -> None:
    mine = change(team, "alice", job_of(team, "alices"), STOP)
    assert isinstance(mine, Job)
    assert mine == job_of(team, "alices")
    others = change(team, "alice", job_of(team, "bobs"), STOP)
    assert isinstance(others, Stale)
    assert "not for you to see" in str(others)
    assert job_of(team, "bobs").wish is Wish.RUN


def test_a_lead_stops_a_job_of_the_team_and_no_other(team: Team) -> None:
    assert isinstance(change(team, "carol", job_of(team, "alices"), STOP), Job)
    assert isinstance(change(team, "carol", job_of(team, "bobs"), STOP), Stale)
    assert team.sql("robot", "SELECT login FROM events WHERE job = 'alices' AND kind = 'wished'") == [("carol",)]


def test_a_controller_takes_any_job_through_its_life_and_its_owner_starts_it_again(team: Team) -> None:
    robot = team.by("robot")
    lease = robot.lead("shared", "robot-1", 1.0, 10.0)
    assert lease is not None
    job = job_of(team, "alices")
    for events in (
        (Waiting("no room"), Placed(1, MachinePlace(), cpus=(0,)), Begun(1, "h")),
        (Ended(1, Outcome.FAILED, 1), Again(5.0, "once more"), Over(Phase.FAILED, "bug")),
    ):
        [answer] = robot.write([Change(job, events)], 3.0, lease)
        assert isinstance(answer, Job)
        job = answer
    assert [use.job for use in team.by("alice").uses(0, 9)] == ["alices"]
    assert team.by("bob").uses(0, 9) == []
    again = change(team, "alice", job, Wished(Wish.RUN, "alice"))
    assert isinstance(again, Job)
    assert again.phase is Phase.QUEUED
    assert job_of(team, "alices") == again


def test_a_job_belongs_to_whoever_is_logged_in(team: Team) -> None:
    record = team.by("alice")
    for owner, group in (("bob", ""), ("", ""), ("alice", "speech")):
        spec = Spec((), "a", place="shared", owner=owner, team=group)
        with pytest.raises(NotAllowed, match="refuses this to alice"):
            record.submit([("new", spec)], 1.0)
    with pytest.raises(NotAllowed, match="eve is not a member of this record"):
        team.by("eve").submit([("new", Spec((), "a", owner="eve"))], 1.0)
    with pytest.raises(Stale, match="has a job of that id already"):
        record.submit([("bobs", Spec((), "a", place="shared", owner="alice", team="vision"))], 1.0)


def test_a_member_says_what_is_wanted_and_not_what_happens(team: Team) -> None:
    job = job_of(team, "alices")
    for events in ((Placed(1, MachinePlace(), cpus=(0,)),), (Over(Phase.DONE, ""),), (Told(0, "x"),), (Waiting("x"),)):
        with pytest.raises(NotAllowed, match=r"refuses this to alice: only a controller says what becomes of job alices"):
            change(team, "alice", job, *events)
    with pytest.raises(NotAllowed):
        team.by("alice").lead("shared", "alice", 1.0, 10.0)
    assert job_of(team, "alices") == job


def test_whoever_controls_a_place_writes_its_jobs_and_sees_no_others(team: Team) -> None:
    team.by("alice").submit([("there", Spec((), "a", place="bobs", owner="alice", team="vision"))], 1.0)
    bob = team.by("bob")
    assert {row.id for row in bob.rows(Wanted())} == {"bobs", "there"}
    lease = bob.lead("bobs", "bob-1", 1.0, 10.0)
    assert lease is not None
    [answer] = bob.write([Change(job_of(team, "there"), (Placed(1, MachinePlace(), cpus=(0,)),))], 2.0, lease)
    assert isinstance(answer, Job)
    assert answer == job_of(team, "there")
    with pytest.raises(NotAllowed):
        bob.lead("shared", "bob-1", 1.0, 10.0)
    with pytest.raises(NotAllowed):
        change(team, "bob", job_of(team, "bobs"), Placed(1, MachinePlace(), cpus=(0,)))  # his own, at a place that is not
    with pytest.raises(Deposed):
        bob.write([Change(job_of(team, "there"), (Told(1, "x"),))], 2.0, replace(lease, epoch=9))


FORBIDDEN = [
    "UPDATE events SET at = 0",
    "UPDATE events SET login = 'bob'",
    "DELETE FROM events",
    "TRUNCATE events",
    "INSERT INTO events (job, version, at, kind, body) VALUES ('bobs', 2, 1, 'wished', '{}')",
    "INSERT INTO events (job, version, at, kind, body) VALUES ('alices', 2, 1, 'wished', '{}')",
    "INSERT INTO events (job, version, at, kind, body, login) VALUES ('alices', 2, 1, 'wished', '{}', 'bob')",
    "INSERT INTO members VALUES ('alice', 'vision', 'lead', '')",
    "INSERT INTO attempts (job, number, purchase, provider, region, machine, machines) VALUES ('alices', 1, '', '', '', '', 1)",
    "INSERT INTO leases VALUES ('shared', 'alice', 1, 9)",
    "UPDATE jobs SET owner = 'bob'",
    "UPDATE jobs SET team = ''",
    "UPDATE jobs SET phase = 'done'",
    "UPDATE jobs SET body = replace(body, 'alice', 'bob')",
    """UPDATE jobs SET version = 2, body = '{"id": "alices", "version": 2, "spec": {"owner": "bob"}}'""",
    """UPDATE jobs SET version = 2, body = (body::jsonb || '{"version": 2, "attempts": [{"handle": "pod-of-bob"}]}')::text""",
    """UPDATE jobs SET version = 2, xact = '0', body = (body::jsonb || '{"version": 2}')::text""",
    "SELECT nextval('marks')",
    "SELECT 1 FROM meta FOR KEY SHARE",
    "UPDATE meta SET value = 99 WHERE name = 'schema'",
    """UPDATE jobs SET version = 20000, body = (body::jsonb || '{"version": 20000}')::text""",
    "DELETE FROM jobs",
    "UPDATE meta SET value = 0 WHERE name = 'mark'",
    "UPDATE meta SET value = value + 100000000 WHERE name = 'mark'",
    "UPDATE meta SET name = 'x'",
    "ALTER TABLE jobs DISABLE ROW LEVEL SECURITY",
    "ALTER TABLE events DISABLE TRIGGER ALL",
    "DROP TABLE jobs",
    "CREATE TABLE other (x int)",
    "SET ROLE admin",
    "UPDATE members SET role = 'admin'",
    "DELETE FROM members",
    "UPDATE leases SET until = 0",
    "UPDATE attempts SET ended = 0",
    "INSERT INTO grants VALUES ('carols', 'alice')",
    "UPDATE grants SET secrets = '{aws/key}'",
    "DELETE FROM grants",
    "SELECT set_rights('alice')",
    *(
        f"DO $$ BEGIN LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE; END $$"
        for table in ("jobs", "events", "attempts", "leases", "meta", "members", "grants")
    ),
]


@pytest.mark.parametrize("statement", FORBIDDEN)
def test_a_member_with_any_client_is_refused(lasting_team: Team, statement: str) -> None:
    before = lasting_team.sql("admin", "SELECT * FROM jobs ORDER BY id")
    assert len(before) == 3
    with pytest.raises((psycopg.errors.InsufficientPrivilege, psycopg.errors.RaiseException)):
        lasting_team.sql("alice", statement)
    assert lasting_team.sql("admin", "SELECT * FROM jobs ORDER BY id") == before


def test_only_admins_decide_who_is_what(team: Team) -> None:
    by_alice, by_dora = connect_members(team.url("alice")), connect_members(team.url("dora"))
    try:
        assert by_alice.all() == [Member("alice", "vision")]
        with pytest.raises(NotAllowed):
            by_alice.add(Member("alice", "", "admin"))
        with pytest.raises(NotAllowed):
            by_alice.remove(Member("bob", "vision"))
        by_dora.add(Member("eve", "vision"))
        by_dora.add(Member("eve", "vision"))
        assert set(by_dora.all()) == {*TEAM, Member("eve", "vision")}
        team.by("eve").submit([("eves", Spec((), "a", place="shared", owner="eve", team="vision"))], 1.0)
        assert by_dora.remove(Member("eve", "vision"))
        with pytest.raises(NotAllowed):
            team.by("eve").rows(Wanted())
        for wrong, said in (
            (Member("eve", "vision", "boss"), "No role is called 'boss'"),
            (Member("eve", "", "lead"), "needs a team"),
            (Member("eve", "", "member", "here"), "Only a controller"),
        ):
            with pytest.raises((BadInput, UnknownName), match=said):
                by_dora.add(wrong)
    finally:
        by_alice.close()
        by_dora.close()


def test_a_record_in_a_file_has_no_members() -> None:
    with pytest.raises(BadInput, match="is a file: everyone who can read it sees everything"):
        connect_members("/nowhere/jobs.db")


def _damaged(team: Team, id: str, body: str) -> Job:
    job = team.by("robot").job(id)
    assert job is not None
    with psycopg.connect(team.url("admin"), options="-c search_path=chipwise") as admin:
        admin.execute("SET session_replication_role = replica")  # no trigger, as a failing disk asks none
        admin.execute("UPDATE jobs SET body = %s WHERE id = %s", (body, id))
    return job


@pytest.mark.parametrize("body", ["{", "[]", '{"id": "x"}'])
def test_a_damaged_row_is_mended_by_who_acts_for_its_place_and_by_nobody_else(team: Team, body: str) -> None:
    [id] = [row.id for row in team.by("alice").rows(Wanted(owner="alice"))]
    job = _damaged(team, id, body)
    assert team.by("alice").job(id) == job, "its events give it"
    with pytest.raises(NotAllowed, match="is damaged, which only its controller or an admin can repair"):
        team.by("alice").write([Change(job, (STOP,))], 5.0)
    [mended] = team.by("robot").write([Change(job, (Waiting("no room"),))], 5.0)
    assert team.by("alice").job(id) == mended
    [stopped] = team.by("alice").write([Change(mended, (STOP,))], 6.0)
    assert isinstance(stopped, Job)
    ended = Wished(Wish.END, "alice")
    assert isinstance(team.by("alice").write([Change(stopped, (ended,))], 7.0)[0], Job), "to end at once is hers to ask, too"


def test_of_a_job_that_cannot_be_read_it_is_said_who_gives_it_up_and_how(team: Team) -> None:
    [id] = [row.id for row in team.by("alice").rows(Wanted(owner="alice"))]
    job = _damaged(team, id, "{")
    with psycopg.connect(team.url("admin"), options="-c search_path=chipwise") as admin:
        admin.execute("SET session_replication_role = replica")
        admin.execute("UPDATE events SET body = '[' WHERE job = %s", (id,))
    with pytest.raises(Unread) as raised:
        team.by("alice").job(id)
    who = (
        f"the controller of {job.spec.place} or an admin of the database gives the job up with `chipwise forget {id} --damaged`"
    )
    assert who in str(raised.value.remedy)
    with pytest.raises(NotAllowed) as refused:
        team.by("alice").give_up(raised.value.damaged, "", 5.0)
    assert f"chipwise forget {id} --damaged" in str(refused.value.remedy)
    assert team.by("robot").give_up(raised.value.damaged, "given up", 5.0).phase is Phase.FAILED
