"""A canary is judged with the error rates that are stated, and by what it did alone."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from chipwise.serving.canary import CanaryRule, CanaryVerdict, RequestOutcome, judge, read_outcomes

pytestmark = pytest.mark.chance


def requests(
    chance: random.Random,
    count: int,
    *,
    slower: float = 1.0,
    slower_each: float = 1.0,
    fails: float = 0.0,
    tokens: float = 200.0,
) -> list[RequestOutcome]:
    return [
        RequestOutcome(
            failed=chance.random() < fails,
            first_s=slower * chance.lognormvariate(-2.0, 0.4),
            per_token_s=slower_each * chance.lognormvariate(-5.0, 0.2),
            total_s=2.0,
            tokens=chance.gauss(tokens, 30.0),
        )
        for _ in range(count)
    ]


def verdicts(new: Callable[[random.Random], list[RequestOutcome]], tries: int = 30) -> list[CanaryVerdict]:
    """Each canary is judged again and again while its requests come, as a rollout does."""
    ends = []
    for seed in range(tries):
        chance = random.Random(seed)
        old, fresh = requests(chance, 900), new(chance)
        looks = (judge(old[: 9 * count], fresh[:count], {}).verdict for count in range(10, len(fresh) + 1, 45))
        ends.append(next((verdict for verdict in looks if verdict is not CanaryVerdict.UNDECIDED), CanaryVerdict.UNDECIDED))
    return ends


def test_a_version_like_the_old_one_is_hardly_ever_rejected() -> None:
    ends = verdicts(lambda chance: requests(chance, 190))
    assert ends.count(CanaryVerdict.BAD) <= 2  # stated: 1% each, so that 3 of 30 have a chance of 1 in 300
    assert ends.count(CanaryVerdict.GOOD) >= 26


@pytest.mark.parametrize(
    ("trouble", "new"),
    [
        ("slow", lambda chance: requests(chance, 190, slower=2.0)),
        ("slow tokens", lambda chance: requests(chance, 190, slower_each=2.0)),
        ("failing", lambda chance: requests(chance, 190, fails=0.15)),
        ("short answers", lambda chance: requests(chance, 190, tokens=60.0)),
    ],
)
def test_a_bad_version_is_rejected(trouble: str, new: Callable[[random.Random], list[RequestOutcome]]) -> None:
    assert verdicts(new, 15).count(CanaryVerdict.BAD) >= 13, trouble


def test_a_version_that_only_fails_is_rejected_at_once_and_without_a_comparison() -> None:
    failures = [RequestOutcome(failed=True, first_s=None, per_token_s=None, total_s=0.1, tokens=0.0)] * 4
    assert judge([], failures, {}).verdict is CanaryVerdict.BAD


def test_what_keeps_the_goal_is_not_slow() -> None:
    chance = random.Random(1)
    old, fresh = requests(chance, 900), requests(chance, 190, slower=2.0)
    assert judge(old, fresh, {}).verdict is CanaryVerdict.BAD
    assert judge(old, fresh, {"ttft p95": 5.0}).verdict is CanaryVerdict.GOOD
    fresh = requests(chance, 190, slower_each=2.0)
    assert judge(old, fresh, {"ttft p95": 5.0}).verdict is CanaryVerdict.BAD
    assert judge(old, fresh, {"tpot p95": 0.1}).verdict is CanaryVerdict.GOOD


def test_tokens_are_compared_where_answers_are_streamed() -> None:
    """Whole answers are as good a comparison of all else; of streams there must be as many as of requests."""
    chance = random.Random(1)
    whole = [outcome._replace(first_s=None, per_token_s=None) for outcome in requests(chance, 150)]
    good = judge(whole, whole[:90], {})
    assert good.verdict is CanaryVerdict.GOOD
    assert "per token" not in good.reasons[0]
    few = judge(whole[:100] + requests(chance, 30), whole[:90], {})
    assert few.verdict is CanaryVerdict.UNDECIDED
    assert "30 of 50 streams" in few.reasons[0]
    both = judge(requests(chance, 150), requests(chance, 90), {})
    assert "per token" in both.reasons[0]


def test_few_requests_decide_nothing() -> None:
    chance = random.Random(1)
    judgement = judge(requests(chance, 900), requests(chance, 5), {}, CanaryRule())
    assert judgement.verdict is CanaryVerdict.UNDECIDED
    assert "5 requests" in judgement.reasons[0]


def test_outcomes_are_those_of_replicas_and_not_of_clients_that_left() -> None:
    line = {"path": "/v1/completions", "status": 200, "replica": "a-1", "us": 2_000_000, "answer_tokens": 5, "error": ""}
    lines = [
        line | {"first_token_us": 100_000, "per_token_us": 20_000},
        line | {"status": 502, "error": "answer_cut"},
        line | {"status": 499, "error": "client_left"},
        line | {"replica": "b-9"},
        line | {"path": "/v1/models"},
    ]
    assert read_outcomes(lines, {"a-1": 7}) == {
        7: [RequestOutcome(False, 0.1, 0.02, 2.0, 5.0), RequestOutcome(True, None, None, 2.0, 5.0)]
    }
