"""Wherever a writer stops, the newest committed checkpoint is found, whole, and the next writer tidies up."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chipwise.job.checkpoints import Checkpoints
from chipwise.job.local import Local
from effort import LONG, cases, some
from fragile_disk import FragileFiles, Stopped, forget_locks

STEPS = (10, 20, 20, 30, 40)  # one of them twice


def state_at(step: int, try_: int) -> dict[str, Any]:
    return {"w": np.full(50, float(step)), "step": step, "try": try_}


def life(directory: Path, files: FragileFiles, attempt: int, steps: tuple[int, ...] = STEPS) -> int:
    """Saves as long as the disk allows; the last step that was told to be saved."""
    told = 0
    try:
        kept = Checkpoints(keep=2, attempt=attempt, store=Local(directory, files))
        for number, step in enumerate(steps):
            kept.save(step, state_at(step, number), wait=True)
            told = step
        kept.close()
    except Stopped:
        forget_locks()
    return told


def check(directory: Path, told: int, attempt: int) -> None:
    kept = Checkpoints(keep=2, attempt=attempt, store=Local(directory, FragileFiles()))  # one that never stops
    found = kept.load()
    assert (found.step if found else 0) >= told
    if found:
        assert found.state["w"].tolist() == [float(found.step)] * 50
        assert found.state["step"] == found.step
    first = found.step if found else 0
    for step in (first + 10, first + 100):  # beyond anything that was left unfinished
        kept.save(step, state_at(step, 0), wait=True)
    kept.close()
    names = sorted(path.name for path in directory.iterdir() if not path.name.startswith("fence"))
    assert len(names) == 4, names  # two checkpoints of two files each, and nothing else
    again = Checkpoints(directory, attempt=attempt).load()
    assert again is not None
    assert again.step == first + 100


def operations(directory: Path, attempt: int) -> int:
    files = FragileFiles()
    life(directory, files, attempt)
    return files.operations


def _tried(count: int, first: int) -> Sequence[int]:
    """Every operation in the long run."""
    return range(count) if LONG else some(range(first, count))


# Where only every fifth operation is tried, each test begins at another one, so that all of them are tried by some test.
@pytest.mark.chance
@pytest.mark.parametrize(("attempt", "next_attempt", "first"), [(0, 0, 3), (1, 2, 4)])
def test_a_process_that_dies_at_any_operation_loses_nothing_committed(
    tmp_path: Path, attempt: int, next_attempt: int, first: int
) -> None:
    count = operations(tmp_path / "whole", attempt)
    assert count > 50
    for after in _tried(count, first):
        directory = tmp_path / str(after)
        told = life(directory, FragileFiles(after), attempt)
        check(directory, told, next_attempt)


@pytest.mark.parametrize("seed", range(3))
def test_a_machine_that_loses_power_at_any_operation_loses_nothing_committed(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    for after in _tried(operations(tmp_path / "whole", 0), seed):
        directory = tmp_path / str(after)
        told = life(directory, FragileFiles(after, dice), 0)
        check(directory, told, 0)


@pytest.mark.chance
def test_two_crashes_in_a_row_lose_nothing_either(tmp_path: Path) -> None:
    dice = random.Random(5)
    count = operations(tmp_path / "whole", 0)
    for number in range(cases(40)):
        directory = tmp_path / f"twice-{number}"
        told = life(directory, FragileFiles(dice.randrange(count), dice), 0)
        told = max(told, life(directory, FragileFiles(dice.randrange(count), dice), 0, (50, 60, 70)))
        check(directory, told, 0)
