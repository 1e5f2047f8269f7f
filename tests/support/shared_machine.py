"""A machine that several people share, with real system users: one runs the controller, others submit to it."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

import chipwise

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
    def __init__(self, home: Path, python: str, url: Callable[[str], str]) -> None:
        self.home, self.python, self.url = home, python, url
        self.data = home / "srv"
        for login, user in PEOPLE.items():
            (home / login / "config").mkdir(parents=True)
            for folder in (home / login, home / login / "config"):
                os.chown(folder, pwd.getpwnam(user).pw_uid, GROUP)
        self.data.mkdir(exist_ok=True)
        os.chown(self.data, pwd.getpwnam(PEOPLE["robot"]).pw_uid, GROUP)
        self.data.chmod(0o2750)

    def start(self, login: str, *words: str, groups: tuple[int, ...] = (GROUP,), **env: str) -> subprocess.Popen[str]:
        return self.start_python(login, "-P", "-m", "chipwise", *words, groups=groups, env=env)

    def start_python(
        self, login: str, *words: str, groups: tuple[int, ...] = (GROUP,), env: Mapping[str, str]
    ) -> subprocess.Popen[str]:
        user = pwd.getpwnam(PEOPLE[login])
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

    def __call__(self, login: str, *words: str, code: int = 0, groups: tuple[int, ...] = (GROUP,), **env: str) -> str:
        process = self.start(login, *words, groups=groups, **env)
        out, err = process.communicate(timeout=300)
        assert process.returncode == code, f"{process.returncode}\n{out}\n{err}"
        return out if code == 0 else err

    def shell(self, login: str, command: str) -> int:
        user = pwd.getpwnam(PEOPLE[login])
        words = ["/bin/sh", "-c", command]
        done = subprocess.run(words, user=user.pw_uid, group=user.pw_gid, extra_groups=[GROUP], capture_output=True)
        return done.returncode
