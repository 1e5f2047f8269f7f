"""Predictions from graphs: laws that hold whatever the network is, and agreement with the same network by name."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto

from chipwise.adapters.graphs.onnx_file import read
from chipwise.adapters.graphs.sizes import Sizes
from chipwise.api.session.config import Config
from chipwise.api.session.graph import model_of
from chipwise.api.session.wiring import Session
from chipwise.errors import BadInput
from chipwise.predictor.known import Known
from chipwise.predictor.predict import predict
from chipwise.predictor.values import SamplePrediction
from chipwise.workload.model.registry import Model
from hand_graphs import Hand, encoder_layer, mlp, resnet50


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Known:
    home: Path = tmp_path_factory.mktemp("home")
    return Session(Config(home / "config", home / "data"), date(2026, 11, 15), []).known


def model(hand: Hand, out: str, name: str = "net.onnx", image_size: int | None = None) -> Model:
    return model_of(name, read(hand.model(out).SerializeToString(), name, Sizes(image_size=image_size)))


def rate(known: Known, network: Model, chip: str, **options: object) -> float:
    predicted = predict(known.with_model(network), network.name, chip, "serve", dict(options))
    assert isinstance(predicted, SamplePrediction)
    return float(predicted.samples_per_s.value)


def convolutions(widths: list[int], side: int = 56) -> tuple[Hand, str]:
    hand = Hand()
    x = hand.input("batch", 3, side, side)
    for ins, outs in zip([3, *widths], widths, strict=False):
        x = hand.node("Relu", hand.conv(x, ins, outs, 3))
    return hand, x


def encoder(layers: int, tokens: int = 64, width: int = 128) -> tuple[Hand, str]:
    hand = Hand()
    x = hand.input(1, tokens, width)
    for _ in range(layers):
        x = encoder_layer(hand, x, tokens, width, 4, 4 * width)
    return hand, x


@pytest.mark.parametrize("chip", ["l4", "h100", "t4"])
@settings(max_examples=15, deadline=None)
@given(layers=st.integers(1, 12), more=st.integers(1, 12), batch=st.sampled_from([1, 16, 128]))
def test_more_layers_of_one_kind_are_never_faster(known: Known, chip: str, layers: int, more: int, batch: int) -> None:
    for made in (lambda n: convolutions([64] * n), lambda n: mlp([512] * (n + 1)), encoder):
        few, many = (model(*made(count)) for count in (layers, layers + more))
        assert rate(known, many, chip, batch=batch) <= rate(known, few, chip, batch=batch) * 1.0001


@settings(max_examples=15, deadline=None)
@given(width=st.integers(4, 64), factor=st.integers(2, 6), batch=st.sampled_from([1, 32]))
def test_wider_layers_are_never_faster(known: Known, width: int, factor: int, batch: int) -> None:
    narrow, wide = (model(*convolutions([8 * one] * 6)) for one in (width, factor * width))
    assert rate(known, wide, "a100", batch=batch) <= rate(known, narrow, "a100", batch=batch) * 1.0001


def test_the_name_of_a_file_changes_nothing(known: Known) -> None:
    rates = {rate(known, model(*resnet50(), name=name), "l4", batch=32) for name in ("net.onnx", "resnet50.onnx", "vit.onnx")}
    assert len(rates) == 1


@pytest.mark.parametrize("chip", ["l4", "a100", "h100", "t4"])
@pytest.mark.parametrize("engine", ["tensorrt", "pytorch"])
def test_a_resnet_50_from_its_graph_is_near_the_one_by_name(known: Known, chip: str, engine: str) -> None:
    """Not equal: by name its own measurements count, and each of its layers rather than their mean."""
    by_graph = rate(known, model(*resnet50()), chip, batch=32, engine=engine)
    named = predict(known, "resnet-50", chip, "serve", {"batch": 32, "engine": engine})
    assert isinstance(named, SamplePrediction)
    assert by_graph == pytest.approx(named.samples_per_s.value, rel=0.5)


def test_a_larger_picture_is_never_faster(known: Known) -> None:
    network = model(*resnet50())
    rates = [rate(known, network, "l4", batch=8, image_size=side) for side in (128, 224, 448)]
    assert rates == sorted(rates, reverse=True)


def test_a_text_network_is_asked_by_tokens_and_not_by_pixels(known: Known) -> None:
    hand = Hand()
    x = hand.node("Gather", hand.weight(30_000, 128), hand.input("batch", 64, kind=TensorProto.INT64))
    text = model(hand, encoder_layer(hand, x, 64, 128, 4, 512))
    short, long = (rate(known, text, "l4", batch=8, input_tokens=tokens) for tokens in (64, 256))
    assert long < short
    with pytest.raises(BadInput, match="image-size"):
        rate(known, text, "l4", image_size=224)
