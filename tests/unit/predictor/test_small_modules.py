"""Networks on small modules against published runs: the interval holds them, small networks and FP32 included."""

from __future__ import annotations

from functools import cache

import pytest

from chipwise.api.session.wiring import Session, open_session
from chipwise.predictor.samples import predict_samples

# Milliseconds of one picture in TensorRT, by NVIDIA's modules: ultralytics (docs/en/guides/nvidia-jetson.md) and EfficientViT's
# authors (mit-han-lab/efficientvit).
PUBLISHED = [
    ("yolo11n", "Jetson-Orin-NX-16GB", "int8", 640, 4.37),
    ("yolo11n", "Jetson-Orin-Nano-Super", "int8", 640, 3.91),
    ("yolo11n", "Jetson-Orin-NX-16GB", "fp16", 640, 4.85),
    ("yolo11s", "Jetson-Orin-Nano-Super", "int8", 640, 5.25),
    ("yolo11m", "Jetson-Orin-NX-16GB", "fp32", 640, 30.7),
    ("yolo11x", "Jetson-Orin-NX-16GB", "fp32", 640, 76.3),
    ("efficientvit-b1", "Jetson-AGX-Orin-64GB", "fp16", 224, 1.48),
    ("efficientvit-b3", "Jetson-AGX-Orin-64GB", "fp16", 288, 5.63),
]


@cache
def session() -> Session:
    return open_session()


@pytest.mark.parametrize(("network", "chip", "precision", "pixels", "milliseconds"), PUBLISHED)
def test_the_interval_holds_a_published_run(network: str, chip: str, precision: str, pixels: int, milliseconds: float) -> None:
    settings = {"batch": 1, "precision": precision, "image_size": pixels}
    predicted = predict_samples(session().known, network, chip, settings).samples_per_s
    assert predicted.low <= 1e3 / milliseconds <= predicted.high
