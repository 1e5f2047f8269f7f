"""How fast, how large, how hot, for one configuration or for arrays of them.

    found = estimate(known, "llama-3.1-8b", on="h100", chips=8, seq=4096, micro_batch=2)
    found.step.value, found.step.low, found.step.high          # seconds, one row per candidate
    found = estimate(known, "llama-3.1-70b", on="h200", task="serve", tp=4, concurrency=64)
    found.metrics["tpot_ms"].value

Any setting may be a number or a sequence of numbers (names: one or a sequence); all columns have one row or the same count.
"""

from __future__ import annotations

from collections.abc import Sequence
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
from chipwise.perf.predict_training import Training, TrainingEstimate
from chipwise.perf.published_training import EAGER_STACKS
from chipwise.perf.queueing import Traffic
from chipwise.perf.setup import FULL, NONE, SELECTIVE, ServingSetup, TrainingSetup, Values
from chipwise.perf.setup_rules import all_true, is_whole
from chipwise.perf.transformer import Transformers
from chipwise.predictor.named import check_context, chip_named, layer_named, shown_name, stated_context
from chipwise.predictor.pairs import pairs_of
from chipwise.predictor.settings import (
    check_graphs,
    check_lengths,
    check_precision,
    counts,
    format_notes,
    framework_of,
    numbers_of,
    usual_format,
)
from chipwise.predictor.splits import USUAL_MACHINE
from chipwise.spelling import nearest

if TYPE_CHECKING:
    from chipwise.predictor.known import Known

Numbers = float | Sequence[float] | Array
TASKS = ("train", "serve")
SERVING_METRICS = ("ttft_ms", "tpot_ms", "latency_ms", "output_tokens_per_s", "requests_per_s")
USUAL_SEQUENCE = 2048.0  # tokens of a training sequence unless given
INTERLEAVED = (1, 2, 4, 6)  # pieces of the model per pipeline stage that are tried; with more, sends between stages show
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


def _hardware(known: Known, chips: str | Sequence[str], node: Numbers | None, network: float | None = None) -> Hardware:
    """`network` is of a machine, in bytes per second; its chips share it."""
    names = [chips] if isinstance(chips, str) else list(chips) if isinstance(chips, Sequence) else []
    if not names or not all(isinstance(name, str) for name in names):
        raise InvalidSettings(Problem("on", f"{chips!r:.60} names no chip", None, "the name of a chip, or a list of them"))
    chip_names = {text: chip_named(known, text) for text in dict.fromkeys(names)}
    node_chips = None if node is None else counts("chips_per_node", node)
    part = Coded.of([chip_names[text] for text in names])
    share = None if network is None else network / (column(USUAL_MACHINE) if node_chips is None else node_chips)
    return Hardware.of(part, known.parts.by_name, node_chips, share)


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
    network: float | None = None,
    accumulate: Numbers | None = None,
    fit: bool | None = None,
    target: Numbers | None = None,
    **settings: Values,
) -> Trained:
    """Settings are the columns of `perf.setup.TrainingSetup`; `dp` follows from `chips` and the other splits. `target`: tokens
    of an encoder-decoder's targets, beside `seq` of its inputs."""
    key, layer = layer_named(known, model)
    hardware = _hardware(known, on, chips_per_node, network)
    shape = Transformers.of([layer])
    seq = counts("seq", settings["seq"]) if "seq" in settings else None
    pairs = pairs_of(known.find_model(model), seq, None if target is None else counts("target", target))
    if pairs is not None:
        shape, settings["seq"] = pairs.model, pairs.tokens
    elif seq is None:
        settings["seq"] = min(USUAL_SEQUENCE, float(stated_context(known, model) or USUAL_SEQUENCE))
    if "precision" not in settings:
        settings["precision"] = hardware.part.map(lambda name: usual_format(hardware.parts[name]))
    if framework in EAGER_STACKS:
        settings.setdefault("compiled", 0.0)
    if has_nonzero(hardware.part.look_up(lambda name: float(hardware.parts[name].kind == "neuron"))):
        settings = {"shard": 1.0, "recompute": float(SELECTIVE), **settings}  # as its software runs
    setup, notes = _training_setup(counts("chips", chips), accumulate, settings)
    setup.check(shape)
    check_context(known, model, "seq", setup.seq if pairs is None else pairs.longest)
    check_precision(hardware, setup.precision)
    check_lengths(on=hardware, chips=setup)
    question = Training(model=shape, name=Coded.of(key), hardware=hardware, setup=setup, framework=framework_of(framework))
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
        if single and "interleave" not in settings and checked.fits[0]:
            question, woven = _interleaved(question, part, known.model)
            if woven:
                checked, notes = fits(shape, part, question.setup, changes=False), (*notes, woven)
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


def _interleaved(question: Training, part: Part, model: Model) -> tuple[Training, str]:
    """With the pieces of the model per pipeline stage that make a step of one configuration shortest among those that fit, and
    what is to be said of it. Interleaved schedules take micro-batches in rounds of as many as there are stages."""
    setup = question.setup
    stages, rounds = float(setup.pp[0]), float(setup.micro_batches[0] / setup.pp[0])
    pieces = [one for one in INTERLEAVED if stages * one <= question.model.layers[0]]
    if stages < 2 or rounds != np.floor(rounds) or len(pieces) < 2:
        return question, ""
    ways = [replace(question, setup=setup.change(interleave=float(one))) for one in pieces]
    fitting = [fits(question.model, part, one.setup, changes=False).fits[0] for one in ways]
    seconds = [float(predict_training.predict(one, model, memory=False).step.seconds[0]) for one in ways]
    best = min((place for place, does in enumerate(fitting) if does), key=lambda place: seconds[place], default=0)
    if not best:
        return question, ""
    longer = seconds[0] / seconds[best]
    said = f"--interleave {pieces[best]} taken: the shortest step that fits; with 1 it takes {longer:.2f} times as long."
    return ways[best], said


def _training_setup(
    chips: Array, accumulate: Numbers | None, settings: dict[str, Values]
) -> tuple[TrainingSetup, tuple[str, ...]]:
    ways = [counts(name, settings.get(name, 1.0)) for name in ("tp", "pp", "cp")]
    dp = chips / (ways[0] * ways[1] * ways[2])
    if not all_true(is_whole(dp)):
        product, total = np.broadcast_arrays(ways[0] * ways[1] * ways[2], chips)
        row = int(np.argmax((dp != np.floor(dp)) | (dp < 1)))
        problem = f"tp x pp x cp = {product[row]:g} does not divide {total[row]:g} chips"
        raise InvalidSettings(Problem("chips", problem, None, "a multiple of tp x pp x cp"))
    expert_ways = counts("ep", settings.get("ep", 1.0))
    split = ways[0] * ways[1] * expert_ways > 1
    chosen: dict[str, Values] = {**settings, "dp": dp}
    if "shard" not in settings:
        chosen["shard"] = np.where(dp > 1, np.where(split, 1.0, 3.0), 0.0)
    chosen.setdefault("recompute", float(NONE))
    chosen.setdefault("sequence_parallel", (ways[0] > 1).astype(np.float64))
    notes: tuple[str, ...] = ()
    if "global_batch" not in settings:
        micro = counts("micro_batch", settings.get("micro_batch", 1.0))
        rounds = counts("accumulate", accumulate) if accumulate is not None else pick(ways[1] > 1, 4.0 * ways[1], _UNIT)
        chosen["global_batch"] = micro * dp * rounds
        if accumulate is None and has_nonzero(ways[1] > 1):
            notes = ("Global batch assumed: 4 micro-batches per pipeline stage and replica.",)
    setup = TrainingSetup.of(**chosen)
    if "states" not in settings and all_true(setup.by_megatron):
        setup = setup.change(states="master")
    return setup, notes


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
    network: float | None = None,
    metrics: Sequence[str] = SERVING_METRICS,
    traffic: Traffic | None = None,
    fit: bool | None = None,
    **settings: Values,
) -> Served:
    """Loaded by `concurrency` callers, by requests at a `rate` which vary as `traffic` says, or (neither) as full as can be;
    both are of all `replicas` together."""
    key, layer = layer_named(known, model)
    hardware = _hardware(known, on, chips_per_node, network)
    shape = Transformers.of([layer])
    loads = [name for name, given in (("concurrency", concurrency), ("rate", rate), ("batch", batch)) if given is not None]
    if len(loads) > 1 and scenario is None:
        raise BadInput(f"{' and '.join(loads)} cannot be combined.", remedy="Give one way of loading it.")
    way = scenario or (
        "closed" if concurrency is not None else "open" if rate is not None else "static" if batch is not None else "full"
    )
    copies = counts("replicas", replicas)
    at_once: Values = batch if batch is not None else 1.0
    if concurrency is not None:  # callers and requests are of all copies; a batch is of each
        at_once = np.ceil(counts("concurrency", concurrency) / copies)
    arriving = column(0.0) if rate is None else numbers_of("rate", rate)
    if rate is not None and not all_true(np.isfinite(arriving) & (arriving > 0)):
        raise InvalidSettings(
            Problem("rate", f"{arriving.min():g} is not possible", None, "finite numbers above 0, per second")
        )
    usual = engine if engine is not None else predict_serving.usual_engines(hardware)
    if "precision_weights" not in settings:
        published = known.find_model(model).published_precision
        settings["precision_weights"] = hardware.part.map(lambda name: usual_format(hardware.parts[name], published))
    else:
        published = ""
    setup = ServingSetup.of(**{**settings, "batch": at_once, "engine": usual})
    setup.check(shape)
    check_context(known, model, "input_len", setup.context)
    check_lengths(on=hardware, settings=setup, rate=arriving, replicas=copies)
    check_graphs(hardware, setup)
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
    notes = (
        *_notes(question, predicted, room),
        *_graph_notes(setup),
        *(format_notes(formats[0], published) if len(formats := setup.precision_weights.names) == 1 else ()),
    )
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
