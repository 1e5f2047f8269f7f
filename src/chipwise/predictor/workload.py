"""The verb behind `chipwise predict WORKLOAD.yaml`: each kind of work by its own model, with the file's goals held against it.

Options given beside the file win over it. A pipeline's stages may each have a chip: `train=h100,inspect=jetson-orin-nano`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chipwise.errors import BadInput
from chipwise.predictor.kinds.ask import Ask, kind_of, options_of
from chipwise.predictor.known import Known
from chipwise.predictor.options import check_numbers, check_together, option
from chipwise.predictor.pipelines import predict_pipeline
from chipwise.predictor.values import PipelinePrediction, Prediction
from chipwise.predictor.work import predict_work
from chipwise.workload.common import Common
from chipwise.workload.pipeline import Pipeline, Workload

_TASKS = {"train": ("train", "finetune"), "serve": ("serve", "batch")}


def predict_workload(
    known: Known, path: str, work: Workload, chip: str, settings: Mapping[str, Any], task: str | None = None
) -> Prediction | PipelinePrediction:
    """`settings` are options by name, as `chipwise predict` has them; `task` must be what the file asks for."""
    check_numbers(settings)
    check_together(settings)
    _refuse_foreign(work, settings, task)
    ask = Ask(known, path, chip, settings)
    return predict_pipeline(ask, work) if isinstance(work, Pipeline) else predict_work(ask, work)


def _refuse_foreign(work: Common, options: Mapping[str, Any], task: str | None) -> None:
    kinds = [stage.kind for stage in work.stages] if isinstance(work, Pipeline) else [kind_of(work)]
    known = {name for kind in kinds for name in options_of(kind)}
    foreign = [option(name) for name in options if name not in known]
    if task is not None and not any(kind in _TASKS[task] for kind in kinds):
        foreign.insert(0, f"--{task}")
    if foreign:
        target = "any stage of this pipeline" if isinstance(work, Pipeline) else f"a workload of the kind {kinds[0]}"
        raise BadInput(f"{', '.join(foreign)} does not go with {target}.", remedy="Leave it out.")
