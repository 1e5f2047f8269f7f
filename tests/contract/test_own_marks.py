"""A member whose own jobs are written so that a controller passes by another's or is kept busy, or so that a list is untrue."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from chipwise.adapters.stores.record.grants import Grant, connect_grants
from chipwise.adapters.stores.record.members import Member, connect_members
from chipwise.runner.job import Needs, Spec
from chipwise.runner.loop import Controller
from chipwise.runner.record import Wanted
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
    for member in (Member("alice"), Member("bob"), Member("carol", "", "controller", HERS)):
        members.add(member)
    members.close()
    grants = connect_grants(team.url("carol"))
    for login in ("alice", "bob"):
        grants.allow(Grant(HERS, login))
    grants.close()
    yield team
    team.close()


def insert(team: Team, id: str, spec: dict[str, Any], **columns: object) -> None:
    whole = {"command": ["true"], "name": "odd", "place": HERS, "owner": "bob", **spec}
    body = json.dumps({"id": id, "spec": whole, "submitted": 1.0, "version": 1})
    with psycopg.connect(team.url("bob"), options="-c search_path=chipwise") as bob:
        row = {"id": id, "born": 1, "version": 1, "mark": 1, "place": HERS, "name": "odd", "phase": "queued"}
        row |= {"engine": "local", "owner": "bob", "team": "", "project": "", "priority": 0, "gpus": 0, "cpus": 1}
        row |= {"machines": 1, "attempts": 0, "submitted": 1.0, "reason": "", "body": body, **columns}
        names, places = ", ".join(row), ", ".join(["%s"] * len(row))
        bob.execute(f"INSERT INTO jobs ({names}) VALUES ({places})".encode(), list(row.values()))


def test_nobody_takes_the_mark_of_anothers_change(team: Team) -> None:
    """A page of changes that ends between two jobs of one mark would leave out the second, and nobody would start it."""
    team.by("alice").submit([("hers", Spec(("true",), "a", place=HERS, owner="alice"))], 2.0)
    [[mark]] = team.sql("admin", "SELECT mark FROM jobs WHERE id = 'hers'")
    insert(team, "own", {}, mark=mark, born=mark, xact="9999999999")
    held = "body::jsonb || '{\"version\": 2}'"
    team.sql("bob", f"UPDATE jobs SET version = 2, body = ({held})::text, mark = {mark} WHERE id = 'own'")
    numbers = team.sql("admin", "SELECT mark FROM jobs") + team.sql("admin", "SELECT born FROM jobs WHERE id = 'own'")
    assert len(set(numbers)) == len(numbers)
    assert team.sql("admin", "SELECT 1 FROM jobs WHERE xact >= pg_snapshot_xmax(pg_current_snapshot())") == []
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        team.sql("bob", "UPDATE jobs SET xact = '0'")
    for use in ("nextval('marks')", "setval('marks', 1)"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            team.sql("bob", f"SELECT {use}")


FORGED = (
    {"name": "another"},
    {"project": "another"},
    {"gpus": 8},
    {"cpus": 64},
    {"machines": -1},
    {"reason": "An admin says: submit it again"},
)


@pytest.mark.parametrize("columns", FORGED, ids=str)
def test_a_list_shows_of_a_new_job_what_is_in_it(team: Team, columns: dict[str, object]) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="do not say what is in it"):
        insert(team, "forged", {}, **columns)


def test_a_job_with_all_that_lists_show_is_taken(team: Team) -> None:
    needs = Needs(gpus=4, cpus=0, machines=2)
    spec = Spec(("true",), "n", place=HERS, owner="alice", project="p", needs=needs, priority=3)
    team.by("alice").submit([("whole", spec)], 2.0)
    [row] = team.by("alice").rows(Wanted(name="whole"))
    assert (row.name, row.project, row.gpus, row.cpus, row.machines) == ("n", "p", 4, 0, 2)


def test_who_waits_for_very_many_jobs_is_refused_and_for_many_costs_few_questions(team: Team) -> None:
    with pytest.raises(psycopg.errors.CheckViolation, match="cannot be in a job"):
        insert(team, "patient", {"after": [f"x{n}" for n in range(1001)]})
    insert(team, "patient", {"after": [f"x{n}" for n in range(1000)]})
    team.by("alice").submit([("next", Spec(("true",), "a", place=HERS, owner="alice"))], 2.0)
    record, engine = team.by("carol"), Machine()
    questions: list[object] = []
    read = record.database.read  # type: ignore[attr-defined]

    def counted(work: object) -> object:
        questions.append(work)
        return read(work)

    record.database.read = counted  # type: ignore[attr-defined]
    Controller(record, engine, "c").turn(3.0)
    assert "next" in engine.started
    assert "patient" not in engine.started
    assert len(questions) < 20
