"""The verb `estimate`: how fast, how large, how hot, for one configuration or for arrays of them.

    found = api.estimate(session, "llama-3.1-8b", on="h100", chips=8, seq=4096, micro_batch=2)
    found.step.value, found.step.low, found.step.high          # seconds, one row per candidate
    found = api.estimate(session, "llama-3.1-70b", on="h200", task="serve", tp=4, concurrency=64)
    found.metrics["tpot_ms"].value

Any setting may be a number or a sequence of numbers (names: one or a sequence); all columns have one row or the same count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from chipwise.errors import BadInput, Problem
from chipwise.perf import predict_serving, predict_training
from chipwise.perf.arrays import Array, Coded, column
from chipwise.perf.fits import Fit, fits
from chipwise.perf.hardware import Hardware
from chipwise.perf.memory import Memory
from chipwise.perf.memory_serving import serving_memory
from chipwise.perf.memory_training import training_memory
from chipwise.perf.model import Estimate, Model
from chipwise.perf.part import Part
from chipwise.perf.power import Power, power
from chipwise.perf.predict_serving import Generation
from chipwise.perf.predict_training import Training, TrainingEstimate
from chipwise.perf.published_training import stacks
from chipwise.perf.rows import model_key
from chipwise.perf.setup import FULL, METHODS, NONE, SELECTIVE, ServingSetup, TrainingSetup, Values
from chipwise.perf.transformer import Layer, Transformers, layer_of
from chipwise.spelling import nearest
from chipwise.workload.model.shape import DecoderShape, EncoderDecoderShape, EncoderShape, VisionShape

if TYPE_CHECKING:
    from chipwise.api.wiring import Session

Numbers = float | Sequence[float] | Array
TASKS = ("train", "serve")
SERVING_METRICS = ("ttft_ms", "tpot_ms", "latency_ms", "output_tokens_per_s", "requests_per_s")
_FORMATS = ("bf16", "fp16", "fp8", "fp4", "tf32", "fp32")


@dataclass(frozen=True, slots=True)
class Trained:
    model: str  # as the registry calls it
    ask: Training
    step: Estimate
    found: TrainingEstimate
    fitted: Model  # what predicted it
    part: Part
    fit: Fit | None  # of one configuration
    notes: tuple[str, ...]

    @property
    def memory(self) -> Memory:
        return training_memory(self.ask.model, self.ask.setup)


@dataclass(frozen=True, slots=True)
class Served:
    model: str  # as the registry calls it
    ask: Generation
    metrics: dict[str, Estimate]
    power: Power
    part: Part
    fit: Fit | None
    notes: tuple[str, ...]

    @property
    def memory(self) -> Memory:
        return serving_memory(self.ask.model, self.ask.setup)

    @property
    def slots(self) -> Array:
        """Sequences that memory and the engine let run together."""
        return predict_serving.slots(self.ask)


def layer_named(session: Session, name: str, online: bool = True) -> tuple[str, Layer]:
    """The key under which a model's measurements are pooled, and its shape."""
    known: tuple[str, Layer] | None = session.resolved.get(("layer", name))
    if known is None:
        known = session.resolved["layer", name] = _layer_named(session, name, online)
    return known


def _layer_named(session: Session, name: str, online: bool) -> tuple[str, Layer]:
    model = session.find_model(name, online)
    if not isinstance(model.shape, DecoderShape | EncoderShape | EncoderDecoderShape | VisionShape):
        kind = type(model.shape).__name__.removesuffix("Shape").lower()
        remedy = "chipwise predict answers such models in samples per second; estimate takes transformers over tokens."
        raise BadInput(f"{model.name} is a {kind} model, not a transformer over tokens.", remedy=remedy)
    return model_key(model.name), layer_of(model.shape)


def shown_name(session: Session, name: str) -> str:
    """The registry's name of a model; the pooled key may be that of a release with the same shape."""
    known: str | None = session.resolved.get(("name", name))
    if known is None:
        known = session.resolved["name", name] = session.find_model(name).name
    return known


def own_model(session: Session) -> Model:
    """The packaged model with what the user measured on top, read once."""
    known: Model | None = session.resolved.get(("model", ""))
    if known is None:
        from chipwise.api.calibration import own_model as read

        known = session.resolved["model", ""] = read(session)
    return known


def chip_named(session: Session, text: str) -> str:
    """The catalog's name of the chip that `text` means."""
    known: str | None = session.resolved.get(("chip", text))
    if known is None:
        known = session.resolved["chip", text] = session.names.one_chip(text).chip.name
        missing = session.parts[known].unstated
        if missing:
            remedy = f"Give them in your own catalog files ({known} is in `chipwise chips {known}`), or ask for another chip."
            raise BadInput(f"Nobody we read states the {' and the '.join(missing)} of {known}.", remedy=remedy)
    return known


def _hardware(session: Session, on: str | Sequence[str], node: Numbers | None) -> Hardware:
    names = [on] if isinstance(on, str) else list(on)
    known = {text: chip_named(session, text) for text in dict.fromkeys(names)}
    return Hardware.of(Coded.of([known[text] for text in names]), session.parts.by_name, None if node is None else column(node))


def estimate(
    session: Session, model: str, *, on: str | Sequence[str], task: str = "train", **settings: Values
) -> Trained | Served:
    """`task` is train or serve; settings are those of `train` and `serve` below."""
    if task not in TASKS:
        raise BadInput(str(Problem("task", f"{task!r} is not one we predict", None, ", ".join(TASKS), nearest(task, TASKS))))
    return (train if task == "train" else serve)(session, model, on=on, **settings)  # type: ignore[arg-type]


def train(
    session: Session, model: str, *, on: str | Sequence[str], chips: Numbers = 1.0, framework: str | None = None,
    chips_per_node: Numbers | None = None, accumulate: Numbers | None = None, fit: bool | None = None, **settings: Values,
) -> Trained:  # fmt: skip
    """Settings are the columns of `perf.setup.TrainingSetup`; `dp` follows from `chips` and the other splits."""
    key, layer = layer_named(session, model)
    hardware = _hardware(session, on, chips_per_node)
    shape = Transformers.of([layer])
    if "precision" not in settings:
        settings["precision"] = hardware.part.map(lambda name: _usual_format(hardware.parts[name]))
    setup, notes = _training_setup(column(chips), accumulate, settings)
    setup.check(shape)
    _check_precision(hardware, setup.precision)
    asked = Training(shape, Coded.of(key), hardware, setup, _framework(framework))
    one = len(asked) == 1
    part = hardware.parts[hardware.part.names[0]]
    checked: Fit | None = None
    if fit if fit is not None else one:
        checked = fits(shape, part, setup, changes=False)
        if one and "recompute" not in settings and not checked.fits[0]:
            for code, told in ((SELECTIVE, "selective"), (FULL, "full")):
                other = setup.change(recompute=float(code))
                again = fits(shape, part, other, changes=False)
                if again.fits[0]:
                    setup, checked = other, again
                    asked = Training(shape, Coded.of(key), hardware, setup, asked.framework)
                    notes = (*notes, f"Activations are recomputed ({told}): without it the step does not fit.")
                    break
        if not checked.fits[0]:
            checked = fits(shape, part, setup, larger=larger_parts(session, part))
    fitted = own_model(session)
    found = predict_training.predict(asked, fitted, memory=False)
    return Trained(shown_name(session, model), asked, found.step, found, fitted, part, checked, notes)


def _training_setup(
    chips: Array, accumulate: Numbers | None, settings: dict[str, Values]
) -> tuple[TrainingSetup, tuple[str, ...]]:
    if not np.all(np.isfinite(chips) & (chips >= 1) & (chips == np.floor(chips))):
        raise BadInput(str(Problem("chips", "is not a count", None, "whole numbers from 1 on")))
    ways = [column(settings.get(name, 1.0)) for name in ("tp", "pp", "cp")]  # type: ignore[arg-type]
    if any(np.any(~np.isfinite(way) | (way < 1)) for way in ways):
        raise BadInput(str(Problem("tp, pp, cp", "a split below 1", None, "whole numbers from 1 on")))
    dp = chips / (ways[0] * ways[1] * ways[2])
    if not np.all(dp == np.floor(dp)) or np.any(dp < 1):
        product = float((ways[0] * ways[1] * ways[2]).flat[0])
        told = f"tp x pp x cp = {product:g} does not divide {float(chips.flat[0]):g} chips"
        raise BadInput(str(Problem("chips", told, None, "a multiple of tp x pp x cp")))
    expert_ways: Array = column(settings.get("ep", 1.0))  # type: ignore[arg-type]
    split = ways[0] * ways[1] * expert_ways > 1
    chosen: dict[str, Values] = {**settings, "dp": dp}
    chosen.setdefault("shard", np.where(dp > 1, np.where(split, 1.0, 3.0), 0.0))
    chosen.setdefault("recompute", float(NONE))
    if "states" not in settings:
        chosen["states"] = "master" if np.all(split) else "autocast"
    notes: tuple[str, ...] = ()
    if "global_batch" not in settings:
        micro = column(settings.get("micro_batch", 1.0))  # type: ignore[arg-type]
        many = column(accumulate) if accumulate is not None else np.where(ways[1] > 1, 4.0 * ways[1], 1.0)
        chosen["global_batch"] = micro * dp * many
        if accumulate is None and np.any(ways[1] > 1):
            notes = ("Global batch assumed: 4 micro-batches per pipeline stage and replica.",)
    return TrainingSetup.of(**chosen), notes


def _usual_format(part: Part) -> str:
    return next((name for name in ("bf16", "fp16") if part.has(name)), "fp32")


def _framework(name: str | None) -> Coded | None:
    if name is None:
        return None
    known = sorted({row["stack"] for row in stacks().values()})
    if name not in known:
        raise BadInput(str(Problem("framework", f"{name!r} was never measured", None, ", ".join(known), nearest(name, known))))
    return Coded.of(name)


def _check_precision(hardware: Hardware, precision: Coded) -> None:
    for key in hardware.part.names:
        part = hardware.parts[key]
        for name in precision.names:
            wanted = {"mxfp8": "fp8"}.get(name, name)
            if wanted in ("fp8", "fp4", "bf16", "fp16", "tf32") and not part.has(wanted):
                allowed = ", ".join(one for one in _FORMATS if part.has(one))
                raise BadInput(str(Problem("precision", f"{key} has no {name} arithmetic", None, allowed)))


def serve(
    session: Session, model: str, *, on: str | Sequence[str], concurrency: Numbers | None = None, rate: Numbers | None = None,
    batch: Numbers | None = None, scenario: str | None = None, engine: str | Sequence[str] | None = None,
    replicas: Numbers = 1.0, chips_per_node: Numbers | None = None, metrics: Sequence[str] = SERVING_METRICS,
    attention_dp: Numbers = 1.0, fit: bool | None = None, **settings: Values,
) -> Served:  # fmt: skip
    """Loaded by `concurrency` callers, by requests at a `rate`, or (neither given) as full as it gets."""
    key, layer = layer_named(session, model)
    hardware = _hardware(session, on, chips_per_node)
    shape = Transformers.of([layer])
    loads = [name for name, given in (("concurrency", concurrency), ("rate", rate), ("batch", batch)) if given is not None]
    if len(loads) > 1 and scenario is None:
        raise BadInput(f"{' and '.join(loads)} exclude each other.", remedy="Give one way of loading it.")
    way = scenario or (
        "closed" if concurrency is not None else "open" if rate is not None else "static" if batch is not None else "full"
    )
    at_once = concurrency if concurrency is not None else batch if batch is not None else 1.0
    usual = engine if engine is not None else predict_serving.usual_engines(hardware)
    if "precision_weights" not in settings:
        settings["precision_weights"] = hardware.part.map(lambda name: _usual_format(hardware.parts[name]))
    setup = ServingSetup.of(**{**settings, "batch": at_once, "engine": usual})
    setup.check(shape)
    if np.any(setup.output_len < 1) and way not in ("prefill", "decode"):
        raise BadInput(str(Problem("output", "nothing would be generated", None, "whole numbers from 1 on")))
    if rate is not None and not np.all(column(rate) > 0):
        raise BadInput(str(Problem("rate", "is not a rate", None, "requests per second above 0")))
    if not np.all(np.isfinite(column(replicas)) & (column(replicas) >= 1)):
        raise BadInput(str(Problem("replicas", "is not a count", None, "whole numbers from 1 on")))
    asked = Generation(
        shape, Coded.of(key), hardware, setup, Coded.of(way), column(0.0 if rate is None else rate), column(replicas),
        column(attention_dp),
    )  # fmt: skip
    if way == "full":  # a latency means nothing where the queue has no end
        metrics = [name for name in metrics if name.endswith("_per_s")] or metrics
    found = predict_serving.predict(asked, own_model(session), metrics)
    one = len(asked) == 1
    part = hardware.parts[hardware.part.names[0]]
    checked = None
    if fit if fit is not None else one:
        checked = fits(shape, part, setup, changes=False)
        if not checked.fits[0]:
            checked = fits(shape, part, setup, larger=larger_parts(session, part))
    return Served(shown_name(session, model), asked, found, _drawn(asked, found), part, checked, _notes(asked, found))


def _notes(ask: Generation, found: dict[str, Estimate]) -> tuple[str, ...]:
    """Of one configuration: where the load is more than it can take."""
    if len(ask) > 1:
        return ()
    served = found.get("requests_per_s")
    if ask.scenario.names[ask.scenario.index[0]] == "open" and served is not None and served.value[0] < 0.98 * ask.rate[0]:
        return (f"Only {served.value[0]:.3g} of {ask.rate[0]:.3g} requests/s can be served: waits grow without end.",)
    room = predict_serving.slots(ask)[0]
    if ask.scenario.names[ask.scenario.index[0]] == "closed" and ask.setup.batch[0] > room:
        return (f"Memory and engine let {room:,.0f} sequences run at once; the others wait for their turn.",)
    return ()


def _drawn(ask: Generation, found: dict[str, Estimate]) -> Power:
    any_one = next(iter(found.values()))
    total = np.maximum(any_one.seconds, 1e-12)
    reading = sum((any_one.terms[name] for name in ("weights", "cache")), np.zeros(1)) / total
    computing = sum((values for name, values in any_one.terms.items() if name.startswith("prefill")), np.zeros(1)) / total
    kind = ask.hardware.kind
    return power(kind, ask.hardware.get("power_w"), np.minimum(0.5 * computing, 1.0), np.minimum(0.8 * reading + 0.2, 1.0))


def larger_parts(session: Session, part: Part) -> list[Part]:
    """Sold parts of the same kind with more memory, the next larger ones first."""
    sold = [one for one in session.parts if one.name in session.catalog.chips and one.kind == part.kind]
    bigger = sorted((one for one in sold if one.memory_bytes > part.memory_bytes * 1.1), key=lambda one: one.memory_bytes)
    return bigger[:4]


__all__ = [
    "METHODS",
    "SERVING_METRICS",
    "TASKS",
    "Served",
    "Trained",
    "estimate",
    "larger_parts",
    "layer_named",
    "serve",
    "train",
]
