"""The command line as a user has it: a process of its own, a home of its own, the day pinned."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


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
        base = {"PATH": os.environ["PATH"], "HOME": str(self.home), "COLUMNS": "80", "CHIPWISE_TODAY": "2026-11-15"}
        base |= {"CHIPWISE_CONFIG_DIR": str(self.config_dir), "CHIPWISE_DATA_DIR": str(self.data_dir), "LANG": "C.UTF-8"}
        command = [str(Path(sys.executable).parent / "chipwise"), *arguments]
        done = subprocess.run(
            command,
            cwd=cwd,
            env={**base, **self.environment, **environment},
            capture_output=True,
            timeout=60,
            input=(typed or "").encode(),
        )
        return Done(done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace"))
