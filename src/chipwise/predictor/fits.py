"""The verb behind `chipwise fits`: memory of one configuration, what is left, and what would make it fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chipwise.errors import BadInput, InvalidSettings, Problem
from chipwise.perf.fits import fits as answer
from chipwise.perf.fits import largest_batch, largest_context, largest_micro_batch
from chipwise.perf.setup import RECOMPUTE, ServingSetup, TrainingSetup
from chipwise.perf.transformer import Transformers
from chipwise.predictor.ability import able_chip
from chipwise.predictor.named import chip_named, context_notes, layer_named, shown_name
from chipwise.predictor.options import FLAGS, check_numbers, option
from chipwise.predictor.results import fit_result, memory_use
from chipwise.predictor.settings import format_notes, usual_format
from chipwise.predictor.transformer import larger_parts
from chipwise.predictor.values import FitPrediction

if TYPE_CHECKING:
    from chipwise.predictor.known import Known


_TRAINING = ("method", "optimizer", "recompute", "zero")
_SERVING = ("kv", "engine")
_FLAGS = {
    **FLAGS,
    "seq": "--context",
    "input_len": "--context",
    "output_len": "--context",
    "micro_batch": "--batch",
    "global_batch": "--batch",
    "dp": "--chips",
}


def fits(known: Known, model: str, chip: str, settings: dict[str, Any]) -> FitPrediction:
    """`settings` are options by name, and `train`."""
    check_numbers(settings)
    foreign = [option(name) for name in (_SERVING if settings.get("train") else _TRAINING) if name in settings]
    if foreign:
        remedy = "Leave out --train." if settings.get("train") else "Add --train."
        raise BadInput(f"{', '.join(foreign)} {'does' if len(foreign) == 1 else 'do'} not go with this task.", remedy=remedy)
    try:
        return _fits(known, model, chip, settings)
    except InvalidSettings as error:
        spread = {} if settings.get("train") or "tp" in settings else {"tp": "--chips"}  # one copy over all of them
        raise error.with_names(_FLAGS | spread) from error


def _fits(known: Known, model: str, chip: str, settings: dict[str, Any]) -> FitPrediction:
    _, layer = layer_named(known, model)
    name = shown_name(known, model)
    able_chip(known, chip, "train" if settings.get("train") else "serve")
    part = known.parts[chip_named(known, chip)]
    shape = Transformers.of([layer])
    ways = float(settings.get("tp", 1)) * float(settings.get("pp", 1))
    chips = float(settings.get("chips") or ways)
    if chips < 1 or ways < 1 or chips % ways:
        problem = f"{chips:g} is not a multiple of tp x pp = {ways:g}"
        raise InvalidSettings(Problem("chips", problem, None, "multiples of tp x pp"))
    if not settings.get("train") and chips > ways:  # one copy over all of them
        settings = {**settings, "tp": chips / float(settings.get("pp", 1))}
    published = known.find_model(model).published_precision
    weight_format = "" if settings.get("train") or "precision" in settings else usual_format(part, published)
    setup = _training(settings, chips, ways) if settings.get("train") else _serving({"precision": weight_format, **settings})
    setup.check(shape)
    result = answer(shape, part, setup, changes=False)
    if not result.fits[0]:
        result = answer(shape, part, setup, larger=larger_parts(known, part))
    if isinstance(setup, TrainingSetup):
        largest = {
            "largest micro-batch": largest_micro_batch(shape, part, setup),
            "longest sequence": largest_context(shape, part, setup),
        }
        task = "training"
    else:
        largest = {"most sequences": largest_batch(shape, part, setup), "longest context": largest_context(shape, part, setup)}
        task = "serving"
    tokens = setup.seq if isinstance(setup, TrainingSetup) else setup.context
    stated = known.find_model(model).context
    held = {label: float(values[0]) for label, values in largest.items()}
    longest = "longest sequence" if task == "training" else "longest context"
    notes = (*context_notes(known, model, tokens), *(format_notes(weight_format, published) if weight_format else ()))
    if stated is not None and held[longest] > stated:
        notes += (f"Memory would hold {held[longest]:,.0f} tokens; {name} is stated for {stated:,}.",)
        held[longest] = float(stated)
    return FitPrediction(
        model=name,
        chip=part.name,
        chips=chips,
        task=task,
        memory=memory_use(result.memory),
        fit=fit_result(result),
        largest=held,
        notes=notes,
        tokens=float(tokens[0]),
        ways=1.0 if task == "training" else chips,
    )


def _training(settings: dict[str, Any], chips: float, ways: float) -> TrainingSetup:
    dp = chips / ways
    chosen: dict[str, Any] = {
        "seq": settings.get("context", 4096.0),
        "micro_batch": settings.get("batch", 1.0),
        "tp": settings.get("tp", 1.0),
        "pp": settings.get("pp", 1.0),
        "dp": dp,
        "shard": settings.get("zero", 3.0 if dp > 1 else 0.0),
        "recompute": float(RECOMPUTE[settings.get("recompute", "none")]),
        "method": settings.get("method", "full"),
        "optimizer": settings.get("optimizer", "adamw"),
        "precision": settings.get("precision", "bf16"),
    }
    return TrainingSetup.of(**chosen)


def _serving(settings: dict[str, Any]) -> ServingSetup:
    context = float(settings.get("context", 4096.0))
    chosen: dict[str, Any] = {
        "batch": settings.get("batch", 1.0),
        "input_len": max(context - 256, 1.0),
        "output_len": min(256.0, max(context - 1, 0.0)),
        "tp": settings.get("tp", 1.0),
        "pp": settings.get("pp", 1.0),
        "precision_weights": settings["precision"],
        "precision_kv": settings.get("kv", "bf16"),
        "engine": settings.get("engine", "vllm"),
    }
    return ServingSetup.of(**chosen)
