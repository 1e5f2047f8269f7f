"""The verb behind `chipwise predict`: flags or a workload file to one view with everything in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chipwise.api.estimate_views import View, served_view, trained_view
from chipwise.api.estimating import serve, train
from chipwise.api.options import LEARNING_OPTIONS, LOADS, SERVING_OPTIONS
from chipwise.api.predicting_samples import able_chip, by_samples, check_numbers, option, predict_samples, steadiness_view
from chipwise.errors import BadInput
from chipwise.perf.setup import RECOMPUTE

if TYPE_CHECKING:
    from chipwise.api.wiring import Session

_ONLY = {
    "train": ("seq", "micro_batch", "global_batch", "zero", "interleave", "recompute", "method", "optimizer", "framework"),
    "serve": ("engine", "concurrency", "rate", "batch", "input_tokens", "output_tokens", "prefix", "kv"),
}


def predict(session: Session, model: str, on: str, task: str | None, settings: dict[str, Any]) -> View:
    if model.endswith((".yaml", ".yml")):
        from chipwise.api.predicting_workload import predict_workload

        return predict_workload(session, model, on, settings)
    check_numbers(settings)
    view = predict_model(session, model, on, task or _guess(settings), settings)
    return {"steadiness": steadiness_view()} | view


def _guess(settings: dict[str, Any]) -> str:
    """Options of one task tell which is meant; neither, or both, is an error."""
    named = {task: [name for name in names if name in settings] for task, names in _ONLY.items()}
    if named["train"] and not named["serve"]:
        return "train"
    if named["serve"] and not named["train"]:
        return "serve"
    raise BadInput("Neither --train nor --serve is given.", remedy="Add the one that is meant.")


def predict_model(session: Session, model: str, on: str, task: str, settings: dict[str, Any]) -> View:
    foreign = [name for name in _ONLY["serve" if task == "train" else "train"] if name in settings]
    if foreign:
        shown = ", ".join(map(option, foreign))
        raise BadInput(
            f"{shown} does not go with --{task}.",
            remedy=f"Leave it out, or ask for --{'serve' if task == 'train' else 'train'}.",
        )
    able_chip(session, on, task)
    if by_samples(session.find_model(model).shape, task):
        return predict_samples(session, model, on, {**settings, "task": task})
    if task == "train":
        chosen = {name: settings[key] for key, name in LEARNING_OPTIONS.items() if key in settings}
        if "global_batch" in settings:
            chosen["global_batch"] = settings["global_batch"]
        if "recompute" in settings:
            chosen["recompute"] = float(RECOMPUTE[settings["recompute"]])
        ways = float(settings.get("tp", 1)) * float(settings.get("pp", 1)) * float(settings.get("cp", 1))
        found = train(
            session, model, on=on, chips=settings.get("chips", ways), framework=settings.get("framework"),
            chips_per_node=settings.get("chips_per_node"), **chosen,
        )  # fmt: skip
        return trained_view(found)
    chosen = {name: settings[key] for key, name in SERVING_OPTIONS.items() if key in settings}
    given = {name: settings[name] for name in (*LOADS, "engine", "replicas", "chips_per_node") if name in settings}
    if "chips" in settings:
        each = float(settings.get("tp", 1)) * float(settings.get("pp", 1))
        if settings["chips"] % each:
            raise BadInput(
                f"chips: {settings['chips']:g} is not a multiple of tp x pp = {each:g}.",
                remedy="Give --tp and --pp that divide it.",
            )
        given["replicas"] = settings["chips"] / each
    return served_view(serve(session, model, on=on, **given, **chosen))
