"""An attempt that should be dead cannot harm the one that took its place; two that live do not share a place."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from chipwise.job import names
from chipwise.job.checkpoints import Checkpoints
from chipwise.job.errors import Fenced

HOLDER = """
import sys, chipwise.job as job
kept = job.Checkpoints(sys.argv[1], attempt=int(sys.argv[2]))
kept.save(1, {"w": 1}, wait=True)
open(sys.argv[1] + "/.tmp.attempt-%s.rank-0.abc" % sys.argv[2], "w").close()
print("holding", flush=True)
sys.stdin.read()
"""


def holder(directory: Path, attempt: int) -> subprocess.Popen[str]:
    """A living writer in a process of its own, with a temporary file."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(directory), str(attempt)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "holding\n"
    return process


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    process.stdout.close()


def test_an_older_attempt_that_still_lives_can_no_longer_save(tmp_path: Path) -> None:
    old, new = Checkpoints(tmp_path, attempt=1), Checkpoints(tmp_path, attempt=2)
    old.save(10, {"n": 1}, wait=True)
    found = new.load()  # coming is enough
    assert found is not None
    assert found.step == 10
    with pytest.raises(Fenced, match="Attempt 2 of this job owns") as caught:
        old.save(20, {"n": 1}, wait=True)
    assert "CHIPWISE_ATTEMPT=3" in str(caught.value)
    new.save(20, {"n": 2}, wait=True)
    again = new.load()
    assert again is not None
    assert again.attempt == 2
    new.close()
    old.close()


def test_an_older_attempt_deletes_nothing_of_a_newer_one(tmp_path: Path) -> None:
    old, new = Checkpoints(tmp_path, attempt=1, keep=1), Checkpoints(tmp_path, attempt=2, keep=5)
    old.save(1, {"n": 1}, wait=True)
    for step in (2, 3):
        new.save(step, {"n": step}, wait=True)
    before = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(Fenced):
        old.save(9, {"n": 1}, wait=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    new.close()
    old.close()


def test_an_older_attempt_may_still_read(tmp_path: Path) -> None:
    with Checkpoints(tmp_path, attempt=5) as new:
        new.save(1, {"n": 1}, wait=True)
    found = Checkpoints(tmp_path, attempt=0).load()
    assert found is not None
    assert found.step == 1


def test_the_highest_of_attempts_that_come_at_once_owns_the_place(tmp_path: Path) -> None:
    places = [Checkpoints(tmp_path, attempt=attempt) for attempt in (3, 1, 2)]
    places[0].claim()
    for late in places[1:]:
        with pytest.raises(Fenced):
            late.claim()
    assert [path.name for path in tmp_path.glob("fence*")] == [names.fence(3)]
    places[0].close()


def test_a_second_living_process_of_the_same_attempt_is_refused_and_its_files_are_left_alone(tmp_path: Path) -> None:
    process = holder(tmp_path, 0)
    try:
        with pytest.raises(Fenced, match="Another living process"):
            Checkpoints(tmp_path, attempt=0).claim()
        with Checkpoints(tmp_path, attempt=1) as newer:  # a newer one takes over, and still does not sweep what lives
            newer.save(2, {"w": 2}, wait=True)
        assert list(tmp_path.glob(".tmp.attempt-0*"))
    finally:
        end(process)
    with Checkpoints(tmp_path, attempt=2) as last:
        last.save(3, {"w": 3}, wait=True)
    assert not list(tmp_path.glob(".*"))  # now that it is dead


def test_the_place_of_a_killed_process_is_free_at_once(tmp_path: Path) -> None:
    end(holder(tmp_path, 0))
    with Checkpoints(tmp_path, attempt=0) as kept:
        found = kept.load()
        assert found is not None
        kept.save(2, {"w": np.zeros(2)}, wait=True)
    assert not list(tmp_path.glob(".*"))


def test_what_a_writer_on_another_host_left_waits_until_it_is_old(tmp_path: Path) -> None:
    (tmp_path / names.lock(0, 0)).write_text("elsewhere 17\n")
    left = tmp_path / names.temporary(0, 0, "abc")
    left.write_text("half")
    for age, stays in ((60, True), (700, False)):
        os.utime(left, (left.stat().st_atime, left.stat().st_mtime - age))
        with Checkpoints(tmp_path, attempt=1) as kept:
            kept.claim()
        assert left.exists() is stays
