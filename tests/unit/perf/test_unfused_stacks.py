"""Attention is predicted as the software runs it: whole scores in memory where its published rows were read so."""

from __future__ import annotations

from datetime import date

import pytest

from chipwise.api.session.config import Config
from chipwise.api.session.wiring import Session
from chipwise.perf.published_training import stacks
from chipwise.perf.setup import SELECTIVE
from chipwise.predictor.transformer import train


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    home = tmp_path_factory.mktemp("home")
    return Session(Config(home / "config", home / "data"), date(2026, 11, 15), [])


@pytest.mark.parametrize(
    ("stack", "unfused"), [("neuron", "yes"), ("torchtitan", ""), ("megatron-bridge", ""), ("nvidia-examples", "yes")]
)
def test_the_table_says_which_software_writes_its_scores(stack: str, unfused: str) -> None:
    assert {row["unfused"] for row in stacks().values() if row["stack"] == stack} == {unfused}


@pytest.mark.parametrize(
    ("model", "chips", "tp", "pp", "tokens_per_s"),
    [("llama-3-8b", 512, 16, 1, 767.2), ("llama-3-70b", 512, 16, 8, 127.04)],  # AWS's own, tm-1134 and tm-0216
)
def test_a_published_training_on_trainium_lies_within_its_interval(
    session: Session, model: str, chips: int, tp: int, pp: int, tokens_per_s: float
) -> None:
    step = train(session.known, model, on="trn1", chips=chips, tp=tp, pp=pp, seq=8192, global_batch=1024).step
    assert step.low[0] <= 1024 * 8192 / (chips * tokens_per_s) <= step.high[0]


def test_trainium_shards_the_state_of_the_optimiser_alone_and_computes_scores_again(session: Session) -> None:
    setup = train(session.known, "llama-3-8b", on="trn1", chips=32).ask.setup
    assert (setup.shard[0], setup.recompute[0]) == (1, SELECTIVE)
