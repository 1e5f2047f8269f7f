"""Stages that can run at the same time."""

from __future__ import annotations

import pytest

from chipwise.planner.pipeline.beside import crowds

JOBS = (False,) * 4


@pytest.mark.parametrize(
    ("edges", "lasting", "expected"),
    [
        ([(0, 1), (1, 2), (2, 3)], JOBS, [(0,), (1,), (2,), (3,)]),
        ([(0, 1), (0, 2), (1, 3), (2, 3)], JOBS, [(0,), (1, 2), (3,)]),
        ([], JOBS, [(0, 1, 2, 3)]),
        ([(0, 1), (2, 3)], JOBS, [(0, 2), (0, 3), (1, 2), (1, 3)]),
        # a service goes on while what follows it runs, and starts when what it follows is done
        ([(0, 1), (1, 2), (2, 3)], (False, True, False, True), [(0,), (1, 2), (1, 3)]),
        ([(0, 1), (1, 2), (2, 3)], (True,) * 4, [(0, 1, 2, 3)]),
    ],
)
def test_crowds_are_the_largest_sets_that_can_run_at_one_time(
    edges: list[tuple[int, int]], lasting: tuple[bool, ...], expected: list[tuple[int, ...]]
) -> None:
    assert list(crowds(4, edges, lasting)) == expected
