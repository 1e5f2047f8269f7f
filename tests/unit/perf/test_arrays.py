"""Columns of candidates: combinations of names, and columns of one row that stand for all."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.perf.arrays import Coded, Filling, combinations, has_nonzero, pick, soft_max, soft_one

NAMES = st.sampled_from(("a", "b", "c", "d"))


@given(st.lists(st.tuples(NAMES, NAMES), min_size=2, max_size=40))
def test_combinations_name_every_row_and_come_once(rows: list[tuple[str, str]]) -> None:
    first, second = (Coded.of(names) for names in zip(*rows, strict=True))
    (left, middle, right), index = combinations((first, Coded.of("all"), second))
    assert middle.texts() == ["all"]
    pairs = list(zip(left.texts(), right.texts(), strict=True))
    assert [pairs[at] for at in index] == rows
    assert len(pairs) == len(set(pairs)) == len(set(rows))


def test_many_names_and_few_rows_are_combined_too() -> None:
    many = Coded(tuple(map(str, range(1000))), np.array([999, 0, 999]))
    (left, right), index = combinations((many, Coded(many.names, np.array([1, 2, 1]))))
    assert [(left.name_at(at), right.name_at(at)) for at in index] == [("999", "1"), ("0", "2"), ("999", "1")]


@given(st.floats(0.0, 1e6), st.floats(1e-6, 1e6))
def test_the_quick_corner_is_the_fourth_root(a: float, b: float) -> None:
    power = (a**4 + b**4) ** 0.25
    assert soft_max(np.array([a]), np.array([b]))[0] == pytest.approx(power, rel=1e-12)
    assert soft_one(np.array([a]))[0] == pytest.approx((1.0 + a**4) ** 0.25, rel=1e-12)


def test_one_answer_for_all_rows_is_picked_as_it_is() -> None:
    yes, no = np.arange(3.0), np.zeros(1)
    assert pick(np.array([True]), yes, no) is yes
    assert pick(np.array([True, False, True]), yes, no).tolist() == [0.0, 0.0, 2.0]
    assert has_nonzero(np.array([0.0, 1.0]))
    assert not has_nonzero(np.zeros(1))


def test_pieces_fill_columns_in_order() -> None:
    filling = Filling(3)
    filling.add(slice(0, 2), {"a": np.array([1.0, 2.0])})
    filling.add(slice(2, 4), {"a": np.array([3.0])})
    assert filling.columns["a"].tolist() == [1.0, 2.0, 3.0]
