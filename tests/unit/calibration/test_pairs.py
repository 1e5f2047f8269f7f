"""What the ratio of two predictions errs by."""

from __future__ import annotations

import math

import pytest

from chipwise.calibration.pairs import Pair, overall, widths_of
from chipwise.perf.ratios import AGAIN, ALIKE, FAR, RELATIONS, SAME_CHIP, WIDEST, error_of, width, widths


def pair(difference: float, source: str = "a", alike: bool = True, seen: bool = True) -> Pair:
    return Pair(family="training", relation=FAR, alike=alike, seen=seen, difference=difference, source=source)


def test_four_in_five_pairs_stay_below_the_width() -> None:
    pairs = [pair((-1) ** count * count / 100, source="ab"[count % 2]) for count in range(1, 101)]
    (found,) = widths_of(pairs)
    assert found.four_in_five_below == pytest.approx(0.81)
    assert found.median_error == pytest.approx(math.exp(0.505) - 1, rel=1e-2)
    assert (found.pairs, found.sources) == (100, 2)
    assert 0.7 < found.coverage < 0.9


def test_a_source_is_judged_by_the_others() -> None:
    pairs = [pair(0.1, source="a")] * 20 + [pair(0.5, source="b")] * 20
    (found,) = widths_of(pairs)
    assert found.coverage == pytest.approx(0.5)  # b lies outside what a shows, a inside what b shows


def test_too_few_pairs_tell_nothing() -> None:
    assert widths_of([pair(0.1)] * 3) == []


def test_the_error_is_that_of_chips_that_others_measured() -> None:
    assert overall([pair(math.log(1.1)), pair(3.0, seen=False), pair(2.0, alike=False)]) == {"training": pytest.approx(0.1)}
    assert error_of([0.0, math.log(1.2)]) == pytest.approx(0.1)


def test_packaged_widths_say_something_of_every_family() -> None:
    assert {family for family, *_ in widths()} >= {"training", "inference", "vision", "sheet compute", "sheet memory"}
    assert all(0.05 < size < 2.0 for size in widths().values())


@pytest.mark.parametrize("family", ["training", "inference", "vision"])
def test_what_is_further_away_is_no_surer(family: str) -> None:
    for relation in RELATIONS:
        for seen in (True, False):
            assert width(family, relation, alike=True, seen=seen) <= width(family, relation, alike=False, seen=seen)
        for alike in (True, False):
            assert width(family, relation, alike, seen=True) <= width(family, relation, alike, seen=False)
    assert width(family, SAME_CHIP, alike=True) == AGAIN
    assert width(family, ALIKE, alike=True) > AGAIN


def test_where_no_pair_tells_the_interval_is_the_widest() -> None:
    assert width("sheet transfer", FAR, alike=True) == WIDEST
