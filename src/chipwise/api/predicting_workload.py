"""The verb behind `chipwise predict WORKLOAD.yaml`: each kind of work by its own model, with the file's goals held against it.

Options given beside the file win over it. A pipeline's stages may each have a chip: `train=h100,inspect=jetson-orin-nano`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chipwise.api.estimate_views import View
from chipwise.api.predicting_kinds.ask import Ask, kind_of, options_of
from chipwise.api.predicting_kinds.one_work import predict_work
from chipwise.api.predicting_kinds.pipelines import predict_pipeline
from chipwise.api.predicting_samples import check_numbers, option
from chipwise.api.wiring import Session
from chipwise.api.workloads import check
from chipwise.errors import BadInput
from chipwise.workload.kinds import Common
from chipwise.workload.pipeline import Pipeline

_SPLITS = ("tp", "pp", "cp", "ep")


def predict_workload(session: Session, path: str, on: str, settings: Mapping[str, Any]) -> View:
    """`settings` are options by name, as `chipwise predict` has them."""
    check_numbers(settings)
    checked = check(session, path)
    given = {name: value for name, value in settings.items() if not (name in _SPLITS and value == 1)}
    work = checked.workload
    _refuse_foreign(work, given)
    ask = Ask(session, path, on, given)
    view = predict_pipeline(ask, work) if isinstance(work, Pipeline) else predict_work(ask, work)
    view["notes"] = [*view["notes"], *checked.notes]
    return view


def _refuse_foreign(work: Common, given: Mapping[str, Any]) -> None:
    kinds = [stage.kind for stage in work.stages] if isinstance(work, Pipeline) else [kind_of(work)]
    known = {name for kind in kinds for name in options_of(kind)}
    foreign = [option(name) for name in given if name not in known]
    if foreign:
        whose = "any stage of this pipeline" if isinstance(work, Pipeline) else f"a workload of the kind {kinds[0]}"
        raise BadInput(f"{', '.join(foreign)} does not go with {whose}.", remedy="Leave it out.")
