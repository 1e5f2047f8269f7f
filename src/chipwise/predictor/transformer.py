"""How fast, how large, how hot, for one configuration or for arrays of them.

    found = estimate(known, "llama-3.1-8b", on="h100", chips=8, seq=4096, micro_batch=2)
    found.step.value, found.step.low, found.step.high          # seconds, one row per candidate
    found = estimate(known, "llama-3.1-70b", on="h200", task="serve", tp=4, concurrency=64)
    found.metrics["tpot_ms"].value

Any setting may be a number or a sequence of numbers (names: one or a sequence); all columns have one row or the same count.
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from chipwise.errors import BadInput, InvalidSettings, Problem
from chipwise.perf import predict_serving, predict_training
from chipwise.perf.arrays import Array, Coded, column, has_nonzero, pick
from chipwise.perf.fits import Fit, fits
from chipwise.perf.hardware import Hardware
from chipwise.perf.memory import Memory
from chipwise.perf.memory_serving import serving_memory
from chipwise.perf.memory_training import training_memory
from chipwise.perf.model import Estimate, Model
from chipwise.perf.part import Part
from chipwise.perf.power import Power
from chipwise.perf.predict_serving import Generation
from chipwise.perf.predict_training import EAGER_FRAMEWORKS, Training, TrainingEstimate
from chipwise.perf.published_training import stacks
from chipwise.perf.queueing import Traffic
from chipwise.perf.rows import model_key
from chipwise.perf.setup import FULL, METHODS, NONE, SELECTIVE, ServingSetup, TrainingSetup, Values, all_true, is_whole
from chipwise.perf.transformer import Layer, Transformers, layer_of
from chipwise.predictor.pairs import pairs_of
from chipwise.spelling import nearest
from chipwise.workload.model.shape import DecoderShape, EncoderDecoderShape, EncoderShape, VisionShape

if TYPE_CHECKING:
    from chipwise.predictor.known import Known

Numbers = float | Sequence[float] | Array
TASKS = ("train", "serve")
SERVING_METRICS = ("ttft_ms", "tpot_ms", "latency_ms", "output_tokens_per_s", "requests_per_s")
USUAL_SEQUENCE = 2048.0  # tokens of a training sequence unless given
_FORMATS = ("bf16", "fp16", "fp8", "fp4", "tf32", "fp32")
_UNIT: Array = column(1.0)


@dataclass(frozen=True, slots=True)
class Trained:
    model: str  # as the registry calls it
    ask: Training
    step: Estimate
    estimate: TrainingEstimate
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
    slots: Array  # sequences that memory and the engine let run together
    fitted: Model  # what predicted it
    part: Part
    fit: Fit | None
    notes: tuple[str, ...]

    @property
    def memory(self) -> Memory:
        return serving_memory(self.ask.model, self.ask.setup)

    @property
    def power(self) -> Power:
        return predict_serving.drawn(self.ask, self.metrics)


def layer_named(known: Known, name: str, online: bool = True) -> tuple[str, Layer]:
    """The key under which a model's measurements are pooled, and its shape."""
    layer: tuple[str, Layer] | None = known.memo.get(("layer", name))
    if layer is None:
        layer = known.memo["layer", name] = _layer_named(known, name, online)
    return layer


def _layer_named(known: Known, name: str, online: bool) -> tuple[str, Layer]:
    model = known.find_model(name, online)
    if not isinstance(model.shape, DecoderShape | EncoderShape | EncoderDecoderShape | VisionShape):
        kind = type(model.shape).__name__.removesuffix("Shape").lower()
        remedy = "chipwise predict answers such models in samples per second; estimate takes transformers over tokens."
        raise BadInput(f"{model.name} is a {kind} model, not a transformer over tokens.", remedy=remedy)
    return model_key(model.name), layer_of(model.shape)


def shown_name(known: Known, name: str) -> str:
    """The registry's name of a model; the pooled key may be that of a release with the same shape."""
    title: str | None = known.memo.get(("name", name))
    if title is None:
        title = known.memo["name", name] = known.find_model(name).name
    return title


def chip_named(known: Known, text: str) -> str:
    """The catalog's name of the chip that `text` means."""
    chip: str | None = known.memo.get(("chip", text))
    if chip is None:
        chip = known.memo["chip", text] = known.names.one_chip(text).chip.name
        missing = known.parts[chip].unstated
        if missing:
            remedy = f"Give them in your own catalog files ({chip} is in `chipwise chips {chip}`), or ask for another chip."
            raise BadInput(f"Not published for {chip}: {' and '.join(missing)}.", remedy=remedy)
    return chip


def _hardware(known: Known, chips: str | Sequence[str], node: Numbers | None) -> Hardware:
    names = [chips] if isinstance(chips, str) else list(chips) if isinstance(chips, Sequence) else []
    if not names or not all(isinstance(name, str) for name in names):
        raise InvalidSettings(Problem("on", f"{chips!r:.60} names no chip", None, "the name of a chip, or a list of them"))
    chip_names = {text: chip_named(known, text) for text in dict.fromkeys(names)}
    node_chips = None if node is None else _counts("chips_per_node", node)
    return Hardware.of(Coded.of([chip_names[text] for text in names]), known.parts.by_name, node_chips)


def estimate(known: Known, model: str, *, on: str | Sequence[str], task: str = "train", **settings: Values) -> Trained | Served:
    """`task` is train or serve; settings are those of `train` and `serve` below."""
    if task not in TASKS:
        raise InvalidSettings(
            Problem(
                field="task",
                message=f"{task!r} is not one we predict",
                line=None,
                allowed=", ".join(TASKS),
                nearest=nearest(str(task), TASKS),
            )
        )
    return (train if task == "train" else serve)(known, model, on=on, **settings)  # type: ignore[arg-type]


def train(
    known: Known,
    model: str,
    *,
    on: str | Sequence[str],
    chips: Numbers = 1.0,
    framework: str | None = None,
    chips_per_node: Numbers | None = None,
    accumulate: Numbers | None = None,
    fit: bool | None = None,
    target: Numbers | None = None,
    **settings: Values,
) -> Trained:
    """Settings are the columns of `perf.setup.TrainingSetup`; `dp` follows from `chips` and the other splits. `target`: tokens
    of an encoder-decoder's targets, beside `seq` of its inputs."""
    key, layer = layer_named(known, model)
    hardware = _hardware(known, on, chips_per_node)
    shape = Transformers.of([layer])
    seq = _counts("seq", settings["seq"]) if "seq" in settings else None
    pairs = pairs_of(known.find_model(model), seq, None if target is None else _counts("target", target))
    if pairs is not None:
        shape, settings["seq"] = pairs.model, pairs.tokens
    elif seq is None:
        settings["seq"] = min(USUAL_SEQUENCE, float(stated_context(known, model) or USUAL_SEQUENCE))
    if "precision" not in settings:
        settings["precision"] = hardware.part.map(lambda name: _usual_format(hardware.parts[name]))
    if framework in EAGER_FRAMEWORKS:
        settings.setdefault("compiled", 0.0)
    setup, notes = _training_setup(_counts("chips", chips), accumulate, settings)
    setup.check(shape)
    check_context(known, model, "seq", setup.seq if pairs is None else pairs.longest)
    _check_precision(hardware, setup.precision)
    _check_lengths(on=hardware, chips=setup)
    question = Training(model=shape, name=Coded.of(key), hardware=hardware, setup=setup, framework=_framework(framework))
    single = len(question) == 1
    part = hardware.parts[hardware.part.names[0]]
    checked: Fit | None = None
    if fit if fit is not None else single:
        checked = fits(shape, part, setup, changes=False)
        if single and "recompute" not in settings and not checked.fits[0]:
            for code, label in ((SELECTIVE, "selective"), (FULL, "full")):
                lighter = setup.change(recompute=float(code))
                again = fits(shape, part, lighter, changes=False)
                if again.fits[0]:
                    setup, checked = lighter, again
                    question = Training(
                        model=shape, name=Coded.of(key), hardware=hardware, setup=setup, framework=question.framework
                    )
                    notes = (*notes, f"Activations are recomputed ({label}): without it the step does not fit.")
                    break
        if not checked.fits[0]:
            checked = fits(shape, part, setup, larger=larger_parts(known, part))
    fitted = known.model
    predicted = predict_training.predict(question, fitted, memory=False)
    notes = notes if pairs is None else (*notes, *pairs.notes)
    return Trained(
        model=shown_name(known, model),
        ask=question,
        step=predicted.step,
        estimate=predicted,
        fitted=fitted,
        part=part,
        fit=checked,
        notes=notes,
    )


def _training_setup(
    chips: Array, accumulate: Numbers | None, settings: dict[str, Values]
) -> tuple[TrainingSetup, tuple[str, ...]]:
    ways = [_counts(name, settings.get(name, 1.0)) for name in ("tp", "pp", "cp")]
    dp = chips / (ways[0] * ways[1] * ways[2])
    if not all_true(is_whole(dp)):
        product, total = np.broadcast_arrays(ways[0] * ways[1] * ways[2], chips)
        row = int(np.argmax((dp != np.floor(dp)) | (dp < 1)))
        problem = f"tp x pp x cp = {product[row]:g} does not divide {total[row]:g} chips"
        raise InvalidSettings(Problem("chips", problem, None, "a multiple of tp x pp x cp"))
    expert_ways = _counts("ep", settings.get("ep", 1.0))
    split = ways[0] * ways[1] * expert_ways > 1
    chosen: dict[str, Values] = {**settings, "dp": dp}
    if "shard" not in settings:
        chosen["shard"] = np.where(dp > 1, np.where(split, 1.0, 3.0), 0.0)
    chosen.setdefault("recompute", float(NONE))
    chosen.setdefault("sequence_parallel", (ways[0] > 1).astype(np.float64))
    notes: tuple[str, ...] = ()
    if "global_batch" not in settings:
        micro = _counts("micro_batch", settings.get("micro_batch", 1.0))
        rounds = _counts("accumulate", accumulate) if accumulate is not None else pick(ways[1] > 1, 4.0 * ways[1], _UNIT)
        chosen["global_batch"] = micro * dp * rounds
        if accumulate is None and has_nonzero(ways[1] > 1):
            notes = ("Global batch assumed: 4 micro-batches per pipeline stage and replica.",)
    setup = TrainingSetup.of(**chosen)
    if "states" not in settings and all_true(setup.by_megatron):
        setup = setup.change(states="master")
    return setup, notes


def _counts(name: str, values: Values) -> Array:
    """Whole numbers from 1 on, as a column."""
    numbers = _numbers(name, values)
    good = is_whole(numbers)
    if not all_true(good):
        index = int(np.argmin(good))
        row = f" in row {index}" if len(numbers) > 1 else ""
        raise InvalidSettings(Problem(name, f"{numbers[index]:g}{row} is not possible", None, "whole numbers from 1 on"))
    return numbers


def _numbers(name: str, values: Values) -> Array:
    try:
        numbers = column(values)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidSettings(Problem(name, f"{values!r:.60} is not a number", None, "numbers")) from error
    if numbers.ndim > 1 or not len(numbers):
        raise InvalidSettings(Problem(name, "is empty or a table", None, "one number, or a list of them"))
    return numbers


def _check_lengths(**columns: Sized) -> None:
    lengths = {name: len(one) for name, one in columns.items()}
    if len({*lengths.values(), 1}) > 2:
        counts = ", ".join(f"{name} {length}" for name, length in lengths.items() if length > 1)
        raise BadInput(f"Columns differ in length: {counts}.", remedy="Give each one row, or as many as the others.")


def _check_graphs(hardware: Hardware, setup: ServingSetup) -> None:
    if all_true(setup.cuda_graphs == 1):
        return
    kinds = sorted({hardware.parts[name].kind for name in hardware.part.names} - {"gpu"})
    if kinds:
        raise InvalidSettings(Problem("cuda_graphs", f"a {kinds[0]} has none to do without", None, "GPUs"))


def _usual_format(part: Part) -> str:
    return next((name for name in ("bf16", "fp16") if part.has(name)), "fp32")


def _framework(name: str | None) -> Coded | None:
    if name is None:
        return None
    known = sorted({row["stack"] for row in stacks().values()})
    if name not in known:
        raise InvalidSettings(
            Problem(
                field="framework",
                message=f"{name!r} was never measured",
                line=None,
                allowed=", ".join(known),
                nearest=nearest(str(name), known),
            )
        )
    return Coded.of(name)


def _check_precision(hardware: Hardware, precision: Coded) -> None:
    for key in hardware.part.names:
        part = hardware.parts[key]
        for name in precision.names:
            wanted = {"mxfp8": "fp8"}.get(name, name)
            if wanted in ("fp8", "fp4", "bf16", "fp16", "tf32") and not part.has(wanted):
                allowed = ", ".join(one for one in _FORMATS if part.has(one))
                raise InvalidSettings(Problem("precision", f"{key} has no {name} arithmetic", None, allowed))


def serve(
    known: Known,
    model: str,
    *,
    on: str | Sequence[str],
    concurrency: Numbers | None = None,
    rate: Numbers | None = None,
    batch: Numbers | None = None,
    scenario: str | None = None,
    engine: str | Sequence[str] | None = None,
    replicas: Numbers = 1.0,
    chips_per_node: Numbers | None = None,
    metrics: Sequence[str] = SERVING_METRICS,
    attention_dp: Numbers = 1.0,
    traffic: Traffic | None = None,
    fit: bool | None = None,
    **settings: Values,
) -> Served:
    """Loaded by `concurrency` callers, by requests at a `rate` which vary as `traffic` says, or (neither) as full as can be."""
    key, layer = layer_named(known, model)
    hardware = _hardware(known, on, chips_per_node)
    shape = Transformers.of([layer])
    loads = [name for name, given in (("concurrency", concurrency), ("rate", rate), ("batch", batch)) if given is not None]
    if len(loads) > 1 and scenario is None:
        raise BadInput(f"{' and '.join(loads)} exclude each other.", remedy="Give one way of loading it.")
    way = scenario or (
        "closed" if concurrency is not None else "open" if rate is not None else "static" if batch is not None else "full"
    )
    at_once = _counts("concurrency", concurrency) if concurrency is not None else batch if batch is not None else 1.0
    arriving = column(0.0) if rate is None else _numbers("rate", rate)
    if rate is not None and not all_true(np.isfinite(arriving) & (arriving > 0)):
        raise InvalidSettings(
            Problem("rate", f"{arriving.min():g} is not possible", None, "finite numbers above 0, per second")
        )
    copies, shared = _counts("replicas", replicas), _counts("attention_dp", attention_dp)
    usual = engine if engine is not None else predict_serving.usual_engines(hardware)
    if "precision_weights" not in settings:
        settings["precision_weights"] = hardware.part.map(lambda name: _usual_format(hardware.parts[name]))
    setup = ServingSetup.of(**{**settings, "batch": at_once, "engine": usual})
    # Heads are split over the chips that share sequences only.
    setup.check(replace(shape, heads=shape.heads * shared) if has_nonzero(shared > 1) else shape)
    check_context(known, model, "input_len", setup.context)
    _check_lengths(on=hardware, settings=setup, rate=arriving, replicas=copies, attention_dp=shared)
    if has_nonzero(np.mod(setup.tp, shared)):
        raise InvalidSettings(Problem("attention_dp", "does not divide tp", None, "divisors of tp"))
    _check_graphs(hardware, setup)
    if has_nonzero(setup.output_len < 1) and way not in ("prefill", "decode"):
        raise InvalidSettings(Problem("output_len", "nothing would be generated", None, "whole numbers from 1 on"))
    question = Generation(
        model=shape,
        name=Coded.of(key),
        hardware=hardware,
        setup=setup,
        scenario=Coded.of(way),
        rate=arriving,
        replicas=copies,
        attention_dp=shared,
        traffic=traffic or Traffic(),
    )
    if way == "full":  # a latency means nothing where the queue has no end
        metrics = [name for name in metrics if name.endswith("_per_s")] or metrics
    room = predict_serving.slots(question)
    predicted = predict_serving.predict(question, known.model, metrics, room)
    single = len(question) == 1
    part = hardware.parts[hardware.part.names[0]]
    checked = None
    if fit if fit is not None else single:
        checked = fits(shape, part, setup, changes=False)
        if not checked.fits[0]:
            checked = fits(shape, part, setup, larger=larger_parts(known, part))
    notes = (*_notes(question, predicted, room), *_graph_notes(setup))
    return Served(
        model=shown_name(known, model),
        ask=question,
        metrics=predicted,
        slots=room,
        fitted=known.model,
        part=part,
        fit=checked,
        notes=notes,
    )


def overload_note(served: float, rate: float) -> str:
    return f"Only {served:.3g} of {rate:.3g} requests/s can be served: waits grow without end."


def _notes(ask: Generation, estimates: dict[str, Estimate], room: Array) -> tuple[str, ...]:
    """Of one configuration: where the load is more than it can take."""
    if len(ask) > 1:
        return ()
    served = estimates.get("requests_per_s")
    if ask.scenario.names[ask.scenario.index[0]] == "open" and served is not None and served.value[0] < 0.98 * ask.rate[0]:
        return (overload_note(float(served.value[0]), float(ask.rate[0])),)
    if ask.scenario.names[ask.scenario.index[0]] == "closed" and ask.setup.batch[0] > room[0]:
        return (f"Memory and engine let {room[0]:,.0f} sequences run at once; the others wait for their turn.",)
    return ()


def stated_context(known: Known, model: str) -> int | None:
    if ("context", model) not in known.memo:
        found = known.find_model(model)  # what an encoder reads is not in the context of its decoder
        known.memo["context", model] = None if isinstance(found.shape, EncoderDecoderShape) else found.context
    stated: int | None = known.memo["context", model]
    return stated


def check_context(known: Known, model: str, field: str, tokens: Array) -> None:
    """A model does not answer about sequences that are longer than its own context."""
    stated, longest = stated_context(known, model), float(tokens.max())
    if stated is not None and longest > stated:
        problem = f"{longest:,.0f} tokens are more than the {stated:,} that {shown_name(known, model)} is stated for"
        raise InvalidSettings(Problem(field, problem, None, f"at most {stated:,} tokens in all"))


def context_notes(known: Known, model: str, tokens: Array) -> tuple[str, ...]:
    """Where sequences are longer than the model is stated for."""
    stated, longest = stated_context(known, model), float(tokens.max())
    if stated is None or longest <= stated:
        return ()
    return (f"{longest:,.0f} tokens are more than the {stated:,} that {shown_name(known, model)} is stated for.",)


def _graph_notes(setup: ServingSetup) -> tuple[str, ...]:
    if all_true(setup.cuda_graphs == 1):
        return ()
    if all(name in predict_serving.EAGER for name in setup.engine.names):
        return (f"{setup.engine.names[0]} was measured without CUDA graphs: nothing changes.",)
    return ("Without CUDA graphs: launches by the formula alone, for no engine was measured without.",)


def larger_parts(known: Known, part: Part) -> list[Part]:
    """Sold parts of the same kind with more memory, the next larger ones first."""
    sold = [one for one in known.parts if one.name in known.catalog.chips and one.kind == part.kind]
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
