"""Rows that a member writes by direct SQL, as no chipwise would: each is refused where it comes in, or harms nobody else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from chipwise.adapters.stores.record.grants import Grant, connect_grants
from chipwise.adapters.stores.record.members import Member, connect_members
from chipwise.runner.events import Wished
from chipwise.runner.job import Phase, Spec, Wish
from chipwise.runner.loop import Controller
from chipwise.runner.record import Change, Wanted
from postgres_server import TRUSTED, Server
from simple_machine import HERS, Machine
from team_record import Team, logins

psycopg = pytest.importorskip("psycopg")


@pytest.fixture(scope="module", autouse=True)
def _logins(postgres: Server) -> Iterator[None]:
    yield from logins(postgres, TRUSTED)


@pytest.fixture(scope="module")
def team(postgres: Server, lasting_database: str) -> Iterator[Team]:
    team = Team(postgres, lasting_database)
    members = connect_members(team.url("admin"))
    for member in (Member("alice"), Member("bob"), Member("carol", "", "controller", HERS), Member("dora", "", "admin")):
        members.add(member)
    members.close()
    grants = connect_grants(team.url("carol"))
    for login in ("alice", "bob"):
        grants.allow(Grant(HERS, login))
    grants.close()
    yield team
    team.close()


def insert(team: Team, id: str, spec: dict[str, Any], login: str = "bob") -> None:
    whole = {"command": ["true"], "name": "odd", "place": HERS, "owner": login, **spec}
    body = {"id": id, "spec": whole, "submitted": 1.0, "version": 1}
    with psycopg.connect(team.url(login), options="-c search_path=chipwise") as client:
        client.execute(
            """INSERT INTO jobs VALUES
            (%s, 1, 1, 1, %s, 'odd', 'queued', 'local', %s, '', '', 0, 0, 1, 1, 0, 1, NULL, NULL, '', %s)""",
            (id, HERS, login, json.dumps(body)),
        )
        client.execute(
            "INSERT INTO events (job, version, at, kind, body) VALUES (%s, 1, 1, 'submitted', %s)",
            (id, json.dumps({"spec": whole})),
        )


def nested(depth: int) -> dict[str, Any]:
    return {"a": nested(depth - 1)} if depth else {}


UNKNOWN: list[dict[str, Any]] = [
    {"zzz": 1},
    {"cpus": -50},
    {"cpus": 1.0},
    {"grace": "abc"},
    {"gpus": 1000000000},
    {"needs": {"cpus": 1, "later": [1]}},
    {"grace_s": 30},
]


def test_fields_that_a_controller_does_not_know_stay_and_hold_up_nobody(team: Team) -> None:
    for number, spec in enumerate(UNKNOWN):
        insert(team, f"odd-{number}", spec)
    team.by("alice").submit([("hers", Spec(("true",), "a", place=HERS, owner="alice"))], 2.0)
    engine = Machine()
    controller = Controller(team.by("carol"), engine, "carol-1")
    troubles = [controller.turn(float(now)).trouble for now in (10, 11, 12)]
    assert engine.started.keys() == {"hers", *(f"odd-{number}" for number in range(len(UNKNOWN)))}
    assert troubles == [(), (), ()]
    for number, spec in enumerate(UNKNOWN):
        job = team.by("bob").job(f"odd-{number}")
        assert job is not None
        team.by("bob").write([Change(job, (Wished(Wish.STOP, "bob"),))], 13.0)
        [[body]] = team.sql("admin", "SELECT body FROM jobs WHERE id = %s", job.id)
        assert json.loads(body)["spec"].items() >= spec.items()
    controller.resign()


OUTSIDE: list[dict[str, Any]] = [
    {"needs": {"cpus": -50}},
    {"needs": {"cpus": "many"}},
    {"needs": {"gpus": 1.5}},
    {"needs": {"gpus": 10**15}},
    {"needs": [1]},
    {"needs": {"processes": 10**6}},
    {"grace_s": "abc"},
    {"grace_s": -1},
    {"grace_s": 1e300},
    {"retry": {"failures": -1}},
    {"priority": 2.5},
    {"command": 5},
    {"command": [5]},
    {"env": {"A": 5}},
    {"env": []},
    {"name": 5},
    {"after": "x"},
    {"service": 1},
    {"labels": {"a": nested(3)}},
    {"later": 1e19},
    {"later": nested(40)},
]


@pytest.mark.parametrize("spec", OUTSIDE, ids=lambda spec: str(spec)[:40])
def test_a_job_beyond_all_bounds_is_refused_by_the_database(team: Team, spec: dict[str, Any]) -> None:
    with pytest.raises(psycopg.errors.CheckViolation, match="cannot be in a job"):
        insert(team, "beyond", spec)
    assert team.by("dora").rows(Wanted(name="beyond")) == []


@pytest.mark.parametrize(
    "id", ["", "a\nb", "../x", "/tmp/x", "-rf", "x" * 501, "\x1b[31m", ".", "..", ".x", "going.json", "Going.JSON"]
)
def test_an_id_that_is_no_name_of_a_file_is_refused_by_the_database(team: Team, id: str) -> None:
    with pytest.raises(psycopg.errors.CheckViolation):
        insert(team, id, {})


def test_a_row_that_the_database_lets_nobody_write_holds_up_nobody(team: Team) -> None:
    insert(team, "odd", {})
    team.sql("admin", "ALTER TABLE jobs ADD CONSTRAINT odd CHECK (id <> 'odd') NOT VALID")
    team.by("alice").submit([("hers-too", Spec(("true",), "a", place=HERS, owner="alice"))], 2.0)
    engine = Machine()
    controller = Controller(team.by("carol"), engine, "carol-1")
    assert any(trouble.startswith("odd: ") for trouble in controller.turn(10.0).trouble)
    controller.turn(11.0)
    assert "hers-too" in engine.started
    assert "odd" not in engine.started
    job = team.by("carol").job("odd")
    assert job is not None
    assert job.phase is Phase.QUEUED


def test_a_lock_that_anybody_can_take_does_not_hold_up_the_list_of_members(team: Team) -> None:
    with psycopg.connect(team.url("eve")) as eve:
        for number in (4849111234850738007, 4849111234850738008):
            eve.execute("SELECT pg_advisory_lock(%s)", (number,))
        members = connect_members(team.url("dora"))
        try:
            members.add(Member("alice", "vision"))
            assert members.remove(Member("alice", "vision"))
        finally:
            members.close()


@pytest.mark.parametrize("login", ["alice", "bob", "carol"])
def test_nobody_but_the_owner_locks_the_row_by_which_rights_are_given(team: Team, login: str) -> None:
    for lock in ("UPDATE", "NO KEY UPDATE", "SHARE", "KEY SHARE"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            team.sql(login, f"SELECT 1 FROM meta WHERE name = 'schema' FOR {lock}")
