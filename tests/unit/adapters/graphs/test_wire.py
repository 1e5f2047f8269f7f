"""An ONNX file is copied without its weights: what is large is never read, and what is kept has a bound."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import pytest
from onnx import ModelProto, TensorProto, helper

from chipwise.adapters.graphs import wire
from chipwise.adapters.graphs.wire import SMALL, without_weights
from chipwise.errors import BadInput


def model(*weights: TensorProto, description: str = "") -> ModelProto:
    node = helper.make_node("Relu", ["x"], ["y"], doc_string=description)
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", 1, [1])], [helper.make_tensor_value_info("y", 1, [1])], weights
    )
    return helper.make_model(graph)


def copied(content: bytes) -> ModelProto:
    read = ModelProto()
    read.ParseFromString(without_weights(BytesIO(content), "net.onnx"))
    return read


def test_small_tensors_stay_and_large_ones_keep_their_shape_alone() -> None:
    small = helper.make_tensor("small", TensorProto.INT64, [3], [1, 2, 3])
    large = TensorProto(name="large", dims=[SMALL], data_type=TensorProto.FLOAT, raw_data=bytes(4 * SMALL))
    listed = helper.make_tensor("listed", TensorProto.FLOAT, [SMALL], [0.5] * SMALL)
    kept, stripped, stripped_too = copied(model(small, large, listed).SerializeToString()).graph.initializer
    assert kept == small
    for tensor in (stripped, stripped_too):
        assert list(tensor.dims) == [SMALL]
        assert not tensor.raw_data
        assert not tensor.float_data


def test_all_but_descriptions_is_copied_as_it_is() -> None:
    assert copied(model(description="a long story").SerializeToString()) == model()


def test_weights_of_gigabytes_are_not_read(tmp_path: Path) -> None:
    """A file with a hole of 3 GB in the place of its weights."""
    size, path = 3 * 10**9, tmp_path / "net.onnx"
    tensor = b"\x08" + wire._encoded(size // 4) + b"\x10\x01" + b"\x42\x01w" + b"\x4a" + wire._encoded(size)
    graph = b"\x2a" + wire._encoded(len(tensor) + size) + tensor
    with path.open("wb") as file:
        file.write(b"\x3a" + wire._encoded(len(graph) + size) + graph)
        file.truncate(file.tell() + size)
    with path.open("rb") as file:
        read = ModelProto()
        read.ParseFromString(without_weights(file, "net.onnx"))
    assert [list(one.dims) for one in read.graph.initializer] == [[size // 4]]


@pytest.mark.parametrize("content", [b"", b"\x0f", b"\x00\x01", b"\x3a\x05\x0a", b"\xff" * 11, b"\x3b\x3c", b"\x39\x01"])
def test_what_is_no_message_is_refused(content: bytes) -> None:
    with pytest.raises(BadInput, match=r"net\.onnx"):
        without_weights(BytesIO(content), "net.onnx")


def test_a_graph_that_is_too_large_or_too_deep_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    content = b""
    for _ in range(100):  # a graph in an attribute of a node of a graph
        for tag in (b"\x32", b"\x2a", b"\x0a"):
            content = tag + wire._encoded(len(content)) + content
    with pytest.raises(BadInput, match="nests graphs"):
        without_weights(BytesIO(b"\x3a" + wire._encoded(len(content)) + content), "net.onnx")
    whole = model().SerializeToString()
    monkeypatch.setattr(wire, "MOST_FIELDS", 3)
    with pytest.raises(BadInput, match="more than 3 fields"):
        without_weights(BytesIO(whole), "net.onnx")
    monkeypatch.setattr(wire, "MOST_FIELDS", 1000)
    monkeypatch.setattr(wire, "GRAPH_BYTES", 5)
    with pytest.raises(BadInput, match="beside its weights"):
        without_weights(BytesIO(whole), "net.onnx")
