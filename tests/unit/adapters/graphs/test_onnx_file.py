"""Networks made by hand, operator by operator, against counts that were computed without the library."""

from __future__ import annotations

import random
from contextlib import suppress
from io import BytesIO
from pathlib import Path

import pytest
from onnx import TensorProto, helper

from chipwise.adapters.graphs.apart import read as read_apart
from chipwise.adapters.graphs.onnx_file import MOST_NODES, read
from chipwise.adapters.graphs.sizes import Sizes
from chipwise.adapters.graphs.wire import without_weights
from chipwise.errors import BadInput, ChipwiseError
from chipwise.workload.graph.summary import lines_of, missing, shape_of, total_of
from chipwise.workload.graph.values import Graph, OperatorKind
from chipwise.workload.model.counted import CountedShape, Layers
from chipwise.workload.model.networks import rows_of
from chipwise.workload.model.networks import shape_of as shape_of_rows
from effort import seeds
from hand_graphs import Hand, depthwise_block, encoder_layer, mlp, resnet50

USUAL = Sizes()


def graph_of(hand: Hand, *results: str, sizes: Sizes = USUAL) -> Graph:
    return read(hand.model(*results).SerializeToString(), "hand.onnx", sizes)


def test_an_mlp_counts_its_matrices() -> None:
    hand, out = mlp([784, 512, 256, 10])
    shape = shape_of(graph_of(hand, out))
    weights = 784 * 512 + 512 * 256 + 256 * 10
    assert shape.macs == weights
    assert shape.parameters == weights + 512 + 256 + 10
    assert shape.activations == 512 + 256 + 10
    assert (shape.layers, shape.products, shape.image_size) == (Layers.MLP, 3, 0)


def test_a_resnet_50_counts_what_the_table_says_within_2_percent() -> None:
    hand, out = resnet50()
    shape, listed = shape_of(graph_of(hand, out)), shape_of_rows(rows_of("resnet-50"))
    assert shape.parameters == hand.parameters == 25_557_032  # as torchvision prints it
    assert shape.parameters == pytest.approx(listed.parameters, rel=0.02)
    assert shape.macs == pytest.approx(listed.macs, rel=0.02)
    assert shape.activations == pytest.approx(listed.activations, rel=0.02)
    assert (shape.layers, shape.products, shape.image_size) == (listed.layers, listed.products, listed.image_size)


def test_a_depthwise_block_counts_its_groups() -> None:
    hand, out = depthwise_block(side=56, width=32)
    graph = graph_of(hand, out)
    places, wide = 56 * 56, 6 * 32
    by_kind = {line.kind: line.macs for line in lines_of(graph)}
    assert by_kind[OperatorKind.DEPTHWISE] == places * wide * 9
    assert by_kind[OperatorKind.CONVOLUTION] == 2 * places * wide * 32
    assert shape_of(graph).layers is Layers.DEPTHWISE
    assert shape_of(graph).parameters == hand.parameters


def test_an_encoder_layer_counts_its_products_and_scores() -> None:
    tokens, width, ffn = 50, 64, 256
    hand = Hand()
    out = encoder_layer(hand, hand.input(1, tokens, width), tokens, width, 4, ffn)
    graph = graph_of(hand, out)
    shape = shape_of(graph)
    scores = 2 * tokens * tokens * width
    assert {line.kind: line.macs for line in lines_of(graph) if line.macs} == {
        OperatorKind.DENSE: tokens * (4 * width * width + 2 * width * ffn),
        OperatorKind.ATTENTION: scores,
    }
    assert shape.activations == tokens * (6 * width + ffn) + 4 * tokens * tokens
    assert (shape.layers, shape.products) == (Layers.VIT, 4)  # queries, keys and values are one
    assert (shape.sequence, shape.image_size) == (tokens, 0)
    assert graph.operators[0].kind is OperatorKind.NORMALISATION


def test_tables_that_are_only_looked_up_are_told_apart() -> None:
    hand = Hand()
    ids = hand.input("batch", "sequence", kind=TensorProto.INT64)
    out = hand.dense(hand.node("Gather", hand.weight(30_000, 64), ids), 64, 64)
    graph = graph_of(hand, out, sizes=Sizes(sequence=40))
    assert (graph.tables, graph.sequence, graph.batch) == (30_000 * 64, 40, 1)
    assert shape_of(graph).multiplied == 64 * 64 + 64
    assert shape_of(graph).macs == 40 * 64 * 64


def test_names_do_not_matter() -> None:
    shapes = {shape_of(graph_of(*resnet50(prefix=prefix))) for prefix in ("", "x/y.", "Conv_Attention_batch ")}
    assert len(shapes) == 1


def test_all_counts_of_a_batch_grow_with_it_and_those_of_a_sample_stay() -> None:
    hand, out = resnet50()
    one, many = (graph_of(hand, out, sizes=Sizes(batch=batch, image_size=64)) for batch in (1, 8))
    assert total_of(many).macs == 8 * total_of(one).macs
    assert total_of(many).written_bytes == 8 * total_of(one).written_bytes
    assert shape_of(many) == shape_of(one)


def test_a_fixed_batch_is_divided_out() -> None:
    fixed, open_ = (shape_of(graph_of(*mlp([64, 32, 8], batch=batch))) for batch in (16, "batch"))
    assert fixed == open_


def test_more_pixels_are_more_of_everything_but_weights() -> None:
    hand, out = resnet50()
    small, large = (shape_of(graph_of(hand, out, sizes=Sizes(image_size=side))) for side in (224, 448))
    assert large.parameters == small.parameters
    assert large.macs == pytest.approx(4 * small.macs, rel=0.01)
    assert small.forward_flop(448) == pytest.approx(large.forward_flop(), rel=0.01)


@pytest.mark.parametrize(
    ("dims", "sizes", "words"),
    [
        ((1, 3, 64, 64), Sizes(image_size=128), "fixed image size 64"),
        ((4, 3, 64, 64), Sizes(batch=1), "fixed batch 4"),
        ((1, 3, 64, 64), Sizes(sequence=10), "no number of tokens"),
    ],
)
def test_a_size_that_the_file_does_not_leave_open_is_refused(dims: tuple[int, ...], sizes: Sizes, words: str) -> None:
    hand = Hand()
    out = hand.conv(hand.input(*dims), 3, 8, 3)
    with pytest.raises(BadInput, match=words):
        graph_of(hand, out, sizes=sizes)


def test_channels_may_come_last() -> None:
    hand = Hand()
    picture = hand.node("Transpose", hand.input(None, None, None, 3), perm=[0, 3, 1, 2])
    graph = graph_of(hand, hand.conv(picture, 3, 8, 3), sizes=Sizes(image_size=96))
    assert (graph.image_size, graph.batch) == (96, 1)
    assert shape_of(graph).macs == 96 * 96 * 8 * 27


def test_quantised_weights_count_in_their_own_format() -> None:
    hand = Hand()
    weight = hand.weight(64, 32, kind=TensorProto.INT8)
    scale, zero = hand.weight(32, trained=False), hand.weight(32, kind=TensorProto.INT8, trained=False)
    out = hand.node("MatMul", hand.input(1, 64), hand.node("DequantizeLinear", weight, scale, zero, axis=1))
    graph = graph_of(hand, out)
    assert (graph.parameters, graph.weight_bytes) == (64 * 32, 64 * 32)
    assert [(one.kind, one.macs) for one in graph.operators] == [(OperatorKind.DENSE, 64 * 32)]


def test_an_operator_that_nobody_knows_is_said() -> None:
    hand, out = mlp([64, 32, 8])
    hand.nodes.append(helper.make_node("Sorcery", [out], ["magic"], domain="own"))
    graph = graph_of(hand, "magic")
    assert shape_of(graph).macs == 64 * 32 + 32 * 8
    assert missing(graph) == ("Operators that are not known, and count as nothing: own.Sorcery (1).",)


def test_of_a_condition_the_larger_branch_counts_and_of_a_loop_one_turn() -> None:
    hand = Hand()
    x, condition = hand.input(2, 4), hand.input(kind=TensorProto.BOOL)
    weight = hand.weight(4, 4)
    then = helper.make_graph(
        [helper.make_node("MatMul", [x, weight], ["t"])], "then", [], [helper.make_tensor_value_info("t", 1, [2, 4])]
    )
    other = helper.make_graph(
        [helper.make_node("Relu", [x], ["e"])], "else", [], [helper.make_tensor_value_info("e", 1, [2, 4])]
    )
    out = hand.node("If", condition, then_branch=then, else_branch=other)
    assert [one.name for one in graph_of(hand, out).operators] == ["MatMul"]


def test_functions_of_a_file_are_written_out_and_those_that_never_end_are_refused() -> None:
    hand, out = mlp([64, 32])
    hand.nodes.append(helper.make_node("f", [out], ["z"], domain="own"))
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    model = hand.model("z")
    model.opset_import.extend(opsets[1:])
    body = helper.make_node("Relu", ["a"], ["b"])
    model.functions.append(helper.make_function("own", "f", ["a"], ["b"], [body], opsets))
    assert [one.name for one in read(model.SerializeToString(), "f", USUAL).operators][-1] == "Relu"
    model.functions[0].node[0].op_type, model.functions[0].node[0].domain = "f", "own"
    with pytest.raises(BadInput, match="call each other"):
        read(model.SerializeToString(), "f", USUAL)


def test_functions_that_write_out_to_too_much_are_refused() -> None:
    hand, out = mlp([64, 32])
    hand.nodes.append(helper.make_node("f0", [out], ["z"], domain="own"))
    model = hand.model("z")
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    model.opset_import.extend(opsets[1:])
    for depth in range(20):
        body = [helper.make_node(f"f{depth + 1}", ["a"], ["b"], domain="own") for _ in range(10)]
        if depth == 19:
            body = [helper.make_node("Relu", ["a"], ["b"])]
        model.functions.append(helper.make_function("own", f"f{depth}", ["a"], ["b"], body, opsets))
    with pytest.raises(BadInput, match=rf"more than {MOST_NODES:,}"):
        read(model.SerializeToString(), "f", USUAL)


def test_what_comes_from_another_process_is_the_same(tmp_path: Path) -> None:
    hand, out = resnet50()
    assert read_apart(hand.save(tmp_path / "net.onnx", out), USUAL) == graph_of(hand, out)


@pytest.mark.parametrize("content", [b"", b"\x00", b"not a model", b"\xff" * 500, bytes(range(256)), b"PK\x03\x04" + b"x" * 90])
def test_a_file_that_is_no_model_is_refused_in_a_sentence(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(content)
    with pytest.raises(BadInput, match=r"net\.onnx"):
        read_apart(path, USUAL)


@pytest.mark.parametrize("name", ["missing.onnx", "folder.onnx", "a\0b.onnx"])
def test_a_path_that_leads_to_no_file_is_refused_in_a_sentence(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder.onnx").mkdir()
    with pytest.raises(BadInput, match=r"There is no|Cannot read"):
        read_apart(tmp_path / name, USUAL)


@pytest.mark.chance
@pytest.mark.parametrize("seed", seeds(40))
def test_damaged_bytes_give_counts_or_a_sentence(seed: int) -> None:
    chance = random.Random(seed)
    hand, out = depthwise_block()
    whole = hand.model(out).SerializeToString()
    for _ in range(25):
        damaged = bytearray(whole[: chance.randrange(len(whole))] if chance.random() < 0.3 else whole)
        for _ in range(chance.choice((1, 2, 8))):
            place = chance.randrange(len(damaged) + 1)
            damaged[place : place + chance.choice((0, 1, 1, 5))] = chance.randbytes(chance.choice((0, 1, 1, 4)))
        _counts_or_sentence(bytes(damaged))


def _counts_or_sentence(content: bytes) -> None:
    with suppress(ChipwiseError):
        shape = shape_of(read(without_weights(BytesIO(content), "damaged"), "damaged", USUAL))
        assert isinstance(shape, CountedShape)
        assert min(shape.macs, shape.parameters, shape.activations, shape.products) >= 1


def test_shapes_that_the_graph_computes_are_followed() -> None:
    """Into windows of 7 x 7, by divisions that the library's own propagation gives up on."""
    hand = Hand()
    x = hand.input("batch", 56, 56, 32)
    side = hand.node("Gather", hand.node("Shape", x), hand.shape(1), axis=0)
    windows = hand.node("Cast", hand.node("Floor", hand.node("Cast", hand.node("Div", side, hand.shape(7)), to=1)), to=7)
    sizes = hand.node("Concat", hand.shape(-1), windows, hand.shape(7), windows, hand.shape(7, 32), axis=0)
    cut = hand.node("Transpose", hand.node("Reshape", x, sizes), perm=[0, 1, 3, 2, 4, 5])
    out = hand.dense(hand.node("Reshape", cut, hand.shape(-1, 49, 32)), 32, 96)
    graph = graph_of(hand, out)
    assert missing(graph) == ()
    assert shape_of(graph).macs == 56 * 56 * 32 * 96
