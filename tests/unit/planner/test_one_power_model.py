"""Plans and predictions have one model of power: what a choice draws is what `predict` says of the same configuration."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from chipwise.api.session.config import Config
from chipwise.api.session.wiring import Session
from chipwise.api.verbs import plan, predict
from chipwise.perf.arrays import Coded, column
from chipwise.perf.power import power
from chipwise.perf.setup import RECOMPUTE
from chipwise.planner.values.choice import Choice
from chipwise.planner.values.split import TrainingSplit

CHAT = """
kind: serve
name: chat
model: llama-3.1-8b
precision: bf16
input_tokens: 1000
output_tokens: 300
arrival: {rate: 2}
limits: {chips: [H100-SXM], chip_count: 1}
"""
PILE = """
kind: batch
name: pile
model: llama-3.1-8b
precision: bf16
items: 1000000
input_tokens: 1000
output_tokens: 300
limits: {chips: [H100-SXM], chip_count: 1}
"""
TRAIN = """
kind: train
name: small
model: gpt2
tokens: 1e9
sequence_length: 1024
batch_samples: 64
limits: {chips: [A100-80-SXM], chip_count: 1}
"""
PICTURES = """
kind: train
name: pictures
model: resnet-50
samples: 1000000
batch_samples: 256
limits: {chips: [A100-80-SXM], chip_count: 1}
"""
CLASSIFY = """
kind: serve
name: classify
model: resnet-50
precision: fp16
arrival: {rate: 200}
goals: {latency: {p90: 50ms}}
limits: {chips: [L4], chip_count: 1}
"""
DEVICES = """
kind: serve
name: cameras
model: resnet-50
precision: fp16
arrival: {rate: 5}
devices: 3
limits: {chips: [Jetson-Orin-Nano-Super], where: [edge]}
"""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    home: Path = tmp_path_factory.mktemp("home")
    return Session(Config(home / "config", home / "data"), date(2026, 11, 15), [])


def _asked(session: Session, folder: Path, text: str) -> tuple[Choice, str]:
    file = folder / "workload.yaml"
    file.write_text(text)
    choices = plan(session, str(file), top=1000).choices
    return next(one for one in choices if " (" not in one.chip), str(file)  # predictions are of whole chips


def _predicted_w(view: dict[str, Any], chips: float) -> float:
    drawn = view["power_per_chip"]
    return float(drawn["chip_w"] + drawn["host_w"]) * chips


@pytest.mark.parametrize(
    "text", [CHAT, PILE, PICTURES, CLASSIFY, DEVICES], ids=["chat", "pile", "pictures", "classify", "devices"]
)
def test_a_choice_draws_what_predict_says_of_it(session: Session, tmp_path: Path, text: str) -> None:
    choice, file = _asked(session, tmp_path, text)
    view = predict(session, file, choice.chip, None, {})
    assert choice.watts == pytest.approx(_predicted_w(view, choice.chips * choice.machines), rel=1e-3)


def test_a_training_draws_what_predict_says_of_its_split(session: Session, tmp_path: Path) -> None:
    choice, file = _asked(session, tmp_path, TRAIN)
    assert isinstance(choice.split, TrainingSplit)
    recompute = list(RECOMPUTE)[choice.split.recompute]
    settings = {"micro_batch": float(choice.split.micro_batch), "recompute": recompute}
    view = predict(session, file, choice.chip, None, settings)
    assert choice.watts == pytest.approx(_predicted_w(view, choice.chips * choice.machines), rel=1e-3)


def test_two_replicas_that_share_the_load_draw_less_than_twice_as_much(session: Session, tmp_path: Path) -> None:
    alone, _ = _asked(session, tmp_path, CHAT)
    file = tmp_path / "two.yaml"
    file.write_text(CHAT.replace("chip_count: 1", "chip_count: {min: 2, max: 2}"))
    two = next(one for one in plan(session, str(file), top=1000).choices if one.machines == 2)
    part = session.parts["H100-SXM"]
    rest = float(power(Coded.of(part.kind), column(part.power_w), column(0.0), column(0.0)).machine[0])
    assert two.replicas == 2  # the second chip is not left idle
    assert two.rate == pytest.approx(2 * (alone.rate or 0.0))
    assert alone.watts + rest < two.watts < 2 * alone.watts


@pytest.mark.parametrize("kind", ["hpc", "render", "transcode", "stream", "hybrid", "interactive"])
def test_other_work_draws_between_rest_and_limit(session: Session, kind: str) -> None:
    root = Path(__file__).resolve().parents[3]
    found = plan(session, str(root / "examples" / kind / "workload.yaml"))
    assert found.rows is not None
    for choice in found.choices:
        part = found.rows.fleet.parts[choice.chip]
        rest, most = (
            float(power(Coded.of(part.kind), column(part.power_w), column(share), column(share)).machine[0])
            for share in (0.0, 1.0)
        )
        chips = choice.chips * choice.machines
        assert rest * chips < choice.watts <= most * chips * 1.0001
