"""Predictions as values: one type for each kind of work, with named figures. `views/predict.py` makes JSON of them.

Times are seconds unless the name says otherwise. What a workload file adds (its name, goals held against the prediction, the
whole job, what would be needed) is in `Prediction`, and None where there is no file or it does not ask for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from chipwise.perf.steadiness import Steadiness
from chipwise.predictor.interval import Interval as Interval


@dataclass(frozen=True, slots=True)
class Metric(Interval):
    """A figure that the fitted model predicts, with the seconds that it is made of."""

    unit: str
    provenance: str
    terms_s: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Bytes of one chip."""

    lines_bytes: Mapping[str, float]
    total_bytes: float
    allocated_bytes: float | None = None  # None: not told apart from what is reserved


@dataclass(frozen=True, slots=True)
class TriedChange:
    """A change to the configuration, and whether it fits with it."""

    change: str
    bytes_per_chip: float
    fits: bool


@dataclass(frozen=True, slots=True)
class FitResult:
    """Whether a configuration has room on a chip, and what would make it fit."""

    fits: bool
    capacity_bytes: float
    spare_bytes: float
    smallest_change: str | None = None
    bytes_after_change: float | None = None
    tried: tuple[TriedChange, ...] = ()


@dataclass(frozen=True, slots=True)
class ChipPower:
    """Watts of one chip, of its share of the host, and of both with cooling."""

    chip_w: float
    host_w: float
    with_cooling_w: float


@dataclass(frozen=True, slots=True)
class Goal:
    """A limit held against what is predicted; None: it never comes to an end."""

    goal: str
    limit_s: float
    predicted_s: float | None
    percentile: float | None = None

    @property
    def is_met(self) -> bool:
        return self.predicted_s is not None and self.predicted_s <= self.limit_s


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFeed:
    """Whether data comes as fast as it is taken. `bottleneck` and times are of most epochs; the first may differ."""

    tier: str
    place_of_later_epochs: str | None
    kind: str
    sample_bytes: float
    bottleneck: str
    bottleneck_of_first_epoch: str
    terms_s: Mapping[str, float]
    step_s: float
    first_epoch_step_s: float
    job_step_s: float
    waiting_share: float
    workers_per_machine: float
    workers_needed: float
    read_needed_bytes_per_s: float

    @property
    def slower(self) -> float:
        """Time with waiting over time without."""
        return self.job_step_s / self.terms_s["compute"]


@dataclass(frozen=True, slots=True)
class WholeJob:
    """Time of all of it, and of models the energy and how their data comes."""

    time: Interval
    energy_kwh: float | None = None  # None: not predicted for this kind of work
    feeding: DataFeed | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What every prediction of one piece of work has."""

    chip: str
    chips: float
    notes: tuple[str, ...]
    name: str | None = None
    steadiness: Steadiness | None = None
    goals: tuple[Goal, ...] | None = None
    needs: Mapping[str, float | None] | None = None  # chips, replicas or devices, by what they are needed for
    job: WholeJob | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRun:
    """The configuration of a training as it is run."""

    precision: str
    method: str
    seq: float
    micro_batch: float
    global_batch: float
    tp: float
    pp: float
    cp: float
    ep: float
    dp: float
    zero_stage: float
    recompute: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingPrediction(Prediction):
    """Training of a transformer over tokens."""

    model: str
    framework: str
    setup: TrainingRun
    step_time: Metric
    tokens_per_s: Interval
    mfu: float
    scaling_efficiency: float
    memory: MemoryUse
    fit: FitResult | None
    power: ChipPower
    energy_per_million_tokens_kwh: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingRun:
    """The configuration of a serving engine as it is run."""

    weights: str
    kv_cache: str
    tp: float
    pp: float
    attention_dp: float  # ways of data parallel attention, over chips that share the experts
    batch: float
    input_tokens: float
    output_tokens: float
    prefix_tokens: float
    cuda_graphs: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationPrediction(Prediction):
    """Answers of a language model. `metrics` are those of `perf.predict_serving`, by their names."""

    model: str
    replicas: float
    engine: str
    scenario: str
    setup: ServingRun
    metrics: Mapping[str, Metric]
    percentiles: Mapping[str, Mapping[float, float]] | None  # "ttft" -> share -> seconds
    most_sequences: float
    memory: MemoryUse
    fit: FitResult | None
    power: ChipPower
    energy_per_million_tokens_kwh: float | None
    most_requests_per_s: float | None = None  # where requests come at a rate
    highest_rate_per_s: float | None = None  # where there are goals
    idle_chips: float = 0.0  # of those asked about, beside `chips`: no copy has a use for them


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Requests that come at a rate, to a model that answers per sample."""

    rate_per_s: float
    latency_s: Mapping[float, float | None]  # share -> seconds
    busy_share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplePrediction(Prediction):
    """A model that is counted by samples, trained or asked."""

    doing: str  # serve or train
    model: str
    engine: str
    precision: str
    batch: float
    copies: float
    tp: float
    sample: Mapping[str, float]
    samples_per_s: Metric
    latency_ms: Metric
    flop_per_sample: float
    utilisation: float
    memory: MemoryUse
    fit: FitResult
    power: ChipPower
    energy_per_million_samples_kwh: float
    arrivals: Arrivals | None = None
    highest_rate_per_s: float | None = None  # where there are goals
    devices: int | None = None  # places, each with a device of its own
    from_file: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelPrediction(Prediction):
    """Work by formulas of its own: the time of `time_of`, and its terms."""

    time: Interval
    time_of: str
    terms_s: Mapping[str, float]
    bottleneck: str
    provenance: str = "formula"


@dataclass(frozen=True, slots=True, kw_only=True)
class HpcPrediction(KernelPrediction):
    precision: str
    steps: float
    runs: float
    working_set_bytes: float | None
    fits: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownPrediction(KernelPrediction):
    """Work of which only a run is known."""

    kind: str
    memory_bytes: float  # that a chip needs
    fits: bool
    requests_per_s: Interval | None = None  # of a service, on all chips


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderPrediction(KernelPrediction):
    frames: float
    engine: str
    frame_s: float
    scene_bytes: float | None
    measured_on: str | None
    fits: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivePrediction(KernelPrediction):
    """Video that is there already."""

    duration_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LivePrediction(KernelPrediction):
    """Video that comes as it is made."""

    streams: float
    streams_per_chip: float
    busy_share: float


@dataclass(frozen=True, slots=True)
class CircuitOperation:
    name: str
    published: str | None  # the design whose figures are taken


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamPrediction(KernelPrediction):
    messages_per_s: Interval
    fits: bool
    share_of_device: Mapping[str, float | None]
    operations: tuple[CircuitOperation, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HybridPrediction(KernelPrediction):
    device: str | None  # None: simulated on the chip
    technology: str
    iterations: float
    circuits: float
    shots: float
    price_usd: float | None
    price_lines_usd: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicePrediction(KernelPrediction):
    """A language model on a small device, one answer at a time."""

    model: str
    precision: str
    input_tokens: float
    output_tokens: float
    first_token_s: float
    tokens_per_s: float
    devices: int | None
    fits: bool
    misfit: str = ""  # why it does not fit


@dataclass(frozen=True, slots=True, kw_only=True)
class InteractivePrediction(Prediction):
    """People at notebooks, counted by memory."""

    people: float
    at_once: float
    people_per_chip: float
    profile: str | None
    sharing: str
    slower_by: float
    busy_share: float
    memory_bytes: float


@dataclass(frozen=True, slots=True)
class PipelinePrediction:
    """Stages in order, and the time of the longest way through them."""

    name: str
    stages: tuple[Prediction, ...]
    time: Interval
    goals: tuple[Goal, ...]
    price_usd: float | None
    steadiness: Steadiness
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FitPrediction:
    """What `chipwise fits` answers."""

    model: str
    chip: str
    chips: float
    task: str  # training or serving
    memory: MemoryUse
    fit: FitResult
    largest: Mapping[str, float]
    notes: tuple[str, ...]
    tokens: float  # of each sequence that `largest` counts
    ways: float = 1.0  # chips of one copy

    @property
    def title(self) -> str:
        copy = f", one copy over {self.ways:g} chips" if self.ways > 1 else ""
        return f"{self.model} on {self.chips:g}x {self.chip}: {self.task}{copy}"
