"""What one operator multiplies, by its name and shapes.

    convolution   MACs = results x inputs per group x kernel area          transposed: inputs x results per group x kernel area
    product       MACs = results x depth                                   einsum: results x sizes of the labels that vanish
    attention     MACs = keys x (values of the queries + values of the results)
    recurrent     MACs = steps x batch x directions x gates x hidden x (inputs + hidden)

Beside products, one FLOP per result is counted for elementwise operators, one per input for reductions and five per result for
normalisation: rules of thumb, which no prediction uses (they are bound by memory). A product of two computed matrices is called
attention, one with weights dense. Names are those of ONNX, domain `ai.onnx`.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from chipwise.workload.graph.values import GraphNode, Operator, OperatorKind

DATA = Path(__file__).resolve().parents[2] / "data" / "networks" / "operators.csv"
_FREE = "free"  # views, shapes and constants: no kernel runs
_CONVOLUTIONS = {
    "Conv": 1,
    "ConvInteger": 1,
    "DeformConv": 1,
    "QLinearConv": 3,
    "ConvTranspose": 1,
}  # where their weights stand
_MATRICES = {"MatMul": 1, "MatMulInteger": 1, "QLinearMatMul": 3, "Gemm": 1}
_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
_NORM_FLOP = 5
_HEAD = 64  # values of a head where the operator does not say

Product = tuple[OperatorKind, int | None, int]  # kind, multiply-accumulates (None: not known), values that result


def counted(node: GraphNode, batch: int = 1) -> Operator:
    """The operator of a node that is not free."""
    product = _product(node)
    kind, macs, results = (
        product if product is not None else (OperatorKind(_kinds().get(node.operator, OperatorKind.OTHER)), 0, 0)
    )
    shaped = all(tensor.dims is not None for tensor in node.outputs) and bool(node.outputs)
    known = macs is not None and kind is not OperatorKind.OTHER and (shaped or product is not None)
    present = [tensor for tensor in node.inputs if tensor is not None]
    written = sum(tensor.bytes for tensor in node.outputs)
    read = sum(tensor.bytes for tensor in {tensor.number: tensor for tensor in present}.values())
    if kind is OperatorKind.GATHER and present:  # only the rows that are taken
        read = written + sum(tensor.bytes for tensor in present[1:])
    return Operator(
        name=node.operator,
        kind=kind,
        macs=macs or 0,
        flop=2 * (macs or 0) if product is not None else _flop(kind, node),
        results=results,
        read_bytes=read,
        written_bytes=written,
        precision=_precision(node),
        reads=present[0].number if present else -1,
        known=known,
        windowed=kind is OperatorKind.ATTENTION and _in_parts(node, batch),
        patches=kind is OperatorKind.CONVOLUTION and _cuts(node),
        weights=sum(tensor.values or 0 for tensor in present if tensor.constant),
    )


@cache
def _kinds() -> Mapping[str, str]:
    with DATA.open(encoding="utf-8", newline="") as file:
        return {row["operator"]: row["kind"] for row in csv.DictReader(file)}


def is_free(name: str) -> bool:
    """Nothing runs for it."""
    return _kinds().get(name) == _FREE


def _product(node: GraphNode) -> Product | None:
    """None for an operator that multiplies no matrices."""
    name = node.operator
    if name in _CONVOLUTIONS:
        return _convolution(node, _CONVOLUTIONS[name])
    if name in _MATRICES:
        return _matrices(node, _MATRICES[name])
    if name in _GATES:
        return _recurrent(node, _GATES[name])
    if name == "Attention":
        return _attention(node)
    return _einsum(node) if name == "Einsum" else None


def _convolution(node: GraphNode, position: int) -> Product:
    weights, out, first = node.dims(position), node.result, node.dims(0)
    groups = node.integer("group", 1)
    if weights is None or out is None or first is None or len(weights) < 3:
        return OperatorKind.CONVOLUTION, None, 0
    narrow = weights[1] == 1
    kind = OperatorKind.CONVOLUTION if groups <= 1 else OperatorKind.DEPTHWISE if narrow else OperatorKind.GROUPED
    places = first if node.operator == "ConvTranspose" else out
    return kind, math.prod(places) * math.prod(weights[1:]), math.prod(out)


def _matrices(node: GraphNode, position: int) -> Product:
    second = node.inputs[position] if position < len(node.inputs) else None
    weighted = any(tensor is not None and tensor.constant for tensor in (node.inputs[0], second))
    kind = OperatorKind.DENSE if weighted else OperatorKind.ATTENTION
    first, out = node.dims(0), node.result
    if not first or out is None:
        return kind, None, 0
    depth = first[0] if node.operator == "Gemm" and node.integer("transA", 0) else first[-1]
    return kind, math.prod(out) * depth, math.prod(out)


def _attention(node: GraphNode) -> Product:
    """The fused operator: queries, keys, values in three dimensions (heads side by side) or four."""
    queries, keys, out = node.dims(0), node.dims(1), node.result
    if queries is None or keys is None or out is None or min(len(queries), len(keys)) < 3:
        return OperatorKind.ATTENTION, None, 0
    cached = node.outputs[1].dims if len(node.outputs) > 1 else None
    seen = cached[-2] if cached and len(cached) > 2 else keys[-2]
    heads = queries[1] if len(queries) == 4 else node.integer("q_num_heads", max(queries[-1] // _HEAD, 1))
    scores = queries[0] * heads * queries[-2] * seen
    return OperatorKind.ATTENTION, seen * (math.prod(queries) + math.prod(out)), scores + math.prod(out)


def _recurrent(node: GraphNode, gates: int) -> Product:
    steps, weights, again = node.dims(0), node.dims(1), node.dims(2)
    if steps is None or weights is None or again is None or not len(steps) == len(weights) == len(again) == 3:
        return OperatorKind.DENSE, None, 0
    rows = steps[0] * steps[1]
    return OperatorKind.DENSE, rows * (math.prod(weights) + math.prod(again)), rows * weights[0] * gates * again[-1]


def _einsum(node: GraphNode) -> Product:
    constant = any(tensor is not None and tensor.constant for tensor in node.inputs)
    kind = OperatorKind.DENSE if constant else OperatorKind.ATTENTION
    equation = str(node.attributes.get("equation", "")).replace(" ", "")
    terms, arrow, final = equation.partition("->")
    operands, out = terms.split(","), node.result
    if len(node.inputs) == 1:
        return OperatorKind.LAYOUT, 0, 0
    if not arrow or len(operands) != len(node.inputs) or out is None:
        return kind, None, 0
    sizes: dict[str, int] = {}
    for position, labels in enumerate(operands):
        dims, (before, _, after) = node.dims(position), labels.partition("...")
        if dims is None or len(before) + len(after) > len(dims):
            return kind, None, 0
        sizes |= dict(zip(before, dims, strict=False))
        sizes |= dict(zip(reversed(after), reversed(dims), strict=False))
    return kind, math.prod(out) * math.prod(size for label, size in sizes.items() if label not in final), math.prod(out)


def _flop(kind: OperatorKind, node: GraphNode) -> int:
    results = sum(tensor.values or 0 for tensor in node.outputs[:1])
    match kind:
        case OperatorKind.NORMALISATION:
            return _NORM_FLOP * results
        case OperatorKind.ELEMENTWISE:
            return results
        case OperatorKind.REDUCTION:
            return math.prod(node.dims(0) or (0,))
        case _:
            return 0


def _precision(node: GraphNode) -> str:
    """Of what is computed with: the wider operand of a product, else the first result."""
    weights = _CONVOLUTIONS.get(node.operator) or _MATRICES.get(node.operator)
    if weights is None:
        return node.outputs[0].precision if node.outputs else ""
    operands = [node.inputs[position] for position in (0, weights) if position < len(node.inputs)]
    return max(((tensor.bits, tensor.precision) for tensor in operands if tensor is not None), default=(0, ""))[1]


def _in_parts(node: GraphNode, batch: int) -> bool:
    """More groups of scores than samples: (samples x windows, heads, queries, keys)."""
    out = node.result
    return out is not None and len(out) >= 4 and math.prod(out[:-3]) > batch


def _cuts(node: GraphNode) -> bool:
    weights, strides = node.dims(1), node.attributes.get("strides")
    return (
        weights is not None
        and len(weights) > 2
        and weights[-1] > 2
        and isinstance(strides, tuple)
        and tuple(weights[2:]) == strides
    )
