"""How near a question is to measurements: chip, software and settings must have been seen together."""

from __future__ import annotations

import numpy as np
import pytest

from chipwise.perf.arrays import Coded
from chipwise.perf.bands import Band
from chipwise.perf.model import widened
from chipwise.perf.question import Question
from chipwise.perf.seen import BETWEEN, FORMULA, INTERPOLATED, SOFTWARE, Seen, from_rows, to_rows


def asked(*rows: tuple[str, str, float, float]) -> Question:
    """Rows of software, chip, context, chips."""
    software, chips, context, count = zip(*rows, strict=True)
    levels = {"engine": Coded.of(list(software)), "chip": Coded.of(list(chips))}
    settings = {"context": np.log(np.array(context)), "chips": np.log(np.array(count))}
    one = np.ones(1)
    return Question(
        bases={"work": np.ones(len(rows))},
        compose=dict,
        scale=one,
        power=one,
        levels=levels,
        features={},
        term_of={},
        settings=settings,
    )


MEASURED = asked(("vllm", "H100", 1000, 1), ("vllm", "H100", 8000, 8), ("vllm", "A100", 2000, 1), ("sglang", "H200", 4000, 8))
SEEN = Seen.of("inference", MEASURED, np.ones(4, dtype=bool))


@pytest.mark.parametrize(
    ("software", "chip", "context", "chips", "near", "distance"),
    [
        ("vllm", "H100", 4000, 4, INTERPOLATED, 0.0),
        ("vllm", "H100", 10_000, 8, INTERPOLATED, np.log(10 / 8)),
        ("vllm", "H100", 64_000, 8, BETWEEN, np.log(8)),
        ("vllm", "H100", 4000, 64, BETWEEN, np.log(8)),
        ("vllm", "H200", 4000, 8, BETWEEN, 0.0),
        ("tgi", "H100", 4000, 4, SOFTWARE, 0.0),
        ("vllm", "B200", 4000, 4, FORMULA, 0.0),
    ],
)
def test_near_is_chip_software_and_setting_together(
    software: str, chip: str, context: float, chips: float, near: str, distance: float
) -> None:
    place, beyond = SEEN.place(asked((software, chip, context, chips)))
    assert place.texts() == [near]
    assert beyond[0] == pytest.approx(distance)


def test_what_was_left_out_was_not_seen() -> None:
    without = Seen.of("inference", MEASURED, np.array([True, True, True, False]))
    assert without.place(MEASURED)[0].texts()[3] == FORMULA
    assert SEEN.place(MEASURED)[0].texts() == [INTERPOLATED] * 4


def test_the_table_says_what_was_seen() -> None:
    (family,) = from_rows(to_rows("inference", SEEN)).values()
    assert family.ranges.keys() == SEEN.ranges.keys()
    for pair, ranges in family.ranges.items():
        assert np.array(ranges) == pytest.approx(np.array(SEEN.ranges[pair]), abs=1e-5)


def test_intervals_grow_with_the_distance() -> None:
    band = Band(edges=(0.2, 0.5), low=(-0.1, -0.3), high=(0.1, 0.4), rows=(10, 10))
    spread = widened(np.full(40, 0.1), np.linspace(0.0, 10.0, 40))
    low, high = band.factors(spread)
    assert np.all(np.diff(high / low) >= -1e-12)
    assert high[-1] / low[-1] > np.exp(0.7) * 1.5
