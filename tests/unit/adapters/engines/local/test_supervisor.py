"""A real supervisor process over real processes."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from chipwise.adapters.engines.local import SECRETS, folder, processes
from chipwise.adapters.engines.local.supervisor import Supervisor
from patience import deadline

# Real processes that are killed and waited for: minutes of waiting, so `make e2e` runs it.
pytestmark = pytest.mark.e2e
PYTHON = sys.executable


class Attempt:
    def __init__(self, at: Path) -> None:
        self.at = at
        self.started: list[subprocess.Popen[bytes]] = []

    def order(self, *command: str, **more: Any) -> None:
        self.at.mkdir(exist_ok=True)
        folder.write(self.at, folder.ORDER, {"command": list(command), "mark": str(self.at), "grace_s": 5, **more})

    def start(self, **env: str) -> subprocess.Popen[bytes]:
        command = [PYTHON, "-P", "-m", "chipwise.adapters.engines.local", str(self.at)]
        self.started.append(subprocess.Popen(command, env={**os.environ, **env}, start_new_session=True))
        return self.started[-1]

    def run(self, *command: str, env: dict[str, str] | None = None, **more: Any) -> dict[str, Any]:
        self.order(*command, **more)
        assert self.start(**(env or {})).wait(30) == 0
        return self.ended()

    def ended(self) -> dict[str, Any]:
        found = folder.read(self.at, folder.ENDED)
        assert found is not None
        return found

    @property
    def log(self) -> str:
        return (self.at / "log").read_text()

    def until(self, what: Callable[[], object]) -> None:
        late = deadline(20)
        while not what():
            assert time.monotonic() < late, self.log if (self.at / "log").exists() else "no log"
            time.sleep(0.02)


@pytest.fixture
def attempt(tmp_path: Path) -> Iterator[Attempt]:
    made = Attempt(tmp_path / "1")
    yield made
    for one in made.started:
        if one.poll() is None:
            one.kill()
        one.wait()
    processes.end(processes.marked(str(made.at)))


def python(code: str) -> tuple[str, ...]:
    return (PYTHON, "-u", "-c", code)


def test_what_it_printed_and_how_it_ended_are_kept(attempt: Attempt) -> None:
    ended = attempt.run(*python("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"))
    assert ended["code"] == 3
    assert sorted(attempt.log.splitlines()) == ["err", "out"]


def test_an_attempt_begins_once(attempt: Attempt, tmp_path: Path) -> None:
    attempt.run(*python(f"open({str(tmp_path / 'times')!r}, 'a').write('x')"))
    for _ in range(2):
        assert attempt.start().wait(30) == 0
    assert (tmp_path / "times").read_text() == "x"


def test_of_two_supervisors_at_once_one_runs_it(attempt: Attempt, tmp_path: Path) -> None:
    attempt.order(*python(f"import time; open({str(tmp_path / 'times')!r}, 'a').write('x'); time.sleep(0.5)"))
    both = [attempt.start() for _ in range(4)]
    assert [one.wait(30) for one in both] == [0] * 4
    assert (tmp_path / "times").read_text() == "x"
    assert attempt.ended()["code"] == 0


@pytest.mark.parametrize(
    ("command", "more", "secret", "reason"),
    [
        (("true",), {}, "half\0other", "the setting KEY contains a NUL character"),
        (("true",), {"env": {"A=B": "x"}}, "", "'A=B' cannot be the name of a setting"),
        (("true",), {"env": {"": "x"}}, "", "'' cannot be the name of a setting"),
        (("true", "a\0b"), {}, "", "its command contains a NUL character"),
        ((), {}, "", "it has no command to run"),
    ],
)
def test_what_no_program_can_be_given_is_the_failure_of_the_job(
    attempt: Attempt, command: tuple[str, ...], more: dict[str, Any], secret: str, reason: str
) -> None:
    attempt.order(*command, **more)
    assert attempt.start(**{SECRETS: json.dumps({"KEY": secret} if secret else {})}).wait(30) == 0
    ended = attempt.ended()
    assert ended["code"] == 126
    assert reason in ended["reason"]
    assert "half" not in ended["reason"] + attempt.log


def test_a_command_that_is_not_there_is_told_by_name(attempt: Attempt) -> None:
    ended = attempt.run("no-such-program-here")
    assert ended["code"] == 127
    assert "'no-such-program-here' was not found" in ended["reason"]


def test_a_folder_that_is_not_there_is_told_by_name(attempt: Attempt) -> None:
    ended = attempt.run("true", folder="/no/such/folder")
    assert "the folder /no/such/folder is not there" in ended["reason"]


def test_a_folder_that_cannot_be_entered_is_told_by_name() -> None:
    supervisor = SimpleNamespace(order={"command": ["sh"], "folder": "/home/mia"}, log=io.BytesIO())
    Supervisor._cannot(supervisor, PermissionError(13, "Permission denied", "/home/mia"), {})  # type: ignore[arg-type]
    assert re.fullmatch(r"the folder /home/mia cannot be entered by \S+: Permission denied", supervisor.reason)
    Supervisor._cannot(supervisor, PermissionError(13, "Permission denied", "sh"), {})  # type: ignore[arg-type]
    assert supervisor.reason == "the command 'sh' cannot be started: Permission denied"


def test_the_wish_to_leave_reaches_the_program_with_its_time(attempt: Attempt) -> None:
    code = (
        "import json, os, signal, sys, time\n"
        "def leave(*_):\n"
        "    print(json.load(open(os.environ['CHIPWISE_RUN_DIR'] + '/notice.json'))['reason']); sys.exit(75)\n"
        "signal.signal(signal.SIGTERM, leave); print('ready'); time.sleep(60)"
    )
    attempt.order(*python(code))
    supervisor = attempt.start()
    attempt.until(lambda: (attempt.at / "log").exists() and "ready" in attempt.log)
    folder.write(attempt.at, folder.LEAVE, {"by": time.time() + 10, "reason": "spot goes"})
    supervisor.send_signal(signal.SIGTERM)
    assert supervisor.wait(20) == 0
    assert attempt.ended()["code"] == 75
    assert "spot goes" in attempt.log


def test_one_that_does_not_leave_is_ended_when_its_time_is_over(attempt: Attempt) -> None:
    attempt.order(*python("import signal, time; signal.signal(15, signal.SIG_IGN); print('ready'); time.sleep(60)"))
    supervisor = attempt.start()
    attempt.until(lambda: (attempt.at / "log").exists() and "ready" in attempt.log)
    folder.write(attempt.at, folder.LEAVE, {"by": time.time() + 0.5, "reason": "now"})
    supervisor.send_signal(signal.SIGTERM)
    assert supervisor.wait(20) == 0
    assert attempt.ended()["code"] == 137


def test_no_process_outlives_a_supervisor_that_is_killed(attempt: Attempt) -> None:
    attempt.order(*python("import time; print('ready'); time.sleep(60)"))
    supervisor = attempt.start()
    attempt.until(lambda: (attempt.at / "log").exists() and "ready" in attempt.log)
    [child] = processes.marked(str(attempt.at))
    supervisor.kill()
    supervisor.wait()
    child.wait(10)
    assert not processes.marked(str(attempt.at))
    assert folder.read(attempt.at, folder.ENDED) is None


def test_what_goes_into_the_background_ends_with_the_attempt(attempt: Attempt) -> None:
    background = "[sys.executable, '-c', 'import time; time.sleep(60)'], start_new_session=True"
    ended = attempt.run(*python(f"import subprocess, sys; subprocess.Popen({background})"))
    assert ended["code"] == 0
    assert not processes.marked(str(attempt.at))


def test_several_processes_know_their_rank_and_print_under_it(attempt: Attempt) -> None:
    code = "import os; print(os.environ['RANK'], os.environ['WORLD_SIZE'], os.environ['MASTER_ADDR'])"
    ended = attempt.run(*python(code), processes=3)
    assert ended["code"] == 0
    assert sorted(attempt.log.splitlines()) == [f"[{rank}] {rank} 3 127.0.0.1" for rank in range(3)]


def test_when_one_of_several_fails_the_others_are_ended(attempt: Attempt) -> None:
    code = "import os, sys, time; sys.exit(5) if os.environ['RANK'] == '1' else time.sleep(60)"
    ended = attempt.run(*python(code), processes=3)
    assert ended["code"] == 5
    assert "process 1 of 3 ended with 5" in ended["reason"]


def test_secrets_are_blotted_out_and_never_written(attempt: Attempt) -> None:
    value = "s3cret-value-of-mine"
    attempt.run(*python("import os; print('token', os.environ['TOKEN'])"), env={SECRETS: json.dumps({"TOKEN": value})})
    assert attempt.log == "token [secret]\n"
    for path in attempt.at.iterdir():
        assert value.encode() not in path.read_bytes()


def test_logs_are_rotated_at_their_size_and_lines_stay_whole(attempt: Attempt) -> None:
    attempt.run(*python("for n in range(4000): print(f'line {n:05}')"), log_bytes=10_000, logs_kept=2)
    names = sorted(path.name for path in attempt.at.glob("log*"))
    assert names == ["log", "log.1", "log.2"]
    lines = [line for name in reversed(names) for line in (attempt.at / name).read_text().splitlines()]
    assert lines[-1] == "line 03999"
    assert lines == [f"line {n:05}" for n in range(4000 - len(lines), 4000)]
    assert all((attempt.at / name).stat().st_size <= 10_000 for name in names)


def test_a_hand_off_that_is_missing_or_empty_is_a_failure(attempt: Attempt, tmp_path: Path) -> None:
    (tmp_path / "there").write_text("x")
    (tmp_path / "empty").write_text("")
    ended = attempt.run("true", folder=str(tmp_path), produces=["there", "empty"])
    assert ended["code"] == 66
    assert "empty is empty" in ended["reason"]


@pytest.mark.parametrize(("inside", "code"), [(".done", 0), ("", 66)])
def test_a_folder_is_handed_over_when_something_is_in_it(attempt: Attempt, tmp_path: Path, inside: str, code: int) -> None:
    (tmp_path / "out").mkdir()
    if inside:
        (tmp_path / "out" / inside).touch()
    ended = attempt.run("true", folder=str(tmp_path), produces=["out"])
    assert (ended["code"], "out is empty" in ended["reason"]) == (code, bool(code))


@pytest.mark.parametrize("name", ["a" * 300, "x/" * 3000])
def test_a_hand_off_that_no_file_can_be_is_told_and_is_no_loss(attempt: Attempt, tmp_path: Path, name: str) -> None:
    ended = attempt.run("true", folder=str(tmp_path), produces=[name])
    assert ended["code"] == 66
    assert ended["reason"].startswith(f"it ended well, but {name[:200]} cannot be looked at: ")


def test_a_service_that_is_no_longer_well_is_ended(attempt: Attempt) -> None:
    server = (
        "import http.server, os\n"
        "class Answer(http.server.BaseHTTPRequestHandler):\n"
        "    def do_GET(self):\n"
        "        self.send_response(200 if os.path.exists('well') else 500); self.end_headers()\n"
        "    def log_message(self, *_): pass\n"
        "served = http.server.HTTPServer(('127.0.0.1', 0), Answer)\n"
        "open('port', 'w').write(str(served.server_port)); served.serve_forever()"
    )
    at = attempt.at.parent
    port = _free_port()
    (at / "well").write_text("")
    attempt.order(
        *python(server.replace("0), Answer", f"{port}), Answer")),
        folder=str(at),
        health=f"http://127.0.0.1:{port}/",
        health_every_s=0.1,
    )
    attempt.start()
    attempt.until(lambda: (at / "port").exists())
    time.sleep(0.5)
    assert folder.read(attempt.at, folder.ENDED) is None
    (at / "well").unlink()
    attempt.until(lambda: folder.read(attempt.at, folder.ENDED))
    assert attempt.ended()["code"] == 70
    assert "times in a row: status 500" in attempt.ended()["reason"]


def _free_port() -> int:
    import socket

    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])


def test_a_process_is_told_from_a_later_one_with_its_number() -> None:
    child = subprocess.Popen([PYTHON, "-c", "import time; time.sleep(60)"])
    try:
        known = processes.identity(child.pid)
        assert processes.lives(child.pid, known)
        assert not processes.lives(child.pid, "another boot:1")
    finally:
        child.kill()
        child.wait()
    assert not processes.lives(child.pid, known)


@pytest.mark.parametrize("damage", ["", "{", "[]", "null", '{"pid": "x"}', "\x00\xff"])
def test_a_damaged_file_of_the_folder_is_as_if_it_were_not_there(tmp_path: Path, damage: str) -> None:
    (tmp_path / folder.STATE).write_text(damage)
    found = folder.read(tmp_path, folder.STATE)
    assert found is None or not processes.lives(found.get("pid"), found.get("identity"))


def test_a_full_disk_does_not_end_the_job(attempt: Attempt) -> None:
    """The supervisor's files may grow to 20 kB only: the log stops growing, the job does not."""
    attempt.order(*python("for n in range(20000): print('x' * 20)\nopen('done', 'w').close()"), folder=str(attempt.at.parent))
    command = f"ulimit -f 40; exec {PYTHON} -P -m chipwise.adapters.engines.local {attempt.at}"
    done = subprocess.run(["bash", "-c", f"trap '' XFSZ; {command}"], timeout=30, check=False)
    assert done.returncode == 0
    assert (attempt.at.parent / "done").exists()
    assert attempt.ended()["code"] == 0


def test_the_supervisor_is_small(attempt: Attempt) -> None:
    attempt.order(*python("import time; time.sleep(60)"))
    supervisor = attempt.start()
    attempt.until(lambda: folder.read(attempt.at, folder.STATE))
    assert psutil.Process(supervisor.pid).memory_info().rss < 40e6
    assert json.loads((attempt.at / "state.json").read_text())["pid"] == supervisor.pid


def test_keys_in_the_environment_of_a_supervisor_do_not_reach_a_program_that_did_not_ask(attempt: Attempt) -> None:
    show = python("import os; print(os.environ.get('OTHERS'), os.environ.get('MINE'), os.environ.get('SET'))")
    there = {"OTHERS": "of-another-job", SECRETS: json.dumps({"MINE": "of-this-job"})}
    attempt.order(*show, env={"SET": "yes"})
    assert attempt.start(**there).wait(30) == 0
    assert attempt.log == "None [secret] yes\n"


def test_how_it_ended_is_said_when_it_can_be_written_again(attempt: Attempt) -> None:
    attempt.order(*python("import time; print('done'); time.sleep(0.5)"))
    (attempt.at / "later" / "in the way").mkdir(parents=True)  # no file can take its place, as on a full disk
    started = attempt.start()
    attempt.until(lambda: (attempt.at / folder.STATE).exists())
    (attempt.at / "later").rename(attempt.at / folder.ENDED)
    attempt.until(lambda: "done" in attempt.log)
    time.sleep(1.0)
    assert started.poll() is None  # it counts as under way
    (attempt.at / folder.ENDED).rename(attempt.at / "later")
    assert started.wait(20) == 0
    assert attempt.ended()["code"] == 0


def test_a_controller_that_cannot_be_woken_does_not_end_the_job(attempt: Attempt, tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()  # where the controller would print
    order = {"lock": str(tmp_path / "controller.lock"), "log": str(tmp_path / "log"), "command": [PYTHON, "-c", ""]}
    assert attempt.run(*python("import time; time.sleep(6); print('lived')"), controller=order)["code"] == 0
    assert attempt.log == "lived\n"
