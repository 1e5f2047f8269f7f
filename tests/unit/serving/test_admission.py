"""Limits, queues, estimates and keys."""

from __future__ import annotations

import pytest

from chipwise.errors import BadInput
from chipwise.serving.endpoints import EndpointKind, read_prompt
from chipwise.serving.estimate import Learned
from chipwise.serving.keys import ANYONE, Key, KeyRing, digest_of
from chipwise.serving.limits import DAY_S, Account, KeyLimits, Limit
from chipwise.serving.metrics import Finished, Metrics, ReplicaState
from chipwise.serving.waiting import Throughput, WaitingLine

SECRET = "0123456789-0123456789"


def test_over_a_long_time_no_more_than_the_rate_is_let_in() -> None:
    account = Account(KeyLimits(requests_per_s=2.0, burst_s=3.0), 0.0)
    let_in = sum(account.take(1.0, 0.0, step / 100.0) is None for step in range(10_000))
    assert 200 <= let_in <= 206


def test_the_wait_that_is_told_is_long_enough_and_not_longer() -> None:
    account = Account(KeyLimits(tokens_per_s=10.0, burst_s=10.0), 0.0)
    assert account.take(100.0, 0.0, 0.0) is None
    exceeded = account.take(50.0, 0.0, 0.0)
    assert exceeded is not None
    assert exceeded.limit is Limit.TOKEN_RATE
    assert exceeded.retry_after_s == pytest.approx(5.0)
    assert account.take(50.0, 0.0, 4.9) is not None
    assert account.take(50.0, 0.0, 5.0) is None


def test_tokens_that_were_not_used_are_given_back_and_others_owed() -> None:
    account = Account(KeyLimits(tokens_per_s=10.0, burst_s=10.0), 0.0)
    account.take(100.0, 0.0, 0.0)
    account.settle(-60.0, 0.0)
    assert account.take(60.0, 0.0, 0.0) is None
    account.settle(+100.0, 0.0)
    exceeded = account.take(10.0, 0.0, 0.0)
    assert exceeded is not None
    assert exceeded.retry_after_s == pytest.approx(11.0)


def test_a_budget_lasts_until_midnight_and_begins_again() -> None:
    account = Account(KeyLimits(usd_per_day=1.0), 0.0)
    assert account.take(1.0, 0.9, 10.0) is None
    exceeded = account.take(1.0, 0.2, 20.0)
    assert exceeded is not None
    assert (exceeded.limit, exceeded.retry_after_s) == (Limit.USD_BUDGET, DAY_S - 20.0)
    assert account.take(1.0, 0.2, DAY_S + 1.0) is None


def test_so_many_at_once() -> None:
    account = Account(KeyLimits(requests_at_once=1), 0.0)
    assert account.take(1.0, 0.0, 0.0) is None
    assert account.take(1.0, 0.0, 0.0) is not None
    account.settle(0.0, 0.0)
    assert account.take(1.0, 0.0, 0.0) is None


def test_the_line_is_bounded_ordered_and_expires() -> None:
    line: WaitingLine[str] = WaitingLine(3)
    line.join("late", tokens=1.0, priority=0, deadline=5.0)
    second = line.join("second", tokens=2.0, priority=0, deadline=9.0)
    line.join("first", tokens=4.0, priority=1, deadline=9.0)
    assert line.join("too many", tokens=1.0, priority=9, deadline=9.0) is None
    assert line.tokens == 7.0
    first = line.first()
    assert first is not None
    assert first.item == "first"
    line.leave(first)
    line.leave(first)
    assert second is not None
    assert [place.item for place in line.expired(6.0)] == ["late"]
    line.leave(second)
    assert (line.length, line.tokens) == (1, 1.0)


def test_throughput_tells_how_long_a_wait_is() -> None:
    seen = Throughput()
    assert seen.wait_s(10.0) is None
    for step in range(1, 200):
        seen.finished(50.0, step * 0.5)
    assert seen.wait_s(1000.0) == pytest.approx(10.0, rel=0.05)


def test_estimates_follow_what_replicas_report() -> None:
    learned = Learned()
    for _ in range(500):
        learned.learn(3000, 1000, 40.0)
    assert learned.prompt_tokens(300) == pytest.approx(100.0, rel=0.01)
    assert learned.answer(None) == pytest.approx(40.0, rel=0.05)
    assert learned.answer(10.0, 3) == 30.0


def test_keys_are_found_by_their_digest_only() -> None:
    ring = KeyRing([Key("ann", digest_of(SECRET))])
    assert ring.find(b"Bearer " + SECRET.encode()) is not None
    assert ring.find(b"bearer  " + SECRET.encode()) is not None
    for wrong in (b"", SECRET.encode(), b"Bearer ", b"Basic " + SECRET.encode(), b"Bearer x" + SECRET.encode()):
        assert ring.find(wrong) is None
    assert KeyRing().find(b"") is ANYONE
    with pytest.raises(BadInput, match="guessed"):
        digest_of("short")


def test_prompts_are_read_in_every_form() -> None:
    chat = b'{"messages":[{"content":"ab"},{"content":[{"type":"text","text":"cd"}]}],"max_completion_tokens":9,"n":2}'
    prompt = read_prompt(EndpointKind.CHAT, chat)
    assert (prompt.text, prompt.answer_limit, prompt.answers) == (b"ab\ncd", 9.0, 2)
    assert read_prompt(EndpointKind.COMPLETION, b'{"prompt":[1,2,3]}').tokens == 3
    assert read_prompt(EndpointKind.COMPLETION, b'{"prompt":[[1,2],[3]]}').tokens == 3
    assert read_prompt(EndpointKind.GENERATE, b'{"inputs":"x","parameters":{"max_new_tokens":5}}').answer_limit == 5.0
    assert read_prompt(EndpointKind.EMBEDDING, b'{"input":["x","y"]}').text == b"x\ny"


def test_prompts_share_the_blocks_of_a_common_beginning() -> None:
    bodies = [b'{"prompt":"%b%b"}' % (b"a" * 3000, end * 2000) for end in (b"x", b"y")]
    first, second = (read_prompt(EndpointKind.COMPLETION, body).blocks() for body in bodies)
    assert first[:2] == second[:2]
    assert first[2] != second[2]


def test_metrics_are_text_that_prometheus_reads() -> None:
    metrics = Metrics()
    metrics.count(
        Finished(id="1", path="/generate", status=200, key='a"b', team="", first_token_s=0.03, per_token_s=0.01, total_s=0.2)
    )
    text = metrics.text(3, 1, [ReplicaState("r0", 2, 50.0, True)])
    assert 'requests_total{path="/generate",status="200",key="a\\"b"} 1' in text
    assert 'time_to_first_token_seconds_bucket{le="0.02"} 0\n' in text
    assert 'time_to_first_token_seconds_bucket{le="0.05"} 1\n' in text
    assert 'replica_open{replica="r0"} 1' in text
