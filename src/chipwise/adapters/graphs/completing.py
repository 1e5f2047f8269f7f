"""Shapes that an ONNX graph computes as it runs: small values are computed here, and what follows from them is inferred.

The library propagates such values through few operators; exporters of torchscript write chains of others (sizes divided,
rounded, compared). With every input's shape known these are numbers, so they are evaluated, node by node, by the library's
reference implementation, as long as they stay small.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from onnx import ModelProto, NodeProto, TypeProto

_SMALL = 256  # values
_EVALUATED = frozenset(
    {"Abs", "Add", "And", "Cast", "Ceil", "Concat", "ConstantOfShape", "Div", "Equal", "Expand", "Floor", "Gather", "Greater"}
    | {
        "GreaterOrEqual",
        "Identity",
        "Less",
        "LessOrEqual",
        "Max",
        "Min",
        "Mod",
        "Mul",
        "Neg",
        "Not",
        "Or",
        "Range",
        "ReduceMax",
    }
    | {"ReduceMin", "ReduceProd", "ReduceSum", "Reshape", "ScatterND", "Slice", "Split", "Sqrt", "Squeeze", "Sub", "Transpose"}
    | {"Unsqueeze", "Where"}
)


def complete(model: ModelProto) -> None:
    """Adds the shapes that can be found to `model.graph.value_info`."""
    graph = model.graph
    types = {entry.name: entry.type for entry in (*graph.input, *graph.value_info, *graph.output)}
    for tensor in graph.initializer:
        types[tensor.name] = _type_of(tensor.data_type, tensor.dims)
    if all(_dims(types.get(name)) is not None for node in graph.node for name in node.output if name):
        return
    values = _constants(model)
    completed: dict[str, TypeProto] = {}
    for node in graph.node:
        if not all(_dims(types.get(name)) is not None for name in node.output if name):
            inferred = _inferred(model, node, types, values)
            types |= inferred
            completed |= inferred
        values |= _evaluated(node, types, values)
    old = [entry for entry in graph.value_info if entry.name not in completed]
    del graph.value_info[:]
    graph.value_info.extend(old)
    for name, kind in completed.items():
        graph.value_info.add(name=name, type=kind)
    for entry in graph.output:
        if entry.name in completed:
            entry.type.CopyFrom(completed[entry.name])


def _type_of(element: int, dims: Iterable[int]) -> TypeProto:
    from onnx import helper

    return helper.make_tensor_type_proto(element, list(dims))


def _dims(kind: TypeProto | None) -> tuple[int, ...] | None:
    if kind is None or not kind.HasField("tensor_type") or not kind.tensor_type.HasField("shape"):
        return None
    dims = tuple(dim.dim_value if dim.HasField("dim_value") else -1 for dim in kind.tensor_type.shape.dim)
    return dims if all(dim >= 0 for dim in dims) else None


def _constants(model: ModelProto) -> dict[str, np.ndarray[Any, Any]]:
    """Small weights whose data is in the file, and constants."""
    from onnx import numpy_helper

    constants = {}
    tensors = [(tensor.name, tensor) for tensor in model.graph.initializer]
    for node in model.graph.node:
        if node.op_type == "Constant" and node.output:
            tensors += [(node.output[0], attribute.t) for attribute in node.attribute if attribute.HasField("t")]
    for name, tensor in tensors:
        if not any(dim < 0 for dim in tensor.dims) and math.prod(tensor.dims) <= _SMALL:
            try:
                constants[name] = numpy_helper.to_array(tensor)
            except Exception:  # its data was left out, or is not what its type says
                continue
    return constants


def _inferred(
    model: ModelProto, node: NodeProto, types: Mapping[str, TypeProto], values: Mapping[str, Any]
) -> dict[str, TypeProto]:
    from onnx import defs, numpy_helper
    from onnx.shape_inference import infer_node_outputs

    versions = {one.domain: one.version for one in model.opset_import}
    data = {name: numpy_helper.from_array(values[name], name) for name in node.input if name in values}
    try:
        schema = defs.get_schema(node.op_type, versions.get(node.domain, 1), node.domain)
        known = {name: types[name] for name in node.input if name}
        return infer_node_outputs(
            schema, node, known, data, opset_imports=list(model.opset_import), ir_version=model.ir_version
        )
    except Exception:  # an operator of others, or inputs that are not known
        return {}


def _evaluated(node: NodeProto, types: Mapping[str, TypeProto], values: Mapping[str, Any]) -> dict[str, Any]:
    """Values of its results, where they are few and follow from known ones."""
    import numpy as np

    if node.op_type == "Shape" and len(node.input) == 1 and not node.attribute:
        dims = _dims(types.get(node.input[0]))
        return {} if dims is None else {node.output[0]: np.array(dims, dtype=np.int64)}
    results = [_dims(types.get(name)) for name in node.output]
    small = all(dims is not None and math.prod(dims) <= _SMALL for dims in results)
    if not small or node.op_type not in _EVALUATED or node.domain or not all(name in values for name in node.input if name):
        return {}
    from onnx.reference import ReferenceEvaluator

    try:
        with np.errstate(all="ignore"):
            computed = ReferenceEvaluator(node).run(None, {name: values[name] for name in node.input if name})
    except Exception:  # values that it does not take
        return {}
    return {name: np.asarray(value) for name, value in zip(node.output, computed, strict=False)}
