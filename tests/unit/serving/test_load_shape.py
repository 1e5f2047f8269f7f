"""What a load test sends, how it searches for a rate, and how sure its percentiles are."""

from __future__ import annotations

import json
from unittest.mock import patch

import numpy as np
import pytest

from chipwise.serving.load_report import percentiles
from chipwise.serving.load_shape import ArrivalKind, BodyForm, LoadApi, TokenLengths, arrivals, bodies
from chipwise.serving.rate_search import MOST_TRIALS, RateTrial, highest_rate, next_rate


def test_prompts_have_about_the_tokens_that_were_wanted_and_share_their_beginning() -> None:
    chance = np.random.default_rng(3)
    lengths = TokenLengths(200.0, 0.8, 2000.0).drawn(4000, chance)
    assert lengths.mean() == pytest.approx(200.0, rel=0.1)
    assert lengths.max() <= 2000.0
    form = BodyForm(LoadApi.CHAT, "tiny", shared_prefix=50)
    first, second = (json.loads(body) for body in bodies(form, [100.0, 80.0], [7.0, 9.0], seed=1))
    words = [document["messages"][0]["content"].split() for document in (first, second)]
    assert [len(text) for text in words] == [100, 80]
    assert words[0][:50] == words[1][:50]
    assert words[0][50:80] != words[1][50:80]
    assert (first["max_tokens"], first["stream"], first["stream_options"]) == (7, True, {"include_usage": True})


def test_each_api_has_its_path_and_fields() -> None:
    assert BodyForm(LoadApi.GENERATE).path == "/generate_stream"
    assert BodyForm(LoadApi.GENERATE, streams=False).path == "/generate"
    assert json.loads(BodyForm(LoadApi.GENERATE).body("a b", 3)) == {"inputs": "a b", "parameters": {"max_new_tokens": 3}}
    assert json.loads(BodyForm(LoadApi.COMPLETIONS, "m", streams=False).body("a", 3))["prompt"] == "a"


def test_bodies_are_bounded() -> None:
    assert len(bodies(BodyForm(), np.full(5000, 3.0), np.full(5000, 3.0), 1)) == 512
    with patch("chipwise.serving.load_shape.MOST_BODY_TOKENS", 2000):
        assert len(bodies(BodyForm(), np.full(9, 900.0), np.full(9, 1.0), 1)) == 2


def test_burstiness_is_the_variation_of_the_gaps() -> None:
    times = arrivals(ArrivalKind.BURSTY, 100.0, 300.0, 2.0, np.random.default_rng(1))
    gaps = np.diff(times)
    assert gaps.std() / gaps.mean() == pytest.approx(2.0, rel=0.1)


@pytest.mark.parametrize("limit", [0.3, 3.0, 37.0, 1000.0])
def test_the_search_comes_within_a_tenth_of_the_highest_rate(limit: float) -> None:
    trials: list[RateTrial] = []
    while (rate := next_rate(trials, 4.0)) is not None:
        trials.append(RateTrial(rate, rate <= limit))
    best = highest_rate(trials)
    assert best is not None
    assert len(trials) <= MOST_TRIALS
    assert limit / 1.1 <= best <= limit or len(trials) == MOST_TRIALS


def test_a_rate_that_held_by_luck_above_one_that_failed_does_not_count() -> None:
    assert highest_rate([RateTrial(1.0, True), RateTrial(2.0, False), RateTrial(4.0, True)]) == 1.0
    assert highest_rate([RateTrial(1.0, False)]) is None


def test_intervals_cover_the_truth_as_often_as_they_say_and_are_left_out_where_nothing_is_known() -> None:
    chance = np.random.default_rng(11)
    truth = -np.log(0.05)
    hits = 0
    for _ in range(40):
        seen = percentiles(chance.exponential(1.0, 400))
        assert seen is not None
        low, high = seen.intervals["p95"]
        hits += low <= truth <= high
    assert hits >= 33
    few = percentiles(chance.exponential(1.0, 150))
    assert few is not None
    assert set(few.intervals) == {"p50", "p90"}
