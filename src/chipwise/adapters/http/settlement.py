"""What an answer has used, when it is over: the account of the key settled, and the pool's estimates brought up to date."""

from __future__ import annotations

from typing import NamedTuple

from chipwise.adapters.http.passing import PassedAnswer
from chipwise.adapters.http.state import GatewayState, PoolState
from chipwise.serving.endpoints import Prompt
from chipwise.serving.policy import RouteQuery


class Used(NamedTuple):
    prompt_tokens: float = 0.0
    answer_tokens: float = 0.0
    usd: float = 0.0
    gaps: float = 0.0  # between tokens of a stream


NOTHING = Used()


def used_by(state: GatewayState, ask: RouteQuery, answer: PassedAnswer) -> Used:
    """As the replica reports it; where it does not, an event with content is a token."""
    reported_prompt, reported_answer = answer.usage()
    prompt_tokens = ask.prompt_tokens if reported_prompt is None else float(reported_prompt)
    events = answer.content_events()
    if reported_answer is not None:
        answer_tokens = float(reported_answer)
    else:
        answer_tokens = float(events) if answer.is_stream else ask.answer_tokens
    gaps = answer_tokens - 1.0 if events > 1 else 0.0
    return Used(prompt_tokens, answer_tokens, state.settings.prices.usd(prompt_tokens, answer_tokens), gaps)


def learn(pool: PoolState, prompt: Prompt, used: Used, *, is_whole: bool, now: float) -> None:
    pool.throughput.finished(used.prompt_tokens + used.answer_tokens, now, is_busy=pool.line.length > 0)
    if is_whole and prompt.answer_limit != 0:
        pool.learned.learn(len(prompt.text), used.prompt_tokens, used.answer_tokens / prompt.answers)
