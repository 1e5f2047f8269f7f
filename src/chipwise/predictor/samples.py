"""Predictions per sample: pictures, encoded texts, generated images, recommendations."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from chipwise.errors import BadInput
from chipwise.perf.arrays import Coded, column
from chipwise.perf.kernels import edge
from chipwise.perf.model import packaged
from chipwise.perf.networks import net_of
from chipwise.perf.power import power
from chipwise.perf.steadiness import steadiness
from chipwise.predictor.ability import able_chip
from chipwise.predictor.batching import Curve
from chipwise.predictor.formats import usual_engine, usual_precision
from chipwise.predictor.named import context_notes
from chipwise.predictor.results import chip_power, metric
from chipwise.predictor.sampled import LARGEST_BATCH, ROOM, Sampled, measured_names
from chipwise.predictor.sizes import check_sizes, refuse, sample_words, size_of
from chipwise.predictor.transcription import Programs, Transcription, programs, published
from chipwise.predictor.values import Arrivals, FitResult, MemoryUse, SamplePrediction
from chipwise.text import count
from chipwise.workload.model.shape import (
    CountedShape,
    EncoderDecoderShape,
    EncoderShape,
    RecommenderShape,
    Shape,
)

if TYPE_CHECKING:
    from chipwise.predictor.known import Known

ENOUGH = 0.9  # of the best rate, at which a larger batch is not worth its latency

_UNUSED = (
    "network",
    "kv",
    "prefix",
    "cuda_graphs",
    "pp",
    "cp",
    "ep",
    "zero",
    "interleave",
    "recompute",
    "method",
    "optimizer",
    "target",
)
_COMPARED = {"pytorch": "in PyTorch line by line", "pytorch-compiled": "with torch.compile", "tensorrt": ""}  # engines
_PLAIN = {"pp": 1.0, "cp": 1.0, "ep": 1.0}  # what a split is when nobody asks for one


def check_sample_options(known: Known, model: str, options: Mapping[str, Any]) -> None:
    """Refuses flags that would change nothing: lengths of what has none, two batches of which one counts."""
    entry = known.find_model(model)
    lengths = {EncoderShape: ("input_tokens",), EncoderDecoderShape: ("input_tokens", "output_tokens")}
    used = lengths.get(type(entry.shape), ())
    if isinstance(entry.shape, CountedShape) and entry.shape.reads_text:
        used = ("input_tokens",)
    unused = [name for name in ("input_tokens", "output_tokens", "seq", "target") if name in options and name not in used]
    if unused:
        refuse(entry.name, unused)
    check_sizes(entry, options)
    if "compiled" in options and ("engine" in options or "framework" in options):
        raise BadInput("--compiled says which software it is, as --engine does.", remedy="Give one of them.")
    if "micro_batch" in options and "global_batch" in options:
        raise BadInput(
            f"--micro-batch and --global-batch cannot be combined for {entry.name}, whose copies each take one batch per step.",
            remedy="Give one of them.",
        )


def resolve(known: Known, model: str, chip: str, settings: Mapping[str, Any]) -> Sampled:
    name = able_chip(known, chip, settings.get("task", "serve")).name
    ask = _resolved(known, model, name, settings)
    return replace(ask, programs=programs_of(known, known.find_model(model).shape)) if ask.task == "serve" else ask


def programs_of(known: Known, shape: Shape) -> Programs | None:
    """Of models that write down speech; against the packaged factors, since what a user measured moves those of the formula."""

    def pass_s(run: Transcription) -> float:
        ask = _resolved(known, run.model, run.chip, {"chips": run.chips})
        return float(replace(ask, fitted=packaged()).passes([run.at_once / run.chips]).seconds[0])

    if not isinstance(shape, EncoderDecoderShape) or not shape.mels:
        return None
    if ("programs", "speech") not in known.memo:
        chips = {known.parts[run.chip] for run in published()}
        known.memo["programs", "speech"] = replace(
            programs(pass_s), measured_on=frozenset((part.vendor, part.kind) for part in chips)
        )
    programs_known: Programs = known.memo["programs", "speech"]
    return programs_known


def _resolved(known: Known, model: str, chip: str, settings: Mapping[str, Any]) -> Sampled:
    task = settings.get("task", "serve")
    entry = known.find_model(model)
    unused = [name for name in _UNUSED if name in settings and settings[name] != _PLAIN.get(name)]
    if unused:
        refuse(entry.name, unused)
    part = known.parts[chip]
    tensor = float(settings.get("tp", 1.0))
    chips = float(settings.get("chips", tensor * float(settings.get("replicas", 1.0))))
    if chips % tensor or (task == "train" and tensor > 1):
        problem = "copies of such models are trained side by side" if task == "train" else f"{chips:g} is no multiple of it"
        raise BadInput(f"--tp: {tensor:g} cannot be: {problem}.", remedy="Leave out --tp, or give --chips that it divides.")
    size = size_of(entry.shape, settings)
    net, fitted = net_of(entry.shape, size), known.model
    alike = net.kind in measured_names(fitted, "kind") and not isinstance(entry.shape, EncoderDecoderShape)
    ask = Sampled(
        model=entry.name,
        net=net,
        stored=float(entry.shape.parameters),
        part=part,
        task=task,
        chips=chips,
        tensor=tensor,
        node=settings.get("chips_per_node"),
        watts=settings.get("power_watts") if part.kind == "edge" else None,
        fitted=fitted,
        alike=alike,
        precision=usual_precision(settings.get("precision"), part, task),
        engine=usual_engine(_software(settings, task), part, task),
        tables=float(entry.shape.embedding_parameters) if isinstance(entry.shape, RecommenderShape) else 0.0,
    )
    return ask.split(_table_ways(ask, node=float(settings.get("chips_per_node") or part.domain)))


def _software(settings: Mapping[str, Any], task: str) -> str | None:
    if (compiled := settings.get("compiled")) is not None:
        return "pytorch-compiled" if compiled else "pytorch"
    software = settings.get("framework" if task == "train" else "engine")
    return None if software is None else str(software)


def _table_ways(ask: Sampled, node: float) -> float:
    """Over how many of its chips a job's tables are split: in training over all; to answer over the fewest of a machine that
    hold them, over as many as there are where none do. Who asks for --tp splits all of the model instead."""
    if not ask.tables or ask.tensor > 1 or ask.part.kind == "edge":
        return 1.0
    if ask.task == "train":
        return ask.chips
    ways = [float(many) for many in range(1, int(min(ask.chips, max(node, 1.0))) + 1) if ask.chips % many == 0]
    return next((many for many in ways if ask.split(many).fits(1.0)), ways[-1])


def predict_samples(known: Known, model: str, chip: str, settings: Mapping[str, Any]) -> SamplePrediction:
    """`settings` are the options by name; `task` is serve or train, `burstiness` and `power_watts` come from workload files."""
    ask = resolve(known, model, chip, settings)
    curve = sample_curve(ask)
    batch, notes = _batch(ask, curve, settings)
    chip_batch = batch / ask.together  # of one chip
    rate, latency = (ask.passes([chip_batch], metric) for metric in ("samples_per_s", "latency_ms"))
    per_s = float(rate.value[0])
    use = ask.utilisation(chip_batch, per_s)
    limit = min(ask.part.power_w, ask.watts or math.inf)
    drawn = power(Coded.of(ask.part.kind), column(limit), column(use.compute), column(use.memory))
    lines = ask.memory(chip_batch)
    on_chip = edge.ON_CHIP.get(ask.part.name)
    room, total = on_chip.bytes if on_chip else ROOM * ask.part.memory_bytes, sum(lines.values())
    come = ask.task == "serve" and "rate" in settings
    return SamplePrediction(
        doing=ask.task,
        model=ask.model,
        chip=ask.part.name,
        chips=ask.chips,
        engine=ask.engine,
        precision=ask.precision,
        batch=batch,
        copies=ask.copies / ask.together,
        tp=ask.tensor,
        sample=sample_words(known.find_model(model).shape, settings, ask.task == "train"),
        samples_per_s=metric(rate, "1/s"),
        latency_ms=metric(latency, "ms"),
        flop_per_sample=ask.net.flop,
        utilisation=use.compute,
        memory=MemoryUse(lines, total),
        fit=FitResult(on_chip is not None or total <= room, room, room - total),
        power=chip_power(drawn),
        energy_per_million_samples_kwh=float(drawn.total[0]) * ask.chips / per_s / 3.6,
        arrivals=_arriving(curve, float(settings["rate"]), float(settings.get("burstiness", 1.0))) if come else None,
        notes=(
            *notes,
            *known.find_model(model).notes,
            *ask.remarks,
            *_longer(known, model, settings),
            *_otherwise(ask, chip_batch),
        ),
        steadiness=steadiness("edge" if ask.part.kind == "edge" else "dedicated"),
    )


def _otherwise(ask: Sampled, batch: float) -> tuple[str, ...]:
    """What PyTorch would give line by line and compiled, where one of them or TensorRT was taken."""
    if ask.part.kind != "gpu" or ask.part.vendor != "NVIDIA" or ask.engine not in _COMPARED or not ask.alike:
        return ()
    others = {words: engine for engine, words in _COMPARED.items() if words and engine != ask.engine}
    rates = {
        words: float(replace(ask, engine=engine).passes([batch], "samples_per_s").value[0]) for words, engine in others.items()
    }
    return ("The same " + ", ".join(f"{words} about {count(rate)}" for words, rate in rates.items()) + " samples/s.",)


def _longer(known: Known, model: str, settings: Mapping[str, Any]) -> tuple[str, ...]:
    if not isinstance(known.find_model(model).shape, EncoderShape):
        return ()
    return context_notes(known, model, column(float(settings.get("input_tokens") or 0.0)))


def sample_curve(ask: Sampled) -> Curve:
    batches = [float(2**power) for power in range(int(math.log2(LARGEST_BATCH)) + 1) if power == 0 or ask.fits(2.0**power)]
    seconds = ask.passes(batches).seconds + np.zeros(len(batches))
    return Curve(column(batches) * ask.together, seconds, ask.copies / ask.together)


def _batch(ask: Sampled, curve: Curve, settings: Mapping[str, Any]) -> tuple[float, list[str]]:
    """Samples in one pass of one copy: as given, as the callers make it up, or the smallest that keeps the chip busy."""
    if ask.task == "train":
        total, micro = settings.get("global_batch"), settings.get("micro_batch")
        if total is not None:
            if total < curve.copies:
                raise BadInput(
                    f"--global-batch: {total:g} samples are too few for {curve.copies:g} copies.",
                    remedy="Give at least one each.",
                )
            return float(total) / curve.copies, []
        if micro is not None:
            return float(micro), []
    elif settings.get("batch") is not None:
        return float(settings["batch"]), []
    elif settings.get("concurrency") is not None:
        return max(float(settings["concurrency"]) / curve.copies, 1.0), []
    elif settings.get("rate") is not None:
        settled = curve.settled(float(settings["rate"]))
        notes = [] if settled is not None else ["Requests come faster than they are answered: the queue grows without end."]
        return float(curve.batches[-1]) if settled is None else float(max(round(settled), 1)), notes
    elif ask.part.kind == "edge":
        return 1.0, []  # a camera has one picture at a time
    per_s = curve.batches / curve.seconds
    batch = float(curve.batches[int(np.argmax(per_s >= ENOUGH * np.max(per_s)))])
    return batch, [f"Batch assumed: {batch:g}, the smallest power of two within 10% of the best rate."]


def _arriving(curve: Curve, rate: float, burstiness: float) -> Arrivals:
    latency = {share: curve.latency(rate, share, burstiness) for share in (0.5, 0.9, 0.99)}
    return Arrivals(rate, latency, min(rate / curve.max_rate, 1.0))
