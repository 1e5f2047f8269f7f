"""Records with several processes and threads at once, some of which are killed in the middle."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import record_writers
from chipwise.adapters.stores.record import connect
from chipwise.runner.events import Submitted, Told, after, first
from chipwise.runner.job import Job, Spec
from chipwise.runner.record import Change, Record, Stale, Wanted

pytestmark = pytest.mark.e2e  # dozens of real processes, most of them killed
WRITERS = str(Path(record_writers.__file__))
KILLS = 30


def _started(*arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, WRITERS, *map(str, arguments)], stdout=subprocess.PIPE, text=True)


def _ended(process: subprocess.Popen[str], seconds: float = 60.0) -> list[str]:
    said, _ = process.communicate(timeout=seconds)
    return said.split("\n")[:-1]  # the last one is whole, or nothing


def whole(record: Record, job: Job) -> bool:
    begin, *rest = record.events(job.id)
    assert isinstance(begin.event, Submitted)
    made = first(begin.job, begin.event, begin.moment)
    for one in rest:
        made = after(made, one.event, one.moment)
    return made == job


def test_no_update_is_lost_when_processes_write_the_same_job(url: str, stored: Record) -> None:
    stored.submit([("one", Spec((), "a", place="here"))], 1.0)
    writers = [_started("tell", url, "one", 25) for _ in range(3)]
    versions: list[int] = []
    mark: int | str = 0
    while any(writer.poll() is None for writer in writers):  # readable meanwhile
        jobs, mark = stored.changed(mark, "here", 10)
        versions += [job.version for job in jobs]
    assert [_ended(writer) for writer in writers] == [["done"]] * 3
    jobs, mark = stored.changed(mark, "here", 10)
    versions += [job.version for job in jobs]
    job = stored.job("one")
    assert job is not None
    assert (job.version, versions[-1]) == (76, 76)
    assert versions == sorted(set(versions))
    assert whole(stored, job)
    told = [one.event.text for one in stored.events("one") if isinstance(one.event, Told)]
    assert len(told) == len(set(told)) == 75


def test_a_follower_misses_no_job_that_others_submit(url: str, stored: Record) -> None:
    writers = [_started("submit", url, name) for name in "abc"]
    seen: set[str] = set()
    mark: int | str = 0
    until = time.monotonic() + 20
    while len(seen) < 60 and time.monotonic() < until:
        jobs, mark = stored.changed(mark, "here", 7)
        seen |= {job.id for job in jobs}
    for writer in writers:
        writer.send_signal(signal.SIGKILL)
    said = {line for writer in writers for line in _ended(writer)}
    while True:
        jobs, mark = stored.changed(mark, "here", 7)
        seen |= {job.id for job in jobs}
        if not jobs:
            break
    assert said <= seen == {row.id for row in stored.rows(Wanted())}
    assert len(seen) >= 60


def test_a_killed_writer_loses_nothing_that_it_told_and_leaves_nothing_half_done(url: str, stored: Record) -> None:
    killer = _started("deaths", url, KILLS, 6)
    told = [line.split() for line in _ended(killer, 120.0)]
    assert killer.returncode == 0
    assert len({id.split("-")[0] for id, _ in told}) == KILLS
    jobs = {job.id: job for job in stored.jobs(Wanted())}
    for id, version in told:
        assert jobs[id].version >= int(version)
    assert all(whole(stored, job) for job in jobs.values())
    [after_all] = stored.submit([("after", Spec((), "a"))], 1.0)  # nobody holds anything
    assert stored.job("after") == after_all


def test_threads_share_a_record(stored: Record) -> None:
    stored.submit([("one", Spec((), "a"))], 1.0)
    errors: list[BaseException] = []

    def work(name: str) -> None:
        try:
            for number in range(15):
                stored.submit([(f"{name}-{number}", Spec((), "a"))], 1.0)
                while True:
                    job = stored.job("one")
                    assert job is not None
                    if not isinstance(stored.write([Change(job, (Told(0, name),))], 1.0)[0], Stale):
                        break
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []
    job = stored.job("one")
    assert job is not None
    assert job.version == 61
    assert len(stored.rows(Wanted())) == 61


def test_a_forked_process_has_connections_of_its_own(url: str) -> None:
    process = _started("fork", url)
    _ended(process)
    assert process.returncode == 0
    record = connect(url)
    try:
        ids = {row.id for row in record.rows(Wanted())}
    finally:
        record.close()
    assert len(ids) == 42
    assert "ended with 0" in ids


def test_processes_that_begin_a_record_at_the_same_time_all_succeed(url: str) -> None:
    writers = [_started("submit", url, name) for name in "abcd"]
    begun = [process.stdout.readline().strip() for process in writers if process.stdout]
    for process in writers:
        process.send_signal(signal.SIGKILL)
        _ended(process)
    assert begun == ["a-00000", "b-00000", "c-00000", "d-00000"]
