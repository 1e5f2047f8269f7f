"""A network in an ONNX file, wherever a model may be named."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import pytest

import chipwise as cw
from chipwise.adapters.graphs import apart
from chipwise.errors import BadInput, MissingExtra
from command import Chipwise
from hand_graphs import resnet50


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Path:
    hand, out = resnet50()
    return hand.save(tmp_path_factory.mktemp("nets") / "net.onnx", out)


def test_its_table_fits_a_screen(chipwise: Chipwise, net: Path) -> None:
    done = chipwise("models", str(net), COLUMNS="80")
    lines = done.out.splitlines()
    assert (done.code, done.err) == (0, "")
    assert len(lines) <= 30
    assert max(map(len, lines)) <= 80
    assert "25,557,032" in done.out
    assert "4.09 G multiply-accumulates" in done.out
    assert "batch 1, image size 224; the file leaves open: batch, image size" in " ".join(done.out.split())


def test_json_has_the_shape_the_kinds_and_every_operator(chipwise: Chipwise, net: Path) -> None:
    (view,) = chipwise("models", str(net), "--image-size", "448", "--batch", "4", "--json").json
    graph = view["graph"]
    assert (graph["batch"], graph["image_size"]) == (4, 448)
    assert view["shape"]["macs"] * 4 == sum(line["macs"] for line in graph["kinds"]) == graph["total"]["macs"]
    assert len(graph["operators"]) == graph["total"]["count"] == 174
    assert graph["operators"][0]["kind"] == "convolution"


def test_it_is_predicted_and_planned_by_its_path(chipwise: Chipwise, net: Path) -> None:
    predicted = chipwise("predict", net.name, "--on", "l4", "--serve", "--batch", "32", "--json", cwd=net.parent).json
    assert predicted["model"] == "net.onnx"
    planned = chipwise("plan", net.name, "--serve", "--rps", "5", "--json", cwd=net.parent)
    assert planned.code == 0
    assert planned.json["choices"]


def test_a_workload_names_a_file_beside_it(chipwise: Chipwise, net: Path) -> None:
    workload = net.parent / "workload.yaml"
    workload.write_text("kind: serve\nname: pictures\nmodel: ./net.onnx\narrival: {rate: 5}\n", encoding="utf-8")
    assert chipwise("check", str(workload)).code == 0
    assert chipwise("plan", str(workload), "--json").json["choices"]
    workload.write_text("kind: serve\nname: pictures\nmodel: lost.onnx\narrival: {rate: 5}\n", encoding="utf-8")
    done = chipwise("check", str(workload))
    assert done.code == 2
    assert "There is no" in done.err
    assert "lost.onnx" in done.err


@pytest.mark.parametrize("content", [b"", b"kind: serve\n", b"\x08\x09:\xff\xff\xff\xff\x0f", b"\x00" * 1000])
@pytest.mark.parametrize("command", [["models"], ["predict", "--on", "l4", "--serve"], ["plan", "--serve", "--rps", "5"]])
def test_a_damaged_file_is_refused_in_a_sentence(
    chipwise: Chipwise, tmp_path: Path, content: bytes, command: list[str]
) -> None:
    path = tmp_path / "bad.onnx"
    path.write_bytes(content)
    done = chipwise(command[0], str(path), *command[1:])
    assert done.code == 2
    assert "bad.onnx" in done.err
    assert "Traceback" not in done.err


def test_without_the_library_the_pip_line_is_said(chipwise: Chipwise, net: Path) -> None:
    with patch.object(apart, "find_spec", return_value=None):
        hand, out = resnet50()
        done = chipwise("models", str(hand.save(net.parent / "other.onnx", out)))
    assert done.code == MissingExtra.exit_code
    assert "pip install 'chipwise[onnx]'" in done.err


def test_python_takes_the_path_as_the_command_line_does(net: Path) -> None:
    (row,) = cw.models(net, image_size=224)
    assert row.parameters == 25_557_032
    assert row.graph.total["count"] == 174
    assert (cw.predict(str(net), on="l4", serve=True, batch=32).value or 0) > 100
    with pytest.raises(BadInput, match="of a graph"):
        cw.models("llama-3.1-8b", image_size=224)


def test_sizes_of_a_graph_are_refused_where_there_is_none(chipwise: Chipwise) -> None:
    done = chipwise("models", "llama-3.1-8b", "--image-size", "224")
    assert done.code == 2
    assert "--image-size" in done.err
