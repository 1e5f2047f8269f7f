"""The command line as a user has it: an environment of its own, a home of its own, the day pinned.

A call runs in this process, which spares the start of an interpreter and keeps what is packaged read; `process` starts one
as a shell does. Both get the same environment and nothing else, and `tests/flow/test_cli.py` holds them to the same answers.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import traceback
from collections.abc import Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from chipwise.api.session import wiring
from chipwise.cli.main import main
from pinned_day import TODAY

ROOT = Path(__file__).resolve().parents[2]
# What an interpreter or the wrapper of the command looks at before our own code does: such a call needs a process.
OF_THE_START = ("PYTHON", "LANG", "LC_", "_CHIPWISE_COMPLETE")


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True)
class Chipwise:
    home: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def config_dir(self) -> Path:
        return self.home / "config"

    @property
    def data_dir(self) -> Path:
        return self.home / "data"

    def __call__(self, *arguments: str, cwd: Path = ROOT, typed: str | None = None, **environment: str) -> Done:
        if any(name.startswith(OF_THE_START) for name in (*self.environment, *environment)):
            return self.process(*arguments, cwd=cwd, typed=typed, **environment)
        return called(*arguments, cwd=cwd, typed=typed or "", environment=self._environment(environment))

    def process(self, *arguments: str, cwd: Path = ROOT, typed: str | None = None, **environment: str) -> Done:
        """The installed command, started as a shell starts it."""
        done = subprocess.run(
            [str(Path(sys.executable).parent / "chipwise"), *arguments],
            cwd=cwd,
            env=self._environment(environment),
            capture_output=True,
            timeout=300,
            input=(typed or "").encode(),
        )
        return Done(done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace"))

    def _environment(self, more: Mapping[str, str]) -> dict[str, str]:
        own = {"CHIPWISE_CONFIG_DIR": str(self.config_dir), "CHIPWISE_DATA_DIR": str(self.data_dir)}
        return {**plain(self.home), **own, **self.environment, **more}


def plain(home: Path) -> dict[str, str]:
    """The environment of a user who has set nothing of ours but the day."""
    base = {"PATH": os.environ["PATH"], "HOME": str(home), "COLUMNS": "80", "LANG": "C.UTF-8"}
    return base | {"CHIPWISE_TODAY": TODAY}


def called(*arguments: str, environment: Mapping[str, str], cwd: Path = ROOT, typed: str = "") -> Done:
    """One command in this process, with exactly this environment and streams that are no terminal."""
    out, err = io.BytesIO(), io.BytesIO()
    wiring.OPENED.clear()  # a process has only its own sessions
    with (
        patch.dict(os.environ, environment, clear=True),
        patch("sys.stdin", io.TextIOWrapper(io.BytesIO(typed.encode()), encoding="utf-8")),
        redirect_stdout(_stream(out)) as stdout,
        redirect_stderr(_stream(err)) as stderr,
        chdir(cwd),
    ):
        try:
            code = main(list(arguments))
        except Exception:  # what `--debug` lets through, as the interpreter tells it
            code = 1
            traceback.print_exc()
        stdout.flush()
        stderr.flush()
        return Done(code, out.getvalue().decode("utf-8", "replace"), err.getvalue().decode("utf-8", "replace"))


def _stream(into: io.BytesIO) -> io.TextIOWrapper:
    """As the command makes its own streams: any text can be written."""
    return io.TextIOWrapper(into, encoding="utf-8", errors="backslashreplace")
