from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.api.session.config import Config
from chipwise.api.session.wiring import Session
from chipwise.errors import BadInput
from chipwise.perf.steadiness import steadiness, table
from chipwise.predictor.ability import able_chip
from chipwise.predictor.batching import Curve
from chipwise.predictor.kinds.ask import by_samples
from chipwise.predictor.options import check_numbers
from chipwise.predictor.predict import predict
from chipwise.predictor.samples import predict_samples
from chipwise.views.predict import prediction_view, steadiness_view

rates = st.floats(1.0, 2000.0)
shares = st.floats(0.05, 0.999)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    home: Path = tmp_path_factory.mktemp("home")
    return Session(Config(home / "config", home / "data"), date(2026, 11, 15), [])


def asked(session: Session, model: str, on: str, task: str, **settings: Any) -> dict[str, Any]:
    return prediction_view(predict(session.known, model, on, task, settings))


@pytest.mark.parametrize(
    ("model", "task", "answered"),
    [
        ("llama-3.1-8b", "serve", "serve"),
        ("bert-base", "serve", "samples"),
        ("t5-base", "serve", "samples"),
        ("resnet-50", "serve", "samples"),
        ("stable-diffusion-xl", "serve", "samples"),
        ("dlrm-v2", "serve", "samples"),
        ("llama-3.1-8b", "train", "train"),
        ("bert-base", "train", "train"),
        ("vit-b-16", "train", "samples"),
    ],
)
def test_what_does_not_generate_is_answered_per_sample(session: Session, model: str, task: str, answered: str) -> None:
    view = asked(session, model, "h100", task)
    assert view["task"] == answered
    assert view["steadiness"] == steadiness_view(steadiness("dedicated"))
    assert by_samples(session.find_model(model).shape, task) == (answered == "samples")


def test_more_chips_with_experts_than_share_attention_are_one_copy(session: Session) -> None:
    view = asked(session, "deepseek-r1", "gb200", "serve", ep=72, concurrency=512)
    assert (view["chips"], view["replicas"], view["setup"]["attention_dp"]) == (72, 1, 72)
    assert view["fit"]["fits"]
    with pytest.raises(BadInput, match=r"--ep: 12 is not possible.*multiples of --tp"):
        asked(session, "deepseek-r1", "gb200", "serve", tp=8, ep=12, concurrency=512)


def test_a_slower_stated_network_is_never_faster(session: Session) -> None:
    def step_s(**more: Any) -> float:
        view = asked(session, "llama-3.1-8b", "h100", "train", chips=16, zero=3, seq=4096, **more)
        return float(view["step_time"]["value"])

    fast, slow = step_s(network=400e9), step_s(network=12.5e9)
    assert fast == step_s()  # 50 GB/s a chip are usual for it
    assert slow > 4 * fast


def test_a_measured_network_on_a_measured_chip_is_near_measurements(session: Session) -> None:
    view = asked(session, "resnet-50", "l4", "serve", batch=8.0)
    assert view["provenance"] == "interpolated"
    assert view["samples_per_s"]["low"] < view["samples_per_s"]["value"] < view["samples_per_s"]["high"]
    assert view["samples_per_s"]["value"] == pytest.approx(8 / view["latency_ms"]["value"] * 1e3)
    assert sum(view["terms_s"].values()) == pytest.approx(view["latency_ms"]["value"] / 1e3, rel=1e-3)


def test_what_nobody_measured_says_so_and_is_wide(session: Session) -> None:
    view = asked(session, "t5-base", "l4", "serve")
    assert view["provenance"] == "formula"
    assert view["samples_per_s"]["high"] > 4 * view["samples_per_s"]["low"]
    assert "Nothing like t5-base was measured" in " ".join(view["notes"])


def test_eight_chips_train_more_pictures_than_one(session: Session) -> None:
    one, eight = (asked(session, "resnet-50", "a100", "train", chips=n, micro_batch=128.0) for n in (1.0, 8.0))
    assert 4 < eight["samples_per_s"]["value"] / one["samples_per_s"]["value"] <= 8.001


def test_tables_larger_than_the_chip_do_not_fit(session: Session) -> None:
    assert not asked(session, "dlrm-v2", "l4", "serve")["fit"]["fits"]
    assert asked(session, "resnet-50", "l4", "serve")["fit"]["fits"]


def test_a_device_in_a_smaller_power_mode_is_slower_and_draws_less(session: Session) -> None:
    full, saving = (predict_samples(session.known, "resnet-50", "jetson-orin-nano", {"power_watts": w}) for w in (25.0, 10.0))
    assert saving.samples_per_s.value < full.samples_per_s.value
    assert saving.power.chip_w <= 10.0
    assert saving.steadiness == steadiness("edge")


@pytest.mark.parametrize(
    ("model", "on", "task", "settings", "said"),
    [
        ("llama-3.1-8b", "vu9p", "train", {}, "trains no models"),
        ("llama-3.1-8b", "inferentia2", "train", {}, "trains no models"),
        ("resnet-50", "vu9p", "serve", {}, "runs no models"),
        ("resnet-50", "l4", "serve", {"kv": "fp8"}, "--kv does not go with resnet-50"),
        ("resnet-50", "l4", "serve", {"seq": 512.0}, "--seq does not go with --serve"),
        ("resnet-50", "l4", "serve", {"precision": "fp4"}, "no fp4 arithmetic"),
        ("resnet-50", "l4", "serve", {"precision": "fp7"}, "Allowed"),
        ("resnet-50", "l4", "serve", {"engine": "vllm"}, "tensorrt"),
        ("resnet-50", "l4", "serve", {"tp": 3.0, "chips": 4.0}, "--tp"),
        ("resnet-50", "l4", "train", {"chips": 8.0, "global_batch": 4.0}, "too few"),
        ("resnet-50", "l4", None, {}, "Neither --train nor --serve"),
        ("resnet-500", "l4", "serve", {}, "resnet-50"),
        ("resnet-50", "l44", "serve", {}, "No chip is called"),
    ],
)
def test_a_refusal_names_what_is_wrong(
    session: Session, model: str, on: str, task: str | None, settings: dict[str, Any], said: str
) -> None:
    with pytest.raises(BadInput) as refused:
        predict(session.known, model, on, task, settings)
    assert said in str(refused.value)


def test_a_refused_kind_of_chip_comes_with_chips_that_can(session: Session) -> None:
    with pytest.raises(BadInput, match=r"H100-SXM, L4"):
        able_chip(session.known, "coral-edge-tpu", "train")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0, 0.0, 1.5, 1e30])
@pytest.mark.parametrize("name", ["chips", "batch", "concurrency", "seq"])
def test_a_count_is_whole_and_finite(name: str, value: float) -> None:
    with pytest.raises(BadInput, match=f"--{name}"):
        check_numbers({name: value})


def test_rates_may_be_broken_and_some_counts_zero() -> None:
    check_numbers({"rate": 0.5, "zero": 0.0, "prefix": 0.0, "output_tokens": 0.0, "precision": "bf16", "chips": 3})
    with pytest.raises(BadInput, match="--rate"):
        check_numbers({"rate": 0.0})


@pytest.mark.parametrize("kind", table())
def test_steadiness_is_the_tables(kind: str) -> None:
    assert steadiness_view(steadiness(kind)) == {"kind": kind, "relative_sd": table()[kind].log_sd}


# --- batches of requests that come one by one: one pass of b samples takes 1 + 0.1 b milliseconds


def passes(copies: float = 1.0) -> Curve:
    batches = np.exp2(np.arange(9.0))
    return Curve(batches, 1e-3 + 1e-4 * batches, copies)


@given(rate=rates, share=shares)
def test_nobody_is_answered_before_one_pass(rate: float, share: float) -> None:
    found = passes().latency(rate, share)
    assert found is not None
    assert found >= passes().seconds_at(1.0)


@given(rates, rates, shares)
def test_more_requests_never_wait_less(one: float, other: float, share: float) -> None:
    first, second = (passes().latency(rate, share) for rate in sorted((one, other)))
    assert first is not None
    assert second is not None
    assert first <= second * 1.02


@given(rate=rates)
def test_a_higher_percentile_waits_longer(rate: float) -> None:
    found = [passes().latency(rate, share) or 0.0 for share in (0.1, 0.5, 0.9, 0.99)]
    assert found == sorted(found)


def test_beyond_the_most_that_is_answered_the_queue_has_no_end() -> None:
    assert passes().settled(passes().max_rate * 1.01) is None
    assert passes().latency(passes().max_rate * 1.01, 0.5) is None
    assert passes(2.0).latency(passes().max_rate * 1.01, 0.5) is not None


@pytest.mark.parametrize("limit", [2e-3, 5e-3, 20e-3])
def test_at_the_highest_rate_the_goal_is_just_met(limit: float) -> None:
    rate = passes().highest_rate({0.99: limit})
    below, above = passes().latency(rate * 0.99, 0.99), passes().latency(rate * 1.05, 0.99)
    assert below is not None
    assert below <= limit
    assert above is None or above > limit * 0.99


def test_a_goal_below_one_pass_is_never_met() -> None:
    assert passes().highest_rate({0.5: 1e-3}) == 0.0


@pytest.mark.parametrize("precision", ["fp32", "fp16", "int4"])
def test_a_chip_that_has_integers_only_runs_nothing_else(session: Session, precision: str) -> None:
    with pytest.raises(BadInput, match="has no"):
        asked(session, "resnet-50", "coral", "serve", precision=precision)


def test_the_memory_of_an_accelerator_without_any_is_what_is_on_the_chip(session: Session) -> None:
    view = asked(session, "efficientnet_b0", "coral", "serve")
    assert view["fit"]["capacity_bytes"] == 8e6
    assert any("8 MB on the chip" in note for note in view["notes"])
