"""What people type for numbers of workers and for what is tried after a loss."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.errors import BadInput
from chipwise.runner.job import RECOVER, Move, Needs
from chipwise.runner.submission.ranges import moves, workers


@pytest.mark.parametrize(
    ("text", "found"),
    [("4", (4, None)), ("2-4", (4, 2)), (" 2 - 4 ", (4, 2)), ("4-4", (4, None)), ("0", (0, None)), ("0-1", (1, 0))],
)
def test_a_number_or_a_range(text: str, found: tuple[int, int | None]) -> None:
    assert workers(text, "--gpus") == found


@given(st.integers(0, 1024), st.integers(0, 1024))
def test_what_is_typed_is_what_is_asked_for(one: int, two: int) -> None:
    most, least = workers(f"{min(one, two)}-{max(one, two)}", "--gpus")
    needs = Needs(gpus=most, gpus_least=least)
    assert (needs.fewest_gpus, needs.gpus) == (min(one, two), max(one, two))


@pytest.mark.parametrize("text", ["", "-", "2-", "-4", "two", "2-4-8", "1.5", "4-2", "2000", "9" * 30, "²"])
def test_anything_else_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(BadInput, match="--gpus") as told:
        workers(text, "--gpus")
    assert told.value.remedy


def test_moves_are_read_in_their_order() -> None:
    assert moves("fewer, same") == (Move.FEWER, Move.SAME)
    assert moves(",".join(RECOVER)) == RECOVER
    assert moves("") == ()


def test_a_move_that_is_not_there_or_comes_twice_is_told() -> None:
    with pytest.raises(BadInput, match="'zones', which is no move") as told:
        moves("same,zones")
    assert "zone" in str(told.value.remedy)
    with pytest.raises(BadInput, match="twice"):
        moves("same,same")
