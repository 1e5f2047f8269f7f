"""Ten minutes of chaos over two hundred jobs, as figures; `python benchmarks/faults/chaos --help` says what happens in them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from figure import Figure


def figures(long: bool = False) -> Iterator[Figure]:
    """Only as root, in a process of its own; short, a few jobs and two minutes."""
    from figure import Figure

    if os.geteuid() != 0:
        print("faults/chaos is left out: it starts processes of several system users, as root.", file=sys.stderr)
        return
    words = [] if long else ["--minutes", "2", "--jobs", "12"]
    command = [sys.executable, str(Path(__file__).parent), *words]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=1200)
    counts = json.loads(done.stdout)
    yield Figure("faults_chaos_faults", sum(counts["faults"].values()), "faults", {"min": 1})
    yield Figure("faults_chaos_lost_or_wrong", len(counts["lost"]) + counts["wrong"], "jobs", {"max": 0})
    yield Figure("faults_chaos_doubled", counts["doubled"], "jobs", {"max": 0})
    yield Figure("faults_chaos_orphans", len(counts["orphans"]), "processes", {"max": 0})
    yield Figure("faults_chaos_untrue", len(counts["untrue"]), "states", {"max": 0})
    yield Figure("faults_chaos_devices_held", counts["held_devices"], "devices", {"max": 0})
    yield Figure("faults_chaos_harmful_statements", len(counts["harmful"]), "statements", {"max": 0})
