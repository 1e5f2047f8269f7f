"""How work is spread over chips: one small type for each way of spreading it.

`as_dict` is what JSON, settings of programs and records show; its keys are part of the public output. The functions below it
answer what is asked of every kind alike. Words for people are in `planner/explain/words.py`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Unsplit:
    """Nothing is divided, or nothing is known of how it is: a service, circuits in turns, an archive of video."""

    def as_dict(self) -> dict[str, int]:
        return {}


@dataclass(frozen=True, slots=True)
class TrainingSplit:
    """Training of transformers: ways of tensor, pipeline, context, expert and data parallelism."""

    tp: int
    pp: int
    cp: int
    ep: int
    dp: int
    shard: int  # stage of ZeRO
    recompute: int  # none, selective, full: places in `perf.setup.RECOMPUTE`
    micro_batch: int

    def as_dict(self) -> dict[str, int]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class GenerationSplit:
    """Replicas of a language model, each over tp x pp chips."""

    tp: int
    pp: int
    replicas: int

    def as_dict(self) -> dict[str, int]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class SampleTrainingSplit:
    """Copies that learn side by side, each with `batch` samples a pass; embedding tables may lie over several chips."""

    dp: int
    batch: int
    tables: int = 1

    def as_dict(self) -> dict[str, int]:
        return {"dp": self.dp, "batch": self.batch} | _tables(self.tables)


@dataclass(frozen=True, slots=True)
class Copies:
    """Copies of a model that answers per sample, each on one chip, or on as many as its embedding tables lie over."""

    replicas: int
    tables: int = 1

    def as_dict(self) -> dict[str, int]:
        return {"replicas": self.replicas} | _tables(self.tables)


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs of a simulation side by side, each over so many chips."""

    at_once: int
    chips_each: int

    def as_dict(self) -> dict[str, int]:
        return {"runs at once": self.at_once, "chips a run": self.chips_each}


@dataclass(frozen=True, slots=True)
class Frames:
    """Frames of a film that are rendered at once, each on one chip."""

    at_once: int

    def as_dict(self) -> dict[str, int]:
        return {"frames at once": self.at_once}


@dataclass(frozen=True, slots=True)
class Streams:
    """Live streams that one chip carries."""

    per_chip: int

    def as_dict(self) -> dict[str, int]:
        return {"streams a chip": self.per_chip}


@dataclass(frozen=True, slots=True)
class CircuitSplit:
    """A chain of circuits on FPGAs, and how long a message takes through it."""

    devices: int
    latency_ns: int

    @property
    def latency_s(self) -> float:
        return self.latency_ns / 1e9

    def as_dict(self) -> dict[str, int]:
        return {"devices": self.devices, "latency ns": self.latency_ns}


@dataclass(frozen=True, slots=True)
class DevicesPerPlace:
    """Small devices that stand at each place."""

    devices: int

    def as_dict(self) -> dict[str, int]:
        return {"devices a place": self.devices}


@dataclass(frozen=True, slots=True)
class Seats:
    """People at notebooks: several to a chip, or several chips to each of them."""

    per_chip: int = 1
    chips_each: int = 1
    slower_percent: int = 0  # when all who share a chip are busy

    def of_machine(self, chips: int) -> int:
        """Seats of a machine with so many chips."""
        return chips * self.per_chip // self.chips_each

    def as_dict(self) -> dict[str, int]:
        shared = {"seats a chip": self.per_chip} if self.chips_each == 1 else {"chips a seat": self.chips_each}
        return shared | ({"slower by percent": self.slower_percent} if self.slower_percent else {})


Split = (
    Unsplit
    | TrainingSplit
    | GenerationSplit
    | SampleTrainingSplit
    | Copies
    | Runs
    | Frames
    | Streams
    | CircuitSplit
    | DevicesPerPlace
    | Seats
)


UNSPLIT = Unsplit()


def model_ways(split: Split) -> tuple[int, int]:
    """Chips that share every layer, and groups of them that take the layers in turn."""
    return (split.tp, split.pp) if isinstance(split, TrainingSplit | GenerationSplit) else (1, 1)


def width(split: Split) -> int:
    """Chips of one copy of a model."""
    match split:
        case TrainingSplit() | GenerationSplit():
            return split.tp * split.pp
        case SampleTrainingSplit() | Copies():
            return split.tables
        case _:
            return 1


def independent(split: Split) -> bool:
    """Copies that work on parts of their own and never speak to each other."""
    return isinstance(split, GenerationSplit | Copies | Frames)


def _tables(ways: int) -> dict[str, int]:
    return {"tables": ways} if ways > 1 else {}
