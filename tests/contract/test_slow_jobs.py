"""A member's job that is made to be slow: it is refused, and one that an older version let in does not hold up the others."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from chipwise.adapters.stores.record.grants import Grant, connect_grants
from chipwise.adapters.stores.record.members import Member, connect_members
from chipwise.errors import BadInput
from chipwise.runner.events import Waiting, Wished
from chipwise.runner.job import Job, Move, Retry, Spec, Wish
from chipwise.runner.record import Change
from postgres_server import TRUSTED, Server
from simple_machine import HERS
from team_record import Team, logins

psycopg = pytest.importorskip("psycopg")

MANY = [f"s3://a/{number}" for number in range(20_000)]
SOON_S = 3.0  # a comparison of each element with each took four times as long


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


def insert(team: Team, login: str, id: str, spec: dict[str, Any], options: str = "") -> None:
    """A job of bob's. The owner of the tables is not held to bounds, so that it is as an older version let it in."""
    whole = {"command": ["true"], "name": "odd", "place": HERS, "owner": "bob", **spec}
    body = {"id": id, "spec": whole, "submitted": 1.0, "version": 1}
    with psycopg.connect(team.url(login), options=f"-c search_path=chipwise {options}") as client:
        client.execute(
            """INSERT INTO jobs (id, born, version, mark, place, name, phase, engine, owner, team, project, priority, gpus,
            cpus, machines, attempts, submitted, reason, body)
            VALUES (%s, 1, 1, 1, %s, 'odd', 'queued', 'local', 'bob', '', '', 0, 0, 1, 1, 0, 1, '', %s)""",
            (id, HERS, json.dumps(body)),
        )
        event = json.dumps({"spec": whole})
        client.execute("INSERT INTO events (job, version, at, kind, body) VALUES (%s, 1, 1, 'submitted', %s)", (id, event))


def changed(team: Team, login: str, job: Job, event: Waiting | Wished) -> Job:
    began = time.monotonic()
    [answer] = team.by(login).write([Change(job, (event,))], 5.0)
    assert time.monotonic() - began < SOON_S
    assert isinstance(answer, Job)
    return answer


def test_a_job_with_very_long_lists_is_written_as_fast_as_others(team: Team) -> None:
    insert(team, "admin", "slow", {"produces": MANY, "unknown": [[one] for one in MANY], "later": 1})
    job = team.by("carol").job("slow")
    assert job is not None
    job = changed(team, "carol", job, Waiting("no room"))
    job = changed(team, "bob", job, Wished(Wish.STOP, "bob"))
    [[body]] = team.sql("admin", "SELECT body FROM jobs WHERE id = 'slow'")
    assert json.loads(body)["spec"]["unknown"][7] == [MANY[7]], "what neither of them knows stays"


@pytest.mark.parametrize(
    ("spec", "is_kept"),
    [
        ({"places": [{"machine": "m"}, {"machine": "n", "later": 2}]}, True),
        ({"places": [{"machine": "n"}, {"machine": "m"}]}, False),
        ({"places": [{"machine": "m"}]}, False),
        ({"needs": {"cpus": 1}}, True),
        ({"needs": {"cpus": 2}}, False),
        ({"unheard": 1}, False),
        ({"name": None}, False),
    ],
    ids=str,
)
def test_fields_may_be_left_out_by_who_does_not_know_them_and_none_changed(
    team: Team, spec: dict[str, Any], is_kept: bool
) -> None:
    id = f"kept-{json.dumps(spec)}"
    places = [{"machine": "m", "later": 1}, {"machine": "n", "later": 2}]
    insert(team, "admin", id, {"places": places, "needs": {"cpus": 1, "x": 1}})
    body = json.loads(team.sql("bob", "SELECT body FROM jobs WHERE id = %s", id)[0][0])
    held = {**body, "version": 2, "wish": "stop", "spec": {**body["spec"], **spec}}
    statement = "UPDATE jobs SET version = 2, body = %s WHERE id = %s"
    if not is_kept:
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="never changes"):
            team.sql("bob", statement, json.dumps(held), id)
        return
    assert team.sql("bob", statement, json.dumps(held), id) == 1
    [[after]] = team.sql("bob", "SELECT body FROM jobs WHERE id = %s", id)
    assert json.loads(after) == {**held, "spec": body["spec"]}


@pytest.mark.parametrize(
    "spec",
    [
        {"produces": ["x"] * 1001},
        {"after": ["x"] * 1001},
        {"command": ["x"] * 10_001},
        {"recover": ["same"] * 10_001},
        {"objects": [{}] * 10_001},
        {"predicted": {"a": {"b": [1] * 10_001}}},
        {"later": [[1] * 10_001]},
        {"env": {f"A{number}": "" for number in range(10_001)}},
        {"labels": {f"A{number}": "" for number in range(10_001)}},
    ],
    ids=lambda spec: next(iter(spec)),
)
def test_a_list_beyond_all_bounds_is_refused_by_the_database_and_before(team: Team, spec: dict[str, Any]) -> None:
    with pytest.raises(psycopg.errors.CheckViolation, match="cannot be in a job"):
        insert(team, "bob", "long", spec)
    if "later" not in spec:
        values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in spec.items()}
        if "recover" in values:
            values["recover"] = tuple(map(Move, spec["recover"]))
        given: dict[str, Any] = {"command": ("true",), "name": "a", "place": HERS, "owner": "bob", **values}
        whole = Spec(**given)
        with pytest.raises(BadInput, match=r"has \S+ elements, and may have"):
            team.by("bob").submit([("long", whole)], 1.0)


def test_a_job_with_too_many_characters_is_refused_before_it_is_sent(team: Team) -> None:
    with pytest.raises(BadInput, match="characters, and may have"):
        team.by("bob").submit([("large", Spec(("x" * 2_000_000,), "a", place=HERS, owner="bob"))], 1.0)


@pytest.mark.parametrize(
    "spec",
    [
        {"priority": 101},
        {"priority": -101},
        {"priority": 2**53},
        {"retry": {"failures": 101}},
        {"retry": {"kills": 100_000}},
        {"retry": {"same_step": 101}},
        {"retry": {"losses": 1001}},
    ],
    ids=str,
)
def test_what_would_put_a_job_before_those_of_others_is_bounded(team: Team, spec: dict[str, Any]) -> None:
    with pytest.raises(psycopg.errors.CheckViolation, match="cannot be in a job"):
        insert(team, "bob", "pushing", spec)
    values: dict[str, Any] = {name: Retry(**value) if isinstance(value, dict) else value for name, value in spec.items()}
    with pytest.raises(BadInput, match=r"its priority is|tried again"):
        team.by("bob").submit([("pushing", Spec(("true",), "a", place=HERS, owner="bob", **values))], 1.0)


def test_when_a_job_was_submitted_is_said_by_the_server(team: Team) -> None:
    insert(team, "bob", "of-1970", {})
    jobs = team.by("bob").submit([(id, Spec(("true",), "a", place=HERS, owner="bob")) for id in ("now-1", "now-2")], 1.0)
    insert(team, "admin", "of-an-admin", {})  # who is trusted in this
    for id in ("of-1970", "now-1", "now-2"):
        [[column, told]] = team.sql(
            "admin", "SELECT submitted, (SELECT at FROM events WHERE job = id) FROM jobs WHERE id = %s", id
        )
        job = team.by("bob").job(id)
        assert job is not None
        assert job.submitted == column == told
        assert abs(job.submitted - time.time()) < 60.0
    assert jobs == [team.by("bob").job("now-1"), team.by("bob").job("now-2")]
    assert jobs[0].submitted == jobs[1].submitted
    assert team.sql("admin", "SELECT submitted FROM jobs WHERE id = 'of-an-admin'") == [(1.0,)]


@pytest.mark.parametrize("digits", [-15, -11, 3])
def test_a_session_that_writes_few_digits_makes_no_job_older(team: Team, digits: int) -> None:
    """Rounded to 1,795,000,000 s, it would go before all jobs of the last day."""
    insert(team, "bob", f"rounded{digits}", {}, f"-c extra_float_digits={digits}")
    job = team.by("bob").job(f"rounded{digits}")
    assert job is not None
    [[column]] = team.sql("admin", "SELECT submitted FROM jobs WHERE id = %s", job.id)
    assert job.submitted == column
    assert abs(job.submitted - time.time()) < 60.0


def test_a_transaction_that_is_begun_early_does_not_make_a_job_older(team: Team) -> None:
    """As far as a minute, by which pipelines with many stages are one."""
    [[text]] = team.sql("admin", "SELECT prosrc FROM pg_proc WHERE proname = 'guard_job'")
    assert "greatest(now(), clock_timestamp() - interval '60 s')" in text
