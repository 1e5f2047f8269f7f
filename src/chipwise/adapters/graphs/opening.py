"""Dimensions that an ONNX graph leaves open: which they are, and the values that they get."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chipwise.adapters.graphs.sizes import USUAL, Sizes, meaning, sample_of
from chipwise.errors import BadInput

if TYPE_CHECKING:
    from onnx import GraphProto, TensorShapeProto, ValueInfoProto

_TOKEN_TYPES = frozenset({5, 6, 7, 12, 13})  # types of numbers of tokens
_WORDS = {"batch": "batch", "image_size": "image size", "sequence": "number of tokens"}


@dataclass(frozen=True, slots=True)
class Opening:
    """`symbols` gives values to named dimensions, `placed` to those of an input (its position, the dimension's)."""

    symbols: dict[str, int]
    placed: dict[tuple[int, int], int]
    batch: int
    image_size: int
    sequence: int
    free: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, graph: GraphProto, sizes: Sizes, title: str) -> Opening:
        symbols: dict[str, int] = {}
        placed: dict[tuple[int, int], int] = {}
        free: dict[str, int] = {}
        fixed: dict[str, int] = {}
        stated = {name: value for name in _WORDS if (value := getattr(sizes, name)) is not None}
        for position, entry in _inputs(graph):
            dims = _dims(entry)
            tokens = entry.type.tensor_type.elem_type in _TOKEN_TYPES
            for place, dim in enumerate(entry.type.tensor_type.shape.dim):
                counts = meaning(dim.dim_param, place, dims, tokens)
                value = dims[place]
                if value is None:
                    value = symbols.get(dim.dim_param) or stated.get(counts) or USUAL.get(counts, 1)
                    if dim.dim_param:
                        symbols[dim.dim_param] = value
                    placed[position, place] = value
                    free.setdefault(counts or dim.dim_param or "a dimension", value)
                else:
                    fixed.setdefault(counts, value)
        for name, value in stated.items():
            if name not in free and fixed.get(name) != value:
                has = f"has the fixed {_WORDS[name]} {fixed[name]:,}" if name in fixed else f"has no {_WORDS[name]}"
                raise BadInput(
                    f"{title} {has}.", remedy=f"Leave the {_WORDS[name]} out, or export the network with that one open."
                )
        batch, image_size, sequence = _of_first(graph, placed)
        return cls(symbols, placed, batch, image_size, sequence, tuple(free.items()))

    def fill(self, graph: GraphProto) -> None:
        """Changes the graph: its open dimensions get their values wherever they are named."""
        for position, entry in _inputs(graph):
            for place, dim in enumerate(entry.type.tensor_type.shape.dim):
                if (position, place) in self.placed:
                    dim.dim_value = self.placed[position, place]
        for entry in (*graph.value_info, *graph.output):
            for dim in entry.type.tensor_type.shape.dim:
                if dim.dim_param in self.symbols:
                    dim.dim_value = self.symbols[dim.dim_param]


def _inputs(graph: GraphProto) -> Iterator[tuple[int, ValueInfoProto]]:
    """Those that come from outside: in old files weights are among the inputs."""
    weights = {tensor.name for tensor in graph.initializer}
    for position, entry in enumerate(graph.input):
        if entry.name not in weights and entry.type.HasField("tensor_type"):
            yield position, entry


def _dims(entry: ValueInfoProto) -> tuple[int | None, ...]:
    return tuple(_value(dim) for dim in entry.type.tensor_type.shape.dim)


def _value(dim: TensorShapeProto.Dimension) -> int | None:
    return dim.dim_value if dim.HasField("dim_value") and dim.dim_value > 0 else None


def _of_first(graph: GraphProto, placed: dict[tuple[int, int], int]) -> tuple[int, int, int]:
    return sample_of(
        (
            tuple(placed.get((position, place), dim or 1) for place, dim in enumerate(_dims(entry))),
            entry.type.tensor_type.elem_type in _TOKEN_TYPES,
        )
        for position, entry in _inputs(graph)
    )
