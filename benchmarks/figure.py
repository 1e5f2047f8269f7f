"""A figure: one measured number with its unit and goal, printed as one JSON line."""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHIPWISE = str(Path(sys.executable).parent / "chipwise")


@dataclass(frozen=True, slots=True)
class Figure:
    name: str
    value: float
    unit: str
    goal: dict[str, float]  # {"max": x} or {"min": x}; empty: only to be read

    def line(self) -> str:
        return json.dumps({"name": self.name, "value": round(self.value, 6), "unit": self.unit, "goal": self.goal})

    @property
    def reached(self) -> bool:
        return self.value <= self.goal.get("max", float("inf")) and self.value >= self.goal.get("min", float("-inf"))


def cpu_of(command: Sequence[str], repeats: int = 7) -> float:
    """Median CPU seconds (user and system) of a command from a cold start; wall time would measure the neighbours."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("CHIPWISE")}
    seconds = []
    for _ in range(repeats):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(seconds)


def cpu_here(work: Callable[[], object], repeats: int = 15) -> float:
    """Median CPU seconds of a call in this process."""
    from time import process_time

    seconds = []
    for _ in range(repeats):
        start = process_time()
        work()
        seconds.append(process_time() - start)
    return statistics.median(seconds)
