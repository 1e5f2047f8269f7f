"""What the NVIDIA probe reads on a real device while torch works, what a sample costs, and what watching costs the program.

    python benchmarks/watch_device.py [--seconds 5]

Prints every reading for six kinds of work, then the time of a sample, then a program's speed without a watcher and with ten
samples a second. It needs a device, torch and nvidia-ml-py; where one of them is missing it says so and measures nothing.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

from chipwise.adapters.probes import nvidia
from chipwise.errors import ChipwiseError
from chipwise.observe.sample import NoReading, Sample
from figure import Figure

SAMPLES = 200  # of which the time is taken
ROUNDS = 5


def figures(seconds: float = 3.0) -> Iterator[Figure]:
    """None where there is no device."""
    try:
        torch, probe = import_module("torch"), nvidia.connect([0])
        if not torch.cuda.is_available():
            raise ImportError("torch sees no device")
    except (ImportError, ChipwiseError) as error:
        print(f"nothing was measured: {error}", file=sys.stderr)
        return
    for name, work in kinds(torch).items():
        sample = _while_working(torch, probe, work, seconds)
        _show(name, sample)
        for metric in ("busy", "sm_active", "tensor_active", "dram_active"):
            if (value := sample.value(metric)) is not None:
                yield Figure(f"watched_{name}_{metric}", 100.0 * value, "%", {})
    wall, cpu = _times(probe)
    yield Figure("nvidia_sample_wall_median", 1e3 * wall, "ms", {})
    yield Figure("nvidia_sample_cpu", 1e3 * cpu, "ms", {})
    seldom = nvidia.connect([0], counters_s=nvidia.COUNTERS_S)  # as supervisors of jobs sample
    yield Figure("nvidia_sample_cpu_of_a_supervisor", 1e3 * _times(seldom)[1], "ms", {"max": 1.0})  # of eight: 0.8% of a core
    yield Figure("slowdown_at_10_samples_per_s", 100.0 * _slowdown(torch, probe, seconds), "%", {"max": 0.5})
    probe.close()


def kinds(torch: Any) -> dict[str, Callable[[], object]]:
    """Each for a few milliseconds; the device works on until it is waited for."""
    matrix = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    long = torch.empty(1 << 30, device="cuda", dtype=torch.uint8)
    tiny = torch.zeros(16, device="cuda")
    pinned = torch.empty(1 << 28, dtype=torch.uint8, pin_memory=True)
    wide = torch.randn(1 << 26, device="cuda")
    return {
        "matrix_products": lambda: [matrix @ matrix for _ in range(10)],
        "copies": lambda: [long.clone() for _ in range(10)],
        "elementwise": lambda: [wide * 1.0001 for _ in range(10)],
        "tiny_kernels": lambda: [tiny.add_(1.0) for _ in range(200)],
        "pcie_transfers": lambda: long[: 1 << 28].copy_(pinned, non_blocking=True),
        "waiting": lambda: time.sleep(0.02),
    }


def _while_working(torch: Any, probe: nvidia.Nvidia, work: Callable[[], object], seconds: float) -> Sample:
    """The sample of the second half."""
    until, middle = time.monotonic() + seconds, time.monotonic() + seconds / 2
    while time.monotonic() < middle:
        work()
        torch.cuda.synchronize()
    probe.read(time.monotonic())
    while time.monotonic() < until:
        work()
        torch.cuda.synchronize()
    [sample] = probe.read(time.monotonic())
    return sample


def _show(name: str, sample: Sample) -> None:
    print(f"-- {name}", file=sys.stderr)
    for metric, reading in sorted(sample.readings.items()):
        text = f"missing: {reading.reason}" if isinstance(reading, NoReading) else f"{reading:.6g}"
        print(f"   {metric:22} {text}", file=sys.stderr)


def _times(probe: nvidia.Nvidia) -> tuple[float, float]:
    """Of one sample: the median by the clock, and the mean of the processor. Slow readings come as often as they do at one
    sample a second."""
    walls = []
    cpu = time.process_time()
    for second in range(SAMPLES):
        begun = time.perf_counter()
        probe.read(1e6 + second)
        walls.append(time.perf_counter() - begun)
        time.sleep(0.02)
    return statistics.median(walls), (time.process_time() - cpu) / SAMPLES


def _slowdown(torch: Any, probe: nvidia.Nvidia, seconds: float) -> float:
    """Of a program of many small products, which waits for the device often; the median of rounds that take turns."""
    matrix = torch.randn(2048, 2048, device="cuda", dtype=torch.bfloat16)
    ratios = []
    for _ in range(ROUNDS):
        alone = _steps(torch, matrix, seconds)
        ended = threading.Event()
        watcher = threading.Thread(target=_watch, args=(probe, ended))
        watcher.start()
        watched = _steps(torch, matrix, seconds)
        ended.set()
        watcher.join()
        ratios.append(alone / watched - 1.0)
    return statistics.median(ratios)


def _watch(probe: nvidia.Nvidia, ended: threading.Event) -> None:
    while not ended.wait(0.1):
        probe.read(time.monotonic())


def _steps(torch: Any, matrix: Any, seconds: float) -> float:
    """Per second."""
    count, begun = 0, time.monotonic()
    while time.monotonic() - begun < seconds:
        for _ in range(10):
            torch.mm(matrix, matrix)
        torch.cuda.synchronize()
        count += 10
    return count / (time.monotonic() - begun)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--seconds", type=float, default=5.0)
    count = 0
    for figure in figures(parser.parse_args().seconds):
        print(figure.line(), flush=True)
        count += 1
    return 0 if count else 3


if __name__ == "__main__":
    sys.exit(main())
