"""A network from an ONNX file, by the library `onnx` (extra `onnx`): its operators with their shapes, without its weights.

Dimensions that the file leaves open get values first (`sizes`), functions are written out, and the library infers the shapes of
all values. What it cannot infer stays unknown: that is counted as nothing, and said.
Limits: the body of a loop is counted once, of a condition the branch that multiplies more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from chipwise.adapters.graphs.completing import complete
from chipwise.adapters.graphs.opening import Opening
from chipwise.adapters.graphs.sizes import Sizes
from chipwise.adapters.graphs.walking import Walk
from chipwise.errors import BadInput, MissingExtra
from chipwise.workload.graph.values import Graph

if TYPE_CHECKING:
    from onnx import FunctionProto, GraphProto, ModelProto, NodeProto

MOST_NODES = 200_000
DEEPEST_CALL = 40
_DAMAGED = "Export the network again, or check the file with onnx.checker."


def read(content: bytes, title: str, sizes: Sizes) -> Graph:
    """The network in a file without its weights; BadInput where it is none that can be read, MissingExtra without the library.
    Not every file leaves the library alive: see `apart`."""
    model = _parsed(content, title)
    notes = []
    if model.functions:
        model = _written_out(model, title)
    stated = {one.domain for one in model.opset_import}
    for domain in sorted({node.domain for graph in _graphs(model.graph) for node in graph.node} - stated - {"ai.onnx"}):
        model.opset_import.add(domain=domain, version=1)  # without it nothing of the file is inferred
    opening = Opening.of(model.graph, sizes, title)
    opening.fill(model.graph)
    try:
        from onnx.shape_inference import infer_shapes

        model = infer_shapes(model, check_type=False, strict_mode=False, data_prop=True)
        complete(model)
    except Exception as error:  # whatever the library makes of a file that nobody checked
        notes.append(f"Shapes could not be inferred ({_first_line(error)}): only those that the file states are known.")
    walk = Walk(opening.batch)
    walk.graph(model.graph)
    return Graph(
        operators=tuple(walk.operators),
        parameters=walk.weights.parameters,
        tables=walk.weights.tables,
        weight_bytes=walk.weights.bytes,
        batch=opening.batch,
        image_size=opening.image_size,
        sequence=opening.sequence,
        free=opening.free,
        notes=(*notes, *walk.notes),
    )


def _parsed(content: bytes, title: str) -> ModelProto:
    try:
        from onnx import ModelProto
    except ImportError as error:
        raise MissingExtra("Reading an ONNX file", "onnx") from error
    model = ModelProto()
    try:
        model.ParseFromString(content)
    except Exception as error:  # of the library below it, which has no types
        raise BadInput(f"{title} is not an ONNX file: {_first_line(error)}.", remedy=_DAMAGED) from error
    nodes = sum(1 for graph in _graphs(model.graph) for _ in graph.node)
    if not nodes:
        raise BadInput(f"{title} holds no operators: it is not an ONNX model.", remedy=_DAMAGED)
    if nodes > MOST_NODES:
        raise BadInput(f"{title} has {nodes:,} operators, more than {MOST_NODES:,}.", remedy="Give the graph of one network.")
    return model


def _graphs(graph: GraphProto) -> Iterable[GraphProto]:
    """It and those within it."""
    yield graph
    for node in graph.node:
        for inner in _bodies(node):
            yield from _graphs(inner)


def _bodies(node: NodeProto) -> Iterable[GraphProto]:
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def _written_out(model: ModelProto, title: str) -> ModelProto:
    """With the bodies of the file's own functions in place of their calls, unless that would grow beyond all bounds."""
    functions = {(one.domain, one.name): one for one in model.functions}
    sizes: dict[tuple[str, str], int] = {}

    def size(nodes: Iterable[NodeProto], depth: int) -> int:
        total = 0
        for node in nodes:
            name = (node.domain, node.op_type)
            total += size_of(name, functions[name], depth + 1) if name in functions else 1
            total += sum(size(body.node, depth + 1) for body in _bodies(node))
            if total > MOST_NODES:
                raise BadInput(f"The functions of {title} write out to more than {MOST_NODES:,} operators.", remedy=_DAMAGED)
        return total

    def size_of(name: tuple[str, str], function: FunctionProto, depth: int) -> int:
        if depth > DEEPEST_CALL:
            raise BadInput(f"Functions of {title} call each other more than {DEEPEST_CALL} deep.", remedy=_DAMAGED)
        if name not in sizes:
            sizes[name] = size(function.node, depth)
        return sizes[name]

    size(model.graph.node, 0)
    for name, function in functions.items():  # those that nobody calls are read by the library too
        size_of(name, function, 0)
    try:
        from onnx.inliner import inline_local_functions

        return inline_local_functions(model)
    except Exception as error:
        raise BadInput(f"Functions of {title} cannot be written out: {_first_line(error)}.", remedy=_DAMAGED) from error


def _first_line(error: Exception) -> str:
    lines: Mapping[int, str] = dict(enumerate(str(error).strip().splitlines()))
    return "".join(letter for letter in lines.get(0, type(error).__name__) if letter.isprintable())[:120].rstrip(".")
