"""What no prediction may say, whatever the factors are."""

from __future__ import annotations

import math
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import chipwise as cw
from chipwise.api.session.config import Config
from chipwise.api.session.wiring import Session
from chipwise.errors import BadInput
from chipwise.perf.model import packaged
from chipwise.perf.under_load import running
from chipwise.predictor.predict import predict
from chipwise.predictor.transformer import serve
from chipwise.views.predict import prediction_view
from effort import cases

MODELS = ("llama-3.2-1b", "llama-3.1-8b", "qwen2.5-14b", "mixtral-8x7b", "llama-3.1-70b", "gpt-oss-120b")
CHIPS = ("h100", "h200", "a100-80", "l40s", "mi300x", "b200", "trn1", "tpu-v5e")
ENGINES = ("vllm", "sglang", "tensorrt-llm")
models, chips, engines = st.sampled_from(MODELS), st.sampled_from(CHIPS), st.sampled_from(ENGINES)
SPEEDS = ("step_time", "mfu", "scaling_efficiency", "percentiles", "tokens_per_s_per_chip", "job_time_s")
RATES = ("requests_per_s", "output_tokens_per_s", "total_tokens_per_s")


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    home: Path = tmp_path_factory.mktemp("home")
    return Session(Config(home / "config", home / "data"), date(2026, 11, 15), [])


def served(session: Session, model: str, on: str, **asked: Any) -> dict[str, Any]:
    return prediction_view(predict(session.known, model, on, "serve", asked))


@given(models, chips, engines, st.integers(1, 512), st.integers(16, 60_000), st.floats(1.01, 8.0), st.integers(2, 1000))
@settings(max_examples=cases(120))
@example("llama-3.2-1b", "l40s", "vllm", 18, 500, 4.0, 2)
@example("llama-3.1-8b", "h100", "sglang", 256, 8190, 1.01, 64)  # about as many tokens as one step takes
@example("llama-3.1-70b", "mi300x", "vllm", 400, 4000, 1.1, 20)
def test_a_longer_context_never_decodes_faster(
    session: Session, model: str, chip: str, engine: str, callers: int, tokens: int, times: float, answer: int
) -> None:
    longer = int(tokens * times) + 1
    assume(longer + answer <= (session.find_model(model).context or longer + answer))
    found = serve(
        session.known,
        model,
        on=chip,
        engine=engine,
        concurrency=callers,
        tp=8,
        input_len=[tokens, longer],
        output_len=answer,
    )
    assume(float(found.slots.min()) >= callers)  # with fewer in flight the others wait, and each step is shorter
    short, long = found.metrics["tpot_ms"].value
    assert long >= short * (1 - 1e-9)
    for name in RATES[:2]:
        assert found.metrics[name].value[1] <= found.metrics[name].value[0] * (1 + 1e-9)


@given(models, chips, st.sampled_from(("serve", "train")))
@settings(max_examples=cases(40))
def test_what_does_not_fit_prints_no_speed(session: Session, model: str, chip: str, task: str) -> None:
    view = prediction_view(predict(session.known, model, chip, task, {"chips": 1}))
    assume(not view["fit"]["fits"])
    speeds = [value for name, value in view.items() if name in SPEEDS or name.endswith(("_per_s", "_ms", "_kwh"))]
    assert len(speeds) >= 3
    assert not any(speeds)


@given(models, chips, engines, st.integers(1, 2000), st.integers(1, 20_000), st.integers(2, 2000), st.integers(1, 3))
@settings(max_examples=cases(80))
def test_little_s_law_holds_with_callers(
    session: Session, model: str, chip: str, engine: str, callers: int, tokens: int, answer: int, copies: int
) -> None:
    found = serve(
        session.known,
        model,
        on=chip,
        concurrency=callers,
        replicas=copies,
        engine=engine,
        tp=8,
        input_len=tokens,
        output_len=answer,
    ).metrics
    seconds = found["latency_ms"].value[0] / 1e3
    first, token = found["ttft_ms"].value[0] / 1e3, found["tpot_ms"].value[0] / 1e3
    assert seconds == pytest.approx(first + (answer - 1) * token)
    assert math.ceil(callers / copies) * copies / seconds == pytest.approx(found["requests_per_s"].value[0])
    assert found["output_tokens_per_s"].value[0] == pytest.approx(found["requests_per_s"].value[0] * answer)


@given(models, engines, st.floats(0.01, 0.9), st.integers(16, 8000), st.integers(2, 1000))
@settings(max_examples=cases(40))
def test_little_s_law_holds_at_a_rate(session: Session, model: str, engine: str, used: float, tokens: int, answer: int) -> None:
    asked: dict[str, Any] = {"on": "h200", "engine": engine, "tp": 8, "input_len": tokens, "output_len": answer}
    most = serve(session.known, model, **asked).metrics["requests_per_s"].value[0]
    found = serve(session.known, model, rate=used * most, **asked)
    in_flight = running(found.ask, session.known.model)[0]
    assume(1.001 < in_flight < found.slots[0] * 0.999)
    assert in_flight == pytest.approx(found.metrics["requests_per_s"].value[0] * found.metrics["latency_ms"].value[0] / 1e3)


@given(models, chips, engines, st.integers(1, 2000), st.integers(1, 20_000), st.integers(2, 2000))
@settings(max_examples=cases(60))
def test_two_intervals_of_one_quantity_agree(
    session: Session, model: str, chip: str, engine: str, callers: int, tokens: int, answer: int
) -> None:
    found = serve(
        session.known, model, on=chip, concurrency=callers, engine=engine, tp=8, input_len=tokens, output_len=answer
    ).metrics
    rate, whole = found["requests_per_s"], found["latency_ms"]
    for end, other in (("low", "high"), ("high", "low")):
        assert getattr(rate, end)[0] == pytest.approx(callers / (getattr(whole, other)[0] / 1e3))
        tokens_per_s = getattr(found["output_tokens_per_s"], end)[0]
        assert tokens_per_s == pytest.approx(getattr(rate, end)[0] * answer)
    for estimate in found.values():
        assert estimate.low[0] <= estimate.value[0] <= estimate.high[0]
    assert found["ttft_ms"].high[0] <= whole.high[0] * (1 + 1e-9)
    assert found["tpot_ms"].high[0] * (answer - 1) <= whole.high[0] * (1 + 1e-9)


@given(st.sampled_from(("llama-2-7b", "llama-3-8b", "mistral-7b-v0.1")), st.integers(1, 200_000), st.integers(1, 3000))
@settings(max_examples=cases(30))
def test_a_context_beyond_the_model_s_own_is_refused(session: Session, model: str, tokens: int, answer: int) -> None:
    stated = session.find_model(model).context
    assert stated is not None
    if tokens + answer > stated:
        with pytest.raises(BadInput, match="is stated for"):
            served(session, model, "h200", input_tokens=tokens, output_tokens=answer)
    else:
        assert served(session, model, "h200", input_tokens=tokens, output_tokens=answer)["requests_per_s"]


@given(models, st.sampled_from(("h100", "a100-80", "b300", "b200", "l40s")), st.sampled_from((1, 8, 64)), st.integers(1, 8))
@settings(max_examples=cases(40))
def test_no_end_of_an_interval_is_above_what_was_ever_measured(
    session: Session, model: str, chip: str, count: int, micro_batch: int
) -> None:
    view = prediction_view(predict(session.known, model, chip, "train", {"chips": count, "micro_batch": micro_batch}))
    assume(view["fit"]["fits"])
    speed = view["tokens_per_s"]
    best = max(packaged().best["training"].values())
    assert view["mfu"] * speed["high"] / speed["value"] <= max(best, view["mfu"])


@given(models, st.sampled_from(("h100", "a100-80", "mi300x", "b200")), st.sampled_from((8, 16, 64, 256)), st.integers(0, 3))
@settings(max_examples=cases(40))
def test_scaling_above_linear_has_its_reason(session: Session, model: str, chip: str, count: int, stage: int) -> None:
    view = prediction_view(predict(session.known, model, chip, "train", {"chips": count, "zero": stage}))
    if view.get("scaling_efficiency") is not None and view["scaling_efficiency"] > 1.0:
        assert any(note.startswith("Scaling above 100%") for note in view["notes"])


def test_sound_is_not_counted_in_the_context_of_a_decoder() -> None:
    """Whisper writes 448 tokens at most, and reads 1,500 places of sound before."""
    assert cw.predict("whisper-large-v3", on="l4", serve=True, input=1500, output=120)
