"""A checkpoint of some number of ranks for another: nothing is lost, nothing is guessed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chipwise.job as job
from chipwise.errors import InvalidSettings
from chipwise.job import resharding, restoring
from chipwise.job.checkpoints import Checkpoints
from chipwise.job.errors import CannotRestore
from chipwise.job.tree import ObjectState
from effort import cases

WHOLE = np.arange(24.0).reshape(6, 4)


def saved(directory: Path, states: list[Any], step: int = 3, **settings: Any) -> None:
    places = [Checkpoints(directory, rank=rank, world=len(states), patience_s=10, **settings) for rank in range(len(states))]
    with ThreadPoolExecutor(len(places)) as pool:
        done = [pool.submit(place.save, step, state, wait=True) for place, state in zip(places, states, strict=True)]
        for one in done:
            one.result()
    for place in places:
        place.close()


def loaded(directory: Path, world: int, split: dict[str, int]) -> list[Any]:
    found = [Checkpoints(directory, rank=rank, world=world, attempt=1, split=split).load() for rank in range(world)]
    return [one.state for one in found if one is not None]


def split_by_rows(world: int, **same: Any) -> list[Any]:
    return [{"rows": WHOLE[job.part(6, rank, world)], **same} for rank in range(world)]


@given(st.integers(0, 1000), st.integers(1, 40))
def test_parts_follow_one_another_and_differ_by_one_at_most(length: int, world: int) -> None:
    parts = [job.part(length, rank, world) for rank in range(world)]
    assert [row for one in parts for row in range(length)[one]] == list(range(length))
    sizes = [one.stop - one.start for one in parts]
    assert max(sizes) - min(sizes) <= 1
    assert [len(one) for one in np.array_split(np.arange(length), world)] == sizes


@given(st.data())
def test_split_by_any_number_and_joined_by_any_other_it_is_the_same_array(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 7), min_size=1, max_size=3)))
    axis, had, world = data.draw(st.integers(0, len(shape) - 1)), data.draw(st.integers(1, 9)), data.draw(st.integers(1, 9))
    whole = np.random.default_rng(1).normal(size=shape)
    states = [{"a": {"b": one}, "n": 7} for one in np.array_split(whole, had, axis)]
    found = [resharding.joined(states, rank, world, {"state.a.b": axis}, "It") for rank in range(world)]
    assert np.array_equal(np.concatenate([one["a"]["b"] for one in found], axis), whole)
    assert all(one["a"]["b"].shape == two.shape for one, two in zip(found, np.array_split(whole, world, axis), strict=True))
    assert {one["n"] for one in found} == {7}


@pytest.mark.parametrize(("had", "world"), [(4, 2), (2, 3), (3, 1), (1, 3), (5, 4), (4, 7)])
def test_what_some_saved_others_load(tmp_path: Path, had: int, world: int) -> None:
    saved(tmp_path, split_by_rows(had, lr=0.1))
    states = loaded(tmp_path, world, {"rows": 0})
    assert np.array_equal(np.concatenate([one["rows"] for one in states]), WHOLE)
    assert [one["lr"] for one in states] == [0.1] * world


def test_the_same_number_gets_its_own_parts_back_whatever_they_are(tmp_path: Path) -> None:
    saved(tmp_path, [{"rows": WHOLE[:1], "own": "a"}, {"rows": WHOLE[1:], "own": "b"}])
    assert [one["own"] for one in loaded(tmp_path, 2, {"rows": 0})] == ["a", "b"]


def test_a_state_that_was_the_same_for_all_is_split_where_it_is_split_now(tmp_path: Path) -> None:
    saved(tmp_path, [{"rows": WHOLE}] * 2, replicated=True)
    assert [one["rows"].shape for one in loaded(tmp_path, 2, {"rows": 0})] == [(3, 4), (3, 4)]


def test_it_goes_into_a_living_state_in_place(tmp_path: Path) -> None:
    saved(tmp_path, split_by_rows(4, losses=[1.0, 2.0]))
    rows, losses = np.zeros((3, 4)), [0.0]
    Checkpoints(tmp_path, rank=1, world=2, attempt=1, split={"rows": 0}).load(into={"rows": rows, "losses": losses})
    assert np.array_equal(rows, WHOLE[3:])
    assert losses == [1.0, 2.0]


def test_a_program_that_splits_otherwise_than_part_is_told(tmp_path: Path) -> None:
    saved(tmp_path, split_by_rows(4))
    state = {"rows": np.zeros((2, 4))}
    with pytest.raises(CannotRestore, match=r"state\.rows is an array of 2x4"):
        Checkpoints(tmp_path, rank=0, world=2, attempt=1, split={"rows": 0}).load(into=state)
    assert not state["rows"].any()


class Layer:
    def __init__(self) -> None:
        self.weights = np.zeros(3)

    def state_dict(self) -> dict[str, Any]:
        return {"weights": self.weights, "name": "layer"}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.weights = state["weights"]


def test_fields_inside_objects_can_be_split_too(tmp_path: Path) -> None:
    states = [{"layer": Layer()}, {"layer": Layer()}]
    for rank, one in enumerate(states):
        one["layer"].weights = np.full(3, float(rank))
    saved(tmp_path, states)
    live = {"layer": Layer()}
    Checkpoints(tmp_path, rank=0, world=1, attempt=1, split={"layer.weights": 0}).load(into=live)
    assert live["layer"].weights.tolist() == [0.0, 0.0, 0.0, 1.0, 1.0, 1.0]
    kept = [ObjectState("Layer", {"weights": np.ones(1)})] * 2
    assert resharding.joined(kept, 0, 1, {"state.weights": 0}, "It").class_name == "Layer"


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("own", [1, 2]),
        ("own", [0.0, -0.0]),
        ("own", ["a", "b"]),
        ("own", [np.ones(2), np.zeros(2)]),
        ("own", [np.ones(2), np.ones(3)]),
        ("own", [np.random.default_rng(1), np.random.default_rng(2)]),
        ("own", [1, 1.0]),
        ("own[1]", [[1, 2], [1, 3]]),
        ("own", [[1], [1, 2]]),
        ("own", [{"a": 1}, {"b": 1}]),
        ("own.a", [{"a": 1}, {"a": 2}]),
        ("own", [None, 0]),
    ],
)
def test_what_each_rank_has_for_itself_is_named_and_nothing_is_restored(field: str, values: list[Any], tmp_path: Path) -> None:
    saved(tmp_path, [{"rows": WHOLE[:3], "own": values[0]}, {"rows": WHOLE[3:], "own": values[1]}])
    live: dict[str, Any] = {"rows": np.zeros((6, 4)), "own": None}
    with pytest.raises(CannotRestore) as told:
        Checkpoints(tmp_path, rank=0, world=1, attempt=1, split={"rows": 0}).load(into=live)
    assert f"state.{field} is not the same on all ranks" in told.value.message
    assert "of 2 ranks cannot be split for 1" in told.value.message
    assert "split=" in str(told.value.remedy)
    assert not live["rows"].any()


def test_nan_is_the_same_as_itself(tmp_path: Path) -> None:
    saved(tmp_path, split_by_rows(2, loss=float("nan"), best=np.array([np.nan])))
    assert np.isnan(loaded(tmp_path, 1, {"rows": 0})[0]["loss"])


@pytest.mark.parametrize(
    ("split", "told"),
    [
        ({"rows": 2}, "state.rows has 2 axes, and is to be split along axis 2"),
        ({"rows": 1}, "the parts of state.rows do not fit together along axis 1: 4x4, 2x4"),
        ({"n": 0, "rows": 0}, "state.n is no array"),
        ({"colums": 0, "rows": 0}, "it has no state.colums"),
    ],
)
def test_a_split_that_does_not_fit_is_told(tmp_path: Path, split: dict[str, int], told: str) -> None:
    saved(tmp_path, [{"rows": WHOLE[:4], "n": 1}, {"rows": WHOLE[4:], "n": 1}])
    with pytest.raises(CannotRestore, match=told):
        loaded(tmp_path, 3, split)


def test_a_wrong_name_is_told_when_training_begins(tmp_path: Path) -> None:
    state = {"rows": WHOLE.copy(), "layer": Layer()}
    with pytest.raises(InvalidSettings, match="colums"):
        job.steps(state, 2, every=1, directory=tmp_path, split={"colums": 0})
    assert list(job.steps(state, 2, every=1, directory=tmp_path, split={"rows": 0, "layer.weights": 0})) == [0, 1]


@pytest.mark.parametrize("settings", [{"split": {"a": -1}}, {"split": {"a": True}}, {"split": {}, "replicated": True}])
def test_settings_that_make_no_sense_are_refused(tmp_path: Path, settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidSettings, match="split"):
        Checkpoints(tmp_path, **settings)


def test_a_function_that_reshards_is_asked_for_one_state_too(tmp_path: Path) -> None:
    saved(tmp_path, [{"rows": WHOLE}])

    def cut(states: list[Any], rank: int, world: int) -> Any:
        assert len(states) == 1
        return {"rows": np.array_split(states[0]["rows"], world)[rank]}

    found = Checkpoints(tmp_path, rank=1, world=2, attempt=1, reshard=cut).load()
    assert found is not None
    assert np.array_equal(found.state["rows"], WHOLE[3:])


@settings(max_examples=cases(20))
@given(st.lists(st.integers(1, 6), min_size=1, max_size=6))
def test_through_any_row_of_numbers_nothing_changes(worlds: list[int]) -> None:
    whole = np.random.default_rng(2).normal(size=13)
    states = [{"m": whole}]
    for world in worlds:
        states = [resharding.joined(states, rank, world, {"state.m": 0}, "It") for rank in range(world)]
        live = {"m": np.zeros(job.part(13, 0, world).stop)}
        restoring.restore(live, states[0], [], [], "It")
    assert np.array_equal(np.concatenate([one["m"] for one in states]), whole)


@pytest.mark.parametrize(
    ("rank", "world", "said"),
    [
        ("abc", "2", r"RANK: is 'abc'. Allowed: a whole number, 0 or more"),
        ("0", "x", r"WORLD_SIZE: is 'x'. Allowed: a whole number, 1 or more"),
        ("2", "2", r"RANK: is 2 of 2. Allowed: 0 to 1"),
        ("-1", "2", r"RANK: is '-1'"),
        ("0", "0", r"WORLD_SIZE: is '0'"),
        ("0", "-3", r"WORLD_SIZE: is '-3'"),
        ("9" * 5000, "1", r"RANK: is '999"),
        ("1.5", "4", r"RANK: is '1.5'"),
    ],
)
def test_ranks_that_cannot_be_are_told_alike_wherever_they_are_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, rank: str, world: str, said: str
) -> None:
    monkeypatch.setenv("RANK", rank)
    monkeypatch.setenv("WORLD_SIZE", world)
    with pytest.raises(InvalidSettings, match=said):
        job.part(10)
    with pytest.raises(InvalidSettings, match=said):
        Checkpoints(tmp_path)
    with pytest.raises(InvalidSettings, match=said):
        next(iter(job.steps({"a": 1}, total=1, directory=tmp_path)))


def test_a_length_that_cannot_be_is_told() -> None:
    with pytest.raises(InvalidSettings, match="length: is -1"):
        job.part(-1, 0, 1)


@pytest.mark.parametrize(
    ("split", "said"),
    [
        ({3: 0}, r"split\[3\]: is not named by a text"),
        ({None: 0, "a": "x"}, r"split\[None\]: is not named by a text(.|\n)*split\['a'\]: is 'x'"),
        ({"a": True}, r"split\['a'\]: is True"),
        (["a"], r"split: is \['a'\]"),
        ("a", r"split: is 'a'"),
    ],
)
def test_a_split_that_cannot_be_is_told_in_words(tmp_path: Path, split: Any, said: str) -> None:
    with pytest.raises(InvalidSettings, match=said):
        Checkpoints(tmp_path, split=split)
