"""Whether a request is let in, and what the gateway answers by itself: decided before any replica is asked."""

from __future__ import annotations

import json
from typing import NamedTuple

from chipwise.adapters.http.heads import RequestHead
from chipwise.adapters.http.state import GatewayState, PoolState
from chipwise.serving.endpoints import BLOCK_BYTES, Endpoint, EndpointKind, Prompt
from chipwise.serving.keys import ANYONE, Key
from chipwise.serving.policy import RouteQuery


class Refusal(NamedTuple):
    status: int
    code: str
    message: str
    retry_after_s: float | None = None


class LocalAnswer(NamedTuple):
    status: int
    text: str
    content_type: str = "application/json"


NO_PATH = Refusal(404, "unknown_path", "There is nothing at this path.")
NO_KEY = Refusal(401, "invalid_api_key", "The API key is missing or not valid.")
NO_MODEL = Refusal(404, "model_not_found", "No such model is served here. GET /v1/models lists those that are.")
DRAINING = Refusal(503, "shutting_down", "The service is shutting down.", 1.0)


def key_of(state: GatewayState, endpoint: Endpoint, head: RequestHead) -> Key | None:
    """Whose request it is; health is told to anyone."""
    return ANYONE if endpoint.kind is EndpointKind.HEALTH else state.keys.find(head.authorization)


def head_refusal(state: GatewayState, endpoint: Endpoint, head: RequestHead) -> Refusal | None:
    """Before the body comes."""
    if head.line.method != endpoint.method:
        return Refusal(405, "wrong_method", f"This path takes {endpoint.method} only.")
    most_bytes = state.settings.sizes.body_bytes
    if head.length > most_bytes:
        return Refusal(413, "body_too_large", f"A body may have {most_bytes:,} bytes.")
    return DRAINING if state.is_draining and not state.has_successor else None


def local_answer(state: GatewayState, kind: EndpointKind) -> LocalAnswer | None:
    """Of the gateway itself; None: a replica answers."""
    if kind is EndpointKind.HEALTH:
        is_healthy = state.is_healthy()
        return LocalAnswer(200 if is_healthy else 503, "" if is_healthy else "no replica answers", "text/plain")
    if kind is EndpointKind.METRICS:
        return LocalAnswer(200, state.metrics_text(), "text/plain; version=0.0.4")
    names = sorted(name for pool in state.pools for name in pool.pool.models)
    names = names or [state.pool.served for state in state.pools if state.pool.is_asleep and state.pool.served]
    if kind is EndpointKind.MODELS and names:
        models = [{"id": name, "object": "model", "owned_by": "chipwise"} for name in names]
        return LocalAnswer(200, json.dumps({"object": "list", "data": models}))
    return None


def needs(pool: PoolState, prompt: Prompt) -> RouteQuery:
    """What a request is expected to need."""
    learned = pool.learned
    return RouteQuery(
        prompt_tokens=learned.prompt_tokens(len(prompt.text)) if prompt.tokens is None else float(prompt.tokens),
        answer_tokens=learned.answer(prompt.answer_limit, prompt.answers),
        blocks=prompt.blocks() if pool.pool.policy.needs_blocks else (),
        block_tokens=BLOCK_BYTES / learned.bytes_per_token,
        session=prompt.session,
    )


def account_refusal(state: GatewayState, key: Key, tokens: float, usd: float) -> Refusal | None:
    """None: the account of the key had so much, and it has been taken."""
    exceeded = state.account(key).take(tokens, usd, state.wall())
    if exceeded is None:
        return None
    limit = exceeded.limit.value
    return Refusal(429, limit, f"The limit {limit} of this API key is reached.", exceeded.retry_after_s)
