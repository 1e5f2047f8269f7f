"""A law over a table, as a worker of a test run has it: one test, which tries every case and names those that fail."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tables import Law, as_one_test

Folding = Callable[[Law], pytest.Function | None]


@pytest.fixture
def fold(request: pytest.FixtureRequest) -> Folding:
    module = request.node.getparent(pytest.Module)
    return lambda law: as_one_test(module, law.__name__, law)


def failure_of(item: pytest.Function | None) -> BaseException:
    assert item is not None
    with pytest.raises(BaseException) as raised:  # noqa: PT011 - groups and outcomes of pytest too
        item.obj()
    return raised.value


def test_every_case_is_tried_and_those_that_fail_are_named(fold: Folding) -> None:
    tried = []

    @pytest.mark.parametrize(("number", "name"), [(1, "a"), pytest.param(4, "b", id="four"), (2, "c"), (5, "d")])
    def small(number: int, name: str) -> None:
        tried.append(name)
        assert number < 3

    failure = failure_of(fold(small))
    assert isinstance(failure, BaseExceptionGroup)
    assert "2 of 4 cases" in str(failure)
    assert [case.__notes__ for case in failure.exceptions] == [["case: four"], ["case: number=5, name='d'"]]
    assert tried == list("abcd")


def test_the_one_case_that_fails_fails_as_it_does_alone(fold: Folding) -> None:
    @pytest.mark.parametrize("text", ["1", "x"], ids=["a number", "a letter"])
    def is_read(text: str) -> None:
        int(text)

    failure = failure_of(fold(is_read))
    assert isinstance(failure, ValueError)
    assert failure.__notes__ == ["case: a letter"]


def test_what_should_have_been_refused_and_was_not_is_a_failure_like_others(fold: Folding) -> None:
    @pytest.mark.parametrize("text", ["1", "x"])
    def is_refused(text: str) -> None:
        with pytest.raises(ValueError, match="invalid"):
            int(text)

    failure = failure_of(fold(is_refused))
    assert isinstance(failure, pytest.fail.Exception)
    assert failure.__notes__ == ["case: text='1'"]


def test_tables_on_each_other_are_tried_in_all_combinations(fold: Folding) -> None:
    tried = set()

    @pytest.mark.parametrize("left", [1, 2])
    @pytest.mark.parametrize("right", ["a", "b"])
    def pair(left: int, right: str) -> None:
        tried.add((left, right))

    item = fold(pair)
    assert item is not None
    item.obj()
    assert tried == {(1, "a"), (1, "b"), (2, "a"), (2, "b")}


def test_a_case_that_is_skipped_is_no_proof(fold: Folding) -> None:
    @pytest.mark.parametrize("tool", ["here", "missing"])
    def runs(tool: str) -> None:
        if tool == "missing":
            pytest.skip("not installed")

    assert isinstance(failure_of(fold(runs)), pytest.skip.Exception)


def test_who_needs_something_for_each_case_has_a_test_for_each(fold: Folding) -> None:
    @pytest.mark.parametrize("name", ["a", "b"])
    def writes(name: str, tmp_path: Path) -> None:
        (tmp_path / name).touch()

    @pytest.mark.parametrize("name", ["a", pytest.param("b", marks=pytest.mark.real_catalog)])
    def marked(name: str) -> None: ...

    @pytest.mark.parametrize("seed", [1, 2])
    def by_chance(seed: int) -> None: ...

    @pytest.mark.parametrize("name", ["a", "b"])
    @given(number=st.integers())
    def drawn(name: str, number: int) -> None: ...

    def without_table() -> None: ...

    assert [fold(law) for law in (writes, marked, by_chance, drawn, without_table)] == [None] * 5
