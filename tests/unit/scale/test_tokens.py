"""Continuous batching token by token, against hand counts, the performance model, and its compiled form."""

from __future__ import annotations

import numpy as np
import pytest

from chipwise.errors import BadInput
from chipwise.scale.simulator.tokens import TokenLoad, TokenSpeed, answered
from queueing_cases import server_of, service_for


def requests(times: list[float], prompts: list[int], answers: list[int]) -> TokenLoad:
    return TokenLoad(times_s=np.array(times), prompts=np.array(prompts, np.int64), answers=np.array(answers, np.int64))


SPEED = TokenSpeed(steps_s=np.array([0.0, 1.0, 1.5]), prompt_token_s=0.1, kv_tokens=100, chunk=10)


def test_a_request_alone_takes_its_prompt_and_a_step_for_each_token() -> None:
    begins, ends, busy = answered(requests([5.0], [10], [4]), SPEED, 1, compiled=False)
    assert (begins[0], ends[0], busy[0]) == (5.0, 5.0 + 1.0 + 4 * 1.0, 5.0)


def test_two_requests_share_steps_and_prompts_are_read_in_chunks() -> None:
    begins, ends, _ = answered(requests([0.0, 0.0], [10, 15], [3, 2]), SPEED, 1, compiled=False)
    # 10 tokens of the first, then 10 and 5 of the second beside the tokens of the first, which has its last at the third step
    assert ends.tolist() == pytest.approx([2.0 + 2.0 + 2.0, 6.0 + 1.0])
    assert begins.tolist() == [0.0, 0.0]


def test_who_does_not_fit_into_slots_or_memory_waits_for_those_who_leave() -> None:
    for speed in (TokenSpeed(steps_s=np.array([0.0, 1.0]), prompt_token_s=0.1, kv_tokens=100, chunk=10), SPEED):
        begins, ends, _ = answered(requests([0.0, 0.0], [10, 10], [50, 50]), speed, 1, compiled=False)
        assert begins[1] == ends[0] == 51.0


def test_what_never_fits_is_refused() -> None:
    with pytest.raises(BadInput, match="does not fit into 100 tokens"):
        answered(requests([0.0], [90], [11]), SPEED, 1)
    with pytest.raises(BadInput, match="at least one token"):
        answered(requests([0.0], [90], [0]), SPEED, 1)


def test_a_full_replica_answers_what_the_performance_model_says() -> None:
    """A static batch: all slots always taken by requests of one length."""
    service = service_for("8B on A10G, few slots", 1.0)
    server = server_of(service)
    prompt, answer, count = round(server.prompt_tokens), round(server.answer_tokens), 3 * server.slots
    speed = TokenSpeed(steps_s=server.steps_s, prompt_token_s=server.prompt_s / prompt, kv_tokens=10**9, chunk=512)
    _, ends, _ = answered(requests([0.0] * count, [prompt] * count, [answer] * count), speed, 1, compiled=False)
    assert count / ends.max() == pytest.approx(float(service.capacity[0]), rel=0.02)


def test_compiled_and_plain_give_the_same_to_the_last_bit() -> None:
    pytest.importorskip("numba", reason="numba is not installed: pip install 'chipwise[fast]'")
    chance = np.random.default_rng(1)
    load = requests(
        np.cumsum(chance.exponential(0.5, 300)).tolist(),
        chance.integers(1, 40, 300).tolist(),
        chance.integers(1, 20, 300).tolist(),
    )
    speed = TokenSpeed(steps_s=0.05 + 0.01 * np.arange(9.0), prompt_token_s=0.003, kv_tokens=200, chunk=16)
    for plain, compiled in zip(answered(load, speed, 3, compiled=False), answered(load, speed, 3, compiled=True), strict=True):
        np.testing.assert_array_equal(plain, compiled)
