"""The least of groups and what none beats, against every row compared with every other."""

from __future__ import annotations

import numpy as np
import pytest

from chipwise.planner.pipeline.grouped import SWEEP_ROWS, first_least, group_minima, runs_of, unbeaten
from effort import seeds


def by_comparing(values: list[list[float]], group: list[int], ties: list[float]) -> list[int]:
    """Rows that no other of their group is as good as; of equal ones the first by `ties`, then by place."""
    kept = []
    for at, mine in enumerate(values):
        beaten = False
        for other, its in enumerate(values):
            if other != at and group[other] == group[at] and all(a <= b for a, b in zip(its, mine, strict=True)):
                beaten = beaten or its != mine or (ties[other], other) < (ties[at], at)
        if not beaten:
            kept.append(at)
    return kept


@pytest.mark.parametrize("columns", [1, 2, 3, 4])
@pytest.mark.parametrize("seed", seeds(12))
def test_those_stay_that_none_beats(seed: int, columns: int) -> None:
    draw = np.random.default_rng(seed)
    many = int(draw.integers(0, 80))
    values = draw.integers(0, 5, (many, columns)).astype(float) if seed % 2 else draw.lognormal(0, 1, (many, columns))
    group, ties = draw.integers(0, 4, many), draw.integers(0, 3, many).astype(float)
    assert unbeaten(values, group, (ties,)).tolist() == by_comparing(values.tolist(), group.tolist(), ties.tolist())


@pytest.mark.parametrize("seed", seeds(6))
def test_a_sweep_before_changes_nothing(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three columns of many rows, with ties in all of them; one group holds most."""
    draw = np.random.default_rng(seed)
    many = SWEEP_ROWS + 500
    values = draw.lognormal(0, 1, (many, 3))
    if seed % 2:
        values = np.round(values, 1)
    group, ties = np.minimum(draw.integers(0, 40, many), 7), draw.integers(0, 3, many).astype(float)
    swept = unbeaten(values, group, (ties,))
    monkeypatch.setattr("chipwise.planner.pipeline.grouped.SWEEP_ROWS", many)
    assert swept.tolist() == unbeaten(values, group, (ties,)).tolist()
    assert 8 <= len(swept) < many / 4


def test_the_least_of_every_group_is_found_and_of_none_infinite() -> None:
    values, group = np.array([[3.0, 1.0], [2.0, 5.0], [9.0, 9.0]]), np.array([2, 2, 0])
    assert group_minima(values, group, 4).tolist() == [[9.0, 9.0], [np.inf, np.inf], [2.0, 1.0], [np.inf, np.inf]]
    runs, starts = runs_of(np.array([5, 5, 1, 5]))
    assert runs.tolist() == [0, 0, 1, 2]
    assert starts.tolist() == [0, 2, 3]
    assert first_least(np.array([4.0, 4.0, 2.0, 0.0]), runs, starts).tolist() == [0, 2, 3]
