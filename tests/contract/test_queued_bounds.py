"""What one login has queued is bounded, in number and in bytes: a controller holds the jobs of all in memory."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from chipwise.adapters.stores.record import queue_bounds
from chipwise.adapters.stores.record.grants import Grant, connect_grants
from chipwise.adapters.stores.record.members import Member, connect_members
from chipwise.errors import BadInput, TryLater
from chipwise.runner.bounds import MOST_QUEUED, MOST_QUEUED_BYTES
from chipwise.runner.events import Over, Wished
from chipwise.runner.job import Phase, Spec, Wish
from chipwise.runner.record import Change
from postgres_server import TRUSTED, Server
from simple_machine import HERS
from team_record import Team, logins

psycopg = pytest.importorskip("psycopg")

FEW, SMALL = 5, 20_000  # in place of the bounds of the product, so that the tests are short


@pytest.fixture(scope="module", autouse=True)
def _logins(postgres: Server) -> Iterator[None]:
    yield from logins(postgres, TRUSTED)


@pytest.fixture
def team(postgres: Server, new_database: Callable[[], str]) -> Iterator[Team]:
    team = Team(postgres, new_database())
    members = connect_members(team.url("admin"))
    for member in (Member("alice", "vision", "lead"), Member("bob", "vision"), Member("carol", "", "controller", HERS)):
        members.add(member)
    members.close()
    grants = connect_grants(team.url("carol"))
    grants.allow(Grant(HERS, team="vision"))
    grants.close()
    with psycopg.connect(team.url("admin"), autocommit=True, options="-c search_path=chipwise") as admin:
        check = queue_bounds.CHECK.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION")
        admin.execute(check.replace(f"{MOST_QUEUED} ", f"{FEW} ").replace(f"{MOST_QUEUED_BYTES} ", f"{SMALL} "))
    yield team
    team.close()


def bobs(name: str, **more: Any) -> tuple[str, Spec]:
    return name, Spec(("true",), "a", place=HERS, owner="bob", team="vision", **more)


def over(team: Team, *ids: str) -> None:
    record = team.by("carol")
    for id in ids:
        job = record.job(id)
        assert job is not None
        [written] = record.write([Change(job, (Over(Phase.FAILED, "it failed"),))], 3.0)
        assert not isinstance(written, Exception)


def insert(client: Any, id: str) -> None:
    spec = {"command": ["true"], "name": "a", "place": HERS, "owner": "bob", "team": "vision"}
    client.execute(
        """INSERT INTO jobs
        VALUES (%s, 1, 1, 1, %s, 'a', 'queued', 'local', 'bob', 'vision', '', 0, 0, 1, 1, 0, 1, NULL, NULL, '', %s)""",
        (id, HERS, json.dumps({"id": id, "spec": spec, "submitted": 1.0, "version": 1})),
    )


def test_a_login_has_a_bounded_number_of_jobs_that_are_not_over(team: Team) -> None:
    team.by("bob").submit([bobs(f"job-{n}") for n in range(FEW)], 2.0)
    with pytest.raises(TryLater, match=f"bob would have {FEW + 1} jobs .* at most {FEW}"):
        team.by("bob").submit([bobs("next")], 2.0)
    team.by("alice").submit([("hers", Spec(("true",), "a", place=HERS, owner="alice", team="vision"))], 2.0)
    over(team, "job-0")
    team.by("bob").submit([bobs("next")], 2.0)
    for login in ("bob", "alice"):  # nor by retrying those that are over
        job = team.by(login).job("job-0")
        assert job is not None
        with pytest.raises(TryLater, match=f"at most {FEW}"):
            team.by(login).write([Change(job, (Wished(Wish.RUN, login),))], 4.0)


def test_a_login_has_a_bounded_number_of_bytes_in_jobs_that_are_not_over(team: Team) -> None:
    team.by("bob").submit([bobs("long", env={"A": "a" * 15_000})], 2.0)
    with pytest.raises(TryLater, match=f"at most .* of {SMALL} bytes"):
        team.by("bob").submit([bobs("longer", env={"A": "\u00e9" * 3_000})], 2.0)
    over(team, "long")
    team.by("bob").submit([bobs("longer", env={"A": "\u00e9" * 3_000})], 2.0)


def test_sessions_of_one_login_at_once_do_not_count_without_each_other(team: Team) -> None:
    """A second waits for the first, and nobody else does."""
    with psycopg.connect(team.url("bob"), options="-c search_path=chipwise") as first:
        for number in range(FEW):
            insert(first, f"held-{number}")
        refused: list[BaseException] = []

        def second() -> None:
            try:
                team.by("bob").submit([bobs("beside")], 2.0)
            except TryLater as error:
                refused.append(error)

        beside = threading.Thread(target=second)
        beside.start()
        team.by("alice").submit([("hers", Spec(("true",), "a", place=HERS, owner="alice", team="vision"))], 2.0)
        first.commit()
        beside.join()
    assert len(refused) == 1


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT check_queued('alice')",
        "SELECT * FROM submitters",
        "DELETE FROM submitters",
        "INSERT INTO submitters VALUES ('alice')",
        "BEGIN; LOCK TABLE submitters",
    ],
)
def test_a_member_has_no_right_to_what_counts(team: Team, statement: str) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        team.sql("bob", statement)


def test_what_is_submitted_together_is_refused_before_it_is_sent(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chipwise.runner.bounds.MOST_QUEUED", FEW)
    with pytest.raises(BadInput, match=f"{FEW + 1} jobs are submitted together"):
        team.by("bob").submit([bobs(f"job-{n}") for n in range(FEW + 1)], 2.0)
