"""A network from an archive of `torch.export.save` (.pt2), without torch and without its weights.

The archive is a zip file, and its graph is JSON: operators of ATen with the shapes of all values, as torch traced them. Where a
dimension was left open, the archive states the size that it was traced with, and that is taken. Nothing in it is executed.
Limits: conditions (`torch.cond`) are not counted, and said.
"""

from __future__ import annotations

import json
import math
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from chipwise.adapters.graphs.sizes import Sizes, sample_of
from chipwise.errors import BadInput
from chipwise.files.handed import opened
from chipwise.workload.graph.counting import counted, is_free
from chipwise.workload.graph.values import Graph, GraphNode, Operator, Tensor

GRAPH_BYTES = 100_000_000
_MEMBERS = ("models/model.json", "serialized_exported_program.json")  # of torch from 2.8 on, and before
_REMEDY = "Write it with torch.export.save(torch.export.export(model, inputs), 'net.pt2')."
# Types of values by their number in torch's schema of archives.
_TYPES = {1: ("uint8", 8), 2: ("int8", 8), 3: ("int16", 16), 4: ("int32", 32), 5: ("int64", 64), 6: ("fp16", 16)} | {
    7: ("fp32", 32),
    8: ("fp64", 64),
    12: ("bool", 8),
    13: ("bf16", 16),
    29: ("fp8", 8),
    30: ("fp8", 8),
}
_TOKEN_TYPES = (4, 5)
_MATRICES = {"linear": 0, "matmul": 0, "mm": 0, "bmm": 0, "addmm": 1, "baddbmm": 1}  # where the first of the two stands
_ATTENTION = "scaled_dot_product"
_RECURRENT = ("lstm", "gru", "rnn_tanh", "rnn_relu")


def read(path: Path, sizes: Sizes) -> Graph:
    """The network in `path`; BadInput where it is none that can be read."""
    title = path.name[:80]
    try:
        with opened(path) as stream, zipfile.ZipFile(stream) as archive:
            content = _content(archive, title)
    except FileNotFoundError as error:
        raise BadInput(f"There is no {str(path)[:200]}.", remedy="Check the path of the archive.") from error
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError) as error:
        raise BadInput(f"{title} is not a whole archive of torch.export.", remedy=_REMEDY) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BadInput(f"Cannot read {str(path)[:200]!r}: {reason}.", remedy="Check the path and its permissions.") from error
    try:
        graph = _Program(json.loads(content)["graph_module"]).graph()
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise BadInput(f"The graph in {title} is not one that torch.export writes.", remedy=_REMEDY) from error
    _refuse_sizes(graph, sizes, title)
    return graph


def _content(archive: zipfile.ZipFile, title: str) -> bytes:
    member = next((info for info in archive.infolist() if info.filename.endswith(_MEMBERS)), None)
    if member is None:
        raise BadInput(f"{title} holds no graph of torch.export.", remedy=_REMEDY)
    with archive.open(member) as stream:
        content = stream.read(GRAPH_BYTES + 1)
    if len(content) > GRAPH_BYTES:
        raise BadInput(f"The graph in {title} has more than {GRAPH_BYTES // 1_000_000} MB.", remedy="Give one network.")
    return content


def _refuse_sizes(graph: Graph, sizes: Sizes, title: str) -> None:
    words = {"batch": "batch", "image_size": "image size", "sequence": "number of tokens"}
    for name, word in words.items():
        if getattr(sizes, name) not in (None, getattr(graph, name)):
            has = f"was exported with the {word} {getattr(graph, name):,}" if getattr(graph, name) else f"has no {word}"
            raise BadInput(f"{title} {has}.", remedy=f"Leave the {word} out, or export the network with that one.")


class _Program:
    def __init__(self, module: Mapping[str, Any]) -> None:
        self._graph = module["graph"]
        self._numbers: dict[str, int] = {}
        specs = module["signature"]["input_specs"]
        self._parameters = {spec["parameter"]["arg"]["name"] for spec in specs if "parameter" in spec}
        kinds = ("parameter", "buffer", "tensor_constant")
        self._constants = {spec[kind]["arg"]["name"] for spec in specs for kind in kinds if kind in spec}
        self._inputs = [spec["user_input"]["arg"].get("as_tensor", {}).get("name") for spec in specs if "user_input" in spec]

    def graph(self) -> Graph:
        values = self._graph["tensor_values"]
        inputs = [(self._tensor(name).dims, values[name]["dtype"] in _TOKEN_TYPES) for name in self._inputs if name in values]
        batch, image_size, sequence = sample_of((dims, counts_tokens) for dims, counts_tokens in inputs if dims)
        readers: dict[str, set[str]] = {}
        operators = tuple(self._operators(batch, readers))
        trained = {name: self._tensor(name) for name in self._parameters if name in readers}
        tables = sum(tensor.values or 0 for name, tensor in trained.items() if readers[name] == {"embedding"})
        return Graph(
            operators=operators,
            parameters=sum(tensor.values or 0 for tensor in trained.values()),
            tables=tables,
            weight_bytes=sum(tensor.bytes for tensor in trained.values()),
            batch=batch,
            image_size=image_size,
            sequence=sequence,
        )

    def _operators(self, batch: int, readers: dict[str, set[str]]) -> Iterator[Operator]:
        for node in self._graph["nodes"]:
            target = str(node["target"])
            name = target.removeprefix("torch.ops.aten.").partition(".")[0].rstrip("_")
            arguments = {one["name"]: one["arg"] for one in node["inputs"]}
            inputs = [input_name for argument in arguments.values() for input_name in _names(argument)]
            outputs = [output_name for argument in node["outputs"] for output_name in _names(argument)]
            for input_name in inputs:
                readers.setdefault(input_name, set()).add(name)
            if inputs and self._constants.issuperset(inputs):
                self._constants.update(outputs)
            elif target.startswith("torch.ops.aten.") and not is_free(f"aten.{name}") and outputs:
                tensors, results = (tuple(map(self._tensor, names)) for names in (inputs, outputs))
                nodes = _recurrent(tensors) if name in _RECURRENT else (_node(name, tensors, results, arguments),)
                yield from (counted(one, batch) for one in nodes)
            elif target.startswith("torch.ops.") and not target.startswith("torch.ops.aten."):
                yield counted(GraphNode(target[:80], (), ()), batch)

    def _tensor(self, name: str) -> Tensor:
        stated = self._graph["tensor_values"][name]
        dims = tuple(_size(size) for size in stated["sizes"])
        precision, bits = _TYPES.get(stated["dtype"], ("", 32))
        number = self._numbers.setdefault(name, len(self._numbers))
        known = tuple(dim for dim in dims if dim is not None and dim >= 0)
        return Tensor(
            number=number,
            dims=known if len(known) == len(dims) else None,
            precision=precision,
            bits=bits,
            constant=name in self._constants,
        )


def _node(name: str, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...], arguments: Mapping[str, Any]) -> GraphNode:
    """By the ONNX name where it multiplies, else by its own."""
    if name.startswith("conv"):
        transposed = "transpose" in name or arguments.get("transposed", {}).get("as_bool")
        stride = arguments.get("stride", {}).get("as_ints")
        groups = arguments.get("groups", {}).get("as_int", 1)
        attributes = {"group": groups} | ({"strides": tuple(stride)} if stride else {})
        return GraphNode("ConvTranspose" if transposed else "Conv", inputs, outputs, attributes)
    if name in _MATRICES:
        first = _MATRICES[name]
        return GraphNode("MatMul", inputs[first : first + 2], outputs)
    if name == "einsum":
        return GraphNode("Einsum", inputs, outputs, {"equation": arguments["equation"]["as_string"]})
    if _ATTENTION in name:
        return GraphNode("Attention", inputs[:3], outputs[:1])
    return GraphNode(f"aten.{name}", inputs, outputs)


def _recurrent(inputs: tuple[Tensor, ...]) -> Iterator[GraphNode]:
    """Each matrix of each layer takes every step of every sample."""
    steps = math.prod((inputs[0].dims or (0,))[:-1])
    for weight in inputs[1:]:
        if weight.constant and weight.dims is not None and len(weight.dims) == 2:
            wide, deep = weight.dims
            step = replace(inputs[0], number=-weight.number, dims=(steps, deep))
            yield GraphNode("MatMul", (step, weight), (replace(step, dims=(steps, wide)),))


def _names(argument: object) -> Iterable[str]:
    """Tensors that an argument names, alone or in lists."""
    if isinstance(argument, dict):
        for key, value in argument.items():
            if key == "as_tensor":
                yield value["name"]
            elif key == "as_tensors":
                yield from (tensor["name"] for tensor in value)
            elif key in ("as_optional_tensor", "as_optional_tensors"):
                for tensor in value if isinstance(value, list) else [value]:
                    yield from _names(tensor)


def _size(size: Mapping[str, Any]) -> int | None:
    value = size.get("as_int")
    if value is None:
        value = ((size.get("as_expr") or {}).get("hint") or {}).get("as_int")
    return value if isinstance(value, int) else None
