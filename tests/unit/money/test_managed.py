from __future__ import annotations

import re
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.catalog.load import load
from chipwise.catalog.price_tables import TokenPrice
from chipwise.errors import InvalidSettings, UnknownName
from chipwise.money.break_even import ReplicaSet
from chipwise.money.managed import (
    Request,
    break_even,
    cheapest,
    cost,
    model_of,
    release,
    same_weights,
    services,
)
from chipwise.workload.model import registry as models

ROWS = load(prices=False).rows("tokens")
REGISTRY = models.load()
CHAT = Request(1000, 300)


@pytest.mark.parametrize(
    ("spelled", "model"),
    [
        ("meta.llama3-1-70b-instruct-v1:0", "llama-3.1-70b"),
        ("meta.llama3-70b-instruct-v1:0", "llama-3-70b"),
        ("accounts/fireworks/models/llama-v3p1-70b-instruct", "llama-3.1-70b"),
        ("meta-llama/Llama-3.3-70B-Instruct-Turbo", "llama-3.3-70b"),
        ("databricks-meta-llama-3-3-70b-instruct", "llama-3.3-70b"),
        ("Meta-Llama-3_1-70B-Instruct", "llama-3.1-70b"),
        ("meta.llama-3.3-70b-instruct-fp8-dynamic", "llama-3.3-70b"),
        ("llama3.1-405b-instruct-fp8", "llama-3.1-405b"),
        ("meta/llama-4-scout-17b-16e-instruct-maas", "llama-4-scout"),
        ("llama4-maverick-instruct-basic", "llama-4-maverick"),
        ("mistral.mistral-7b-instruct-v0:2", "mistral-7b-v0.2"),
        ("mistral.mixtral-8x7b-instruct-v0:1", "mixtral-8x7b"),
        ("mistral-large@2411-001", "mistral-large-2"),
        ("open-mistral-nemo", "mistral-nemo-12b"),
        ("openai.gpt-oss-120b-1:0", "gpt-oss-120b"),
        ("FW-GPT-OSS-120B", "gpt-oss-120b"),
        ("deepseek.r1-v1:0", "deepseek-v3"),
        ("deepseek-v3p1-terminus", "deepseek-v3"),
        ("qwen.qwen3-235b-a22b-2507-v1:0", "qwen3-235b-a22b"),
        ("qwen.qwen3-coder-30b-a3b-v1:0", "qwen3-30b-a3b"),
        ("qwen-3-32b", "qwen3-32b"),
        ("deepseek-llama3.3-70b", "llama-3.3-70b"),
        ("google/gemma-3-27b-it", "gemma-3-27b"),
        ("nvidia/Llama-3.1-Nemotron-70B-Instruct", "llama-3.1-70b"),
    ],
)
def test_a_providers_spelling_means_a_model_of_the_registry(spelled: str, model: str) -> None:
    assert model_of(spelled, REGISTRY) == model


@pytest.mark.parametrize(
    "spelled",
    [
        "ministral-8b-2512",  # another model than the ministral-8b of 2410
        "mistral.ministral-3-8b-instruct",
        "mistral-small-2503",
        "mistral.mistral-small-2402-v1:0",
        "mistralai/mistral-large",  # does not say which
        "mistral-large-3",
        "deepseek-ai/DeepSeek-V3.2",  # sparse attention: another shape
        "deepseek-v3p2",
        "kimi-k2.5",
        "qwen.qwen3-vl-235b-a22b",
        "Qwen/Qwen2.5-VL-72B-Instruct",
        "Qwen/Qwen3-Next-80B-A3B-Thinking",
        "meta.llama3-2-11b-instruct-v1:0",
        "meta-llama/Llama-3.2-11B-Vision-Instruct",
        "meta/llama-4-maverick-17b-16e-instruct-maas",  # no such model was published
        "llava-v1.6-mistral-7b-hf",
        "nvidia/Llama-3.3-Nemotron-Super-49B-v1.5",
        "Phi-4-multimodal-instruct",
        "google/gemma-4-31B-it-turbo",
    ],
)
def test_a_model_that_only_looks_alike_matches_nothing(spelled: str) -> None:
    assert model_of(spelled, REGISTRY) is None


def test_the_size_in_a_matched_name_is_the_size_of_the_model() -> None:
    """The number before b in a provider's spelling is in the registry's name too, wherever both have one."""
    for row in ROWS:
        model = model_of(row.model, REGISTRY)
        if model is None or model.startswith("llama-4"):  # named by the active parameters
            continue
        size = re.search(r"(\d+(?:\.\d+)?)b\b", release(row.model)[0])
        known = re.search(r"(\d+(?:\.\d+)?)b\b", model)
        if size and known:
            assert size[1] == known[1], row.model


def unmatched() -> list[TokenPrice]:
    return [row for row in ROWS if row.open_weights and model_of(row.model, REGISTRY) is None]


def test_most_open_rows_match_and_no_closed_one_does() -> None:
    open_rows = [row for row in ROWS if row.open_weights]
    assert len(open_rows) - len(unmatched()) >= 214
    assert not [row.model for row in ROWS if not row.open_weights and model_of(row.model, REGISTRY)]


def test_what_is_left_belongs_to_families_that_the_registry_lacks() -> None:
    families = {row.family for row in unmatched()}
    assert families == {"deepseek", "gemma", "glm", "kimi", "llama3", "llama4", "minimax", "mistral", "nemotron", "phi", "qwen"}


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("llama-3.3-70b", "meta-llama/Llama-3.3-70B-Instruct-Turbo", True),
        ("llama-3.3-70b", "deepseek-ai/DeepSeek-R1-Distill-Llama-70B", False),
        ("deepseek-r1-distill-llama-70b", "deepseek-llama3.3-70b", True),
        ("deepseek-v3", "deepseek-ai/DeepSeek-R1", False),
        ("deepseek-r1", "deepseek.r1-v1:0", True),
        ("deepseek-r1", "deepseek-r1-0528", False),
        ("deepseek-v3", "deepseek-v3p1", False),
        ("llama-3.1-70b", "NousResearch/Hermes-3-Llama-3.1-70B", False),
        ("mistral-large-2", "mistral-large@2407", True),
        ("mistral-large-2", "mistral-large-2411", False),
        ("mistral-nemo", "mistralai/Mistral-Nemo-Instruct-2407", True),
        ("qwen3-32b", "qwen-3-32b", True),
        ("qwen2.5-32b", "Qwen/Qwen2.5-Coder-32B-Instruct", False),
        ("Qwen/Qwen3-Coder-480B-A35B-Instruct", "qwen.qwen3-coder-480b-a35b-v1:0", True),
        ("qwen3-235b-a22b", "Qwen/Qwen3-235B-A22B-Thinking-2507", False),
    ],
)
def test_another_training_of_a_shape_is_told_from_the_same_weights(one: str, other: str, same: bool) -> None:
    assert same_weights(one, other) is same


def test_services_of_the_same_weights_come_first() -> None:
    found = services(ROWS, "deepseek-r1", REGISTRY)
    flags = [service.same_weights for service in found]
    assert flags == sorted(flags, reverse=True)
    assert {service.spelled for service in found if service.same_weights} >= {"deepseek.r1-v1:0", "deepseek-ai/DeepSeek-R1"}


def test_a_model_nobody_knows_is_told_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match=r"llama-3\.1"):
        services(ROWS, "llama-3.1-71b", REGISTRY)


def test_a_model_without_a_service_has_none() -> None:
    assert services(ROWS, "opt-125m", REGISTRY) == ()
    assert cheapest((), CHAT) is None


def test_a_retired_service_is_never_the_cheapest() -> None:
    for row in ROWS:
        if row.fact.notes.startswith("retired") and (model := model_of(row.model, REGISTRY)):
            assert any(service.gone for service in services(ROWS, model, REGISTRY))
            best = cheapest(services(ROWS, model, REGISTRY), CHAT)
            assert best is None or not best.gone


def test_the_cheapest_can_read_the_whole_request() -> None:
    found = services(ROWS, "llama-3.1-70b", REGISTRY)
    long = cheapest(found, Request(100_000, 1000))
    assert long is not None
    assert long.context is not None
    assert long.context >= 101_000
    short = cheapest(found, CHAT)
    assert short is not None
    assert cost(short, CHAT).usd == min(cost(s, CHAT).usd for s in found if s.same_weights and not s.gone)


# -- cost


def test_a_request_costs_its_tokens() -> None:
    bedrock = next(s for s in services(ROWS, "llama-3.1-70b", REGISTRY) if s.provider == "aws bedrock")
    assert cost(bedrock, CHAT).usd == pytest.approx(1300 * 0.72e-6)
    assert cost(bedrock, CHAT, 7200).usd == pytest.approx(7200 * 1300 * 0.72e-6)


def test_cached_input_is_paid_in_full_where_no_lower_price_is_stated() -> None:
    found = services(ROWS, "gpt-oss-120b", REGISTRY)
    without = next(s for s in found if s.usd_per_cached is None)
    with_price = next(s for s in found if s.usd_per_cached is not None and s.usd_per_cached < s.usd_per_input)
    cached = Request(1000, 300, 800)
    assert cost(without, cached).usd == pytest.approx(cost(without, CHAT).usd)
    assert cost(with_price, cached).usd < cost(with_price, CHAT).usd


@given(st.floats(0, 1e6), st.floats(0, 1e6), st.floats(0, 1), st.floats(0, 1e5))
def test_the_lines_sum_and_more_tokens_never_cost_less(read: float, written: float, share: float, more: float) -> None:
    service = services(ROWS, "gpt-oss-20b", REGISTRY)[0]
    one = cost(service, Request(read, written, read * share))
    two = cost(service, Request(read + more, written + more, read * share))
    assert one.usd == pytest.approx(sum(line.usd for line in one.lines))
    assert two.usd >= one.usd * (1 - 1e-9)


def test_tokens_that_cannot_be_are_refused_by_name() -> None:
    with pytest.raises(InvalidSettings, match="cached_tokens"):
        Request(10, 10, 11)
    with pytest.raises(InvalidSettings, match="output_tokens"):
        Request(10, -1)


# -- break-even


@given(st.floats(0.5, 40), st.floats(0.2, 30), st.integers(1, 3), st.floats(0, 5))
def test_the_break_even_against_counting_replicas(usd: float, capacity: float, least: int, fixed: float) -> None:
    service = services(ROWS, "llama-3.3-70b", REGISTRY)[0]
    fleet = ReplicaSet(usd, capacity, least, fixed)
    found = break_even(service, CHAT, fleet)
    each = cost(service, CHAT).usd

    def self_hosted(rate: float) -> float:
        return max(least, ceil(rate / capacity)) * usd + fixed

    def managed(rate: float) -> float:
        return rate * 3600 * each

    if found.first is None:
        assert all(managed(n * capacity) < self_hosted(n * capacity) * (1 + 1e-9) for n in range(least, least + 50))
        return
    assert managed(found.first) >= self_hosted(found.first * (1 - 1e-9)) * (1 - 1e-6)
    below = [found.first * i / 50 for i in range(1, 50)]
    assert all(managed(rate) < self_hosted(rate) for rate in below)
    if found.always is not None:
        above = [found.always * (1.0001 + i / 7) for i in range(200)]
        assert all(managed(rate) >= self_hosted(rate) * (1 - 1e-6) for rate in above)


@given(st.floats(0.5, 40), st.floats(0.2, 30), st.floats(1.01, 3))
def test_a_dearer_replica_never_breaks_even_earlier(usd: float, capacity: float, factor: float) -> None:
    service = services(ROWS, "llama-3.3-70b", REGISTRY)[0]
    cheap = break_even(service, CHAT, ReplicaSet(usd, capacity))
    dear = break_even(service, CHAT, ReplicaSet(usd * factor, capacity))
    assert dear.first is None or (cheap.first is not None and cheap.first <= dear.first)
    assert dear.always is None or (cheap.always is not None and cheap.always <= dear.always)
