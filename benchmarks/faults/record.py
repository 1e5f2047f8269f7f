"""Kills writers of a record in the middle, hundreds of times, and looks whether anything is missing or half done.

    python benchmarks/faults/record.py [KILLS] [URL] [SEED]

Without a URL a file in a temporary folder is used. Prints one JSON line; exit code 1 when a law was broken.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from chipwise.adapters.stores.record import connect
from chipwise.runner.events import Submitted, after, first
from chipwise.runner.job import Job
from chipwise.runner.record import Happened, Record, Wanted

if TYPE_CHECKING:
    from figure import Figure

WRITERS = Path(__file__).resolve().parent.parent.parent / "tests" / "support" / "record_writers.py"
MOST = 5_000  # kills in one run


def figures(long: bool = False) -> Iterator[Figure]:
    from figure import Figure

    kills = 300 if long else 40
    done = subprocess.run([sys.executable, __file__, str(kills)], capture_output=True, text=True, timeout=120 + kills * 5.0)
    told = json.loads(done.stdout)
    yield Figure("faults_record_kills", told["kills"], "kills", {"min": kills})
    yield Figure("faults_record_lost", told["lost"], "jobs", {"max": 0})
    yield Figure("faults_record_half_done", told["half_done"], "jobs", {"max": 0})


def main(arguments: list[str]) -> int:
    kills = min(int(arguments[0]) if arguments else 300, MOST)
    seed = int(arguments[2]) if len(arguments) > 2 else int(time.time())
    if len(arguments) > 1:
        return _told(kills, arguments[1], seed)
    with tempfile.TemporaryDirectory() as folder:
        return _told(kills, f"{folder}/jobs.db", seed)


def _told(kills: int, url: str, seed: int) -> int:
    start = time.perf_counter()
    command = [sys.executable, str(WRITERS), "deaths", url, str(kills), str(seed)]
    said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=60 + kills * 5.0).stdout
    told: dict[str, int] = {}
    for line in said.splitlines():
        id, version = line.split()
        told[id] = max(told.get(id, 0), int(version))
    record = connect(url)
    try:
        lost, halves, jobs = _broken(record, told)
    finally:
        record.close()
    took = time.perf_counter() - start
    print(
        json.dumps(
            {
                "name": "record_faults",
                "kills": kills,
                "seed": seed,
                "jobs": jobs,
                "changes_told": len(said.splitlines()),
                "lost": lost,
                "half_done": halves,
                "seconds": round(took, 1),
            }
        )
    )
    return 1 if lost or halves else 0


def _broken(record: Record, told: dict[str, int]) -> tuple[int, int, int]:
    jobs = {job.id: job for job in record.jobs(Wanted())}
    lost = sum(id not in jobs or jobs[id].version < version for id, version in told.items())
    halves = sum(_folded(record.events(job.id)) != job for job in jobs.values())
    return lost, halves, len(jobs)


def _folded(events: list[Happened]) -> Job | None:
    if not events or not isinstance(events[0].event, Submitted):
        return None
    job = first(events[0].job, events[0].event, events[0].moment)
    for one in events[1:]:
        job = after(job, one.event, one.moment)
    return job


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
