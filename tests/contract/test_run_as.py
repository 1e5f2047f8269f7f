"""Jobs that run as other system users than their controller, with real users: what they reach, and that they end."""

from __future__ import annotations

import json
import os
import pwd
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

import psutil
import pytest

from patience import deadline
from postgres_server import Server
from shared_machine import Shared, shared_machine

pytestmark = pytest.mark.e2e
PEOPLE = {"robot": "root", "alice": "games", "bob": "nobody", "eve": "daemon"}  # login of the record, system user
# What a program tries, a word and a command each; a word that it says is one that worked.
TRIES = """
ls /proc/$PPID/root/ /proc/$PPID/fd >/dev/null && echo parent
cat /proc/$PPID/environ >/dev/null && echo environ
kill -0 $PPID && echo signals
cat "$DATA/../robot/config/engines.yaml" >/dev/null && echo config
cat "$DATA/run/jobs/$CHIPWISE_JOB/1/order.json" >/dev/null && echo order
cat "$DATA/run/jobs/$CHIPWISE_JOB/1/log" >/dev/null && echo log
ls "$DATA/run/jobs" >/dev/null && echo jobs
ls "$DATA/run/taken" >/dev/null && echo taken
touch "$DATA/run/jobs/$CHIPWISE_JOB/x" && echo folder
echo '{}' > "$DATA/run/jobs/$CHIPWISE_JOB/1/ended.json" && echo ended
ls "$OTHERS" >/dev/null && echo others
touch "$CHIPWISE_CHECKPOINTS/c" && echo checkpoints
echo '{"step": 7, "saved_step": 3}' > "$CHIPWISE_RUN_DIR/progress.json" && echo progress
test "$TOKEN" = hush-hush-hush && echo token
for one in /proc/self/fd/*; do case "$(readlink $one)" in */lock) echo lock;; esac; done
"""
HIDES = """
import os, resource, time
resource.setrlimit(resource.RLIMIT_RTTIME, (resource.RLIM_INFINITY,) * 2)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        words = ["python3", "-c", "import time; time.sleep(1000)", os.environ["CHIPWISE_JOB"], "-m", "chipwise"]
        os.execve("/usr/bin/python3", words, {})
print("hidden", flush=True)
time.sleep(1000)
"""


def _prepare(shared: Shared) -> None:
    shared.data.chmod(0o2751)
    config = shared.home / "robot" / "config"
    (config / "engines.yaml").write_text("local: {run_as: {alice: games, bob: nobody}}\n")
    config.chmod(0o700)


@pytest.fixture
def shared(postgres: Server, new_database: Callable[[], str]) -> Iterator[Shared]:
    with shared_machine(postgres, new_database(), PEOPLE, _prepare) as shared:
        for team in ("vision", "speech"):
            shared("robot", "places", "allow", shared.place, "--team", team)
        yield shared


def _submitted(shared: Shared, login: str, *words: str, **env: str) -> str:
    [job] = json.loads(shared(login, "run", "--json", *words, env=env))
    return str(job["id"])


def _until(shared: Shared, login: str, id: str, reached: Callable[[Any], bool]) -> Any:
    late = deadline(60)
    while not reached(seen := json.loads(shared(login, "describe", "--json", id))):
        assert time.monotonic() < late, seen
        time.sleep(0.3)
    return seen


def _processes_of(user: str, mark: str) -> list[int]:
    """Of ours among all that run as that user."""
    living = []
    for process in psutil.process_iter():
        try:
            if process.username() == user and process.environ().get("CHIPWISE_MARK") == mark:
                living.append(process.pid)
        except psutil.Error:
            continue
    return living


def test_a_job_reaches_its_own_and_nothing_of_its_controller_or_of_others(shared: Shared) -> None:
    others = shared.data / "run" / "jobs" / "unknown" / "checkpoints"
    script = f"id -un; id -G; echo $HOME; {{ {TRIES} }} 2>/dev/null; true"
    words = ("--secret", "TOKEN", "--env", f"DATA={shared.data}", "--env", f"OTHERS={others}", "--", "sh", "-c", script)
    first = _submitted(shared, "alice", *words, TOKEN="hush-hush-hush")
    ended = _until(shared, "alice", first, lambda seen: seen["phase"] in ("done", "failed"))
    assert ended["phase"] == "done", ended
    games = pwd.getpwnam("games")
    reached = ["checkpoints", "progress", "token"]
    expected = ["games", *map(str, os.getgrouplist("games", games.pw_gid)), games.pw_dir, *reached]
    assert shared("alice", "logs", first).split() == expected
    assert ended["attempts"][-1]["step"] == 7

    others = shared.data / "run" / "jobs" / first / "checkpoints"
    assert others.stat().st_uid == games.pw_uid
    words = ("--secret", "TOKEN", "--env", f"DATA={shared.data}", "--env", f"OTHERS={others}", "--", "sh", "-c", script)
    second = _submitted(shared, "bob", *words, TOKEN="hush-hush-hush")
    _until(shared, "bob", second, lambda seen: seen["phase"] == "done")
    assert shared("bob", "logs", second).split()[-3:] == reached
    assert shared("bob", "logs", second).split()[0] == "nobody"

    env = {
        "DATA": str(shared.data),
        "OTHERS": str(others),
        "TOKEN": "hush-hush-hush",
        "CHIPWISE_JOB": second,
        "PATH": os.environ["PATH"],
    }
    env |= {"CHIPWISE_CHECKPOINTS": str(others), "CHIPWISE_RUN_DIR": str(shared.data)}
    done = subprocess.run(["/bin/sh", "-c", TRIES], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.count("\n") == TRIES.count("&& echo"), done  # root reaches all: each try says so when it works


def test_whatever_a_job_started_ends_with_it_across_users(shared: Shared) -> None:
    leaves = 'trap "cat $CHIPWISE_RUN_DIR/notice.json; echo leaves" TERM'
    script = f"{leaves}; setsid sleep 1000 & echo begun; while :; do sleep 0.1; done"
    id = _submitted(shared, "alice", "--grace", "2s", "--", "sh", "-c", script)
    mark = f"{shared.data}/run/jobs/{id}/1"
    _until(shared, "alice", id, lambda seen: seen["phase"] == "running" and len(_processes_of("games", mark)) >= 2)
    shared("alice", "stop", id)
    _until(shared, "alice", id, lambda seen: seen["phase"] == "stopped")
    assert _processes_of("games", mark) == []
    said = shared("alice", "logs", id)
    assert '"until"' in said
    assert "leaves" in said


def test_who_calls_itself_a_controller_ends_with_its_job(shared: Shared) -> None:
    """With its limits, environment and session changed, nothing but its parents tells whose it is."""
    id = _submitted(shared, "alice", "--", "/usr/bin/python3", "-c", HIDES)
    _until(shared, "alice", id, lambda seen: seen["phase"] == "running" and len(_with_word(id)) == 1)
    shared("alice", "stop", "--now", id)
    _until(shared, "alice", id, lambda seen: seen["phase"] == "stopped")
    assert _with_word(id) == []


def _with_word(word: str) -> list[int]:
    found = []
    for process in psutil.process_iter():
        try:
            if word in process.cmdline() and "chipwise" in process.cmdline() and process.username() == "games":
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


def test_an_owner_without_a_system_user_is_told_so_and_nothing_starts(shared: Shared) -> None:
    said = shared("robot", "run", "--json", "--", "true", code=3)
    assert "No system user is named for jobs of robot at this place." in said
    id = _submitted(shared, "eve", "--", "touch", str(shared.home / "started"))
    seen = _until(shared, "eve", id, lambda seen: seen["phase"] == "failed")
    assert "No system user is named for jobs of eve" in seen["reason"]
    assert not (shared.home / "started").exists()


def test_a_controller_that_cannot_change_users_or_lost_its_configuration_does_not_start(shared: Shared) -> None:
    config = shared.home / "eve" / "config" / "engines.yaml"
    config.write_text("local: {run_as: games}\n")
    own = {"CHIPWISE_DATA_DIR": str(shared.home / "eve" / "data"), "CHIPWISE_RECORD": ""}
    for words in (("control",), ("run", "-d", "--", "true")):
        said = shared("eve", *words, code=2, env=own)
        assert "Only a root controller can run jobs as another system user" in said
    closed = shared.home / "closed"
    closed.mkdir(mode=0o700)
    own = {"CHIPWISE_DATA_DIR": str(closed / "data"), "CHIPWISE_RECORD": "", "CHIPWISE_CONFIG_DIR": str(config.parent)}
    said = shared("robot", "run", "-d", "--", "true", code=2, env=own)
    assert f"{closed} is closed to others" in said
    closed.chmod(0o711)
    (closed / "data").chmod(0o711)
    id = json.loads(shared("robot", "run", "--json", "--", "id", "-un", env=own))[0]["id"]
    assert shared("robot", "logs", "-f", id, env=own) == "games\n"
    config.unlink()
    said = shared("robot", "run", "-d", "--", "true", code=2, env=own)
    assert "ran as another system user so far" in said
