"""The verbs that plan and predict: each reads and checks the workload, and hands it to the planner or the predictor."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chipwise.errors import BadInput
from chipwise.files.source import NamedText, read_text
from chipwise.planner.check import Checked, check
from chipwise.planner.defaults import TOP
from chipwise.planner.plan import plan_workload
from chipwise.planner.plan import refuse_pipeline as refuse_pipeline
from chipwise.planner.values.plan import Plan
from chipwise.predictor.whole_machine import whole_machine

if TYPE_CHECKING:
    from chipwise.api.session.wiring import Session
    from chipwise.money.tco_values import Tco, TcoRequest
    from chipwise.perf.setup import Values
    from chipwise.planner.explain.compare import Comparison
    from chipwise.planner.explain.rate import Rated
    from chipwise.planner.explain.why import Why
    from chipwise.planner.several.pack import Packed
    from chipwise.planner.values.mix import Mix
    from chipwise.planner.values.pipeline import PipelinePlan
    from chipwise.predictor.transformer import Served, Trained
    from chipwise.views.predict import View


def plan(
    session: Session,
    path: str,
    objective: str | None = None,
    top: int = TOP,
    environment: str | None = None,
    text: str | None = None,
) -> Plan:
    """Of one workload. `objective` over the file's own; `text` stands for the file."""
    checked = check(session.known, path, environment, text=text)
    refuse_pipeline(checked.workload, path, ["This"])
    answer = plan_any_checked(session, path, checked, objective, top)
    assert isinstance(answer, Plan)
    return answer


def plan_any(
    session: Session,
    path: str,
    objective: str | None = None,
    top: int = TOP,
    environment: str | None = None,
    text: str | None = None,
) -> Plan | PipelinePlan:
    """What `plan` gives; of a pipeline its stages, planned together."""
    return plan_any_checked(session, path, check(session.known, path, environment, text=text), objective, top)


def plan_any_checked(
    session: Session, path: str, checked: Checked, objective: str | None = None, top: int = TOP, reported: bool = False
) -> Plan | PipelinePlan:
    """Of a file that was read already: whoever needs the workload besides its plan reads it once."""
    return plan_workload(session.known, path, checked.workload, objective, top, checked.notes, reported, session.report)


def predict(
    session: Session,
    model: str,
    hardware: str,
    task: str | None,
    settings: Mapping[str, Any],
    environment: str | None = None,
    measured: Sequence[str | Mapping[str, Any]] = (),
) -> View:
    """Of a model with options, or of a workload file with options that win over it. `measured` are runs, CHIP=VALUE or as a
    file has them, that speeds follow from."""
    from chipwise.views.predict import prediction_view

    hardware, notes, settings = whole_machine(session.names, hardware, settings)
    if not isinstance(model, NamedText) and not model.endswith((".yaml", ".yml")):
        from chipwise.predictor.predict import predict as predict_named

        if environment is not None:
            raise BadInput("An environment is one of a workload file, and a model has none.", remedy="Leave it out.")
        return _noted(prediction_view(predict_named(session.known, model, hardware, task, dict(settings), measured)), notes)
    from chipwise.predictor.workload import predict_workload

    text = None
    if measured:
        from chipwise.planner.options import with_measured

        text = with_measured(read_text(model), model, measured)
    checked = check(session.known, model, environment, text=text)
    predicted = predict_workload(session.known, model, checked.workload, hardware, settings, task)
    return _noted(prediction_view(replace(predicted, notes=(*predicted.notes, *checked.notes))), notes)


def fits(session: Session, model: str, hardware: str, settings: Mapping[str, Any]) -> View:
    """Whether a model has room on a chip, as a view."""
    from chipwise.predictor.fits import fits as fits_named
    from chipwise.views.predict import fits_view

    hardware, notes, settings = whole_machine(session.names, hardware, settings)
    return _noted(fits_view(fits_named(session.known, model, hardware, dict(settings))), notes)


def _noted(view: View, notes: list[str]) -> View:
    return {**view, "notes": [*notes, *view.get("notes", ())]} if notes else view


def estimate(
    session: Session, model: str, *, on: str | Sequence[str], task: str = "train", **settings: Values
) -> Trained | Served:
    """A model with settings, each a number or a column of numbers: one prediction or a million."""
    from chipwise.predictor.transformer import estimate as estimate_columns

    return estimate_columns(session.known, model, on=on, task=task, **settings)


def why(session: Session, plan: Plan, name: str) -> Why:
    """The best that a machine, chip, provider or region could do, and what it lost by."""
    from chipwise.planner.explain.why import why as find

    return find(session.known, plan, name)


def compare(
    session: Session,
    path: str,
    dimension: str = "provider",
    vendor: str | None = None,
    environment: str | None = None,
    text: str | None = None,
) -> Comparison:
    """Candidates side by side, by cost, whatever the file's objective is."""
    from chipwise.planner.explain import compare as comparing

    wanted = comparing.known_vendor(session.known, vendor) if vendor else None
    return comparing.compare(plan(session, path, "cost", 1, environment, text), dimension, wanted)


def rate(session: Session, path: str, environment: str | None = None, text: str | None = None) -> Rated:
    """Stars by hardware family."""
    from chipwise.planner.explain import rate as rating

    return rating.rate(plan(session, path, "cost", 1, environment, text))


def mix(session: Session, path: str, environment: str | None = None, text: str | None = None) -> Mix:
    """The cheapest mix of machine types for a service."""
    from chipwise.planner.several import mix as mixing

    return mixing.mix(session.known, path, check(session.known, path, environment, text=text).workload)


def tco(session: Session, request: TcoRequest) -> Tco:
    """What machines of one's own cost over their life, and from when on they beat a cloud."""
    from chipwise.planner.owning.tco import tco as compare_owning

    return compare_owning(session.known, request)


def pack(
    session: Session, paths: Sequence[str], environment: str | None = None, texts: Sequence[str | None] | None = None
) -> Packed:
    """Several small services on few chips; `texts` stand for the files."""
    from chipwise.planner.several import pack as packing

    if not paths:
        raise BadInput("There is nothing to pack.", remedy="Name workload files: chipwise pack a.yaml b.yaml")
    files = [Path(os.path.realpath(path)) for path in paths]  # links in a ring are told when it is read
    twice = next((path for index, path in enumerate(paths) if files[index] in files[:index]), None)
    if twice is not None:
        remedy = "For two copies of a model say so in its file: replicas: {min: 2}."
        raise BadInput(f"{twice} is given twice.", remedy=remedy)
    contents = texts or [None] * len(paths)
    services = [
        (path, check(session.known, path, environment, text=text).workload) for path, text in zip(paths, contents, strict=True)
    ]
    return packing.pack(session.known, services)
