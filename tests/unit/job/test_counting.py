"""What a program counts beside its steps is reported with them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import chipwise.job as job
from chipwise.job import counting
from chipwise.job.progress import Progress


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "_counts", {})


def slow_batches() -> Iterator[int]:
    for number in range(3):
        time.sleep(0.02)
        yield number


def test_waiting_for_data_is_counted_and_work_is_not() -> None:
    begun = time.monotonic()
    for _ in job.batches(slow_batches()):
        time.sleep(0.05)
    assert 0.06 <= counting.counts()["data_wait"] <= time.monotonic() - begun - 0.15
    assert list(job.batches([1, 2])) == [1, 2]


def test_it_is_reported_with_the_steps_and_left_out_where_nobody_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHIPWISE_RUN_DIR", str(tmp_path))
    progress = Progress(10, 0, 0)
    progress.tell(1, None, None, now=True)
    assert "tokens" not in json.loads((tmp_path / "progress.json").read_text())
    job.add_tokens(512)
    job.add_tokens(512)
    progress.tell(2, None, None, now=True)
    assert json.loads((tmp_path / "progress.json").read_text())["tokens"] == 1024


def test_the_message_of_a_container_has_room_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "message"
    path.touch()
    monkeypatch.setenv("CHIPWISE_TERMINATION_MESSAGE", str(path))
    job.add_tokens(1e15)
    list(job.batches([1]))
    Progress(10**12, 10**12, 0).tell(10**12, 10**12, 1234.5678, now=True)
    assert json.loads(path.read_text())["tokens"] == 1e15
