"""A network that was read from its graph: as prediction takes it, by kind of operator, and operator by operator."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from chipwise.errors import BadInput
from chipwise.views.catalog import model_view
from chipwise.workload.graph.summary import KindTotal, lines_of, missing, total_of
from chipwise.workload.graph.values import Graph, Operator
from chipwise.workload.model.registry import Model

View = dict[str, Any]


def graph_view(name: str, graph: Graph, model: Model | BadInput) -> View:
    """Of the file of this name, and its model; `refused` says why nothing can be predicted from it, and is null where that can
    be."""
    if isinstance(model, BadInput):
        view: View = {"name": name, "parameters": graph.parameters, "shape_kind": "network", "shape": None}
        return view | {"graph": _graph(graph, model)}
    return model_view(model) | {"graph": _graph(graph, None)}


def _graph(graph: Graph, refused: BadInput | None) -> View:
    total = total_of(graph)
    return {
        "batch": graph.batch,
        "image_size": graph.image_size or None,
        "sequence": graph.sequence or None,
        "assumed": dict(graph.free),
        "weight_bytes": graph.weight_bytes,
        "table_parameters": graph.tables,
        "kinds": [_line(line) for line in lines_of(graph)],
        "total": {key: value for key, value in _line(total).items() if key != "kind"},
        "notes": [*graph.notes, *missing(graph)],
        "refused": None if refused is None else refused.message,
        "operators": [_operator(operator) for operator in graph.operators],
    }


def _line(line: KindTotal) -> View:
    return asdict(line) | {"kind": str(line.kind), "precisions": list(line.precisions)}


def _operator(operator: Operator) -> View:
    return {
        "operator": operator.name,
        "kind": str(operator.kind),
        "macs": operator.macs if operator.known else None,
        "flop": operator.flop if operator.known else None,
        "read_bytes": operator.read_bytes if operator.known else None,
        "written_bytes": operator.written_bytes if operator.known else None,
        "precision": operator.precision,
    }
