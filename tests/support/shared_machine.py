"""A machine that several people share, with real system users: one runs the controller, others submit to it."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

import pytest

import chipwise
from patience import deadline
from postgres_server import Server
from team_record import logins

GROUP = 12  # any that the users below are given
PEOPLE = {"robot": "daemon", "alice": "games", "bob": "nobody"}  # login of the record, system user
PACKAGES = Path(pytest.__file__).parent.parent


def python_for_others() -> str | None:
    """One that other users may start; that of a virtual environment often is in somebody's home."""
    for python in (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}"):
        command = ["/bin/sh", "-c", f'"{python}" -c ""']
        if Path(python).exists() and not subprocess.run(command, user=PEOPLE["bob"], capture_output=True).returncode:
            return python
    return None


class Shared:
    def __init__(
        self, home: Path, python: str, url: Callable[[str], str], people: Mapping[str, str] = MappingProxyType(PEOPLE)
    ) -> None:
        self.home, self.python, self.url, self.people = home, python, url, people
        self.data = home / "srv"
        for login, user in people.items():
            (home / login / "config").mkdir(parents=True)
            for folder in (home / login, home / login / "config"):
                os.chown(folder, pwd.getpwnam(user).pw_uid, GROUP)
        self.data.mkdir(exist_ok=True)
        os.chown(self.data, pwd.getpwnam(people["robot"]).pw_uid, GROUP)
        self.data.chmod(0o2750)

    @property
    def place(self) -> str:
        return f"local:{os.uname().nodename}:{self.data}"

    def start(self, login: str, *words: str, groups: tuple[int, ...] = (GROUP,), **env: str) -> subprocess.Popen[str]:
        return self.start_python(login, "-P", "-m", "chipwise", *words, groups=groups, env=env)

    def start_python(
        self, login: str, *words: str, groups: tuple[int, ...] = (GROUP,), env: Mapping[str, str]
    ) -> subprocess.Popen[str]:
        user = pwd.getpwnam(self.people[login])
        return subprocess.Popen(
            [self.python, *words],
            cwd="/",
            user=user.pw_uid,
            group=user.pw_gid,
            extra_groups=list(groups),
            env={**self.environment(login), **env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def environment(self, login: str) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home / login),
            "LANG": "C.UTF-8",
            "PYTHONPATH": f"{Path(chipwise.__file__).parent.parent}:{PACKAGES}",
            "CHIPWISE_DATA_DIR": str(self.data),
            "CHIPWISE_CONFIG_DIR": str(self.home / login / "config"),
            "CHIPWISE_RECORD": self.url(login),
            "CHIPWISE_GPUS": "none",
            "CHIPWISE_CPUS": "0",
        }

    def __call__(
        self,
        login: str,
        *words: str,
        code: int = 0,
        groups: tuple[int, ...] = (GROUP,),
        env: Mapping[str, str] | None = None,
        **more: str,
    ) -> str:
        words = ("-P", "-m", "chipwise", *words)
        process = self.start_python(login, *words, groups=groups, env={**(env or {}), **more})
        out, err = process.communicate(timeout=300)
        assert process.returncode == code, f"{process.returncode}\n{out}\n{err}"
        return out if code == 0 else err

    def shell(self, login: str, command: str) -> int:
        user = pwd.getpwnam(self.people[login])
        words = ["/bin/sh", "-c", command]
        done = subprocess.run(words, user=user.pw_uid, group=user.pw_gid, extra_groups=[GROUP], capture_output=True)
        return done.returncode


@contextmanager
def shared_machine(
    postgres: Server, database: str, people: Mapping[str, str], prepare: Callable[[Shared], object] = lambda shared: None
) -> Iterator[Shared]:
    """With a controller of robot that runs, after `prepare`."""
    if os.geteuid() != 0:
        pytest.skip("root: only root starts processes of other system users")
    python = python_for_others()
    if python is None:
        pytest.skip("a Python that other users can start")
    home = Path(tempfile.mkdtemp(prefix="chipwise-shared-"))
    home.chmod(0o755)
    shared = Shared(home, python, lambda login: postgres.url(database, login), people)
    from chipwise.adapters.stores.record.members import Member, connect_members

    roles = logins(postgres, tuple(people))
    next(roles)
    members = connect_members(postgres.url(database))
    members.add(Member("robot", "", "controller"))
    for login in people.keys() - {"robot"}:
        members.add(Member(login, "speech" if login == "bob" else "vision"))
    members.close()
    prepare(shared)
    controller = shared.start("robot", "control")
    try:
        lock, late = shared.data / "run" / "controller.lock", deadline(30)
        while not (lock.exists() and lock.read_text().strip()):
            assert controller.poll() is None, controller.communicate()
            assert time.monotonic() < late
            time.sleep(0.1)
        yield shared
    finally:
        controller.send_signal(signal.SIGTERM)
        controller.communicate(timeout=60)
        import psycopg

        with psycopg.connect(postgres.url(database), autocommit=True) as owner:
            for login in people:
                owner.execute(f"DROP OWNED BY {login}".encode())
        next(roles, None)
        shutil.rmtree(home, ignore_errors=True)
