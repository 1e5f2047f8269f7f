"""What watching costs: processor, memory, disk, and the speed of the program that is watched.

Devices are simulated: `nvml_stand_in` takes the place of NVML, so the driver's own time is not in these figures; on a real
device `watch_device.py` measures it. Host and program are real ones of this machine. Time of the processor is counted, not time
by the clock: neighbours would be measured else.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from figure import ROOT, Figure

sys.path.insert(0, str(ROOT / "tests" / "support"))

from chipwise.adapters.engines.local import descendants
from chipwise.adapters.probes import host, nvidia, program
from chipwise.adapters.recordings import Appender
from chipwise.adapters.sampling import ProbeGroup
from chipwise.observe.sample import Recording, Sample
from chipwise.observe.series import SampleStore
from chipwise.observe.summary import Summary
from nvml_stand_in import Nvml

GPUS = 8
THREADS = 64
SAMPLES = 150
WEEK_S = 7 * 86400
STEP_S = 100  # of the simulated week: every tier is full long before its end
ROUNDS, ROUND_S = 6, 2.0
WORK = f"""
import threading, time
for _ in range({THREADS}):
    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
while True:
    sum(range(1000))
"""
# Counts what it does in each round, which a line on its input ends.
PACED = """
import sys, time
for line in sys.stdin:
    until, count = time.monotonic() + float(line), 0
    begun = time.process_time()
    while time.monotonic() < until:
        sum(range(2000))
        count += 1
    print(count / (time.process_time() - begun), flush=True)
"""


def figures() -> Iterator[Figure]:
    sample_s, write_s, size = _sample_cost()
    yield Figure("watch_sample_of_8_simulated_gpus_host_and_program", 1e3 * sample_s, "ms of CPU", {})
    yield Figure("watch_sample_kept_and_recorded", 1e3 * write_s, "ms of CPU", {})
    yield Figure("watch_cpu_at_1_sample_per_s", 100.0 * (sample_s + write_s), "% of a core", {"max": 1.0})
    yield Figure("watch_recording_per_hour", size * 3600 / 1e6, "MB", {})
    yield Figure("watch_supervisor_cpu_with_samples", 100.0 * _supervisor(), "% of a core", {"max": 1.0})
    yield Figure("watch_memory_after_a_week_8_gpus", _week() / 1e6, "MB", {"max": 64.0})
    yield Figure("watch_cpu_at_10_samples_per_s_of_host_and_program", 100.0 * _often(), "% of a core", {})
    yield Figure("watch_slowdown_at_10_samples_per_s", 100.0 * _slowdown(), "% of work per CPU second", {"max": 0.5})


def _sample_cost() -> tuple[float, float, float]:
    """Seconds of the processor to read a sample of all, and to keep and write it; bytes a sample."""
    worker = subprocess.Popen([sys.executable, "-S", "-c", WORK])
    try:
        group = ProbeGroup(
            [
                nvidia.connect(nvml=_Unlogged(count=GPUS), counters_s=nvidia.COUNTERS_S),
                host.connect(),
                program.connect(lambda: [worker.pid, *descendants.below(worker.pid)]),
            ]
        )
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "recording.jsonl"
            appender, store, summary = Appender(path, Recording("")), SampleStore(), Summary()
            time.sleep(0.5)
            reading = writing = 0.0
            for second in range(SAMPLES):  # of their clock, so that slow readings come as often as at one sample a second
                begun = time.process_time()
                samples = [sample for probe in group.probes for sample in probe.read(float(second))]
                middle = time.process_time()
                appender.add(samples)
                summary.add_all(samples)
                for sample in samples:
                    store.add(sample)
                reading, writing = reading + middle - begun, writing + time.process_time() - middle
                time.sleep(0.02)
            return reading / SAMPLES, writing / SAMPLES, path.stat().st_size / SAMPLES
    finally:
        worker.kill()
        worker.wait()


class _Unlogged(Nvml):
    """Keeps no list of calls, as no driver does."""

    def __getattribute__(self, name: str) -> object:
        return object.__getattribute__(self, name)


def _often() -> float:
    """Seconds of the processor in each second at ten samples a second, without devices: an upper bound of what a program that
    uses every core of a machine loses, times the cores."""
    worker = subprocess.Popen([sys.executable, "-S", "-c", WORK])
    try:
        group = ProbeGroup([host.connect(), program.connect(lambda: [worker.pid, *descendants.below(worker.pid)])])
        group.read()
        cpu, begun = time.process_time(), time.monotonic()
        while time.monotonic() - begun < 5.0:
            group.read()
            time.sleep(0.1)
        return (time.process_time() - cpu) / (time.monotonic() - begun)
    finally:
        worker.kill()
        worker.wait()


def _supervisor() -> float:
    """A supervisor that samples host and program once a second, of a job with many threads."""
    from chipwise.adapters.engines.local import folder

    with tempfile.TemporaryDirectory() as home:
        attempt = Path(home) / "1"
        attempt.mkdir()
        command = [sys.executable, "-S", "-c", WORK]
        folder.write(
            attempt, folder.ORDER, {"command": command, "mark": str(attempt), "grace_s": 1, "watch": {"labels": {"job": "x"}}}
        )
        started = subprocess.Popen([sys.executable, "-P", "-m", folder.__package__ or "", str(attempt)], start_new_session=True)
        try:
            while not (attempt / "recording.jsonl").exists():
                time.sleep(0.05)
            time.sleep(2.0)
            before, begun = _cpu_s(started.pid), time.monotonic()
            time.sleep(15.0)
            return (_cpu_s(started.pid) - before) / (time.monotonic() - begun)
        finally:
            started.kill()
            started.wait()


def _cpu_s(pid: int) -> float:
    """In nanoseconds of the scheduler: ticks of a clock would show nothing."""
    return sum(int(path.read_text().split()[0]) for path in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


def _week() -> float:
    """Bytes of the store after a simulated week of all devices, host and program."""
    [gpu] = nvidia.connect(nvml=Nvml()).read(0.0)
    probe = host.connect()
    probe.read(0.0)
    [machine] = probe.read(1.0)
    store = SampleStore()
    for second in range(0, WEEK_S, STEP_S):
        for number in range(GPUS):
            store.add(Sample(float(second), f"nvidia:{number}", gpu.readings))
        store.add(Sample(float(second), machine.source, machine.readings))
    return float(store.size_bytes)


def _slowdown() -> float:
    """Of a program that computes, while `chipwise watch` samples it ten times a second beside it; median of rounds that take
    turns. Work per second of its processor: what it loses by the watcher's share of a busy core is in `watch_cpu`."""
    worker = subprocess.Popen([sys.executable, "-S", "-c", PACED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert worker.stdin is not None
    assert worker.stdout is not None
    command = [sys.executable, "-m", "chipwise", "watch", "--pid", str(worker.pid), "--every", "100ms", "--json"]

    def round_of_work() -> float:
        assert worker.stdin is not None
        assert worker.stdout is not None
        worker.stdin.write(f"{ROUND_S}\n")
        worker.stdin.flush()
        return float(worker.stdout.readline())

    ratios = []
    try:
        round_of_work()
        for _ in range(ROUNDS):
            alone = round_of_work()
            watcher = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(2.0)  # until it samples
            watched = round_of_work()
            watcher.kill()
            watcher.wait()
            ratios.append(alone / watched - 1.0)
    finally:
        worker.kill()
        with suppress(OSError):
            worker.stdin.close()
        worker.stdout.close()
        worker.wait()
    return statistics.median(ratios)
