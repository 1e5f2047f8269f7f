"""Request sizes: shares and means of the grid, recorded requests, and goals that hold over all sizes together."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.planner.generation.sizing import CELLS, bands, goals_by_bucket, grid, recorded
from chipwise.planner.values.mix import Band, Bucket
from chipwise.workload.demand import Length
from chipwise.workload.lengths import spread

LENGTHS = st.builds(
    lambda mean, tail, most: Length(mean=mean, p95=mean * tail, max=mean * tail * most),
    st.floats(16, 20000),
    st.floats(1.05, 3.5),
    st.floats(1.0, 8.0),
)


@given(LENGTHS)
def test_bands_keep_the_stated_mean_and_all_requests(length: Length) -> None:
    found = bands(length)
    assert len(found) <= CELLS
    assert sum(one.share for one in found) == pytest.approx(1.0)
    assert sum(one.share * one.mean for one in found) == pytest.approx(length.mean, rel=1e-6)
    assert all(one.low <= two.low for one, two in pairwise(found))
    assert [one.mean for one in found] == sorted(one.mean for one in found)


def test_a_lognormal_drawn_at_random_fills_the_bands_as_reckoned() -> None:
    sigma, mean = 0.8, 1000.0
    mu = math.log(mean) - sigma**2 / 2
    drawn = np.random.default_rng(5).lognormal(mu, sigma, 200_000)
    length = Length(mean=mean, p95=math.exp(mu + 1.6448536 * sigma))
    assert spread(length)[0] == pytest.approx(sigma, rel=1e-3)
    for one in bands(length)[:-1]:
        inside = drawn[(drawn > (one.low if one.low > 1 else 0)) & (drawn <= one.high)]
        assert len(inside) / len(drawn) == pytest.approx(one.share, abs=0.01)
        assert inside.mean() == pytest.approx(one.mean, rel=0.02)


def test_a_mean_alone_is_one_size_and_says_so() -> None:
    found = grid(Length(mean=500), Length(mean=100))
    assert len(found) == 1
    assert "alike" in spread(Length(mean=500))[1]


def test_recorded_requests_keep_prompt_and_answer_together() -> None:
    random = np.random.default_rng(3)
    prompts = np.concatenate([random.uniform(50, 100, 600), random.uniform(4000, 8000, 400)])
    answers = np.concatenate([random.uniform(900, 1000, 600), random.uniform(10, 20, 400)])
    found = recorded(prompts, answers)
    assert sum(one.share for one in found) == pytest.approx(1.0)
    assert sum(one.share * one.prompt.mean for one in found) == pytest.approx(prompts.mean())
    assert not any(one.prompt.mean > 4000 and one.answer.mean > 500 for one in found)


def test_goals_of_the_sizes_keep_the_goal_of_the_whole() -> None:
    buckets = grid(Length(mean=900, p95=3000), Length(mean=200, p95=600))
    goals = {("ttft", 0.5): 0.3, ("ttft", 0.95): 1.0, ("tpot", 0.9): 0.05, ("latency", 0.99): 30.0}
    mine = goals_by_bucket(buckets, goals)
    for (name, share), limit in goals.items():
        kept = sum(
            bucket.share * max((p for (kind, p), most in one.items() if kind == name and most == limit), default=0.0)
            for bucket, one in zip(buckets, mine, strict=True)
        )
        assert kept >= share - 1e-9
    longest = max(range(len(buckets)), key=lambda at: buckets[at].prompt.mean)
    assert not any(name == "ttft" and limit == 0.3 for (name, _), limit in mine[longest].items())


def test_one_size_keeps_the_goals_as_they_are() -> None:
    band = Band(100, 100, 100, 1.0)
    assert goals_by_bucket([Bucket(band, band, 1.0)], {("tpot", 0.95): 0.04}) == [{("tpot", 0.95): 0.04}]
