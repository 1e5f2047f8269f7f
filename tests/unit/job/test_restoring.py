"""Restoring is in place, all or nothing, and names the field that does not fit."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from chipwise.job.errors import CannotRestore
from chipwise.job.restoring import outline, restore
from chipwise.job.tree import content, parts, snapshot


class Counter:
    """An object of a user, with the two methods that frameworks agree upon."""

    def __init__(self, size: int = 2) -> None:
        self.values = np.zeros(size)

    def state_dict(self) -> dict[str, Any]:
        return {"values": self.values}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if state["values"].shape != self.values.shape:
            raise ValueError(f"{state['values'].shape[0]} values do not fit {self.values.shape[0]}")
        self.values[:] = state["values"]


def put_back(live: Any, saved: Any, begun: Any = None, now: Any = None) -> None:
    """`begun` and `now`: how the two programs' states looked at their beginning."""
    data = bytearray(b"".join(bytes(part) for part in parts(snapshot(saved, outline(begun) if begun is not None else []))))
    found = content(data)
    restore(live, found.state, found.outline, outline(now) if now is not None else [], "The checkpoint")


def test_arrays_dicts_lists_and_objects_stay_the_same_objects() -> None:
    live: dict[str, Any] = {"w": np.zeros(3), "inner": [np.zeros(2), {"n": 1}], "pair": (np.zeros(1), 5), "counter": Counter()}
    saved: dict[str, Any] = {
        "w": np.ones(3),
        "inner": [np.full(2, 7.0), {"n": 2}],
        "pair": (np.ones(1), 6),
        "counter": Counter(),
    }
    saved["counter"].values += 4

    def held() -> list[int]:
        return [id(live["w"]), id(live["inner"]), *map(id, live["inner"]), id(live["pair"][0]), id(live["counter"])]

    before = held()
    put_back(live, saved)
    assert held() == before
    assert live["w"].tolist() == [1, 1, 1]
    assert live["inner"][1] == {"n": 2}
    assert live["pair"][1] == 6
    assert live["counter"].values.tolist() == [4, 4]


@pytest.mark.parametrize(
    ("live", "saved", "told"),
    [
        ({"w": np.zeros(3)}, {"w": np.zeros(4)}, "state.w is an array of 3 <f8, and the checkpoint has an array of 4 <f8"),
        ({"w": np.zeros(3, "f4")}, {"w": np.zeros(3)}, "state.w is an array of 3 <f4"),
        (
            {"w": np.zeros(3), "v": np.zeros(1)},
            {"w": np.zeros(3)},
            "state.v is an array of 1 <f8, and it is not in the checkpoint",
        ),
        ({"layers": [np.zeros(1)] * 2}, {"layers": [np.zeros(1)] * 3}, "state.layers is a list of 2"),
        ({"w": np.zeros(3)}, {"w": 5}, "state.w is an array of 3 <f8, and the checkpoint has a value"),
        ({"c": Counter()}, {"c": 5}, "state.c is an object Counter"),
        ({"c": 5}, {"c": Counter()}, "the checkpoint has an object Counter"),
        ({"c": Counter(2)}, {"c": Counter(3)}, "state.c (Counter) does not take its state: 3 values do not fit 2"),
        (5, 6, "cannot be changed in place"),
    ],
)
def test_a_changed_model_is_refused_by_the_name_of_the_field_and_nothing_changes(live: Any, saved: Any, told: str) -> None:
    if isinstance(live, dict):
        live = {"first": np.zeros(2), **live}
        saved = {"first": np.ones(2), **saved}
    before = copy.deepcopy(live)
    with pytest.raises(CannotRestore) as caught:
        put_back(live, saved)
    assert told in str(caught.value)
    if isinstance(live, dict):
        assert live["first"].tolist() == before["first"].tolist()


def test_an_object_that_refuses_undoes_those_before_it() -> None:
    live = {"one": Counter(), "two": Counter(2)}
    saved = {"one": Counter(), "two": Counter(3)}
    saved["one"].values += 9
    with pytest.raises(CannotRestore):
        put_back(live, saved)
    assert live["one"].values.tolist() == [0, 0]


def test_what_grew_while_training_comes_back_to_a_program_that_begins_the_same() -> None:
    begun: dict[str, Any] = {"w": np.zeros(2), "losses": [], "best": None, "history": np.zeros(0)}
    saved = {"w": np.ones(2), "losses": [0.5, 0.25], "best": 0.25, "history": np.arange(3.0), "momentum": np.ones(2)}
    live = copy.deepcopy(begun)
    put_back(live, saved, begun, begun)
    assert live["losses"] == [0.5, 0.25]
    assert live["best"] == 0.25
    assert live["history"].tolist() == [0, 1, 2]
    assert live["momentum"].tolist() == [1, 1]


def test_a_layer_that_was_taken_out_of_the_program_is_missed() -> None:
    begun = {"w": np.zeros(2), "old": np.zeros(2)}
    live = {"w": np.zeros(2)}
    with pytest.raises(CannotRestore, match=r"state\.old is an array of 2 <f8 there, and not here"):
        put_back(live, begun, begun, live)


def test_a_state_that_grew_in_this_process_takes_its_own_checkpoint() -> None:
    begun = {"w": np.zeros(2), "losses": []}
    grown = {"w": np.ones(2), "losses": [1.0, 2.0]}
    live = {"w": np.zeros(2), "losses": [1.0]}
    put_back(live, grown, begun, live)
    assert live["losses"] == [1.0, 2.0]


def test_a_random_generator_is_set_back_in_place() -> None:
    live, saved = {"rng": np.random.default_rng(1)}, {"rng": np.random.default_rng(2)}
    rng = live["rng"]
    put_back(live, saved)
    assert live["rng"] is rng
    assert rng.integers(1 << 60) == saved["rng"].integers(1 << 60)
