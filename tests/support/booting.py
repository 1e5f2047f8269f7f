"""Runs the start script of a machine for real, with stand-ins for everything that would touch a machine or a cloud."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

STAND_INS = {
    "docker": 'case $1 in run) printf "%s\\0" "$@" > "$OUT/words/$(date +%s%N)-$$" ;; esac',
    "curl": """case "$*" in
  *spot/* | *preempted* | *scheduledevents*) exit 22 ;;
  *oauth2*) echo '{"access_token": "t"}' ;;
  *vault*) echo '{"value": "{\\"token\\": \\"hidden\\"}"}' ;;
  *) echo 0 ;;
esac""",
    "aws": """case "$*" in
  *get-secret-value*) echo '{"token": "hidden"}' ;;
  *describe-instances*) echo 10.0.0.1 ;;
  's3 sync --only-show-errors s3://'*) touch "$5/object" ;;
esac""",
    "gcloud": 'case "$*" in "storage rsync --recursive gs://"*) touch "$5/object" ;; esac',
    "azcopy": 'case "$*" in "sync --recursive https://"*) touch "$4/object" ;; esac',
    "sleep": 'case $1 in 15 | 300) ;; *) exec /bin/sleep "$@" ;; esac',  # between tries, and for a machine that is taken
    "mountpoint": "exit 1",
    "tee": "cat",
    "getent": ":",
    **dict.fromkeys(("lsblk", "systemctl", "shutdown", "chmod", "chown", "dnf", "apt-get"), ":"),
}


@dataclass(frozen=True)
class Booted:
    status: int
    containers: list[list[str]]  # words that docker was given
    calls: list[str]  # of every other stand-in, in order
    folder: Path

    def options(self, at: int = 0) -> list[str]:
        """Of docker, before the image."""
        return self.containers[at][: self.containers[at].index("image:1")]

    def command(self, at: int = 0) -> list[str]:
        """What a container runs: its entry point, and what follows the image."""
        words = self.containers[at]
        return [words[words.index("--entrypoint") + 1], *words[words.index("image:1") + 1 :]]


def booted(script: str, folder: Path, stand_ins: Mapping[str, str] | None = None, **settings: str) -> Booted:
    programs = folder / "programs"
    programs.mkdir(parents=True)
    for name, body in {**STAND_INS, **(stand_ins or {})}.items():
        (programs / name).write_text(f'#!/bin/bash\necho "{name} $*" >> "$OUT/calls"\n{body}\n')
        (programs / name).chmod(0o755)
    path = folder / "start.sh"
    given = {"IMAGE": "image:1", "NAME": "job", **settings}
    path.write_text("".join(f"{key}='{value}'\n" for key, value in given.items()) + script)
    places = {f"CHIPWISE_{name}": str(folder / name.lower()) for name in ("ROOT", "LOGS", "STATE")}
    for name in ("state", "words"):
        (folder / name).mkdir()
    env = {"PATH": f"{programs}:{os.environ['PATH']}", "OUT": str(folder), "HOME": "/nowhere", "HOSTNAME": "job-0", **places}
    with (folder / "console").open("wb") as console:
        running = subprocess.Popen(
            ["bash", str(path)], env=env, cwd=folder, stdout=console, stderr=console, start_new_session=True
        )
        try:
            status = running.wait(timeout=30)
        finally:  # what it left in the background, such as the clock of a deadline
            with suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)
            running.wait()
    words = [one.read_bytes().decode().split("\0")[:-1] for one in sorted((folder / "words").iterdir())]
    calls = (folder / "calls").read_text().splitlines() if (folder / "calls").exists() else []
    return Booted(status, words, calls, folder)
