"""Programs with an induced bottleneck on processors alone: NumPy and processes."""

from __future__ import annotations

import multiprocessing
import os
import random
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from bottlenecks.gpu_programs import FILE_BYTES, Until, direct_reader, large_file, packed, unpacked


def one_core(size: int, until: Until) -> None:
    """Serial: sorting, decompressing, a loop in Python."""
    import numpy as np

    numbers = np.random.default_rng(0).random(1_000_000)
    piece = packed(2048)
    while until():
        match size:
            case 0:
                np.sort(numbers)
            case 1:
                unpacked(piece, 4)
            case 2:
                sum(number * number for number in range(200_000))
            case 3:
                np.cumsum(numbers)
            case 4:
                np.unique(numbers[:200_000])
            case _:
                sorted(map(str, range(50_000)))


def _burn(seconds: float) -> None:
    piece, end = packed(512), time.monotonic() + seconds
    while time.monotonic() < end:
        unpacked(piece, 1)


def _together(workers: int, until: Until) -> None:
    seconds = 0.5
    started: list[Any] = []
    try:
        while until():
            started = [multiprocessing.Process(target=_burn, args=(seconds,)) for _ in range(workers)]
            for process in started:
                process.start()
            for process in started:
                process.join()
    finally:
        for process in started:
            process.kill()


def few_workers(size: int, until: Until) -> None:
    cores = len(os.sched_getaffinity(0))
    if cores < 6:
        raise OSError(f"{cores} cores are too few to leave some free")
    _together((2, cores // 4, cores // 2, 3, cores // 3, 2)[size], until)


def slow_disk(size: int, until: Until) -> None:
    block = (4, 64, 1024, 8, 256, 16)[size] * 1024
    read, chance = direct_reader(large_file(), block), random.Random(2)
    while until():
        for _ in range(16):
            read(chance.randrange(FILE_BYTES // block) * block)


def idle(size: int, until: Until) -> None:
    while until():
        time.sleep((0.05, 0.2, 1.0, 0.1, 0.5, 2.0)[size])


def _rank(barrier: Any, work_s: float, end: float) -> None:
    with suppress(Exception):  # the others have stopped
        while time.monotonic() < end:
            _burn(work_s)
            barrier.wait(5)


RANKS = 4


def straggler(size: int, until: Until) -> None:
    """Four ranks that wait for each other after every step; the last has more to do. Their pids go to the driver by name."""
    slower = (1.6, 2.5, 4.0, 1.8, 3.0, 6.0)[size]
    barrier = multiprocessing.Barrier(RANKS)
    end = time.monotonic() + 60
    started = [
        multiprocessing.Process(target=_rank, args=(barrier, 0.02 * (slower if rank == RANKS - 1 else 1), end))
        for rank in range(RANKS)
    ]
    if len(os.sched_getaffinity(0)) < RANKS:
        raise OSError("fewer cores than ranks")
    for process in started:
        process.start()
    try:
        while until():
            time.sleep(0.05)
    finally:
        for process in started:
            process.kill()


def noisy_neighbour(size: int, until: Until) -> None:
    """Strangers on all cores, and a program that wants them too."""
    cores = len(os.sched_getaffinity(0))
    _together((1, max(cores // 4, 1), max(cores // 2, 1), 2, max(cores // 3, 1), max(cores // 2, 1))[size], until)


PROGRAMS: dict[str, Callable[[int, Until], None]] = {
    "one-core": one_core,
    "few-workers": few_workers,
    "slow-disk": slow_disk,
    "idle": idle,
    "straggler": straggler,
    "noisy-neighbour": noisy_neighbour,
}
