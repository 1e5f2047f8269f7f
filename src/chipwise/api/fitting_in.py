"""The verb behind `chipwise fits`: memory of one configuration, what is left, and what would make it fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chipwise.api.estimate_views import View, fit_view, memory_view
from chipwise.api.estimating import chip_named, larger_parts, layer_named, shown_name
from chipwise.api.predicting_samples import able_chip, check_numbers
from chipwise.errors import BadInput
from chipwise.perf.fits import fits as answer
from chipwise.perf.fits import largest_batch, largest_context, largest_micro_batch
from chipwise.perf.setup import RECOMPUTE, ServingSetup, TrainingSetup
from chipwise.perf.transformer import Transformers

if TYPE_CHECKING:
    from chipwise.api.wiring import Session


def fits(session: Session, model: str, on: str, settings: dict[str, Any]) -> View:
    _, layer = layer_named(session, model)
    name = shown_name(session, model)
    check_numbers({name: value for name, value in settings.items() if name != "train"})
    able_chip(session, on, "train" if settings.get("train") else "serve")
    part = session.parts[chip_named(session, on)]
    shape = Transformers.of([layer])
    ways = float(settings.get("tp", 1)) * float(settings.get("pp", 1))
    chips = float(settings.get("chips") or ways)
    if chips < 1 or ways < 1 or chips % ways:
        raise BadInput(
            f"chips: {chips:g} is not a multiple of tp x pp = {ways:g}.", remedy="Give --chips, --tp and --pp that go together."
        )
    if not settings.get("train") and chips > ways:  # one copy over all of them
        settings = {**settings, "tp": chips / float(settings.get("pp", 1))}
    setup = _training(settings, chips, ways) if settings.get("train") else _serving(settings)
    setup.check(shape)
    found = answer(shape, part, setup, changes=False)
    if not found.fits[0]:
        found = answer(shape, part, setup, larger=larger_parts(session, part))
    if isinstance(setup, TrainingSetup):
        largest = {
            "largest micro-batch": largest_micro_batch(shape, part, setup),
            "longest sequence": largest_context(shape, part, setup),
        }
        task = "training"
    else:
        largest = {"most sequences": largest_batch(shape, part, setup), "longest context": largest_context(shape, part, setup)}
        task = "serving"
    return {
        "title": f"{name} on {chips:g}x {part.name}: {task}", "model": name, "chip": part.name, "chips": chips, "task": task,
        "memory": memory_view(found.memory), "fit": fit_view(found),
        "largest": {name: float(values[0]) for name, values in largest.items()},
    }  # fmt: skip


def _training(settings: dict[str, Any], chips: float, ways: float) -> TrainingSetup:
    dp = chips / ways
    chosen: dict[str, Any] = {
        "seq": settings.get("context", 4096.0), "micro_batch": settings.get("batch", 1.0), "tp": settings.get("tp", 1.0),
        "pp": settings.get("pp", 1.0), "dp": dp, "shard": settings.get("zero", 3.0 if dp > 1 else 0.0),
        "recompute": float(RECOMPUTE[settings.get("recompute", "none")]), "method": settings.get("method", "full"),
        "optimizer": settings.get("optimizer", "adamw"), "precision": settings.get("precision", "bf16"),
    }  # fmt: skip
    return TrainingSetup.of(**chosen)


def _serving(settings: dict[str, Any]) -> ServingSetup:
    context = float(settings.get("context", 4096.0))
    chosen: dict[str, Any] = {
        "batch": settings.get("batch", 1.0),
        "input_len": max(context - 256, 1.0),
        "output_len": min(256.0, max(context - 1, 0.0)),
        "tp": settings.get("tp", 1.0),
        "pp": settings.get("pp", 1.0),
        "precision_weights": settings.get("precision", "bf16"),
        "precision_kv": settings.get("kv", "bf16"),
        "engine": settings.get("engine", "vllm"),
    }
    return ServingSetup.of(**chosen)
