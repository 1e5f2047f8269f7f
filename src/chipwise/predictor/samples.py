"""Predictions per sample: pictures, encoded texts, generated images, recommendations; and which chips can do which work.

Memory is a rule of thumb: in training, 0.6 of the values that norms and activations touch are kept for the backward pass, and
16 bytes of state per parameter.

Embedding tables that no single chip holds are split evenly over chips, whole or by columns, while every chip has the dense
networks and samples of its own (Naumov et al. 2019, arXiv:1906.00091, section 4): per chip tables / k + dense + activations,
and two exchanges per pass (`perf/vision`). In training they are split over all chips of the job, for replicas would have to
tell each other the gradient of every row. Chips that share tables answer together: k of them are one copy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from chipwise.catalog.chip import Chip
from chipwise.errors import BadInput
from chipwise.perf import family_vision
from chipwise.perf.arrays import Array, Coded, column
from chipwise.perf.kernels import edge
from chipwise.perf.kernels.work import Terms
from chipwise.perf.model import Estimate, Model, packaged
from chipwise.perf.net import DEPTHWISE, GROUPED, Net
from chipwise.perf.networks import net_of
from chipwise.perf.part import SERVES_ONLY, Part
from chipwise.perf.power import Utilisation, power
from chipwise.perf.published_vision import FORMATS, VisionCase, case_of
from chipwise.perf.rows import Row
from chipwise.perf.seen import FORMULA, INTERPOLATED
from chipwise.perf.steadiness import steadiness
from chipwise.predictor.batching import Curve
from chipwise.predictor.formats import usual_engine, usual_precision
from chipwise.predictor.named import context_notes
from chipwise.predictor.results import chip_power, metric
from chipwise.predictor.sizes import check_sizes, refuse, sample_words, size_of
from chipwise.predictor.transcription import Programs, Transcription, programs
from chipwise.predictor.values import Arrivals, FitResult, MemoryUse, SamplePrediction
from chipwise.text import count, decimal_size
from chipwise.workload.model.shape import (
    CountedShape,
    EncoderDecoderShape,
    EncoderShape,
    RecommenderShape,
    Shape,
)

if TYPE_CHECKING:
    from chipwise.predictor.known import Known

LARGEST_BATCH = 256
ENOUGH = 0.9  # of the best rate, at which a larger batch is not worth its latency
KEPT_SHARE = 0.6  # of the touched values that training keeps
STATE_BYTES = 16.0  # per trained parameter: 16-bit weight and gradient, fp32 master copy and two moments
ROOM = 0.92  # of a chip's memory; the rest is context and fragments

# Kinds of chip that can do a kind of work; some are left out by name.
ABLE = {
    "train": ("gpu", "tpu", "neuron", "gaudi", "cpu"),
    "serve": ("gpu", "tpu", "neuron", "gaudi", "npu", "cpu", "edge"),
    "hpc": ("gpu", "cpu"),
    "render": ("gpu", "cpu"),
    "hybrid": ("gpu", "cpu"),
    "interactive": ("gpu", "tpu", "gaudi"),  # what PyTorch or JAX runs on line by line; Neuron compiles whole models first
}
_CANNOT = {
    "train": "trains no models",
    "serve": "runs no models",
    "hpc": "does no such numerical work",
    "render": "renders no pictures",
    "hybrid": "does no work between quantum circuits",
    "interactive": "is not for notebooks",
}
_FOR_EXAMPLE = ("H100-SXM", "L4", "MI300X", "TPU-v5e", "Trainium2", "Xeon-Sapphire-Rapids", "Jetson-Orin-Nano-Super")
_UNUSED = ("kv", "prefix", "cuda_graphs", "pp", "cp", "ep", "zero", "interleave", "recompute", "method", "optimizer", "target")
_COMPARED = {"pytorch": "in PyTorch line by line", "pytorch-compiled": "with torch.compile", "tensorrt": ""}  # engines
_PLAIN = {"pp": 1.0, "cp": 1.0, "ep": 1.0}  # what a split is when nobody asks for one


def able_chip(known: Known, chip_name: str, work: str) -> Chip:
    """The chip of this name, if it can do the work; otherwise BadInput that tells which can."""
    chip = known.names.one_chip(chip_name).chip
    kinds = ABLE[work]
    if chip.kind.value in kinds and not (work in ("train", "hpc") and chip.name.startswith(SERVES_ONLY)):
        return chip
    fitting = [name for name in _FOR_EXAMPLE if name in known.catalog.chips and known.catalog.chips[name].kind.value in kinds]
    raise BadInput(
        f"{chip.name} ({chip.kind.value}) {_CANNOT[work]}.",
        remedy=f"Chips of the kind {', '.join(kinds)} can, such as {', '.join(fitting[:4])}; `chipwise chips` lists them.",
    )


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


@dataclass(frozen=True, slots=True)
class Sampled:
    """What is asked, resolved."""

    model: str
    net: Net
    stored: float  # parameters, tables of embeddings with them
    part: Part
    task: str
    chips: float
    tensor: float
    node: float | None  # chips of one machine
    precision: str
    engine: str
    watts: float | None
    fitted: Model
    alike: bool  # networks like it were measured
    tables: float = 0.0  # parameters in embedding tables
    table_ways: float = 1.0  # chips that these are split over
    programs: Programs | None = None  # of models that write down speech: how much longer they take than the formula

    @property
    def together(self) -> float:
        """Chips that answer as one: they share tables, so each pass is one of all of them."""
        return self.table_ways if self.task == "serve" else 1.0

    def split(self, ways: float) -> Sampled:
        """With tables over so many chips."""
        return replace(self, table_ways=float(ways))

    def case(self, batch: float, metric: str) -> VisionCase:
        """As a row of measurements would tell it, for the family fills in the rest; the network is our own."""
        cells = {
            "task": "image-classification" if self.task == "serve" else "training",
            "model": "resnet-50",
            "chips": f"{self.chips:g}",
            "tp": f"{self.tensor:g}",
            "batch_or_concurrency": f"{batch:g}",
            "micro_batch": f"{batch:g}",
            "precision_weights": self.precision,
            "precision": self.precision,
            "metric_name": metric,
            "chips_per_node": "" if self.node is None else f"{self.node:g}",
        }
        case = case_of(Row(cells), self.part)
        return replace(
            case,
            model=self.model,
            net=self.net,
            precision=self.precision,
            engine=self.engine,
            version=self.engine,
            source="user",
            table_ways=self.table_ways,
        )

    def cases(self, batches: Sequence[float], metric: str) -> list[VisionCase]:
        """Passes of one service differ by their batch alone, except where cores share it out among them."""
        if self.task != "serve" or self.part.kind == "neuron":
            return [self.case(batch, metric) for batch in batches]
        first = self.case(batches[0], metric)
        return [first, *(replace(first, batch=float(f"{batch:g}")) for batch in batches[1:])]

    def passes(self, batches: Sequence[float], metric: str = "latency_ms") -> Estimate:
        if self.part.kind == "edge":
            estimate = _of_terms(self._frame(batches), self.chips * column(batches), metric)
            return self.fitted.by_formula(estimate, self.part, -1.0 if metric == "samples_per_s" else 1.0)
        cases = self.cases(batches, metric)
        question = family_vision.question_of(cases)
        if self.alike:
            kind = family_vision.answer_kind(cases[0])
            return self.fitted.estimate("vision", question, Coded.of(kind))
        estimate = self.fitted.estimate("vision", question, Coded.of("never measured"))  # the widest interval
        near = estimate.provenance.map(lambda name: FORMULA if name == INTERPOLATED else name)
        estimate = replace(estimate, provenance=near)
        return estimate if self.programs is None else self.programs.slow(estimate, metric == "samples_per_s")

    @property
    def remarks(self) -> list[str]:
        """How far the measurements are."""
        if self.part.kind == "edge":
            return [*self._streamed, "Edge devices: rules of thumb throughout; measure before buying many."]
        if self.programs is not None:
            return [self.programs.words]
        if not self.alike:
            return [f"Nothing like {self.model} was measured: the formula alone, with a wide interval.", *self._shared]
        name = f"{self.model} training" if self.task == "train" else self.model
        return (
            []
            if name in measured_names(self.fitted, "model")
            else [f"{self.model} itself was not measured for this, others like it were."]
        )

    @property
    def _streamed(self) -> list[str]:
        """Of a chip without memory of its own."""
        chip = edge.ON_CHIP.get(self.part.name)
        if chip is None:
            return []
        missing = self.net.parameters - chip.bytes
        rest = f"{decimal_size(missing)} of weights come from its host for every frame" if missing > 0 else "the weights fit"
        return [
            f"{self.part.name} has {decimal_size(chip.bytes)} on the chip and no memory of its own: {rest}.",
            f"{self.part.name} has int8 only: the network is quantised first, and what accuracy that costs is not known here.",
        ]

    @property
    def _shared(self) -> list[str]:
        return [shared_tables(self.table_ways)] if self.table_ways > 1 else []

    def _frame(self, batches: Sequence[float]) -> Terms:
        device = edge.Devices.of([self.part], self.precision)
        values = sum(one.times * one.rows * one.columns * one.groups for one in self.net.products)
        mode = edge.mode(device, self.watts)
        grouped = self.net.kind in (GROUPED, DEPTHWISE)
        pictures = np.array(batches, dtype=np.float64)
        return edge.frame(device, self.net.flop, self.net.parameters, values, pictures, mode, grouped)

    @property
    def copies(self) -> float:
        """That answer side by side: chips, groups of them, or the cores of each."""
        return self.chips if self.part.kind == "edge" else self.case(LARGEST_BATCH, "latency_ms").copies

    def memory(self, batch: float) -> dict[str, float]:
        """Bytes per chip, by line."""
        value, weight = FORMATS.get(self.precision, (1.0, 1.0))
        lines = {}
        stored = self.stored
        if self.table_ways > 1:
            value_bytes = STATE_BYTES if self.task == "train" else weight
            lines, stored = {"tables": self.tables * value_bytes / self.table_ways}, self.stored - self.tables
        if self.task == "train":
            activations = KEPT_SHARE * (self.net.touched + self.net.score_map) * max(value, 2.0)
            return lines | {"weights and states": stored * STATE_BYTES, "activations": activations * batch}
        largest = max(
            (one.rows * one.groups * (one.columns + one.depth / one.window) for one in self.net.products), default=0.0
        )
        return lines | {"weights": stored * weight / self.tensor, "activations": 2.0 * largest * value * batch}

    def utilisation(self, batch: float, samples_per_s: float) -> Utilisation:
        """Of each chip, where passes of `batch` samples a chip give so many samples a second on all of them."""
        rate = samples_per_s / self.chips
        used = self.net.flop * (3.0 if self.task == "train" else 1.0) * rate / self.part.rate(self.precision)
        moved = (self.net.parameters / batch + self.net.touched) * rate * 2.0 / self.part.bandwidth
        return Utilisation(used, moved)

    def fits(self, batch: float) -> bool:
        if self.part.name in edge.ON_CHIP:
            return batch <= 1  # compiled for one picture; what the chip does not hold comes from its host
        return sum(self.memory(batch).values()) <= ROOM * self.part.memory_bytes


def shared_tables(ways: float) -> str:
    return (
        f"Embedding tables are split evenly over {ways:g} chips, whole or by columns; their exchange is by formula: rows that "
        "samples name go out, pooled rows come back, one all-to-all each."
    )


def measured_names(fitted: Model, level: str) -> Mapping[str, object]:
    """What the family has rows of: kinds of network, models."""
    return fitted.factors["vision"].values.get(f"{level}/matrix/1", {})


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
        known.memo["programs", "speech"] = programs(pass_s)
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


def _of_terms(terms: Terms, batch: Array, metric: str) -> Estimate:
    """`batch` counts the samples of all devices."""
    rate = metric == "samples_per_s"
    total, low, high = (np.asarray(one) for one in (terms.total, terms.low, terms.high))

    def figure(seconds: Array) -> Array:
        return np.asarray(batch / seconds if rate else 1e3 * seconds)

    return Estimate(
        value=figure(total),
        low=figure(high if rate else low),
        high=figure(low if rate else high),
        seconds=total,
        terms=dict(zip(terms.names, terms.seconds, strict=True)),
        provenance=Coded.of([FORMULA] * len(total)),
        spread=terms.relative,
    )
