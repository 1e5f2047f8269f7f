"""Cost against time: what is on the curve, and where it bends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from hypothesis import given
from hypothesis import strategies as st

from chipwise.planner.values.choice import Choice
from chipwise.planner.values.trade import cost_time_curve, knee


@dataclass(frozen=True)
class Point:
    usd: float
    seconds: float


def curve(*points: tuple[float, float]) -> tuple[Choice, ...]:
    return cost_time_curve(cast("list[Choice]", [Point(*one) for one in points]))


def test_what_is_neither_cheaper_nor_sooner_is_not_on_the_curve() -> None:
    assert [(one.usd, one.seconds) for one in curve((3, 2), (1, 9), (2, 9), (2, 4), (9, 2))] == [(1, 9), (2, 4), (3, 2)]


def test_a_curve_that_bends_has_its_knee_at_the_bend() -> None:
    bend = knee(curve((100, 100), (110, 20), (130, 18), (1000, 10)))
    assert bend is not None
    assert (bend.usd, bend.seconds) == (110, 20)


def test_a_straight_curve_and_a_bulge_have_none() -> None:
    assert knee(curve((1, 100), (10, 10), (100, 1))) is None
    assert knee(curve((1, 100), (50, 90), (100, 1))) is None


def test_two_choices_have_none() -> None:
    assert knee(curve((1, 100), (2, 1))) is None
    assert knee(curve()) is None


points = st.tuples(st.floats(0.01, 1e6), st.floats(0.01, 1e8))


def test_units_do_not_move_the_knee() -> None:
    bend = knee(curve((100, 100 * 3600), (110, 20 * 3600), (130, 18 * 3600), (1000, 10 * 3600)))
    assert bend is not None
    assert (bend.usd, bend.seconds) == (110, 20 * 3600)


@given(st.lists(points, max_size=20))
def test_the_knee_is_between_the_ends(drawn: list[tuple[float, float]]) -> None:
    whole = curve(*drawn)
    bend = knee(whole)
    assert bend is None or bend in whole[1:-1]
