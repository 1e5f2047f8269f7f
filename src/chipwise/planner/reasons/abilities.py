"""Refused since a chip or its software is not able to."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NoEngine:
    """No serving engine for language models runs on it."""


@dataclass(frozen=True, slots=True)
class ServesOnly:
    """Its software serves models and does not train them."""


@dataclass(frozen=True, slots=True)
class GpusOnly:
    """The libraries of a method are written for GPUs."""

    method: str


@dataclass(frozen=True, slots=True)
class WrongKind:
    kind: str
    able: tuple[str, ...]  # kinds of chips that do such work


@dataclass(frozen=True, slots=True)
class NoPrecision:
    asked: tuple[str, ...]
    known: tuple[str, ...] = ()  # formats that are stated; none: not listed here
    chip: str = ""
    instead: str = ""  # a format that is not searched unless it is asked for, and would do


@dataclass(frozen=True, slots=True)
class OtherFormat:
    """A service answers in another number format."""

    precision: str
    able: tuple[str, ...]
    asked: bool  # the workload names them; else the weights are published so


@dataclass(frozen=True, slots=True)
class NoSpeed:
    """Nobody states how fast these are; without a name: the processor of a service."""

    chips: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NoCodec:
    chip: str
    formats: str
    known: str


@dataclass(frozen=True, slots=True)
class NoFabric:
    """It holds no chain of circuits."""

    able: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LacksFabric:
    """A design that is larger than the fabric of an FPGA."""

    chip: str
    resource: str
    share: float  # of what is left for the design; above 1


@dataclass(frozen=True, slots=True)
class NotMeasured:
    """Operations of a stream whose speed on a processor nobody measured, and what the others take."""

    operations: tuple[str, ...]
    others: tuple[str, ...] = ()
    cores: float = 0.0  # that the others need


@dataclass(frozen=True, slots=True)
class SharedSlice:
    """A slice of a chip, where sharing is not allowed."""

    chip: str


@dataclass(frozen=True, slots=True)
class Unpredicted:
    """Nothing can be predicted on it; the message of the prediction."""

    message: str


Ability = (
    NoEngine
    | ServesOnly
    | GpusOnly
    | WrongKind
    | NoPrecision
    | OtherFormat
    | NoSpeed
    | NoCodec
    | NoFabric
    | LacksFabric
    | NotMeasured
    | SharedSlice
    | Unpredicted
)
