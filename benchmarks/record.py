"""The record of jobs with 10,000 of them: submitting, listing and reading what changed, in a file on this disk."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from chipwise.adapters.stores.record import connect
from chipwise.runner.events import Begun, Placed
from chipwise.runner.job import MachinePlace, Needs, Phase, Spec
from chipwise.runner.record import Change, Record, Wanted
from figure import Figure

JOBS = 10_000
SPEC = Spec(
    ("python", "train.py", "--lr", "3e-4", "--epochs", "90"),
    "resnet",
    place="here",
    folder="/home/alice/vision",
    env={"OMP_NUM_THREADS": "4"},
    needs=Needs(1, 4),
    owner="alice",
    team="vision",
    project="p",
    labels={"model": "resnet50"},
    priority=3,
    expected_s=3600.0,
)


def figures() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        for synchronous, count, least in (("decisions", JOBS, 500.0), ("full", JOBS // 5, 0.0), ("normal", JOBS // 5, 500.0)):
            record = connect(f"sqlite://{Path(folder) / synchronous}.db?synchronous={synchronous}")
            rate = _rate(partial(_one_by_one, record, count), count, time.perf_counter)
            yield Figure(f"record_submit_one_by_one_{synchronous}", rate, "1/s", {"min": least})
            record.close()
        record = connect(f"{folder}/decisions.db")
        together = [(f"b-{number:06}", SPEC) for number in range(JOBS)]
        yield Figure("record_submit_in_one_call", _rate(lambda: record.submit(together, 2.0), JOBS), "1/s", {"min": 5_000.0})
        yield Figure("record_rows_newest_50_of_20k", _median(lambda: record.rows(Wanted(newest=50))), "s", {"max": 0.05})
        live = Wanted(phases=frozenset({Phase.RUNNING, Phase.QUEUED}), newest=50)
        yield Figure("record_rows_live_50_of_20k", _median(lambda: record.rows(live)), "s", {"max": 0.1})
        yield Figure("record_rows_10k", _median(lambda: record.rows(Wanted(newest=JOBS))), "s", {"max": 0.25})
        yield Figure("record_changed_2000", _rate(lambda: record.changed(0, "here", 2_000), 2_000), "1/s", {"min": 20_000.0})
        some = record.jobs(Wanted(newest=1_000))
        placed = [Change(job, (Placed(1, MachinePlace(), cpus=(0,)), Begun(1, "x"))) for job in some]
        yield Figure("record_write_1000_in_one_call", _rate(lambda: record.write(placed, 3.0), 1_000), "1/s", {"min": 2_000.0})
        record.close()


def _one_by_one(record: Record, count: int) -> None:
    for number in range(count):
        record.submit([(f"a-{number:06}", SPEC)], 1.0)


def _rate(work: Callable[[], object], count: int, clock: Callable[[], float] = time.process_time) -> float:
    """By CPU time where only the processor is used; one by one the disk is waited for, and then the wall's time counts."""
    start = clock()
    work()
    return count / (clock() - start)


def _median(work: Callable[[], object], repeats: int = 7) -> float:
    return statistics.median(1.0 / _rate(work, 1) for _ in range(repeats))
