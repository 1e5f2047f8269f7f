"""The same server answers alike, however it is asked about: callers, a rate, or as full as can be."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from chipwise.api.session.config import Config
from chipwise.api.session.wiring import Session
from chipwise.predictor.known import Known
from chipwise.predictor.predict import predict
from chipwise.predictor.transformer import serve
from chipwise.predictor.values import GenerationPrediction

SERVERS: tuple[dict[str, Any], ...] = (
    {"model": "llama-3.1-8b", "on": "h100", "input_len": 1000.0, "output_len": 300.0},
    {"model": "llama-3.1-70b", "on": "h100", "tp": 4.0, "input_len": 1000.0, "output_len": 300.0},
    {"model": "llama-3.1-70b", "on": "mi300x", "tp": 2.0, "input_len": 500.0, "output_len": 500.0, "engine": "sglang"},
    {"model": "qwen2.5-14b", "on": "l40s", "input_len": 2000.0, "output_len": 200.0},
    {"model": "mixtral-8x7b", "on": "h200", "tp": 2.0, "input_len": 800.0, "output_len": 400.0, "engine": "tensorrt-llm"},
)
TIMES = ("ttft_ms", "tpot_ms", "latency_ms", "requests_per_s")


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Known:
    home: Path = tmp_path_factory.mktemp("home")
    return Session(Config(home / "config", home / "data"), date(2026, 11, 15), []).known


def asked(known: Known, server: dict[str, Any], **load: Any) -> dict[str, float]:
    found = serve(known, **server, **load, metrics=TIMES, fit=False)
    return {name: float(one.value[0]) for name, one in found.metrics.items()} | {"slots": float(found.slots[0])}


@pytest.mark.parametrize("server", SERVERS, ids=lambda one: f"{one['model']} on {one['on']}")
def test_callers_and_the_rate_that_they_make_are_the_same_load(known: Known, server: dict[str, Any]) -> None:
    full = asked(known, server)
    for share in (0.03, 0.1, 0.2):
        callers = max(round(full["slots"] * share), 2)
        closed = asked(known, server, concurrency=callers)
        assert closed["requests_per_s"] < 0.85 * full["requests_per_s"]  # above, a little more load is many more in flight
        opened = asked(known, server, rate=closed["requests_per_s"])
        assert opened["tpot_ms"] == pytest.approx(closed["tpot_ms"], rel=0.15), (callers, opened, closed)
        in_flight = closed["requests_per_s"] * opened["latency_ms"] / 1e3
        assert in_flight == pytest.approx(callers, rel=0.2), (callers, opened, closed)


@pytest.mark.parametrize("server", SERVERS, ids=lambda one: f"{one['model']} on {one['on']}")
def test_one_request_an_hour_is_one_caller(known: Known, server: dict[str, Any]) -> None:
    alone, seldom = asked(known, server, concurrency=1), asked(known, server, rate=1 / 3600)
    for name in ("ttft_ms", "tpot_ms", "latency_ms"):
        assert seldom[name] == pytest.approx(alone[name], rel=0.03), name


@pytest.mark.parametrize("server", SERVERS, ids=lambda one: f"{one['model']} on {one['on']}")
def test_a_full_server_has_as_many_callers_as_slots(known: Known, server: dict[str, Any]) -> None:
    full = asked(known, server)
    closed = asked(known, server, concurrency=full["slots"])
    assert full["requests_per_s"] == pytest.approx(closed["requests_per_s"], rel=0.05)


@pytest.mark.parametrize("used", [0.9, 0.95, 0.99, 0.998])
def test_just_below_the_capacity_waits_grow_and_tokens_do_not(known: Known, used: float) -> None:
    settings = {"tp": 1.0, "input_tokens": 1000.0, "output_tokens": 300.0}
    capacity = asked(known, SERVERS[0])["requests_per_s"]
    found = predict(known, "llama-3.1-8b", "h100", "serve", {**settings, "rate": used * capacity})
    assert isinstance(found, GenerationPrediction)
    assert found.percentiles is not None
    for name in ("ttft", "tpot", "latency"):
        mean, by_share = found.metrics[f"{name}_ms"].value / 1e3, found.percentiles[name]
        assert by_share[0.5] * 0.85 < mean < by_share[0.99], (name, mean, by_share)
    steps = 299 * found.percentiles["tpot"][0.5]
    assert found.percentiles["latency"][0.5] == pytest.approx(found.percentiles["ttft"][0.5] + steps, rel=0.1)
    full = asked(known, SERVERS[0], concurrency=asked(known, SERVERS[0])["slots"])
    assert found.metrics["tpot_ms"].value < 1.1 * full["tpot_ms"]


@pytest.mark.parametrize("server", SERVERS, ids=lambda one: f"{one['model']} on {one['on']}")
def test_a_longer_answer_is_never_answered_more_often(known: Known, server: dict[str, Any]) -> None:
    capacities = [asked(known, {**server, "output_len": tokens})["requests_per_s"] for tokens in (1.0, 2.0, 5.0, 20.0, 100.0)]
    assert capacities == sorted(capacities, reverse=True)


def test_callers_are_those_of_all_copies(known: Known) -> None:
    one, four = (asked(known, SERVERS[0], concurrency=count, replicas=copies) for count, copies in ((64, 1), (256, 4)))
    assert four["requests_per_s"] == pytest.approx(4 * one["requests_per_s"])
    assert four["latency_ms"] == pytest.approx(one["latency_ms"])


def test_an_answer_of_one_token_is_its_first_token(known: Known) -> None:
    found = asked(known, {**SERVERS[0], "output_len": 1.0}, rate=2.0)
    assert found["latency_ms"] == pytest.approx(found["ttft_ms"])


@pytest.mark.parametrize("load", [{"batch": 64.0}, {"concurrency": 64}, {"rate": 2.0}])
def test_no_first_token_comes_after_its_answer(known: Known, load: dict[str, float]) -> None:
    settings = {"tp": 1.0, "input_tokens": 4000.0, "output_tokens": 20.0, **load}
    found = predict(known, "llama-3.1-8b", "h100", "serve", settings)
    assert isinstance(found, GenerationPrediction)
    assert found.metrics["ttft_ms"].high <= found.metrics["latency_ms"].high * 1.001
    if found.percentiles is not None:
        assert found.percentiles["ttft"][0.99] <= found.percentiles["latency"][0.99] * 1.001


def test_a_rate_that_the_capacity_may_not_reach_is_said(known: Known) -> None:
    settings = {"tp": 1.0, "input_tokens": 1000.0, "output_tokens": 300.0}
    capacity = asked(known, SERVERS[0])["requests_per_s"]
    near, far = (predict(known, "llama-3.1-8b", "h100", "serve", {**settings, "rate": part * capacity}) for part in (0.95, 0.3))
    assert any("may be as low as" in note for note in near.notes)
    assert not any("may be as low as" in note for note in far.notes)
