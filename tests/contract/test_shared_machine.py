"""A machine that several people share, with real system users: one runs the controller, others submit to it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator

import pytest

from patience import deadline
from postgres_server import Server
from shared_machine import PEOPLE, Shared, shared_machine

pytestmark = pytest.mark.e2e


@pytest.fixture
def shared(postgres: Server, new_database: Callable[[], str]) -> Iterator[Shared]:
    with shared_machine(postgres, new_database(), PEOPLE) as shared:
        yield shared


def test_people_of_a_group_submit_to_a_controller_of_another_user(shared: Shared) -> None:
    refused = shared("alice", "run", "-d", "--", "true", code=3)
    assert f"alice may not run jobs at {shared.place}" in refused
    shared("robot", "places", "allow", shared.place, "--team", "vision")
    script = 'id -un; echo "$TOKEN" | wc -c; echo "$TOKEN"'
    [job] = json.loads(shared("alice", "run", "--json", "--secret", "TOKEN", "--", "sh", "-c", script, TOKEN="hush-hush-hush"))
    assert shared("alice", "logs", "-f", job["id"]).split() == ["daemon", "15", "[secret]"]
    late = deadline(30)
    while (seen := json.loads(shared("alice", "describe", "--json", job["id"])))["phase"] != "done":
        assert time.monotonic() < late, seen
        time.sleep(0.2)
    assert json.loads(shared("bob", "ps", "--all", "--json")) == []
    assert "may not run jobs" in shared("bob", "run", "-d", "--", "true", code=3)

    run = shared.data / "run"
    for command in (
        f"touch {run}/jobs/x",
        f"touch {run}/jobs/{job['id']}/1/leave.json",
        f"cat {run}/jobs/{job['id']}/1/order.json",
        f"ls {run}/passing",
        f"ls {run}/taken",
        f"echo 1 > {run}/controller.lock",
    ):
        assert shared.shell("bob", command) != 0, command
    assert not list((run / "passing").iterdir())
    assert not list((run / "taken").iterdir())


def test_a_job_has_the_home_and_name_of_the_user_as_whom_it_runs(shared: Shared) -> None:
    shared("robot", "places", "allow", shared.place, "--team", "vision")
    script = 'echo "$HOME $USER $LOGNAME ${XDG_CACHE_HOME-none} ${TMPDIR-none}"; touch ~/written && echo written'
    own = {"USER": "games", "LOGNAME": "games", "XDG_CACHE_HOME": "/home/games/.cache", "TMPDIR": "/home/games/tmp"}
    [job] = json.loads(shared("alice", "run", "--json", "--", "sh", "-c", script, env=own))
    assert shared("alice", "logs", "-f", job["id"]).split() == [
        f"{shared.home}/robot",
        *["daemon"] * 2,
        *["none"] * 2,
        "written",
    ]
    asked = ("run", "--json", "--env", "HOME=/srv/alice", "--env", "TMPDIR", "--", "sh", "-c", 'echo "$HOME $USER $TMPDIR"')
    [job] = json.loads(shared("alice", *asked, env=own))
    assert shared("alice", "logs", "-f", job["id"]).split() == ["/srv/alice", "daemon", "/home/games/tmp"]


def test_a_secret_that_waits_is_for_its_owner_and_the_controller_alone(shared: Shared) -> None:
    for team in ("vision", "speech"):
        shared("robot", "places", "allow", shared.place, "--team", team)
    [first] = json.loads(shared("alice", "run", "-d", "--json", "--", "sleep", "300"))
    keyed = ("run", "-d", "--json", "--secret", "TOKEN", "--", "sh", "-c", 'echo "$TOKEN" | wc -c')
    [job] = json.loads(shared("alice", *keyed, TOKEN="hush-hush-hush"))
    waiting = shared.data / "run" / "passing" / job["id"]
    assert (waiting / "TOKEN").read_text() == "hush-hush-hush"
    for command in (
        f"cat {waiting}/TOKEN",
        f"ls {waiting}",
        f"mv {waiting} {waiting}.mine",
        f"rm -r {waiting}",
        f"echo forged > {waiting}/TOKEN",
        f"touch {waiting}/OTHER",
        f"ls {waiting.parent}",
    ):
        assert shared.shell("bob", command) != 0, command
    assert shared.shell("robot", f"cat {waiting}/TOKEN") == 0
    shared("alice", "stop", "--now", first["id"])
    assert shared("alice", "logs", "-f", job["id"]).split() == ["15"]
    late = deadline(30)
    while waiting.exists():
        assert time.monotonic() < late
        time.sleep(0.2)


def test_somebody_outside_the_group_is_told_so(shared: Shared) -> None:
    said = shared("bob", "run", "-d", "--", "true", code=2, groups=())
    assert "Traceback" not in said
    assert f"Permission denied: {shared.data}" in said
