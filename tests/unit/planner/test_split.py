"""Splits as values: what JSON shows of each, and what is asked of all of them alike."""

from __future__ import annotations

from typing import get_args

import pytest

from chipwise.planner.values.split import (
    UNSPLIT,
    CircuitSplit,
    Copies,
    DevicesPerPlace,
    Frames,
    GenerationSplit,
    Runs,
    SampleTrainingSplit,
    Seats,
    Split,
    Streams,
    TrainingSplit,
    independent,
    model_ways,
    width,
)

TRAINING = TrainingSplit(tp=4, pp=2, cp=1, ep=1, dp=8, shard=1, recompute=2, micro_batch=3)
SHOWN: list[tuple[Split, dict[str, int], int]] = [
    (UNSPLIT, {}, 1),
    (TRAINING, {"tp": 4, "pp": 2, "cp": 1, "ep": 1, "dp": 8, "shard": 1, "recompute": 2, "micro_batch": 3}, 8),
    (GenerationSplit(tp=4, pp=2, replicas=3), {"tp": 4, "pp": 2, "replicas": 3}, 8),
    (SampleTrainingSplit(dp=8, batch=32), {"dp": 8, "batch": 32}, 1),
    (SampleTrainingSplit(dp=8, batch=32, tables=8), {"dp": 8, "batch": 32, "tables": 8}, 8),
    (Copies(replicas=5), {"replicas": 5}, 1),
    (Copies(replicas=5, tables=2), {"replicas": 5, "tables": 2}, 2),
    (Runs(at_once=3, chips_each=4), {"runs at once": 3, "chips a run": 4}, 1),
    (Frames(at_once=16), {"frames at once": 16}, 1),
    (Streams(per_chip=20), {"streams a chip": 20}, 1),
    (CircuitSplit(devices=2, latency_ns=1500), {"devices": 2, "latency ns": 1500}, 1),
    (DevicesPerPlace(devices=2), {"devices a place": 2}, 1),
    (Seats(per_chip=7), {"seats a chip": 7}, 1),
    (Seats(per_chip=4, slower_percent=75), {"seats a chip": 4, "slower by percent": 75}, 1),
    (Seats(chips_each=2), {"chips a seat": 2}, 1),
]


@pytest.mark.parametrize(("split", "shown", "chips"), SHOWN)
def test_json_has_the_names_that_it_always_had_in_their_order(split: Split, shown: dict[str, int], chips: int) -> None:
    assert list(split.as_dict().items()) == list(shown.items())
    assert width(split) == chips


def test_every_kind_of_split_is_in_the_table_above() -> None:
    assert {type(split) for split, _, _ in SHOWN} == set(get_args(Split))


def test_only_models_over_tokens_are_cut_by_layers() -> None:
    cut = [split for split, _, _ in SHOWN if model_ways(split) != (1, 1)]
    assert [type(split) for split in cut] == [TrainingSplit, GenerationSplit]


def test_copies_and_frames_need_nobody_else() -> None:
    assert {type(split) for split, _, _ in SHOWN if independent(split)} == {GenerationSplit, Copies, Frames}


def test_seats_of_a_machine_are_counted_over_its_chips() -> None:
    assert Seats(per_chip=7).of_machine(8) == 56
    assert Seats(chips_each=2).of_machine(8) == 4
