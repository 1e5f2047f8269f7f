"""A graph's totals: by kind of operator for people, and as the counted network that prediction knows.

All counts of the network are per sample; a file whose batch is fixed is divided by it. The kind of layers is read off the
products: attention that takes part makes a transformer (in windows: swin; beside convolutions that are more than the cutting of
the picture into tokens: hybrid), else depthwise or grouped convolutions where at least a sixth of the convolutions are such,
else plain convolutions or dense layers, whichever multiply more.
Limits: one mean layer stands for all (`workload/model/counted`); products that read the same values (queries, keys, values)
are one, for engines join them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from chipwise.errors import BadInput
from chipwise.workload.graph.values import Graph, Operator, OperatorKind
from chipwise.workload.model.counted import CountedShape, Layers

LARGEST_COUNT = 10**18  # of any count: no network has more
_SHARE = 1 / 6  # of the convolutions that are grouped or depthwise, in networks called so
_HYBRID_SHARE = 0.2  # of the multiply-accumulates in convolutions, in networks that convolve and attend
_HALF = 0.5  # of the products that may be left uncounted


@dataclass(frozen=True, slots=True)
class KindTotal:
    """Operators of one kind, together."""

    kind: OperatorKind
    count: int
    macs: int
    flop: int
    read_bytes: float
    written_bytes: float
    precisions: tuple[str, ...]  # the most used first


def lines_of(graph: Graph) -> tuple[KindTotal, ...]:
    return tuple(
        _line(kind, operators)
        for kind in OperatorKind
        if (operators := [operator for operator in graph.operators if operator.kind is kind])
    )


def total_of(graph: Graph) -> KindTotal:
    return _line(OperatorKind.OTHER, graph.operators)


def _line(kind: OperatorKind, operators: Iterable[Operator]) -> KindTotal:
    operators = list(operators)
    return KindTotal(
        kind=kind,
        count=len(operators),
        macs=sum(one.macs for one in operators),
        flop=sum(one.flop for one in operators),
        read_bytes=sum(one.read_bytes for one in operators),
        written_bytes=sum(one.written_bytes for one in operators),
        precisions=tuple(name for name, _ in Counter(one.precision for one in operators if one.precision).most_common()),
    )


def missing(graph: Graph) -> tuple[str, ...]:
    """What could not be counted, in sentences: products first."""
    unknown = [operator for operator in graph.operators if not operator.known]
    products = Counter(operator.name for operator in unknown if operator.kind.multiplies)
    strange = Counter(operator.name for operator in unknown if operator.kind is OperatorKind.OTHER)
    shapes = Counter(o.name for o in unknown if not o.kind.multiplies and o.kind is not OperatorKind.OTHER)
    sentences = (
        (products, "Products that are not counted, since their shapes depend on the data or are not stated"),
        (strange, "Operators that are not known, and count as nothing"),
        (shapes, "Other operators whose shapes depend on the data, and count as nothing"),
    )
    return tuple(f"{words}: {_listed(counts)}." for counts, words in sentences if counts)


def _listed(counts: Counter[str], most: int = 4) -> str:
    shown = [f"{name[:40]} ({count})" for name, count in counts.most_common(most)]
    return ", ".join(shown) + (f" and {len(counts) - most} more" if len(counts) > most else "")


def layers_of(graph: Graph) -> Layers:
    products = [operator for operator in graph.operators if operator.kind.multiplies]
    attention = [operator for operator in products if operator.kind is OperatorKind.ATTENTION]
    convolutions = [operator for operator in products if operator.kind.convolves]
    macs = sum(operator.macs for operator in products)
    convolved = sum(operator.macs for operator in convolutions if not operator.patches)
    if attention:
        if convolved > _HYBRID_SHARE * macs:
            return Layers.HYBRID
        windowed = sum(operator.macs for operator in attention if operator.windowed)
        return Layers.SWIN if 2 * windowed > sum(operator.macs for operator in attention) else Layers.VIT
    kinds = Counter(operator.kind for operator in convolutions)
    for kind, layers in ((OperatorKind.DEPTHWISE, Layers.DEPTHWISE), (OperatorKind.GROUPED, Layers.GROUPED)):
        if convolutions and kinds[kind] >= _SHARE * len(convolutions):
            return layers
    return Layers.CNN if 2 * convolved > macs else Layers.MLP


def shape_of(graph: Graph) -> CountedShape:
    """As prediction takes it; BadInput where nothing, or too little, could be counted."""
    products = [operator for operator in graph.operators if operator.kind.multiplies]
    known = [operator for operator in products if operator.known]
    if not sum(operator.macs for operator in known):
        raise BadInput(
            "The graph has no convolution or matrix product of which the size is known: nothing can be predicted from it.",
            remedy=" ".join(missing(graph)) or "Give the graph of a network.",
        )
    if len(known) < _HALF * len(products):
        raise BadInput(
            f"Of {len(products)} convolutions and matrix products in the graph only {len(known)} can be counted.",
            remedy="Export it with fixed shapes, or with those of all values (onnx.shape_inference).",
        )
    unknown = {one.name: one.weights for one in graph.operators if one.kind is OperatorKind.OTHER}
    if sum(one.weights for one in graph.operators if one.name in unknown) > _HALF * graph.parameters:
        most = max(unknown, key=lambda name: unknown[name])
        raise BadInput(
            f"Operators that are not known hold most of the weights: {most[:60]}.",
            remedy="Export the network with plain operators, or state {kind: network, parameters, macs, layers}.",
        )
    batch = graph.batch
    macs, results = (_per_sample(sum(getattr(one, name) for one in known), batch) for name in ("macs", "results"))
    parameters = max(graph.parameters, 1)
    if max(macs, results, parameters) > LARGEST_COUNT:
        raise BadInput(
            f"The graph counts {max(macs, results, parameters):.0e}: no network is that large.", remedy="Check the file."
        )
    return CountedShape(
        parameters=parameters,
        macs=macs,
        activations=results,
        layers=layers_of(graph),
        products=max(len({one.reads if one.kind is OperatorKind.DENSE else -2 - place for place, one in _weighted(known)}), 1),
        image_size=graph.image_size,
        sequence=graph.sequence,
        tables=min(graph.tables, parameters - 1),
    )


def _weighted(known: Iterable[Operator]) -> list[tuple[int, Operator]]:
    return [(place, operator) for place, operator in enumerate(known) if operator.kind is not OperatorKind.ATTENTION]


def _per_sample(count: int, batch: int) -> int:
    return max(round(count / batch), 1)
