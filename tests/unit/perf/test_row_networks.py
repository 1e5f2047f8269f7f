"""Measurement rows of networks: which network they mean, at which size, with which software; what nobody knows is refused."""

from __future__ import annotations

import pytest

from chipwise.calibration.families import route
from chipwise.catalog.load import load
from chipwise.errors import UnknownName
from chipwise.perf.net import Size
from chipwise.perf.part import Parts
from chipwise.perf.published_vision import VisionCase
from chipwise.perf.row_networks import net_of_row, side_of
from chipwise.perf.rows import Row

PARTS = Parts(load(prices=False).chips.values())


def row(**cells: str) -> Row:
    usual = {"model": "convnext_base", "task": "image-classification", "chip": "RTX-4090", "metric_name": "samples_per_s"}
    return Row({**usual, "batch_or_concurrency": "64", **cells})


def case(**cells: str) -> VisionCase:
    routed = route(row(**cells), PARTS)
    assert not isinstance(routed, str), routed
    found = routed[1]
    assert isinstance(found, VisionCase)
    return found


def test_networks_by_name_are_answered_by_their_own_counts() -> None:
    flops = {name: case(model=name).net.flop for name in ("convnext_base", "mobilenetv2_100", "swin_base_patch4_window7_224")}
    assert len(set(flops.values())) == 3
    assert flops["convnext_base"] == pytest.approx(2 * 15.38e9, rel=0.02)


def test_the_size_of_pictures_is_read() -> None:
    assert side_of(row(image_size="384")) == 384
    assert side_of(row(image_size="512x2048")) == 1024
    assert case(image_size="448").net.flop == pytest.approx(4 * case().net.flop, rel=0.01)


@pytest.mark.parametrize(
    ("compiled", "engine", "name"),
    [
        ("eager", "PyTorch 2.4.0", "pytorch"),
        ("eager", "PyTorch 1.12", "pytorch-1"),
        ("eager", "diffusers 0.17 PyTorch 2.0 eager", "pytorch"),
        ("compile", "PyTorch 2.4.0", "pytorch-compiled"),
        ("graph", "PyTorch 2.11.0", "cuda-graph"),
        ("tensorrt", "TensorRT 8.6", "tensorrt"),
        ("tensorrt", "Paddle Inference", "tensorrt"),
        ("torchscript", "PyTorch", "torchscript"),
    ],
)
def test_what_compiles_a_network_is_its_engine(compiled: str, engine: str, name: str) -> None:
    assert case(compiled=compiled, engine=engine).engine == name


def test_a_row_may_describe_its_network() -> None:
    net = case(model="our-own-net", gflops="8", flops_convention="2xMAC", params_m="25", image_size="224").net
    assert net.flop == pytest.approx(8e9, rel=0.01)
    assert net.parameters == pytest.approx(25e6)


def test_a_name_that_nobody_knows_is_refused_with_what_to_give() -> None:
    with pytest.raises(UnknownName):
        net_of_row(row(model="our-own-net"), 128.0, Size())
    said = route(row(model="convnext_bas"), PARTS)
    assert isinstance(said, str)
    assert "convnext_base" in said
    assert "gflops" in said


def test_detection_segmentation_and_their_training_are_answered() -> None:
    assert case(model="YOLOv8m", task="object-detection").scenario == "static"
    trained = case(task="image-classification-train", compiled="eager", precision_weights="amp", chips="2")
    assert (trained.scenario, trained.batch, trained.setting) == ("train", 32.0, "amp")


def test_an_encoder_alone_writes_nothing() -> None:
    whole, encoder = (case(model=name, task="speech").net for name in ("whisper-small", "whisper-small-encoder"))
    assert encoder.kernels < 0.2 * whole.kernels
