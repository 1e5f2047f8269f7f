"""CPU of commands from a cold start, and how much of it each command spends on imports."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence

from figure import CHIPWISE, ROOT, Figure, cpu_of

# One real use of each command: what a command imports shows only when it runs.
USES = {
    "chips": ["chips", "h100", "t4", "--json"],
    "machines": ["machines", "p5", "--json"],
    "offers": ["offers", "--chip", "h100", "--json"],
    "regions": ["regions", "--json"],
    "models": ["models", "llama-3.1-8b", "--json"],
    "explain": ["explain", "p4de.24xlarge", "--json"],
    "check": ["check", "examples/serve/workload.yaml", "--json"],
    "catalog": ["catalog", "status", "--json"],
}


def import_seconds(arguments: Sequence[str], repeats: int = 5) -> float:
    """Median over runs of the time inside imports, as `-X importtime` counts it."""
    totals = []
    for _ in range(repeats):
        command = [sys.executable, "-X", "importtime", "-m", "chipwise", *arguments]
        done = subprocess.run(
            command, check=True, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "NO_COLOR": "1"}
        )
        rows = [
            line.split("|")[0].removeprefix("import time:")
            for line in done.stderr.splitlines()
            if line.startswith("import time:")
        ]
        totals.append(sum(int(row) for row in rows if row.strip().isdigit()) * 1e-6)
    return statistics.median(totals)


def figures() -> Iterator[Figure]:
    yield Figure("offers_h100_json_cold_cpu", cpu_of([CHIPWISE, "offers", "--chip", "h100", "--json"]), "s", {"max": 0.5})
    for command, arguments in USES.items():
        yield Figure(f"import_cpu_{command}", import_seconds(arguments), "s", {"max": 0.3})
