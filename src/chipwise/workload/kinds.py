"""The kinds of work, one class each; `kind` tells them apart. What they share is in `common.py`.

Amounts are those of the whole job unless a field says "per". Names of models and chips are text: the registry and the
catalog resolve them later (see `references.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal

from pydantic import Field, model_validator

from chipwise.workload.choices import AnyRecompute, Method, Optimizer, Pattern, Sharing
from chipwise.workload.common import Common, Model, Sized
from chipwise.workload.demand import Arrival, Length
from chipwise.workload.goals import AnyPrecision, Precision, Text, Where
from chipwise.workload.limits import Range
from chipwise.workload.measured import Per
from chipwise.workload.media import Resolution, Video
from chipwise.workload.part import EnumChoice, Flaw, Section, exactly_one
from chipwise.workload.quantity import (
    Bandwidth,
    Bytes,
    Count,
    Flop,
    Headroom,
    Rate,
    Seconds,
    Share,
    Tokens,
    WholeNumber,
    WholeOrZero,
)
from chipwise.workload.schedule import Always, BusinessHours


class Learning(Sized):
    """What training and fine-tuning have in common."""

    measured_per = (Per.JOB, Per.EPOCH, Per.STEP, Per.SAMPLE, Per.TOKEN)
    model: Model
    tokens: Tokens | None = None
    """Tokens in the data set, each seen once per epoch."""
    samples: Count | None = None
    """Samples in the data set (images, sequences), each seen once per epoch."""
    epochs: Annotated[float, Field(gt=0, le=100_000)] = 1.0
    sequence_length: Tokens | None = None
    """Tokens of a sequence; of an encoder-decoder those of the input."""
    target_length: Tokens | None = None
    """Encoder-decoders only: tokens of the target that goes with an input; a sample is such a pair."""
    batch_tokens: Tokens | None = None
    """Tokens per optimiser step over all chips; left open, the plan chooses."""
    batch_samples: Count | None = None
    """Samples per optimiser step over all chips, instead of batch_tokens."""
    precision: AnyPrecision = Precision.BF16
    optimizer: Annotated[
        Optimizer, EnumChoice(Optimizer, "an optimizer", (("adam", "adamw"), ("paged-adamw-8bit", "adamw-8bit")))
    ] = Optimizer.ADAMW
    recompute: AnyRecompute | None = None
    """Activations computed again in the backward pass to save memory; left open, the plan chooses."""
    checkpoint_every: Seconds | None = None
    """Time between checkpoints; left open, it follows from how often machines are lost."""

    @property
    def tells_data(self) -> bool:
        return True

    @property
    def needs_small_formats(self) -> bool:
        """Kernels for weights of four bits or for an optimizer of eight."""
        return self.optimizer is Optimizer.ADAMW_8BIT

    def flaws(self) -> Iterable[Flaw]:
        yield from super().flaws()
        if not self.is_unknown or self.tokens is not None:
            yield from exactly_one(self, "tokens", "samples")
        if self.batch_tokens is not None and self.batch_samples is not None:
            yield Flaw(
                "batch_samples", "batch_tokens and batch_samples cannot be combined: give one of them", also=("batch_tokens",)
            )
        if self.batch_tokens is not None and self.tokens is not None and self.batch_tokens > self.tokens * self.epochs:
            yield Flaw("batch_tokens", "one step is larger than the whole job", "at most tokens x epochs", ("tokens", "epochs"))


class Train(Learning):
    """Training from the start, or continued pretraining."""

    kind: Literal["train"] = "train"


class Finetune(Learning):
    """Adapting a trained model: all of it, low-rank adapters, or adapters over 4-bit weights."""

    kind: Literal["finetune"] = "finetune"
    method: Annotated[Method, EnumChoice(Method, "a method")]
    rank: WholeNumber | None = None
    """Rank of the adapters; 16 unless given."""
    targets: Literal["attention", "all-linear"] = "all-linear"
    """Which matrices get adapters."""

    @property
    def needs_small_formats(self) -> bool:
        return self.method is Method.QLORA or self.optimizer is Optimizer.ADAMW_8BIT

    @model_validator(mode="before")
    @classmethod
    def _usual_rank(cls, value: object) -> object:
        if (
            isinstance(value, Mapping)
            and str(value.get("method", "")).lower() in ("lora", "qlora")
            and value.get("rank") is None
        ):
            return {**value, "rank": 16}
        return value

    def flaws(self) -> Iterable[Flaw]:
        yield from super().flaws()
        if self.method is Method.FULL and self.rank is not None:
            yield Flaw("rank", "full fine-tuning has no adapters", "rank only with method lora or qlora", ("method",))


class Serve(Sized):
    """Online inference: requests arrive by themselves and are answered in time."""

    kind: Literal["serve"] = "serve"
    measured_per = (Per.REQUEST, Per.SAMPLE, Per.TOKEN)
    model: Model
    arrival: Arrival
    input_tokens: Length | None = None
    """Tokens of a prompt; not needed for a trace that has them, nor for models without tokens."""
    output_tokens: Length | None = None
    shared_prefix_tokens: Tokens | None = None
    """Tokens at the start of every prompt that are the same, such as a system prompt."""
    context: Tokens | None = None
    """Longest prompt and answer together that must be accepted."""
    precision: AnyPrecision | None = None
    """Of the weights; left open, the plan chooses among limits.precision."""
    kv_precision: AnyPrecision | None = None
    replicas: Range = Range()
    """Fewest and most copies of the model."""
    idle_after: Seconds | None = None
    """After so long without a request no copy runs, and the next one waits for a start. It changes no plan; files do it."""
    headroom: Headroom = 0.25
    """What machines must be able to take above the highest load, as a share of it."""
    devices: WholeNumber | None = None
    """At the edge: number of devices, each with this arrival."""

    def flaws(self) -> Iterable[Flaw]:
        yield from super().flaws()
        if self.output_tokens is not None and self.input_tokens is None and self.clip is None:
            yield Flaw("input_tokens", "is needed where output_tokens is given", also=("output_tokens",))
        yield from _prompt_fits(self.input_tokens, self.shared_prefix_tokens, self.context)
        most = self.limits.chip_count.max
        if self.devices is not None and most is not None and self.devices > most and set(self.limits.where) <= {Where.EDGE}:
            yield Flaw(
                "devices",
                f"{self.devices:,} devices are more than limits.chip_count allows, which is at most {most:,}",
                "as many chips as devices, or no limits.chip_count.max",
                ("limits.chip_count",),
            )
        if self.arrival.shape is not None and not isinstance(self.schedule, Always | BusinessHours):
            yield Flaw(
                "schedule",
                f"{self.schedule.kind} and arrival.shape both say when the load comes",
                "always or business-hours with a shape; or arrival: {rate: 10 req/s} with this schedule",
                ("arrival",),
            )
        if self.goals.tpot is not None and self.output_tokens is None and self.arrival.trace is None:
            yield Flaw(
                "goals.tpot", "is a goal per output token, and output_tokens is not given", also=("output_tokens", "arrival")
            )


def _prompt_fits(length: Length | None, prefix: float | None, context: float | None) -> Iterable[Flaw]:
    if length is None:
        return
    if prefix is not None and prefix > length.mean:
        yield Flaw("shared_prefix_tokens", "is longer than the mean prompt", "at most input_tokens", ("input_tokens",))
    if context is not None and context < (length.max or length.mean):
        yield Flaw("context", "is shorter than the prompts", "at least input_tokens", ("input_tokens",))


class Batch(Sized):
    """Offline inference over a known number of items. Without output_tokens nothing is generated, as in embedding."""

    kind: Literal["batch"] = "batch"
    measured_per = (Per.JOB, Per.SAMPLE, Per.REQUEST, Per.TOKEN)
    model: Model
    items: Count
    input_tokens: Length | None = None
    """Tokens per item; not needed for models without tokens."""
    output_tokens: Length | None = None
    shared_prefix_tokens: Tokens | None = None
    precision: AnyPrecision | None = None

    @property
    def tells_data(self) -> bool:
        return True

    def flaws(self) -> Iterable[Flaw]:
        yield from super().flaws()
        if self.output_tokens is not None and self.input_tokens is None and self.clip is None:
            yield Flaw("input_tokens", "is needed where output_tokens is given", also=("output_tokens",))
        yield from _prompt_fits(self.input_tokens, self.shared_prefix_tokens, None)


class Communication(Section):
    """What the parts of a distributed computation send each other in one step."""

    pattern: Annotated[
        Pattern,
        EnumChoice(Pattern, "a communication pattern", (("stencil", "halo"), ("neighbour", "halo"), ("fft", "alltoall"))),
    ]
    bytes_per_step: Bytes | None = None
    """Sent by each chip in one step."""

    def flaws(self) -> Iterable[Flaw]:
        if self.pattern is not Pattern.NONE and self.bytes_per_step is None:
            yield Flaw("bytes_per_step", f"is needed with the pattern {self.pattern}", also=("pattern",))


class Hpc(Common):
    """Numerical work: so many operations on so many bytes, step after step."""

    kind: Literal["hpc"] = "hpc"
    measured_per = (Per.JOB, Per.RUN, Per.STEP)
    steps: Count = 1.0
    flop_per_step: Flop | None = None
    bytes_per_step: Bytes | None = None
    """Moved between memory and chip in one step."""
    precision: AnyPrecision = Precision.FP64
    working_set: Bytes | None = None
    """Memory the problem needs at one time."""
    communication: Communication = Communication(pattern=Pattern.NONE)
    parallel: Share = 1.0
    """Share of the work that can be split (Amdahl)."""
    runs: WholeNumber = 1
    """Independent repetitions: ensemble members, points of a sweep."""

    def flaws(self) -> Iterable[Flaw]:
        yield from super().flaws()
        if self.is_unknown and not self.measured:
            yield Flaw("", "one of flop_per_step and bytes_per_step is needed", also=("flop_per_step", "bytes_per_step"))

    @property
    def is_unknown(self) -> bool:
        return self.flop_per_step is None and self.bytes_per_step is None


class TimedIteration(Section):
    """A time taken on a known chip, from which others are estimated."""

    on: Text
    takes: Seconds


class Render(Common):
    """Pictures computed from a scene, frame by frame."""

    kind: Literal["render"] = "render"
    measured_per = (Per.FRAME, Per.JOB)
    frames: Count
    resolution: Resolution
    samples_per_pixel: Count
    engine: Text | None = None
    """Such as cycles, redshift, arnold."""
    scene: Bytes | None = None
    """Memory for geometry and textures; it must fit each chip unless the engine pages."""

    @property
    def tells_data(self) -> bool:
        return self.scene is not None


class Transcode(Common):
    """Video decoded, scaled and encoded again: live streams, or an archive of known length."""

    kind: Literal["transcode"] = "transcode"
    streams: WholeNumber | None = None
    """Live streams at one time."""
    duration: Seconds | None = None
    """Total playing time of an archive."""
    source: Video
    outputs: Annotated[tuple[Video, ...], Field(min_length=1)]

    @property
    def tells_data(self) -> bool:
        return True

    def flaws(self) -> Iterable[Flaw]:
        yield from super().flaws()
        yield from exactly_one(self, "streams", "duration")


class Circuit(Section):
    """What a known FPGA design takes of its device."""

    luts: Count | None = None
    dsps: Count | None = None
    memory: Bytes | None = None
    """Block and ultra RAM together."""


class Stream(Common):
    """A fixed chain of operations that data flows through without a stop, as on an FPGA."""

    kind: Literal["stream"] = "stream"
    operations: Annotated[tuple[Text, ...], Field(min_length=1)]
    """In order, such as parse-fix, filter, aes-256-gcm."""
    bandwidth: Bandwidth | None = None
    """Bytes flowing in per second."""
    messages: Rate | None = None
    """Messages flowing in per second, instead of bandwidth; needs message_size."""
    message_size: Bytes | None = None
    state: Bytes | None = None
    """Tables and buffers that must stay on the chip."""
    circuit: Circuit | None = None

    @property
    def tells_data(self) -> bool:
        return True

    @property
    def message_bytes(self) -> float:
        """Where no size is given, a stream is counted in messages of 1 KB."""
        return self.message_size or 1000.0

    @property
    def messages_per_s(self) -> float:
        return self.messages or (self.bandwidth or 0.0) / self.message_bytes

    def flaws(self) -> Iterable[Flaw]:
        yield from super().flaws()
        yield from exactly_one(self, "bandwidth", "messages")
        if self.messages is not None and self.message_size is None:
            yield Flaw("message_size", "is needed where messages is given", also=("messages",))


class Quantum(Section):
    """The circuits of one iteration."""

    qubits: WholeNumber
    shots: WholeNumber
    """Repetitions of each circuit."""
    circuits: WholeNumber = 1
    """Circuits per iteration, such as one per term of a gradient."""
    depth: WholeNumber | None = None
    two_qubit_gates: WholeOrZero | None = None
    device: Text | None = None
    """A named quantum processor or simulator; left open, the plan chooses."""


class Classical(Section):
    """The work between the circuits of one iteration."""

    flop: Flop | None = None
    memory: Bytes | None = None
    measured: TimedIteration | None = None
    """One iteration on a known chip."""
    precision: AnyPrecision = Precision.FP64


class Hybrid(Common):
    """Quantum circuits and classical work in turns, as in QAOA and VQE."""

    kind: Literal["hybrid"] = "hybrid"
    algorithm: Text | None = None
    iterations: WholeNumber
    quantum: Quantum
    classical: Classical = Classical()


class Interactive(Common):
    """People at notebooks and development machines: used in bursts, idle in between."""

    kind: Literal["interactive"] = "interactive"
    people: WholeNumber
    at_once: WholeNumber | None = None
    """Most people working at one time; all of them unless given."""
    memory: Bytes
    """Accelerator memory for each."""
    busy: Share = 0.25
    """Share of a session in which the accelerator computes."""
    idle_after: Seconds | None = None
    """Idle time after which a session is stopped."""
    sharing: Annotated[Sharing, EnumChoice(Sharing, "a way of sharing", (("mig", "slices"), ("time-slicing", "time")))] = (
        Sharing.NONE
    )
    """Whether people may share one chip: not at all, in slices with separate memory, or in turns."""
    model: Model | None = None

    def flaws(self) -> Iterable[Flaw]:
        yield from super().flaws()
        if self.at_once is not None and self.at_once > self.people:
            yield Flaw("at_once", f"{self.at_once} is above people, which is {self.people}", also=("people",))


Stage = Annotated[
    Train | Finetune | Serve | Batch | Hpc | Render | Transcode | Stream | Hybrid | Interactive, Field(discriminator="kind")
]
