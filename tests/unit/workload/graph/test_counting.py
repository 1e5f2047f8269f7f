"""Operators counted by hand."""

from __future__ import annotations

import pytest

from chipwise.errors import BadInput
from chipwise.workload.graph.counting import DATA, counted, is_free
from chipwise.workload.graph.summary import LARGEST_COUNT, layers_of, lines_of, missing, shape_of
from chipwise.workload.graph.values import Graph, GraphNode, Operator, OperatorKind, Tensor
from chipwise.workload.model.counted import Layers

Dims = tuple[int, ...] | None


def node(operator: str, inputs: list[Dims], result: Dims, weights: tuple[int, ...] = (), **attributes: object) -> GraphNode:
    """`weights` are the positions of inputs that are constant."""
    tensors = tuple(Tensor(place, dims, constant=place in weights) for place, dims in enumerate(inputs))
    return GraphNode(operator, tensors, (Tensor(100, result),), attributes)


def graph(*operators: Operator, parameters: int = 1000, batch: int = 1) -> Graph:
    return Graph(operators, parameters, 0, 4.0 * parameters, batch)


@pytest.mark.parametrize(
    ("made", "kind", "macs"),
    [
        (node("Conv", [(2, 16, 8, 8), (32, 16, 3, 3)], (2, 32, 8, 8), (1,)), OperatorKind.CONVOLUTION, 2 * 32 * 64 * 16 * 9),
        (node("Conv", [(1, 16, 8, 8), (32, 4, 3, 3)], (1, 32, 8, 8), (1,), group=4), OperatorKind.GROUPED, 32 * 64 * 4 * 9),
        (node("Conv", [(1, 16, 8, 8), (16, 1, 5, 5)], (1, 16, 8, 8), (1,), group=16), OperatorKind.DEPTHWISE, 16 * 64 * 25),
        (
            node("ConvTranspose", [(1, 16, 8, 8), (16, 4, 2, 2)], (1, 4, 16, 16), (1,)),
            OperatorKind.CONVOLUTION,
            16 * 64 * 4 * 4,
        ),
        (
            node("QLinearConv", [(1, 3, 8, 8), (), (), (8, 3, 1, 1)], (1, 8, 8, 8), (1, 2, 3)),
            OperatorKind.CONVOLUTION,
            8 * 64 * 3,
        ),
        (node("MatMul", [(2, 7, 64), (64, 10)], (2, 7, 10), (1,)), OperatorKind.DENSE, 2 * 7 * 64 * 10),
        (node("MatMul", [(2, 4, 7, 16), (2, 4, 16, 7)], (2, 4, 7, 7)), OperatorKind.ATTENTION, 2 * 4 * 7 * 16 * 7),
        (node("Gemm", [(5, 3), (3, 4)], (5, 4), (1,)), OperatorKind.DENSE, 5 * 3 * 4),
        (node("Gemm", [(3, 5), (3, 4)], (5, 4), (1,), transA=1), OperatorKind.DENSE, 5 * 3 * 4),
        (node("Einsum", [(2, 3, 5), (5, 7)], (2, 3, 7), (1,), equation="bij,jk->bik"), OperatorKind.DENSE, 2 * 3 * 5 * 7),
        (
            node("Einsum", [(2, 3, 5), (2, 5, 7)], (2, 3, 7), equation="...ij,...jk->...ik"),
            OperatorKind.ATTENTION,
            2 * 3 * 5 * 7,
        ),
        (
            node("Attention", [(1, 4, 9, 16), (1, 4, 9, 16), (1, 4, 9, 16)], (1, 4, 9, 16)),
            OperatorKind.ATTENTION,
            2 * 4 * 9 * 9 * 16,
        ),
        (node("LSTM", [(6, 2, 10), (1, 32, 10), (1, 32, 8)], (6, 1, 2, 8), (1, 2)), OperatorKind.DENSE, 6 * 2 * 32 * 18),
        (node("Relu", [(2, 3)], (2, 3)), OperatorKind.ELEMENTWISE, 0),
        (node("Softmax", [(2, 3)], (2, 3)), OperatorKind.NORMALISATION, 0),
    ],
)
def test_an_operator_multiplies_what_is_computed_by_hand(made: GraphNode, kind: OperatorKind, macs: int) -> None:
    operator = counted(made)
    assert (operator.kind, operator.macs, operator.known) == (kind, macs, True)
    assert operator.flop == 2 * macs or kind in (OperatorKind.ELEMENTWISE, OperatorKind.NORMALISATION)


def test_bytes_are_those_of_inputs_and_results_and_of_the_rows_that_are_taken() -> None:
    added = counted(node("Add", [(10, 10), (10,)], (10, 10)))
    assert (added.read_bytes, added.written_bytes) == (440.0, 400.0)
    taken = counted(node("Gather", [(30_000, 64), (1, 5)], (1, 5, 64), (0,)))
    assert (taken.read_bytes, taken.written_bytes) == (4 * 5 * 64 + 4 * 5, 4 * 5 * 64)


@pytest.mark.parametrize(
    "made",
    [
        node("Conv", [None, (32, 16, 3, 3)], (2, 32, 8, 8), (1,)),
        node("MatMul", [(2, 3), (3, 4)], None),
        node("MatMul", [(), (3,)], ()),
        node("Einsum", [(2, 3), (3, 4)], (2, 4), equation="nonsense"),
        node("Einsum", [(2, 3), (3, 4)], (2, 4), equation="abcdefg,jk->ik"),
        node("LSTM", [(6, 2), (1, 32, 10), (1, 32, 8)], (6,)),
        node("Attention", [(2, 3), (3, 4), (4, 4)], (2, 4)),
        node("com.microsoft.FusedMatMul", [(2, 3), (3, 4)], (2, 4)),
        node("Relu", [None], None),
    ],
)
def test_what_cannot_be_counted_is_said_and_counts_as_nothing(made: GraphNode) -> None:
    operator = counted(made)
    assert not operator.known
    assert operator.macs == 0
    (sentence,) = missing(graph(operator))
    assert made.operator in sentence


def test_each_operator_stands_once_in_the_table_and_its_kind_is_known() -> None:
    rows = [line.split(",", 1) for line in DATA.read_text(encoding="utf-8").splitlines()[1:]]
    assert len({name for name, _ in rows}) == len(rows) > 100
    assert {kind.strip('"') for _, kind in rows} <= {*OperatorKind, "free"}
    assert is_free("Reshape")
    assert not is_free("Relu")


def test_a_graph_without_products_is_shown_but_not_predicted() -> None:
    shown = graph(counted(node("Relu", [(2, 3)], (2, 3))))
    assert [line.kind for line in lines_of(shown)] == [OperatorKind.ELEMENTWISE]
    with pytest.raises(BadInput, match="no convolution or matrix product"):
        shape_of(shown)


def test_a_graph_of_which_most_products_are_unknown_is_refused() -> None:
    known, unknown = (
        counted(node("MatMul", [(2, 3), (3, 4)], (2, 4), (1,))),
        counted(node("MatMul", [None, (3, 4)], None, (1,))),
    )
    assert shape_of(graph(known, unknown)).macs == 24
    with pytest.raises(BadInput, match="only 1 can be counted"):
        shape_of(graph(known, unknown, unknown))


def test_a_graph_whose_weights_are_in_unknown_operators_is_refused() -> None:
    known, strange = (counted(node(name, [(2, 3), (3, 4)], (2, 4), (1,))) for name in ("MatMul", "own.MatMul"))
    assert shape_of(graph(known, strange, parameters=24)).macs == 24
    with pytest.raises(BadInput, match=r"most of the weights: own\.MatMul"):
        shape_of(graph(known, strange, parameters=20))


def test_counts_beyond_all_networks_are_refused() -> None:
    huge = counted(node("MatMul", [(LARGEST_COUNT, 3), (3, 4)], (LARGEST_COUNT, 4), (1,)))
    with pytest.raises(BadInput, match="no network is that large"):
        shape_of(graph(huge))


def test_the_kind_of_layers_follows_from_what_is_multiplied() -> None:
    plain = counted(node("Conv", [(1, 16, 8, 8), (32, 16, 3, 3)], (1, 32, 8, 8), (1,)))
    depthwise = counted(node("Conv", [(1, 16, 8, 8), (16, 1, 5, 5)], (1, 16, 8, 8), (1,), group=16))
    grouped = counted(node("Conv", [(1, 16, 8, 8), (32, 4, 3, 3)], (1, 32, 8, 8), (1,), group=4))
    patches = counted(node("Conv", [(1, 3, 32, 32), (64, 3, 16, 16)], (1, 64, 2, 2), (1,), strides=(16, 16)))
    dense = counted(node("MatMul", [(1, 4, 64), (64, 64)], (1, 4, 64), (1,)))
    scores = counted(node("MatMul", [(1, 1, 4, 64), (1, 1, 64, 4)], (1, 1, 4, 4)))
    windows = counted(node("MatMul", [(9, 1, 4, 64), (9, 1, 64, 4)], (9, 1, 4, 4)))
    assert layers_of(graph(*[plain] * 6, dense)) is Layers.CNN
    assert layers_of(graph(*[plain] * 5, depthwise)) is Layers.DEPTHWISE
    assert layers_of(graph(*[plain] * 5, grouped)) is Layers.GROUPED
    assert layers_of(graph(dense, dense)) is Layers.MLP
    assert layers_of(graph(patches, dense, scores)) is Layers.VIT
    assert layers_of(graph(patches, dense, windows)) is Layers.SWIN
    assert layers_of(graph(plain, plain, dense, scores)) is Layers.HYBRID
