"""A model on chips, per sample: its passes by the fitted model, its memory, and what is remarked about them.

Memory is a rule of thumb: in training, 0.6 of the values that norms and activations touch are kept for the backward pass, and
16 bytes of state per parameter.

Embedding tables that no single chip holds are split evenly over chips, whole or by columns, while every chip has the dense
networks and samples of its own (Naumov et al. 2019, arXiv:1906.00091, section 4): per chip tables / k + dense + activations,
and two exchanges per pass (`perf/vision`). In training they are split over all chips of the job, for replicas would have to
tell each other the gradient of every row. Chips that share tables answer together: k of them are one copy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from chipwise.perf import family_vision
from chipwise.perf.arrays import Array, Coded, column
from chipwise.perf.kernels import edge
from chipwise.perf.kernels.work import Terms
from chipwise.perf.model import Estimate, Model
from chipwise.perf.net import DEPTHWISE, GROUPED, Net
from chipwise.perf.part import Part
from chipwise.perf.power import Utilisation
from chipwise.perf.published_vision import FORMATS, VisionCase, case_of
from chipwise.perf.rows import Row
from chipwise.perf.seen import FORMULA, INTERPOLATED
from chipwise.predictor.transcription import Programs
from chipwise.text import decimal_size

if TYPE_CHECKING:
    pass

LARGEST_BATCH = 256
KEPT_SHARE = 0.6  # of the touched values that training keeps
STATE_BYTES = 16.0  # per trained parameter: 16-bit weight and gradient, fp32 master copy and two moments
ROOM = 0.92  # of a chip's memory; the rest is context and fragments


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
