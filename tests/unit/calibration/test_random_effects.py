"""Intervals are narrow where sources agree, wide where they do not, and never narrower further away."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from chipwise.calibration.random_effects import Rows, intervals
from chipwise.perf.seen import CLASSES

SOURCES, ROWS = 40, 25


def table(between: float, within: float, seed: int = 1, near: str = CLASSES[0], sources: int = SOURCES) -> Rows:
    random = np.random.default_rng(seed)
    shift = np.repeat(random.normal(0.0, between, sources), ROWS)
    return Rows(
        kind=np.full(sources * ROWS, "token"),
        near=np.full(sources * ROWS, near),
        source=np.repeat(np.array([f"source {number}" for number in range(sources)]), ROWS),
        fold=np.repeat(np.arange(sources) % 10, ROWS),
        residual=shift + random.normal(0.0, within, sources * ROWS),
        spread=np.full(sources * ROWS, 0.3),
    )


def joined(*parts: Rows) -> Rows:
    names = ("kind", "near", "source", "fold", "residual", "spread")
    return Rows(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def width(rows: Rows, name: str = "token|interpolated") -> float:
    band = intervals(rows, np.ones(len(rows.kind), dtype=bool))[name]
    return band.high[0] - band.low[0]


def test_sources_that_agree_make_an_interval_narrow() -> None:
    agreeing, differing = width(table(0.05, 0.1)), width(table(0.4, 0.1))
    assert agreeing < 0.6 * differing


@pytest.mark.parametrize(("between", "within"), [(0.3, 0.1), (0.1, 0.3), (0.2, 0.2)])
def test_four_of_five_rows_of_new_sources_are_inside(between: float, within: float) -> None:
    seen, new = table(between, within), table(between, within, seed=2)
    band = intervals(seen, np.ones(len(seen.kind), dtype=bool))["token|interpolated"]
    inside = (new.residual >= band.low[0]) & (new.residual <= band.high[0])
    assert 0.7 < inside.mean() < 0.9


def test_one_source_says_little_of_the_next() -> None:
    single = table(0.0, 0.02, sources=1)
    assert width(single) > 0.8


def test_intervals_are_never_narrower_further_from_measurements() -> None:
    rows = joined(table(0.4, 0.1), table(0.05, 0.05, seed=3, near=CLASSES[3]))
    widths = [width(rows, f"token|{name}") for name in CLASSES]
    assert all(near <= far + 1e-9 for near, far in pairwise(widths))
    assert widths[0] == pytest.approx(widths[3], rel=0.2)
