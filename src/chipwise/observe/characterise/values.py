"""What was seen of a program, and what it is, as values. What nobody can know is `Missing` with its reason, never a zero."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chipwise.observe.sample import NoReading, Sample

OPTIMIZER, JOB, BAR, LOADER, FORWARD, REPEAT, RUN, SECOND = (
    "optimizer",
    "job",
    "bar",
    "loader",
    "forward",
    "repeat",
    "run",
    "second",
)
# Kinds of steps, the surest first, and what a step of each is.
STEP_WORDS = {
    OPTIMIZER: "a call of optimizer.step()",
    JOB: "a step that the program reports by chipwise.job",
    BAR: "an item of its progress bar",
    FORWARD: "a call of the outermost module",
    LOADER: "a batch of its DataLoader",
    REPEAT: "a sequence of operations that repeats",
    RUN: "the whole run",
    SECOND: "one second: the program marks no steps and does not end",
}


NOT_READ = NoReading("they were not read")


@dataclass(frozen=True, slots=True)
class Bounded:
    """A number with its interval, and what it rests on."""

    value: float
    low: float
    high: float
    basis: str

    @classmethod
    def near(cls, value: float, relative: float, basis: str) -> Bounded:
        return cls(value, value * (1 - relative), value * (1 + relative), basis)

    def times(self, factor: float) -> Bounded:
        return Bounded(self.value * factor, self.low * factor, self.high * factor, self.basis)


Quantity = Bounded | NoReading


@dataclass(frozen=True, slots=True)
class Observed:
    """One run of the program. Times are of one clock that nobody sets."""

    began_s: float
    wall_s: float
    exit_code: int | None  # None: it was ended by us
    step_times: Mapping[str, Sequence[float]]  # by kind: when each step ended
    samples: Sequence[Sample] = ()
    counts: Mapping[str, object] | None = None  # as the hook wrote them
    counters: Mapping[str, float] | NoReading = NOT_READ  # of the processor: instructions, flop, ...
    progress: Mapping[str, float | None] | None = None  # of chipwise.job

    @property
    def ended(self) -> bool:
        return self.exit_code is not None


@dataclass(frozen=True, slots=True)
class Hardware:
    """What it ran on, by the catalog's names."""

    chip: str | None
    chips: int
    vcpus: int | None  # where it ran on a processor
    reason: str = ""  # why the chip is not known


@dataclass(frozen=True, slots=True)
class Network:
    """Of a PyTorch program: its network by what it counts, for one sample."""

    parameters: int
    tables: int  # of the parameters: those of embeddings
    macs: int
    activations: int
    layers: str  # as `workload.model.counted.Layers`
    products: int
    image_size: int
    sequence: int
    batch: float


@dataclass(frozen=True, slots=True)
class Characterisation:
    command: tuple[str, ...]
    kind: str  # train, batch or hpc
    step: str  # one of STEP_WORDS
    step_s: Quantity
    steady_after_s: float | None
    flop: Quantity  # per step
    moved: Quantity  # bytes between memory and processor, per step
    precision: str
    parallel: Quantity
    memory: Quantity
    device_memory: Quantity
    read: Quantity  # bytes per step by read calls
    read_from_disk: Quantity
    data_wait: Quantity  # share of the time in which steps waited for data
    transfers: Quantity
    communication: Quantity
    pattern: str
    steps: Quantity  # of the whole job, where the program tells
    cores: Quantity  # in use on average
    network: Network | None
    optimizer: str
    hardware: Hardware
    delayed: float  # share of the time that it could have run in which others held the cores
    notes: tuple[str, ...]

    @property
    def intensity(self) -> Quantity:
        """FLOP per byte."""
        if isinstance(self.flop, NoReading):
            return self.flop
        if isinstance(self.moved, NoReading):
            return self.moved
        low, high = self.flop.low / self.moved.high, self.flop.high / self.moved.low
        return Bounded(self.flop.value / self.moved.value, low, high, self.flop.basis)
