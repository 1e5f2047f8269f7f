"""Walks an ONNX graph whose shapes were inferred, and counts its operators and weights."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from chipwise.workload.graph.counting import counted, is_free
from chipwise.workload.graph.values import GraphNode, Operator, Tensor

if TYPE_CHECKING:
    from onnx import AttributeProto, GraphProto, NodeProto, TensorProto, TypeProto

# Types of values by their number in onnx.proto: name, bits, and whether weights are such.
_TYPES = {
    1: ("fp32", 32, True),
    2: ("uint8", 8, True),
    3: ("int8", 8, True),
    4: ("uint16", 16, False),
    5: ("int16", 16, False),
    6: ("int32", 32, False),
    7: ("int64", 64, False),
    9: ("bool", 8, False),
    10: ("fp16", 16, True),
    11: ("fp64", 64, True),
    12: ("uint32", 32, False),
    13: ("uint64", 64, False),
    14: ("complex64", 64, True),
    15: ("complex128", 128, True),
    16: ("bf16", 16, True),
    17: ("fp8", 8, True),
    18: ("fp8", 8, True),
    19: ("fp8", 8, True),
    20: ("fp8", 8, True),
    21: ("uint4", 4, True),
    22: ("int4", 4, True),
    23: ("fp4", 4, True),
}
_UNKNOWN_TYPE = ("", 32, False)
_UNTRAINED = {  # inputs that are statistics, scales, zero points and bounds
    "BatchNormalization": (3, 4),
    "DequantizeLinear": (1, 2),
    "QuantizeLinear": (1, 2),
    "QLinearConv": (1, 2, 4, 5, 6, 7),
    "QLinearMatMul": (1, 2, 4, 5, 6, 7),
    "Resize": (1, 2, 3),
    "Pad": (1, 2, 3),
}
_RANDOM = ("RandomNormal", "RandomUniform", "Bernoulli", "Multinomial", "RandomNormalLike", "RandomUniformLike")
_LOOPS = ("Loop", "Scan", "SequenceMap")
_LARGEST_SHAPE = 16  # whole numbers that are a shape in the making, which the host computes
_INTEGERS = ("int64", "int32", "bool")


@dataclass
class Weights:
    """Constants of a graph and who reads them."""

    constants: dict[int, Tensor] = field(default_factory=dict)
    readers: dict[int, set[tuple[str, int]]] = field(default_factory=dict)

    def read(self, node: str, inputs: Iterable[Tensor | None]) -> None:
        for place, tensor in enumerate(inputs):
            if tensor is not None and tensor.number in self.constants and place not in _UNTRAINED.get(node, ()):
                self.readers.setdefault(tensor.number, set()).add((node, place))

    def _trained(self) -> Iterable[Tensor]:
        return (self.constants[number] for number in self.readers)

    @property
    def parameters(self) -> int:
        return sum(tensor.values or 0 for tensor in self._trained())

    @property
    def bytes(self) -> float:
        return sum(tensor.bytes for tensor in self._trained())

    @property
    def tables(self) -> int:
        """Parameters that are only ever taken by rows."""
        looked_up = {("Gather", 0)}
        return sum(self.constants[number].values or 0 for number, readers in self.readers.items() if readers == looked_up)


class Walk:
    def __init__(self, batch: int) -> None:
        self._batch = batch
        self._tensors = 0
        self.operators: list[Operator] = []
        self.weights = Weights()
        self.notes: list[str] = []

    def graph(self, graph: GraphProto, outer: Mapping[str, Tensor] | None = None) -> None:
        """Its operators, in order; `outer`: values of the graph around it."""
        scope = dict(outer or {})
        types = {entry.name: entry.type for entry in (*graph.input, *graph.value_info, *graph.output)}
        for entry in graph.input:
            scope[entry.name] = self._typed(entry.type)
        for weight in graph.initializer:
            scope[weight.name] = self._weight(weight)
        for sparse in graph.sparse_initializer:
            scope[sparse.values.name] = self._new(tuple(sparse.dims), sparse.values.data_type, True)
            self._note("Sparse weights are not among the parameters.")
        for node in graph.node:
            self._node(node, scope, types)

    def _node(self, node: NodeProto, scope: dict[str, Tensor], types: Mapping[str, TypeProto]) -> None:
        inputs = tuple(scope.get(name) if name else None for name in node.input)
        present = [tensor for tensor in inputs if tensor is not None]
        name = node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}.{node.op_type}"
        self.weights.read(name, inputs)
        bodies = [attribute for attribute in node.attribute if attribute.HasField("g")]
        constant = all(tensor.constant for tensor in present) and len(present) == len([n for n in node.input if n])
        constant = constant and not bodies and name not in _RANDOM
        outputs = tuple(self._typed(types.get(written), constant) for written in node.output if written)
        if name == "Constant":
            outputs = tuple(map(self._weight, (one.t for one in node.attribute if one.HasField("t")))) or outputs
        elif name == "DequantizeLinear" and present and outputs:  # engines multiply what was quantised
            narrow = present[0]
            outputs = (Tensor(outputs[0].number, outputs[0].dims, narrow.precision, narrow.bits, constant),)
        elif bodies:
            self._bodies(name, bodies, scope)
        elif not is_free(name) and not constant and not _shape_in_the_making(outputs):
            self.operators.append(counted(GraphNode(name, inputs, outputs, _attributes(node.attribute)), self._batch))
        scope.update(zip((written for written in node.output if written), outputs, strict=False))

    def _bodies(self, name: str, bodies: Iterable[AttributeProto], scope: Mapping[str, Tensor]) -> None:
        """Of a condition the branch that multiplies more; of a loop one turn."""
        before, branches = self.operators, []
        for body in bodies:
            self.operators = []
            self.graph(body.g, scope)
            branches.append(self.operators)
        self.operators = before + max(branches, key=lambda branch: sum(one.macs for one in branch))
        if name in _LOOPS:
            self._note(f"{name}: its body is counted once, however often it runs.")

    def _note(self, note: str) -> None:
        if note not in self.notes:
            self.notes.append(note)

    def _weight(self, tensor: TensorProto) -> Tensor:
        weight = self._new(tuple(tensor.dims), tensor.data_type, True)
        if _TYPES.get(tensor.data_type, _UNKNOWN_TYPE)[2] and (weight.values or 0) > 1:
            self.weights.constants[weight.number] = weight
        return weight

    def _typed(self, kind: TypeProto | None, constant: bool = False) -> Tensor:
        if kind is None or not kind.HasField("tensor_type") or not kind.tensor_type.HasField("shape"):
            return self._new(None, kind.tensor_type.elem_type if kind is not None else 0, constant)
        dims = tuple(dim.dim_value if dim.HasField("dim_value") else -1 for dim in kind.tensor_type.shape.dim)
        return self._new(dims, kind.tensor_type.elem_type, constant)

    def _new(self, dims: tuple[int, ...] | None, kind: int, constant: bool) -> Tensor:
        self._tensors += 1
        name, bits, _ = _TYPES.get(kind, _UNKNOWN_TYPE)
        known = dims is not None and all(dim >= 0 for dim in dims)
        return Tensor(self._tensors, dims if known else None, name, bits, constant)


def _shape_in_the_making(outputs: Iterable[Tensor]) -> bool:
    return all(
        tensor.precision in _INTEGERS
        and tensor.dims is not None
        and len(tensor.dims) < 2
        and (tensor.values or 0) <= _LARGEST_SHAPE
        for tensor in outputs
    )


def _attributes(attributes: Iterable[AttributeProto]) -> dict[str, object]:
    """Whole numbers, lists of them and text: what counting asks for."""
    values: dict[str, object] = {}
    for attribute in attributes:
        if attribute.type == 2:
            values[attribute.name] = attribute.i
        elif attribute.type == 7:
            values[attribute.name] = tuple(attribute.ints)
        elif attribute.type == 3:
            values[attribute.name] = attribute.s.decode("utf-8", "replace")
    return values
