"""Who may run jobs at a place, by direct SQL and through the record: a controller runs them as its own system user."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pytest

from chipwise.adapters.stores.record.grants import Grant, connect_grants
from chipwise.adapters.stores.record.members import Member, connect_members
from chipwise.api.running import jobs
from chipwise.errors import BadInput, NotAllowed
from chipwise.runner.engine import Room, Seen
from chipwise.runner.events import Placed, Waiting
from chipwise.runner.job import Job, MachinePlace, Phase, Spec, Wish
from chipwise.runner.loop import Controller
from chipwise.runner.permits import Permit
from chipwise.runner.queue import Rules
from chipwise.runner.record import Change
from postgres_server import TRUSTED, Server
from simple_machine import HERS, Machine
from team_record import Team, logins

psycopg = pytest.importorskip("psycopg")
TABLES = ("jobs", "events", "attempts", "leases", "meta", "members", "grants")


@pytest.fixture(scope="module", autouse=True)
def _logins(postgres: Server) -> Iterator[None]:
    yield from logins(postgres, TRUSTED)


@pytest.fixture
def team(postgres: Server, new_database: Callable[[], str]) -> Iterator[Team]:
    """Carol acts for her workstation; mallory of the tests is bob, a member like any other; eve is a stranger."""
    team = Team(postgres, new_database())
    members = connect_members(team.url("admin"))
    for member in (
        Member("alice", "vision"),
        Member("bob", "vision"),
        Member("carol", "vision", "lead"),
        Member("carol", "", "controller", HERS),
        Member("dora", "", "admin"),
        Member("robot", "", "controller"),
    ):
        members.add(member)
    members.close()
    yield team
    team.close()


def spec(owner: str, **more: object) -> Spec:
    return Spec(("true",), "a", place=HERS, owner=owner, team="vision", **more)  # type: ignore[arg-type]


def allow(team: Team, login: str, grant: Grant) -> None:
    grants = connect_grants(team.url(login))
    try:
        grants.allow(grant)
    finally:
        grants.close()


def test_a_member_cannot_submit_to_the_machine_of_another(team: Team) -> None:
    with pytest.raises(NotAllowed, match=f"bob may not run jobs at {HERS}"):
        team.by("bob").submit([("evil", spec("bob"))], 1.0)
    body = """{"id": "evil", "version": 1, "spec": {"owner": "bob", "place": "carols workstation"}}"""
    statement = """INSERT INTO jobs VALUES
        ('evil', 1, 1, 0, %s, 'a', 'queued', 'local', 'bob', '', '', 0, 0, 1, 1, 0, 1, NULL, NULL, '', %s)"""
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        team.sql("bob", statement, HERS, body)
    assert team.sql("admin", "SELECT count(*) FROM jobs") == [(0,)]


def test_whoever_acts_for_a_place_opens_it_to_a_user_or_a_team_and_closes_it_again(team: Team) -> None:
    allow(team, "carol", Grant(HERS, "alice"))
    team.by("alice").submit([("hers", spec("alice"))], 1.0)
    with pytest.raises(NotAllowed):
        team.by("bob").submit([("his", spec("bob"))], 1.0)
    allow(team, "carol", Grant(HERS, team="vision", secrets=("hub/token",)))
    team.by("bob").submit([("his", spec("bob"))], 1.0)
    assert team.by("carol").permits(HERS, ["alice", "bob", "carol", "eve"]) == {
        "alice": Permit(True, frozenset({"hub/token"})),
        "bob": Permit(True, frozenset({"hub/token"})),
        "carol": Permit(True, None),
        "eve": Permit(False),
        "": Permit(True, None),
    }
    grants = connect_grants(team.url("carol"))
    try:
        assert grants.all() == [Grant(HERS, "alice"), Grant(HERS, team="vision", secrets=("hub/token",))]
        assert grants.refuse(Grant(HERS, team="vision"))
        assert not grants.refuse(Grant(HERS, team="vision"))
    finally:
        grants.close()
    with pytest.raises(NotAllowed):
        team.by("bob").submit([("again", spec("bob"))], 1.0)


@pytest.mark.parametrize("login", ["alice", "bob"])
def test_nobody_opens_a_place_for_which_they_do_not_act(team: Team, login: str) -> None:
    with pytest.raises(NotAllowed):
        allow(team, login, Grant(HERS, login))
    allow(team, "robot", Grant("cluster", login))
    with pytest.raises(NotAllowed):
        allow(team, "carol", Grant("cluster", "carol"))


def test_a_grant_is_to_a_user_or_to_a_team(team: Team) -> None:
    for grant in (Grant(HERS), Grant(HERS, "alice", "vision"), Grant("", "alice")):
        with pytest.raises(BadInput):
            allow(team, "carol", grant)


def test_nobody_submits_for_another_whatever_their_role(team: Team) -> None:
    for login in ("carol", "dora", "robot"):
        with pytest.raises(NotAllowed):
            team.by(login).submit([("new", spec("alice"))], 1.0)


def test_a_controller_starts_only_what_was_allowed_and_says_what_is_missing(team: Team) -> None:
    allow(team, "carol", Grant(HERS, "alice"))
    [first] = team.by("alice").submit([("first", spec("alice"))], 1.0)
    team.by("alice").submit([("keyed", spec("alice", secrets={"KEY": "aws/key"}))], 2.0)
    team.by("alice").submit([("handed", spec("alice", secrets={"KEY": ""}))], 2.0)
    with psycopg.connect(team.url("admin"), options="-c search_path=chipwise") as admin:  # as if it had come in before the rule
        admin.execute("DELETE FROM grants")
    carol = team.by("carol")
    engine = Machine()
    controller = Controller(carol, engine, "carol-1")
    controller.turn(10.0)
    assert not engine.started
    waiting = carol.job(first.id)
    assert waiting is not None
    assert waiting.phase is Phase.QUEUED
    assert waiting.waiting.startswith(f"alice may not run jobs at {HERS}")
    assert f"chipwise places allow '{HERS}' --user alice" in waiting.waiting
    allow(team, "carol", Grant(HERS, "alice"))
    controller.turn(11.0)
    assert engine.started.keys() == {"first", "handed"}
    keyed = carol.job("keyed")
    assert keyed is not None
    assert keyed.waiting.startswith("alice may not use the secret aws/key")
    allow(team, "carol", Grant(HERS, "alice", secrets=("aws/key",)))
    controller.turn(12.0)
    assert "keyed" in engine.started


EVERYWHERE = [
    *(f"SELECT * FROM {table}" for table in TABLES),
    *(f"DELETE FROM {table}" for table in TABLES),
    *(f"DO $$ BEGIN LOCK TABLE {table} IN ACCESS SHARE MODE; END $$" for table in TABLES),
    *(
        f"SELECT {name}('alice')"
        for name in ("is_admin", "sees_all", "belongs", "teams_of", "teams_led_by", "places_of", "set_rights")
    ),
    "SELECT acts_for('alice', '')",
    "SELECT may_submit('alice', '')",
    "SELECT secrets_for('alice', '')",
    "SELECT chipwise.spec_fault('{}')",
    "SELECT * FROM end_stalled()",
    "INSERT INTO meta VALUES ('x', 1)",
    "UPDATE meta SET value = value + 1 WHERE name = 'mark'",
]


def test_a_stranger_can_do_nothing_at_all(team: Team) -> None:
    for statement in EVERYWHERE:
        for schema in ("", "chipwise."):
            text = statement.replace("FROM ", f"FROM {schema}").replace("TABLE ", f"TABLE {schema}")
            with pytest.raises(psycopg.errors.InsufficientPrivilege if schema and text != statement else psycopg.Error):
                team.sql("eve", text)
    with pytest.raises(NotAllowed, match="eve is not a member of this record"):
        team.by("eve")


def test_only_an_admin_locks_the_list_of_members_and_nobody_but_the_owner_locks_jobs(team: Team) -> None:
    for login in ("alice", "carol", "robot", "dora"):
        for table in ("jobs", "events", "attempts", "leases", "meta", *(("members",) if login != "dora" else ())):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                team.sql(login, f"DO $$ BEGIN LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE; END $$")


def test_a_login_that_is_no_member_any_more_has_no_rights_left(team: Team) -> None:
    members = connect_members(team.url("dora"))
    try:
        assert members.remove(Member("bob", "vision"))
        with pytest.raises(BadInput, match="does not know that login"):
            members.add(Member("nobody_of_that_name", "vision"))
    finally:
        members.close()
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        team.sql("bob", "SELECT * FROM chipwise.jobs")


def test_a_controller_writes_what_happens_at_its_place(team: Team) -> None:
    """The rights of each column suffice for what a controller does."""
    allow(team, "carol", Grant(HERS, "alice"))
    [job] = team.by("alice").submit([("hers", spec("alice"))], 1.0)
    carol = team.by("carol")
    lease = carol.lead(HERS, "carol-1", 1.0, 10.0)
    for events in ((Waiting("no room"),), (Placed(1, MachinePlace(), cpus=(0,)),)):
        [answer] = carol.write([Change(job, events)], 3.0, lease)
        assert isinstance(answer, Job)
        job = answer
    assert lease is not None
    carol.resign(lease)


def test_people_submit_in_their_teams_and_the_owner_in_any(team: Team) -> None:
    assert team.by("alice").teams() == frozenset({"vision"})
    assert team.by("dora").teams() == frozenset()
    assert team.by("admin").teams() is None


class OneProcessor(Machine):
    def look(self, jobs: Sequence[Job], now: float) -> Seen:
        return replace(super().look(jobs, now), room=Room((), (0,)))


def test_one_who_does_not_see_the_others_reads_why_his_job_waits_and_can_stop_it(team: Team) -> None:
    allow(team, "carol", Grant(HERS, team="vision"))
    team.by("alice").submit([("a1", spec("alice")), ("a2", spec("alice"))], 1.0)
    team.by("bob").submit([("his", spec("bob"))], 2.0)
    Controller(team.by("carol"), OneProcessor(), "carol-1").turn(3.0)
    his = team.by("bob").job("his")
    assert his is not None
    assert his.waiting == "1 CPU is needed, and 0 of 1 are free"  # his turn comes before the second of alice
    assert team.by("bob").job("a1") is None
    assert jobs.describe(team.by("bob"), his, Room((), (0,)), Rules()).waiting == his.waiting
    assert jobs.ask(team.by("bob"), his, Wish.STOP, "bob").wish is Wish.STOP
