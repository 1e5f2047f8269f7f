"""A superuser takes from every login what would let it take all locks of the server, and members go on working."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from chipwise.adapters.stores.record.grants import Grant, connect_grants
from chipwise.adapters.stores.record.members import Member, connect_members
from chipwise.errors import NotAllowed
from chipwise.runner.job import Spec
from postgres_server import TRUSTED, Server
from simple_machine import HERS
from team_record import Team, logins

psycopg = pytest.importorskip("psycopg")

HOARDS = (
    "SELECT count(pg_advisory_lock(n)) FROM generate_series(1, 3) n",
    "SELECT pg_try_advisory_xact_lock_shared(1, 2)",
    "SELECT lo_create(0)",
    "SELECT lo_from_bytea(0, '')",
    "CREATE TEMPORARY TABLE t (a int)",
)


@pytest.fixture(scope="module", autouse=True)
def _logins(postgres: Server) -> Iterator[None]:
    yield from logins(postgres, TRUSTED)


def test_no_login_can_take_all_locks_once_a_superuser_has_revoked_them(postgres: Server, lasting_database: str) -> None:
    team = Team(postgres, lasting_database)
    members = connect_members(team.url("admin"))
    for member in (Member("bob"), Member("carol", "", "controller", HERS), Member("dora", "", "admin")):
        members.add(member)
    assert any("members protect" in warning for warning in members.unprotected())
    of_dora = connect_members(team.url("dora"))
    with pytest.raises(NotAllowed, match="dora is not a superuser"):
        of_dora.protect()
    assert "postgres" in members.protect()
    members.protect()  # again
    assert not any("members protect" in warning for warning in members.unprotected())
    for login in ("bob", "eve"):
        for statement in HOARDS:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                team.sql(login, statement)
    grants = connect_grants(team.url("carol"))
    grants.allow(Grant(HERS, "bob"))
    team.by("bob").submit([("a", Spec(("true",), "a", place=HERS, owner="bob"))], 2.0)
    assert team.by("carol").job("a") is not None
    for opened in (members, of_dora, grants, team):
        opened.close()
