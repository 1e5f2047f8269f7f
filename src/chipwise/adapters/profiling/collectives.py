"""All-reduce, all-gather and reduce-scatter between the devices of this machine, one process per device.

The processes are this module started again (`python -m`), since a process that has touched a GPU cannot be forked. They meet
through a file, so no port is needed. On a machine without a GPU two processes talk through gloo, which shows that it works
and nothing about a network.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from chipwise.adapters.profiling.case import sizes
from chipwise.adapters.profiling.device import Device, connect
from chipwise.adapters.profiling.timing import summary
from chipwise.perf.profile import ProfileSample

_MIB = 2**20
_SIZES = (256 * _MIB, 16 * _MIB, _MIB, 64 * 2**10, 1024 * _MIB)
_SIZES_ON_CPU = (_MIB, 64 * 2**10)
_KINDS = ("all-reduce", "all-gather", "reduce-scatter")
_START_S = 60.0  # importing torch in each process and joining them


def measured(device: Device, quick: bool, seconds: float) -> tuple[list[ProfileSample], list[str]]:
    """The samples and, where there are none, the reason. Never raises for what happens in the processes."""
    if device.gpu and device.count < 2:
        return [], ["collectives: this machine has one device; two or more are needed."]
    ranks = device.count if device.gpu else 2
    with tempfile.TemporaryDirectory() as scratch:
        command = [sys.executable, "-m", __name__, scratch, str(ranks), device.place, str(int(quick)), str(seconds)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        with contextlib.ExitStack() as opened:
            errors = opened.enter_context(open(Path(scratch) / "errors", "w+b"))
            processes = [
                subprocess.Popen([*command, str(rank)], env=environment, stdout=subprocess.DEVNULL, stderr=errors)
                for rank in range(ranks)
            ]
            _wait(processes, seconds + _START_S)
            errors.seek(0)
            lines = errors.read().decode(errors="replace").strip().splitlines()
        samples = _read(Path(scratch) / "samples")
    failed = any(process.returncode for process in processes)
    reason = f": {lines[-1][:200]}" if lines else ""
    return samples, [f"collectives: the processes ended early{reason}"] if failed else []


def _wait(processes: list[subprocess.Popen[bytes]], seconds: float) -> None:
    """Until all have ended; one that fails or outlasts the time takes the others with it, since they would wait for it."""
    until = time.monotonic() + seconds
    while any(process.poll() is None for process in processes):
        if time.monotonic() > until or any(process.returncode for process in processes):
            for process in processes:
                if process.poll() is None:
                    process.kill()
                process.wait()
            return
        time.sleep(0.05)


def _read(path: Path) -> list[ProfileSample]:
    samples = []
    for line in path.read_text().splitlines() if path.exists() else ():
        with contextlib.suppress(ValueError):  # the line that was being written when the process ended
            kind, size, devices, seconds, spread = json.loads(line)
            samples.append(
                ProfileSample(
                    kind=kind,
                    shape=sizes(bytes=size, devices=devices),
                    precision="bf16",
                    seconds=seconds,
                    flop=0.0,
                    bytes=float(size),
                    spread=spread,
                )
            )
    return samples


def _main(scratch: Path, ranks: int, place: str, quick: bool, seconds: float, rank: int) -> None:
    device = connect(place)
    torch = device.torch
    distributed: Any = torch.distributed
    if device.gpu:
        torch.cuda.set_device(rank)
    distributed.init_process_group(
        "nccl" if device.gpu else "gloo", init_method=f"file://{scratch / 'meet'}", rank=rank, world_size=ranks
    )
    began = time.perf_counter()
    choice = _SIZES if device.gpu else _SIZES_ON_CPU
    with open(scratch / "samples", "a", encoding="utf-8") as out:
        for size in choice[:2] if quick else choice:
            for kind in _KINDS:
                late = torch.tensor([time.perf_counter() - began > seconds], device=device.place, dtype=torch.int32)
                distributed.broadcast(late, 0)  # the first process decides, else some would stop and the others hang
                if late.item():
                    return
                median, spread = _timed(device, distributed, kind, size, ranks)
                if rank == 0:
                    out.write(json.dumps([kind, size, ranks, median, spread]) + "\n")
                    out.flush()
    distributed.destroy_process_group()


def _timed(device: Device, distributed: Any, kind: str, size: int, ranks: int) -> tuple[float, float]:
    numbers = size // 2 // ranks * ranks
    full, part = device.random("bf16", numbers), device.random("bf16", numbers // ranks)
    calls: dict[str, Callable[[], object]] = {
        "all-reduce": partial(distributed.all_reduce, full),
        "all-gather": partial(distributed.all_gather_into_tensor, full, part),
        "reduce-scatter": partial(distributed.reduce_scatter_tensor, part, full),
    }
    call = calls[kind]
    times = []
    for repeat in range(13):
        distributed.barrier()
        device.wait()
        began = time.perf_counter()
        call()
        device.wait()
        if repeat >= 3:
            times.append(time.perf_counter() - began)
        full.normal_()  # sums of sums would overflow
    timing = summary(times)
    return timing.seconds, timing.spread


if __name__ == "__main__":
    _, folder, ranks_, place_, quick_, seconds_, rank_ = sys.argv
    _main(Path(folder), int(ranks_), place_, quick_ == "1", float(seconds_), int(rank_))
