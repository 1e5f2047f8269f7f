"""What the server's own catalogs tell a login that is no member, and a member, of the others: as `docs/security.md` says."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from chipwise.adapters.stores.record.grants import Grant, connect_grants
from chipwise.adapters.stores.record.members import Member, connect_members
from chipwise.runner.job import Spec
from postgres_server import TRUSTED, Server
from simple_machine import HERS
from team_record import Team, logins

psycopg = pytest.importorskip("psycopg")
HIDDEN = "hidden-word"  # in a job, a team, a secret's name and a statement of alice


@pytest.fixture(scope="module", autouse=True)
def _logins(postgres: Server) -> Iterator[None]:
    yield from logins(postgres, TRUSTED)


@pytest.fixture(scope="module")
def team(postgres: Server, lasting_database: str) -> Iterator[Team]:
    team = Team(postgres, lasting_database)
    members = connect_members(team.url("admin"))
    for member in (Member("alice", HIDDEN, "lead"), Member("bob", "vision"), Member("carol", "", "controller", HERS)):
        members.add(member)
    members.close()
    grants = connect_grants(team.url("carol"))
    grants.allow(Grant(HERS, team=HIDDEN, secrets=(HIDDEN,)))
    grants.allow(Grant(HERS, login="bob"))
    grants.close()
    spec = Spec((HIDDEN,), HIDDEN, place=HERS, owner="alice", team=HIDDEN)
    team.by("alice").submit([(f"{HIDDEN}-{number}", spec) for number in range(200)], 2.0)
    team.sql("admin", "ANALYZE")
    yield team
    team.close()


EVERYTHING = """SELECT c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname IN ('pg_catalog', 'information_schema') AND c.relkind IN ('r', 'v') ORDER BY 1"""


@pytest.mark.parametrize("login", ["eve", "bob"])
def test_nothing_that_others_wrote_is_in_any_catalog(team: Team, login: str) -> None:
    """Every table and view that the server itself has, read whole: statistics hold the most common values of columns, and lists
    of sessions their statements."""
    found, read = [], 0
    with psycopg.connect(team.url("alice"), options="-c search_path=chipwise") as alice:
        alice.execute(f"SELECT '{HIDDEN}', count(*) FROM jobs".encode())
        with psycopg.connect(team.url(login), autocommit=True) as other:
            for (name,) in other.execute(EVERYTHING).fetchall():
                try:
                    rows = other.execute(f"SELECT t::text FROM {name} t WHERE t::text LIKE '%{HIDDEN}%'".encode()).fetchall()
                except psycopg.Error:  # not for this login
                    continue
                read += 1
                found += [(name, row[0][:200]) for row in rows if f"'%{HIDDEN}%'" not in row[0]]  # but for our own question
    assert not found
    assert read > 100


@pytest.mark.parametrize("login", ["eve", "bob"])
def test_who_is_a_member_can_be_seen_by_every_login_and_no_way_of_granting_hides_it(team: Team, login: str) -> None:
    """Rights of persons are in `relacl`. Those of a group role would not be, and its members are listed for everybody as well:
    should that ever change, this fails, and rights can be given so."""
    [[rights]] = team.sql(login, "SELECT relacl::text FROM pg_catalog.pg_class WHERE relname = 'jobs'")
    assert "alice=" in rights
    team.sql("admin", "CREATE ROLE a_group")
    try:
        team.sql("admin", "GRANT a_group TO alice")
        inside = "SELECT member::regrole::text FROM pg_catalog.pg_auth_members WHERE roleid = 'a_group'::regrole"
        assert team.sql(login, inside) == [("alice",)]
    finally:
        team.sql("admin", "DROP ROLE a_group")


def test_statements_of_others_are_hidden_and_their_names_are_not(team: Team) -> None:
    with psycopg.connect(team.url("alice")) as alice:
        alice.execute("SELECT 1")
        rows = team.sql("eve", "SELECT usename, query, xact_start FROM pg_stat_activity WHERE usename = 'alice'")
    assert rows
    assert {row[1:] for row in rows} == {("<insufficient privilege>", None)}


def test_a_member_learns_whether_an_id_is_taken_and_nothing_else_of_it(team: Team) -> None:
    from chipwise.runner.record import Stale

    with pytest.raises(Stale, match="already") as taken:
        team.by("bob").submit([(f"{HIDDEN}-1", Spec(("true",), "a", place=HERS, owner="bob", team="vision"))], 2.0)
    assert "alice" not in str(taken.value)
    assert team.by("bob").job(f"{HIDDEN}-1") is None
    assert team.sql("bob", "SELECT * FROM events") == []
