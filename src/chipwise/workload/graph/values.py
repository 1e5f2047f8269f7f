"""Operators of a network's graph, before and after they were counted.

A `GraphNode` is what a file states, whatever its format: an operator by its ONNX name, with the shapes around it.
An `Operator` is what one was counted as. FLOP are two per multiply-accumulate; bytes assume that every operator reads its
inputs from memory and writes its results there, as a framework that fuses nothing does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class OperatorKind(StrEnum):
    """What behaves alike on a chip."""

    CONVOLUTION = "convolution"
    GROUPED = "grouped convolution"
    DEPTHWISE = "depthwise convolution"
    DENSE = "dense"  # a product with weights
    ATTENTION = "attention"  # a product of two computed matrices
    NORMALISATION = "normalisation"
    ELEMENTWISE = "elementwise"
    REDUCTION = "pooling, reduction"
    GATHER = "gather, scatter"
    LAYOUT = "copy, layout"
    OTHER = "other"

    @property
    def multiplies(self) -> bool:
        return self in PRODUCTS

    @property
    def convolves(self) -> bool:
        return self in (OperatorKind.CONVOLUTION, OperatorKind.GROUPED, OperatorKind.DEPTHWISE)


PRODUCTS = (OperatorKind.CONVOLUTION, OperatorKind.GROUPED, OperatorKind.DEPTHWISE, OperatorKind.DENSE, OperatorKind.ATTENTION)


@dataclass(frozen=True, slots=True)
class Tensor:
    """Values between operators; `number` tells which they are, since names mean nothing."""

    number: int
    dims: tuple[int, ...] | None  # None where they depend on the data
    precision: str = "fp32"
    bits: int = 32
    constant: bool = False  # weights, and what follows from them alone

    @property
    def values(self) -> int | None:
        if self.dims is None:
            return None
        total = 1
        for dim in self.dims:
            total *= dim
        return total

    @property
    def bytes(self) -> float:
        return (self.values or 0) * self.bits / 8


@dataclass(frozen=True, slots=True)
class GraphNode:
    operator: str
    inputs: tuple[Tensor | None, ...]  # None: an optional one that is left out
    outputs: tuple[Tensor, ...]
    attributes: Mapping[str, object] = field(default_factory=dict)

    def dims(self, position: int) -> tuple[int, ...] | None:
        """Of an input; None where it is absent or not known."""
        tensor = self.inputs[position] if position < len(self.inputs) else None
        return None if tensor is None else tensor.dims

    @property
    def result(self) -> tuple[int, ...] | None:
        return self.outputs[0].dims if self.outputs else None

    def integer(self, name: str, default: int) -> int:
        value = self.attributes.get(name, default)
        return value if isinstance(value, int) else default


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator, for the whole batch of its graph."""

    name: str
    kind: OperatorKind
    macs: int
    flop: int
    results: int  # values of its products
    read_bytes: float
    written_bytes: float
    precision: str
    reads: int = -1  # the number of its first input
    known: bool = True  # False: not counted, since its shapes or what it does are not known
    windowed: bool = False  # attention within parts of a sample
    patches: bool = False  # a convolution that cuts a picture into tokens
    weights: int = 0  # values of the constants that it reads


@dataclass(frozen=True, slots=True)
class Graph:
    """A network that was read from a file."""

    operators: tuple[Operator, ...]
    parameters: int
    tables: int  # of the parameters: those of which a sample takes a few rows
    weight_bytes: float
    batch: int = 1
    image_size: int = 0  # 0: no picture comes in
    sequence: int = 0  # tokens; 0: no text comes in
    free: tuple[tuple[str, int], ...] = ()  # dimensions that the file leaves open, and what was taken
    notes: tuple[str, ...] = ()
