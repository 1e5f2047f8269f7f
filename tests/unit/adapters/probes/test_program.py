"""A program: a real one of ours, and files as Linux writes them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from chipwise.adapters.probes import program
from chipwise.errors import BadInput
from chipwise.observe.sample import NoReading

STAT = (
    "{pid} (a ) b) R 1 1 1 0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0 {threads} 0 0 0 {pages} 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 {core} 0\n"
)
STATUS = "Name:\tx\nvoluntary_ctxt_switches:\t{0}\nnonvoluntary_ctxt_switches:\t{1}\n"


@pytest.fixture
def busy() -> Iterator[int]:
    process = subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"])
    yield process.pid
    process.kill()
    process.wait()


def test_a_busy_program_uses_a_core(busy: int) -> None:
    probe = program.connect(lambda: [busy])
    probe.read(time.monotonic())
    until = time.monotonic() + 0.5
    while time.monotonic() < until:
        time.sleep(0.05)
    [sample] = probe.read(time.monotonic())
    assert 0.02 < (sample.value("cpu") or 0.0) < 1.3  # a neighbour may take most of the core
    assert (sample.value("memory_used") or 0.0) > 1e6
    assert sample.value("processes") == 1.0
    assert sample.value("threads") == 1.0


def test_samples_that_come_too_often_cost_nothing(busy: int) -> None:
    probe = program.connect(lambda: [busy])
    assert [len(probe.read(at / 10)) for at in range(10)] == [1, 0, 0, 0, 0, 1, 0, 0, 0, 0]


class Fake:
    """One process with threads, as /proc shows it."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, pid: int, *, threads: int = 1, ns: int = 0, waits: int = 0, read: int | None = 0, core: int = 0) -> None:
        folder = self.root / str(pid)
        (folder / "task").mkdir(parents=True, exist_ok=True)
        (folder / "stat").write_text(STAT.format(pid=pid, ticks=ns // 10**7, threads=threads, pages=10, core=core))
        if read is not None:
            (folder / "io").write_text(f"rchar: {read}\nwchar: 0\nread_bytes: {read // 2}\n")
        for thread in range(pid, pid + threads):
            (folder / "task" / str(thread)).mkdir(exist_ok=True)
            (folder / "task" / str(thread) / "status").write_text(STATUS.format(waits, 2 * waits))
            (folder / "task" / str(thread) / "schedstat").write_text(f"{ns} 0 1\n")


BIG = 4_000_000  # no such process lives: processor time comes from the file


@pytest.fixture
def fake(tmp_path: Path) -> Fake:
    return Fake(tmp_path)


def test_counts_of_all_threads_add_up_however_many_there_are(fake: Fake) -> None:
    count = 5 * program.THREADS_AT_ONCE
    fake.write(BIG, threads=count)
    probe = program.connect(lambda: [BIG], proc=fake.root)
    for second in range(20):
        probe.read(float(second))
    fake.write(BIG, threads=count, waits=3, ns=10**9)
    for second in range(20, 40):
        [sample] = probe.read(float(second))
    assert sample.value("switches_waiting") == 3.0 * count
    assert sample.value("switches_taken") == 6.0 * count


def test_the_busiest_thread_is_seen_in_the_next_sample(fake: Fake) -> None:
    fake.write(BIG, threads=3)
    probe = program.connect(lambda: [BIG], proc=fake.root)
    probe.read(0.0)
    fake.write(BIG, threads=3, ns=10**9)
    (fake.root / str(BIG) / "task" / str(BIG + 2) / "schedstat").write_text(f"{15 * 10**8} 0 1\n")
    [sample] = probe.read(2.0)
    assert sample.value("cpu_highest_thread") == 0.75
    assert sample.value("cpu") == 0.5


def test_reads_are_counted_from_the_first_look_and_of_new_processes_from_their_start(fake: Fake) -> None:
    fake.write(BIG, read=1000)
    pids = [BIG]
    probe = program.connect(lambda: pids, proc=fake.root)
    [first] = probe.read(0.0)
    assert first.value("io_read") == 0.0
    assert first.readings["cpu"] == program.FIRST
    fake.write(BIG, read=1500)
    fake.write(BIG + 50, read=70)
    pids.append(BIG + 50)
    [sample] = probe.read(program.TREE_S)
    assert (sample.value("io_read"), sample.value("disk_read")) == (570.0, 285.0)
    assert sample.value("processes") == 2.0


def test_one_that_is_run_to_be_measured_is_looked_at_closely_and_from_its_start(fake: Fake) -> None:
    count = 5 * program.THREADS_AT_ONCE
    fake.write(BIG, threads=count, read=1000)
    probe = program.connect(lambda: [BIG], proc=fake.root, closeness=program.CLOSE)
    [first] = probe.read(0.0)
    assert first.value("io_read") == 1000.0
    fake.write(BIG, threads=count, waits=3, read=1000)
    for thread in range(BIG, BIG + count):
        (fake.root / str(BIG) / "task" / str(thread) / "schedstat").write_text(f"0 {10**7} 1\n")
    probe.read(0.1)
    [sample] = probe.read(0.2)
    assert sample.value("switches_waiting") == 3.0 * count
    assert sample.value("cpu_delayed") == pytest.approx(0.01 * count)


def test_what_another_user_hides_is_a_reason(fake: Fake) -> None:
    fake.write(BIG, read=None)
    [sample] = program.connect(lambda: [BIG], proc=fake.root).read(0.0)
    assert sample.readings["io_read"] == NoReading("this user may not read it")


def test_a_program_that_ended_is_a_reason(fake: Fake) -> None:
    [sample] = program.connect(lambda: [BIG], proc=fake.root).read(0.0)
    assert sample.readings["cpu"] == NoReading("the program has ended")


@pytest.mark.parametrize(
    ("text", "step"),
    [
        (json.dumps({"step": 12, "tokens": 500, "data_wait": 1.5}), 12.0),
        (json.dumps({"step": None}), None),
        (json.dumps({"step": -1}), None),
        (json.dumps({"step": True}), None),
        ('{"step": NaN}', None),
        ("[1]", None),
        ("{", None),
        ("[" * 70_000, None),
        (None, None),
    ],
)
def test_steps_are_what_the_program_reports(fake: Fake, tmp_path: Path, text: str | None, step: float | None) -> None:
    fake.write(BIG)
    if text is not None:
        (tmp_path / "progress.json").write_text(text)
    [sample] = program.connect(lambda: [BIG], tmp_path / "progress.json", proc=fake.root).read(0.0)
    assert sample.value("step") == step
    assert sample.value("tokens") == (500.0 if step else None)


def test_no_such_process() -> None:
    program.check(os.getpid())
    with pytest.raises(BadInput, match="no process 4000000") as caught:
        program.check(BIG)
    assert caught.value.remedy


def test_lists_of_cores() -> None:
    assert program.cores("0-3,8\n") == [0, 1, 2, 3, 8]
    assert program.cores("\n") == []
