"""The verb behind `chipwise predict`: flags or a workload file to one view with everything in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chipwise.api.estimate_views import View, trained_view
from chipwise.api.estimating import train
from chipwise.api.options import FLAGS, LEARNING_OPTIONS, ONLY, check_numbers, check_task, check_together
from chipwise.api.predicting_kinds.ask import by_samples
from chipwise.api.predicting_kinds.latencies import serve_samples, serve_tokens, wanted_goals
from chipwise.api.predicting_samples import able_chip, check_sample_options, predict_samples, steadiness_view
from chipwise.errors import BadInput, InvalidSettings
from chipwise.perf.setup import RECOMPUTE

if TYPE_CHECKING:
    from chipwise.api.wiring import Session


def predict(session: Session, model: str, on: str, task: str | None, settings: dict[str, Any]) -> View:
    if model.endswith((".yaml", ".yml")):
        from chipwise.api.predicting_workload import predict_workload

        return predict_workload(session, model, on, settings, task)
    check_numbers(settings)
    check_together(settings)
    try:
        view = predict_model(session, model, on, task or _guess(settings), settings)
    except InvalidSettings as error:
        raise error.called(FLAGS) from error
    return {"steadiness": steadiness_view()} | view


def _guess(settings: dict[str, Any]) -> str:
    """Options of one task tell which is meant; neither, or both, is an error."""
    named = {task: [name for name in names if name in settings] for task, names in ONLY.items()}
    if named["train"] and not named["serve"]:
        return "train"
    if named["serve"] and not named["train"]:
        return "serve"
    raise BadInput("Neither --train nor --serve is given.", remedy="Add the one that is meant.")


def predict_model(session: Session, model: str, on: str, task: str, settings: dict[str, Any]) -> View:
    check_task(settings, task)
    able_chip(session, on, task)
    shape = session.find_model(model).shape
    if by_samples(shape, task):
        check_sample_options(session, model, settings)
        asked = {**settings, "task": task}
        if task == "train":
            return predict_samples(session, model, on, asked)
        return serve_samples(session, model, on, asked, wanted_goals(None, settings))
    if task == "serve":
        return serve_tokens(session, model, on, settings, wanted_goals(None, settings))
    chosen = {name: settings[key] for key, name in LEARNING_OPTIONS.items() if key in settings}
    if "global_batch" in settings:
        chosen["global_batch"] = settings["global_batch"]
    if "recompute" in settings:
        chosen["recompute"] = float(RECOMPUTE[settings["recompute"]])
    ways = float(settings.get("tp", 1)) * float(settings.get("pp", 1)) * float(settings.get("cp", 1))
    found = train(
        session,
        model,
        on=on,
        chips=settings.get("chips", ways),
        framework=settings.get("framework"),
        chips_per_node=settings.get("chips_per_node"),
        **chosen,
    )
    return trained_view(found)
