"""The command line on a team's record, with real logins and real jobs: each sees and stops what their role allows."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from command import Chipwise, Done
from patience import deadline
from postgres_server import Server

psycopg = pytest.importorskip("psycopg")
Command = Callable[..., Done]
LOGINS = ("alice", "bob", "carol")


@pytest.fixture
def as_login(postgres: Server, new_database: Callable[[], str], tmp_path: Path) -> Iterator[Callable[[str], Command]]:
    """Each with a home of their own, as on one machine."""
    with psycopg.connect(postgres.url("postgres"), autocommit=True) as admin:
        for login in LOGINS:
            admin.execute(f"CREATE ROLE {login} LOGIN")
        name = new_database()
        made: dict[str, Chipwise] = {}

        def by(login: str) -> Command:
            if login not in made:
                settings = {"CHIPWISE_RECORD": postgres.url(name, login), "CHIPWISE_GPUS": "", "CHIPWISE_CPUS": "0"}
                made[login] = Chipwise(tmp_path / login, settings)
                made[login].config_dir.mkdir(parents=True)
            return made[login].process  # controllers that it starts outlive it, as they do a shell's

        yield by
        for one in made.values():  # a controller waits for its record to come back, and this one does not
            with suppress(OSError, ValueError):
                os.kill(int((one.data_dir / "run" / "controller.lock").read_text()), signal.SIGTERM)
        with psycopg.connect(postgres.url(name), autocommit=True) as owner:
            for login in LOGINS:
                owner.execute(f"DROP OWNED BY {login}")
                admin.execute(f"DROP ROLE {login}")


def wait(chipwise: Command, id: str, phase: str) -> dict[str, Any]:
    until = deadline(60)
    while time.monotonic() < until:
        found: dict[str, Any] = chipwise("describe", id, "--json").json
        if found["phase"] == phase:
            return found
        time.sleep(0.2)
    raise AssertionError(chipwise("describe", id).out)


@pytest.mark.e2e  # every line is a process of its own, with controllers behind it
def test_people_of_a_team_run_see_and_stop_what_their_roles_allow(as_login: Callable[[str], Command]) -> None:
    admin, alice, bob, carol = (as_login(name) for name in ("admin", *LOGINS))
    refused = alice("run", "-d", "--", "true")
    assert refused.code == 3
    assert "chipwise members add alice --team TEAM" in refused.err
    for words in (
        ("alice", "--team", "vision"),
        ("bob", "--team", "vision"),
        ("carol", "--team", "vision", "--role", "lead"),
    ):
        assert admin("members", "add", *words).code == 0
    assert alice("members", "--json").json == [{"login": "alice", "team": "vision", "role": "member", "place": ""}]
    assert alice("members", "add", "alice", "--role", "admin").code == 3
    assert len(carol("members", "--json").json) == 3

    # Not even on her own machine: somebody must act for it. Once she may, her machine's controller does.
    refused = alice("run", "-d", "--", "true")
    assert refused.code == 3
    place = refused.err.split("may not run jobs at ")[1].split(". ")[0]
    assert f"chipwise members add alice --role controller --place '{place}'" in " ".join(refused.err.split())
    assert admin("members", "add", "alice", "--role", "controller", "--place", place).code == 0
    [job] = alice("run", "--json", "--team", "vision", "--name", "hers", "--", "sleep", "300").json
    assert (job["owner"], job["team"], job["place"]) == ("alice", "vision", place)
    assert bob("ps", "--all", "--json").json == []
    assert "No job is called" in bob("stop", "hers").err
    assert [row["id"] for row in carol("ps", "--json").json] == [job["id"]]
    other = alice("run", "-d", "--team", "speech", "--", "true")  # a team that she is not of
    assert other.code == 3
    assert "alice is not in team speech. Yours: vision" in " ".join(other.err.split())
    assert "row-level security" not in other.err

    wait(alice, job["id"], "running")
    assert carol("stop", "hers").code == 0
    wait(alice, job["id"], "stopped")
    story = [line["text"] for line in alice("describe", job["id"], "--json").json["story"]]
    assert any("carol" in line for line in story)
    assert admin("members", "remove", "bob", "--team", "vision").code == 0
    assert "has no role member of vision" in admin("members", "remove", "bob", "--team", "vision").err
    assert bob("ps").code == 3


def test_a_record_in_a_file_has_no_members(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    done = Chipwise(tmp_path)("members")
    assert (done.code, "A team uses PostgreSQL" in done.err) == (2, True)
