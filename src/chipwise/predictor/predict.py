"""The verb behind `chipwise predict`: a model and flags to one prediction with everything in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from chipwise.errors import BadInput, InvalidSettings
from chipwise.perf.setup import RECOMPUTE
from chipwise.perf.steadiness import steadiness
from chipwise.predictor.ability import able_chip
from chipwise.predictor.kinds.ask import by_samples
from chipwise.predictor.kinds.latencies import serve_samples, serve_tokens, wanted_goals
from chipwise.predictor.options import FLAGS, LEARNING_OPTIONS, ONLY, SIZES, check_numbers, check_task, check_together
from chipwise.predictor.results import training_prediction
from chipwise.predictor.samples import check_sample_options, predict_samples
from chipwise.predictor.sizes import refuse
from chipwise.predictor.training_split import train_searched
from chipwise.predictor.values import Prediction

if TYPE_CHECKING:
    from chipwise.predictor.known import Known


def predict(
    known: Known,
    model: str,
    chip: str,
    task: str | None,
    settings: dict[str, Any],
    measured: Sequence[str | Mapping[str, Any]] = (),
) -> Prediction:
    """`measured` are runs, CHIP=VALUE or as a workload file has them, that the speed follows from."""
    check_numbers(settings)
    check_together(settings)
    task = task or _guess(settings)
    try:
        predicted = _carried(known, model, chip, task, settings, measured)
    except InvalidSettings as error:
        raise error.with_names(FLAGS) from error
    return predicted if predicted.steadiness is not None else replace(predicted, steadiness=steadiness("dedicated"))


def _guess(settings: dict[str, Any]) -> str:
    """Options of one task tell which is meant; neither, or both, is an error."""
    options = {task: [name for name in names if name in settings] for task, names in ONLY.items()}
    if options["train"] and not options["serve"]:
        return "train"
    if options["serve"] and not options["train"]:
        return "serve"
    raise BadInput("Neither --train nor --serve is given.", remedy="Add the one that is meant.")


def _carried(
    known: Known, model: str, chip: str, task: str, settings: dict[str, Any], measured: Sequence[str | Mapping[str, Any]]
) -> Prediction:
    """With the speed that runs on other chips tell, if there are any."""
    if not measured:
        return predict_model(known, model, chip, task, settings)
    from chipwise.predictor.anchoring import carried_model
    from chipwise.workload.measured import lines_of

    carried = carried_model(known, task, settings, lines_of(measured), partial(predict_model, model=model, task=task))
    predicted = predict_model(carried.known, model, chip, task, settings)
    return replace(predicted, notes=(*carried.notes, *predicted.notes))


def predict_model(known: Known, model: str, chip: str, task: str, settings: dict[str, Any]) -> Prediction:
    check_task(settings, task)
    able_chip(known, chip, task)
    shape = known.find_model(model).shape
    if by_samples(shape, task):
        check_sample_options(known, model, settings)
        options = {**settings, "task": task}
        if task == "train":
            return predict_samples(known, model, chip, options)
        return serve_samples(known, model, chip, options, wanted_goals(None, settings))
    if unused := [name for name in SIZES if name in settings]:
        refuse(model, unused, "counted by tokens")
    if task == "serve":
        return serve_tokens(known, model, chip, settings, wanted_goals(None, settings))
    chosen = {name: settings[key] for key, name in LEARNING_OPTIONS.items() if key in settings}
    if "global_batch" in settings:
        chosen["global_batch"] = settings["global_batch"]
    if "recompute" in settings:
        chosen["recompute"] = float(RECOMPUTE[settings["recompute"]])
    ways = float(settings.get("tp", 1)) * float(settings.get("pp", 1)) * float(settings.get("cp", 1))
    trained = train_searched(
        known,
        model,
        on=chip,
        chips=settings.get("chips", ways),
        **{name: settings[name] for name in ("framework", "chips_per_node", "network") if name in settings},
        **chosen,
    )
    return training_prediction(trained)
