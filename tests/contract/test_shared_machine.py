"""Several people share a machine and its record: one runs the controller, others submit to it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from patience import deadline
from postgres_server import Server
from shared_machine import PEOPLE, Shared, python_for_others
from team_record import logins

pytestmark = pytest.mark.e2e


@pytest.fixture
def shared(postgres: Server, new_database: Callable[[], str]) -> Iterator[Shared]:
    if os.geteuid() != 0:
        pytest.skip("root: only root starts processes of other system users")
    python = python_for_others()
    if python is None:
        pytest.skip("a Python that other users can start")
    database = new_database()
    home = Path(tempfile.mkdtemp(prefix="chipwise-shared-"))
    home.chmod(0o755)
    made = Shared(home, python, lambda login: postgres.url(database, login))
    from chipwise.adapters.stores.record.members import Member, connect_members

    roles = logins(postgres, tuple(PEOPLE))
    next(roles)
    members = connect_members(postgres.url(database))
    for member in (Member("alice", "vision"), Member("bob", "speech"), Member("robot", "", "controller")):
        members.add(member)
    members.close()
    controller = made.start("robot", "control")
    try:
        lock = made.data / "run" / "controller.lock"
        late = deadline(30)
        while not (lock.exists() and lock.read_text().strip()):
            assert controller.poll() is None, controller.communicate()
            assert time.monotonic() < late
            time.sleep(0.1)
        yield made
    finally:
        controller.send_signal(signal.SIGTERM)
        controller.communicate(timeout=60)
        import psycopg

        with psycopg.connect(postgres.url(database), autocommit=True) as owner:
            for login in PEOPLE:
                owner.execute(f"DROP OWNED BY {login}".encode())
        next(roles, None)
        shutil.rmtree(home, ignore_errors=True)


def _place(shared: Shared) -> str:
    return f"local:{os.uname().nodename}:{shared.data}"


def test_people_of_a_group_submit_to_a_controller_of_another_user(shared: Shared) -> None:
    refused = shared("alice", "run", "-d", "--", "true", code=3)
    assert f"alice may not run jobs at {_place(shared)}" in refused
    shared("robot", "places", "allow", _place(shared), "--team", "vision")
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


def test_somebody_outside_the_group_is_told_so(shared: Shared) -> None:
    said = shared("bob", "run", "-d", "--", "true", code=2, groups=())
    assert "Traceback" not in said
    assert f"Permission denied: {shared.data}" in said
