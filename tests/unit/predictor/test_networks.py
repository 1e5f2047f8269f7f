"""Networks by name in `predict`: sizes that can be asked, what does not go with what, and laws that no factor may break."""

from __future__ import annotations

from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from chipwise.api.session.config import Config
from chipwise.api.session.wiring import Session
from chipwise.errors import BadInput
from chipwise.predictor.predict import predict
from chipwise.predictor.values import SamplePrediction

# Networks of one design, the larger after the smaller: more multiplications, more activations, more parameters.
DESIGNS = (
    ("resnet18", "resnet34", "resnet50", "resnet101", "resnet152"),
    ("convnext_tiny", "convnext_small", "convnext_base", "convnext_large"),
    ("efficientnet_b0", "efficientnet_b1", "efficientnet_b3", "efficientnet_b5", "efficientnet_b7"),
    ("swin_tiny_patch4_window7_224", "swin_small_patch4_window7_224", "swin_base_patch4_window7_224"),
    ("deit_tiny_patch16_224", "deit_small_patch16_224", "deit_base_patch16_224"),
    ("YOLOv8n", "YOLOv8s", "YOLOv8m", "YOLOv8l", "YOLOv8x"),
    ("regnety_004", "regnety_016", "regnety_032", "regnety_160"),
    ("whisper-tiny", "whisper-base", "whisper-small", "whisper-medium", "whisper-large-v3"),
    ("bert-base", "bert-large"),
)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    home: Path = tmp_path_factory.mktemp("home")
    return Session(Config(home / "config", home / "data"), date(2026, 11, 15), [])


def asked(session: Session, model: str, on: str, task: str = "serve", **settings: Any) -> SamplePrediction:
    predicted = predict(session.known, model, on, task, settings)
    assert isinstance(predicted, SamplePrediction)
    return predicted


@pytest.mark.parametrize("chip", ["h100", "t4", "rtx-4090"])
@pytest.mark.parametrize("names", DESIGNS, ids=lambda names: str(names[0]))
def test_more_work_in_one_design_is_never_faster(session: Session, names: tuple[str, ...], chip: str) -> None:
    for engine in ("pytorch", "pytorch-compiled", "tensorrt"):
        for batch in (1.0, 64.0):
            rates = [asked(session, name, chip, engine=engine, batch=batch).samples_per_s.value for name in names]
            for (smaller, fast), (larger, slow) in pairwise(zip(names, rates, strict=True)):
                assert slow <= fast * 1.0001, (engine, batch, smaller, larger, rates)


@pytest.mark.parametrize("name", ["resnet50", "convnext_base", "vit_base_patch16_224", "YOLOv8m", "stable-diffusion-xl"])
def test_a_larger_picture_is_never_faster(session: Session, name: str) -> None:
    rates = [asked(session, name, "a100", batch=8.0, image_size=side).samples_per_s.value for side in (160, 256, 512, 1024)]
    assert rates == sorted(rates, reverse=True)


def test_networks_that_differ_are_answered_apart(session: Session) -> None:
    names = ("convnext_base", "mobilenetv3_large_100", "swin_tiny_patch4_window7_224", "mobilenetv2_100", "YOLOv8n")
    assert len({round(asked(session, name, "h100", batch=32.0).samples_per_s.value) for name in names}) == len(names)


def test_steps_guidance_and_clips_are_counted(session: Session) -> None:
    def seconds(model: str, **settings: Any) -> float:
        return asked(session, model, "h100", batch=1.0, **settings).latency_ms.value

    assert seconds("stable-diffusion-xl", steps=50) > 2 * seconds("stable-diffusion-xl", steps=20)
    assert seconds("stable-diffusion-xl", guidance=True) > 1.3 * seconds("stable-diffusion-xl", guidance=False)
    assert seconds("whisper-small", clip_s=30.0) > seconds("whisper-small", clip_s=5.0)
    assert seconds("Jasper 10x5 DR", clip_s=30.0) > seconds("Jasper 10x5 DR", clip_s=5.0)
    assert seconds("bert-base", input_tokens=512) > seconds("bert-base", input_tokens=32)


@pytest.mark.parametrize(
    ("model", "settings"),
    [
        ("llama-3.1-8b", {"image_size": 224}),
        ("bert-base", {"image_size": 224}),
        ("resnet50", {"steps": 20}),
        ("resnet50", {"clip_s": 10.0}),
        ("convnext_base", {"compiled": True, "engine": "tensorrt"}),
    ],
)
def test_a_size_that_means_nothing_is_refused(session: Session, model: str, settings: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        predict(session.known, model, "h100", "serve", settings)


def test_what_does_not_fit_says_so(session: Session) -> None:
    assert not asked(session, "CogVideoX-5B", "t4", precision="fp32", batch=1.0).fit.fits
    assert not asked(session, "convnext_base", "t4", "train", micro_batch=512).fit.fits


def test_the_answer_says_what_other_software_would_give(session: Session) -> None:
    notes = " ".join(asked(session, "resnet50", "h100", compiled=False, batch=64.0).notes)
    assert "with torch.compile about" in notes
