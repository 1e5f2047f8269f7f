"""CPU of commands from a cold start, and what importing each command costs."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from figure import CHIPWISE, Figure, cpu_of

from chipwise.cli.main import COMMANDS


def figures() -> Iterator[Figure]:
    yield Figure("offers_h100_json_cold_cpu", cpu_of([CHIPWISE, "offers", "--chip", "h100", "--json"]), "s", {"max": 0.5})
    bare = cpu_of([sys.executable, "-c", "pass"])
    yield Figure("python_start_cpu", bare, "s", {"max": 0.2})
    for command in COMMANDS:
        code = f"import chipwise.cli.main as m, chipwise.cli.{command}"
        yield Figure(f"import_cpu_{command}", cpu_of([sys.executable, "-c", code]) - bare, "s", {"max": 0.15})
