"""Of splits that are as fast as each other the one is taken that cuts the model least."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from chipwise.api.session.wiring import Session, open_session
from chipwise.api.verbs import plan
from chipwise.perf.arrays import Coded, column
from chipwise.perf.hardware import Hardware
from chipwise.perf.predict_training import Training, predict, usual_framework
from chipwise.perf.setup import TrainingSetup
from chipwise.perf.transformer import Transformers, layer_of
from chipwise.planner.generation.search import Serving, best
from chipwise.planner.values.split import TrainingSplit

pytestmark = pytest.mark.real_catalog
EXAMPLE = Path(__file__).parents[3] / "examples" / "train" / "workload.yaml"


@cache
def session() -> Session:
    return open_session()


def step(**ways: float) -> tuple[str, float]:
    """(software, seconds of a step) of Llama 3.1 8B on two machines of eight H200."""
    known = session().known
    layer = layer_of(session().find_model("llama-3.1-8b", online=False).shape)
    hardware = Hardware.of(Coded.of("H200"), session().parts.by_name, column(8.0), column(5e10))
    setup = TrainingSetup.of(seq=8192.0, global_batch=512.0, micro_batch=2.0, **ways)
    ask = Training(Transformers.of([layer]), Coded.of("llama-3.1-8b"), hardware, setup)
    return usual_framework(ask).name_at(0), float(predict(ask, known.model).step.value[0])


@pytest.mark.parametrize("chips", [8, 16, 32])
def test_an_8b_model_is_trained_without_a_pipeline(chips: int, tmp_path: Path) -> None:
    path = tmp_path / "workload.yaml"
    counts = f"chips: [H200]\n  chip_count: {{min: {chips}, max: {chips}}}"
    text = EXAMPLE.read_text().replace("deadline: 5d", "deadline: 8d")  # spot that may often be lost needs six days
    path.write_text(text.replace("chip_count: {max: 64}", counts))
    winner = plan(session(), str(path)).winner
    assert winner is not None
    assert isinstance(winner.split, TrainingSplit)
    assert (winner.split.pp, winner.split.tp, winner.split.cp) == (1, 1, 1)


def test_plain_data_parallelism_runs_on_what_a_pipeline_runs_on() -> None:
    plain, piped, sharded = step(dp=16.0, shard=1.0), step(dp=8.0, pp=2.0, shard=1.0), step(dp=16.0, shard=3.0)
    assert plain[0] == piped[0] == "megatron-bridge"
    assert sharded[0] == "composer"
    assert plain[1] < piped[1]  # no bubble, and gradients are exchanged behind the last backward pass


def test_a_job_leaves_room_in_memory_where_some_split_does() -> None:
    """Of 70 billion on eight B300 a pipeline of eight would be 5% faster, and fill 98% of every chip."""
    text = (
        "kind: train\nname: large\nmodel: llama-3.1-70b\ntokens: 20B tokens\nsequence_length: 8192\ngoals: {deadline: 14d}\n"
        "limits: {clouds: [nebius], chips: [b300]}\n"
    )
    winner = plan(session(), "large.yaml", text=text).winner
    assert winner is not None
    assert winner.memory_share is not None
    assert winner.memory_share <= 0.95
    assert isinstance(winner.split, TrainingSplit)
    assert winner.split.pp == 1


def serving(filled: list[float], machines: list[float], rate: list[float]) -> Serving:
    """Two splits of one shape."""
    one, none = np.ones(2), np.zeros(2, dtype=np.intp)
    return Serving(
        shape=none,
        precision=Coded(("bf16",), none),
        tp=one,
        pp=one,
        engine=Coded(("vllm",), none),
        fits=one,
        short=np.zeros(2),
        filled=np.array(filled),
        rate=np.array(rate),
        replicas=one,
        machines=np.array(machines),
        spread=one,
        per_machine=np.array(rate),
        counts=none,
        provenance=Coded(("formula",), none),
        predicted=one,
        chance=one,
        alone=np.array(rate),
        headroom=np.array(rate),
    )


def test_a_service_leaves_room_in_memory_where_some_split_does() -> None:
    full = serving(filled=[0.97, 0.6], machines=[1.0, 1.0], rate=[2.0, 1.5])
    assert best(full, online=True).tolist() == [1]
    assert best(serving(filled=[0.97, 0.98], machines=[1.0, 1.0], rate=[2.0, 1.5]), online=True).tolist() == [0]
