"""Several ranks, one checkpoint: all of them or none."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chipwise.job import names
from chipwise.job.checkpoints import Checkpoints
from chipwise.job.errors import CannotRestore, CannotSave
from chipwise.job.names import Kind


def ranks(directory: Path, world: int, **settings: Any) -> list[Checkpoints]:
    return [Checkpoints(directory, rank=rank, world=world, patience_s=5, **settings) for rank in range(world)]


def save_all(places: list[Checkpoints], step: int) -> None:
    with ThreadPoolExecutor(len(places)) as pool:
        done = [
            pool.submit(place.save, step, {"mine": np.full(3, place.writer.rank), "step": step}, wait=True) for place in places
        ]
        for one in reversed(done):  # rank 0 misses a rank that failed: the reason is of more use
            one.result()


def close_all(places: list[Checkpoints]) -> None:
    for place in places:
        place.close()


def test_each_rank_gets_its_own_part_back(tmp_path: Path) -> None:
    places = ranks(tmp_path, 3)
    for step in (1, 2, 3):
        save_all(places, step)
    for rank, place in enumerate(places):
        found = place.load()
        assert found is not None
        assert found.step == 3
        assert found.state["mine"].tolist() == [rank] * 3
    close_all(places)
    kinds = [name.kind for path in tmp_path.iterdir() if (name := names.read(path.name))]
    assert kinds.count(Kind.MANIFEST) == 2
    assert kinds.count(Kind.DATA) == 6


@pytest.mark.parametrize("number", range(15))
def test_ranks_that_start_at_the_same_moment_do_not_disturb_each_other(tmp_path: Path, number: int) -> None:
    places = ranks(tmp_path, 6, attempt=number)
    save_all(places, 1)
    close_all(places)
    assert len(list(tmp_path.glob("*.state"))) == 6
    assert not list(tmp_path.glob(".*"))


def test_a_missing_rank_is_named_and_the_step_is_not_committed(tmp_path: Path) -> None:
    places = ranks(tmp_path, 3)
    save_all(places, 1)
    for place in places:
        place._patience_s = 0.3
    with ThreadPoolExecutor(2) as pool:
        done = [pool.submit(place.save, 2, {"n": 1}, wait=True) for place in places[:2]]
        with pytest.raises(CannotSave, match="of 3 ranks, rank 2 did not write its part"):
            done[0].result()
        with pytest.raises(CannotSave, match="Rank 0 did not commit step 2"):
            done[1].result()
    found = places[2].load()
    assert found is not None
    assert found.step == 1
    close_all(places)


def test_a_shard_left_by_a_run_that_crashed_is_not_taken_for_one_of_this_run(tmp_path: Path) -> None:
    first = ranks(tmp_path, 2)
    first[0].claim()
    first[1]._patience_s = 0.3
    with pytest.raises(CannotSave):
        first[1].save(5, {"mine": np.full(3, 99)}, wait=True)  # announced, and never committed
    close_all(first)
    assert list(tmp_path.glob("*.shard.json"))
    second = ranks(tmp_path, 2)
    second[0]._patience_s = 0.3
    with pytest.raises(CannotSave, match="rank 1 did not write"):
        second[0].save(5, {"mine": np.zeros(3)}, wait=True)
    second[0]._patience_s = 5
    save_all(second, 5)
    found = second[1].load()
    assert found is not None
    assert found.state["mine"].tolist() == [1, 1, 1]
    close_all(second)


def test_a_rank_that_comes_before_rank_0_is_heard(tmp_path: Path) -> None:
    places = ranks(tmp_path, 2)
    with ThreadPoolExecutor(1) as pool:
        early = pool.submit(places[1].save, 4, {"n": 1}, wait=True)
        while not list(tmp_path.glob("*.state")):
            pass
        places[0].save(4, {"n": 0}, wait=True)
        assert early.result()
    close_all(places)


def test_ranks_that_went_on_from_different_checkpoints_are_not_joined(tmp_path: Path) -> None:
    places = ranks(tmp_path, 2)
    save_all(places, 1)
    places[0].load()
    for place in places:
        place._patience_s = 0.5
    with ThreadPoolExecutor(1) as pool:
        pool.submit(places[1].save, 2, {"n": 1}, wait=True)
        with pytest.raises(CannotSave, match="Rank 1 went on from step 0 and rank 0 from step 1"):
            places[0].save(2, {"n": 0}, wait=True)
    close_all(places)


def test_another_number_of_ranks_is_refused_unless_somebody_says_how(tmp_path: Path) -> None:
    places = ranks(tmp_path, 4)
    save_all(places, 8)
    close_all(places)
    with pytest.raises(CannotRestore, match="has the states of 4 ranks, and this job has 2"):
        Checkpoints(tmp_path, rank=0, world=2).load()

    def halve(states: list[Any], rank: int, world: int) -> Any:
        each = len(states) // world
        return {"mine": np.concatenate([one["mine"] for one in states[rank * each : (rank + 1) * each]])}

    found = Checkpoints(tmp_path, rank=1, world=2, reshard=halve).load()
    assert found is not None
    assert found.state["mine"].tolist() == [2, 2, 2, 3, 3, 3]
    same = Checkpoints(tmp_path, rank=1, world=2, replicated=True).load()
    assert same is not None
    assert same.state["mine"].tolist() == [0, 0, 0]


def test_a_replicated_state_is_written_once_and_read_by_any_number(tmp_path: Path) -> None:
    places = ranks(tmp_path, 3, replicated=True)
    save_all(places, 6)
    close_all(places)
    assert len(list(tmp_path.glob("*.state"))) == 1
    for world in (1, 2, 5):
        found = Checkpoints(tmp_path, rank=world - 1, world=world).load()
        assert found is not None
        assert found.state["mine"].tolist() == [0, 0, 0]


def test_one_damaged_shard_sends_every_rank_to_the_same_earlier_step(tmp_path: Path) -> None:
    places = ranks(tmp_path, 3)
    for step in (1, 2):
        save_all(places, step)
    path = next(tmp_path.glob("step-000000000002*rank-2-of-3*.state"))
    path.write_bytes(path.read_bytes()[:-1])
    assert {found.step for place in places if (found := place.load())} == {1}
    close_all(places)


def test_the_manifest_says_what_is_in_the_checkpoint(tmp_path: Path) -> None:
    places = ranks(tmp_path, 2, attempt=4)
    save_all(places, 7)
    close_all(places)
    told = json.loads((tmp_path / names.manifest(7, 4)).read_text())
    assert (told["format"], told["step"], told["attempt"], told["world"]) == (1, 7, 4, 2)
    assert [entry["rank"] for entry in told["files"]] == [0, 1]
    assert all((tmp_path / entry["name"]).stat().st_size == entry["size"] for entry in told["files"])
