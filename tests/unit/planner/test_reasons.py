"""Why families lost: families that only lack chips are not called slow, and the fewest chips that do are told."""

from __future__ import annotations

from functools import cache

import pytest

from chipwise.api.session.wiring import Session, open_session
from chipwise.api.verbs import plan
from chipwise.planner.explain.asking import LATENCY
from chipwise.planner.reasons.sizes import NeedsChips
from chipwise.planner.values.plan import Plan

SERVED = (
    "kind: serve\nname: chat\nmodel: %s\narrival: {rate: %s req/s}\ninput_tokens: 1000\noutput_tokens: 300\n"
    "precision: fp8\ngoals: {ttft: {p90: 800ms}, tpot: {p90: 50ms}}\nlimits: {chip_count: {max: %d}}\n"
)
COUNTED = ("NVIDIA Hopper", "NVIDIA Ampere", "AMD CDNA3", "Google TPU")
LARGE, SMALL = ("llama-3.1-70b", 3), ("llama-3.1-8b", 40)


@cache
def session() -> Session:
    return open_session()


@cache
def served(model: str, rate: int, most: int) -> Plan:
    return plan(session(), "workload.yaml", None, 5, text=SERVED % (model, rate, most))


def has_a_way(found: Plan, family: str) -> bool:
    ways = {one.family for one in found.choices} | {one.family for one in found.losses if one.choice is not None}
    return family in ways


def fewest(found: Plan) -> dict[str, int]:
    """Chips that families without a way are said to need."""
    return {one.family: one.why.needed for one in found.losses if isinstance(one.why, NeedsChips)}


@pytest.mark.parametrize(("model", "rate"), [LARGE, SMALL])
def test_a_family_that_only_lacks_chips_is_not_called_too_slow(model: str, rate: int) -> None:
    found = served(model, rate, 2)
    slow = next(one.told for one in found.answers if one.question == LATENCY).partition("Too slow at any rate: ")[2]
    freed = served(model, rate, 4096)
    assert "NVIDIA Hopper" not in slow
    named = [family for family in fewest(found) if family in slow]
    assert named == []
    assert not any(family in slow for family in {one.family for one in freed.choices})


@pytest.mark.parametrize(("model", "rate"), [LARGE, SMALL])
def test_the_chips_that_a_family_needs_are_the_fewest_that_do(model: str, rate: int) -> None:
    """By brute force: with one chip less it has no way, with so many it has one."""
    needed = fewest(served(model, rate, 2))
    assert set(COUNTED) & set(needed)
    for family in sorted(set(COUNTED) & set(needed)):
        chips = needed[family]
        assert has_a_way(served(model, rate, chips), family), family
        assert not has_a_way(served(model, rate, chips - 1), family), family


@pytest.mark.parametrize(("model", "rate"), [LARGE, SMALL])
def test_a_family_without_a_way_lacks_what_more_chips_do_not_give(model: str, rate: int) -> None:
    """What is not told to need chips has no way with any number of them."""
    found, freed = served(model, rate, 2), served(model, rate, 4096)
    unable = {one.family for one in found.losses if one.choice is None} - set(fewest(found))
    assert [family for family in sorted(unable) if has_a_way(freed, family)] == []


TRAINED = (
    "kind: train\nname: tune\nmodel: llama-3.1-70b\ntokens: 1B\nsequence_length: 2048\nbatch_samples: 64\nprecision: bf16\n"
    "limits: {chip_count: {max: %d}, clouds: [aws, gcp]}\n"
)


@cache
def trained(most: int) -> Plan:
    return plan(session(), "workload.yaml", None, 5, text=TRAINED % most)


def test_training_tells_the_fewest_chips_that_hold_the_model() -> None:
    needed = fewest(trained(8))
    assert {"AWS Trainium", "NVIDIA Ampere"} <= set(needed)
    for family in ("AWS Trainium", "NVIDIA Ampere"):
        assert has_a_way(trained(needed[family]), family)
        assert not has_a_way(trained(needed[family] - 1), family)


def test_where_nothing_fits_the_chips_that_would_do_are_the_fewest() -> None:
    text = SERVED.replace("limits: {chip_count: {max: %d}}", "limits: {chip_count: {max: %d}, chips: [h100]}")
    found = plan(session(), "workload.yaml", None, 5, text=text % ("llama-3.1-70b", 20, 4))
    assert found.winner is None
    (missing,) = found.missing
    assert isinstance(missing.reason, NeedsChips)
    enough, short = (
        plan(session(), "workload.yaml", None, 5, text=text % ("llama-3.1-70b", 20, most))
        for most in (missing.reason.needed, missing.reason.needed - 1)
    )
    assert enough.winner is not None
    assert short.winner is None
