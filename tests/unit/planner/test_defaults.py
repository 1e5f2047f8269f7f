"""What holds where a workload says nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

import chipwise as cw
from chipwise.planner.defaults import takes_spot, training_batch, with_spot_default
from chipwise.planner.limits import Rules
from chipwise.workload.common import Common
from chipwise.workload.kinds import Finetune, Train
from chipwise.workload.parse import load

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
JOBS = ("train", "finetune", "batch", "hpc", "render", "hybrid")


def _example(kind: str) -> Common:
    work = load(EXAMPLES / kind / "workload.yaml")
    assert isinstance(work, Common)
    return work


@pytest.mark.parametrize("kind", [*JOBS, "serve", "interactive", "stream"])
def test_jobs_take_spot_machines_unasked_and_services_do_not(kind: str) -> None:
    work = _example(kind)
    assert takes_spot(work) == (kind in JOBS)
    assert with_spot_default(Rules(), work).interruptible is (None if kind in JOBS else False)


@pytest.mark.parametrize("stated", [True, False])
def test_what_the_file_says_of_spot_machines_stays(stated: bool) -> None:
    assert with_spot_default(Rules(interruptible=stated), _example("serve")).interruptible is stated
    assert with_spot_default(Rules(interruptible=stated), _example("train")).interruptible is stated


def test_larger_models_are_trained_in_larger_batches() -> None:
    work = _example("train")
    assert isinstance(work, Train)
    tokens = [training_batch(work, parameters, 2048) * 2048 for parameters in (1e8, 7e9, 7e10)]
    assert tokens == sorted(tokens)
    assert len(set(tokens)) == 3
    assert training_batch(work, 7e9, 8192) * 8192 == tokens[1], "the same tokens a step, whatever the length"


def test_a_fine_tuning_takes_few_sequences_whatever_the_model() -> None:
    work, pretraining = _example("finetune"), _example("train")
    assert isinstance(work, Finetune)
    assert isinstance(pretraining, Train)
    assert training_batch(work, 1e8, 2048) == training_batch(work, 7e10, 2048) < training_batch(pretraining, 1e8, 2048)


@pytest.mark.parametrize(("stated", "taken"), [("", "fp16"), ("precision: bf16", ""), ("precision: fp32", "fp32")])
def test_training_takes_fp16_unasked_where_no_chip_that_is_allowed_has_bf16(stated: str, taken: str) -> None:
    text = f"{{kind: train, name: old, model: bert-large, samples: 2M, {stated or 'epochs: 1'}, limits: {{chips: [v100]}}}}"
    plan = cw.plan(text)
    assert (plan.best.precision if isinstance(plan, cw.Plan) else "") == taken
    assert any("fp16" in note for note in plan.notes) is (taken == "fp16")
