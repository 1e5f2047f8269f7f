"""What a load test sends: when requests come, how long prompts and answers are, and the bodies made of that."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from chipwise.serving.arrivals import bursty, constant, poisson

Floats = NDArray[np.float64]
MOST_BODIES = 512  # different ones; they come again in turn
MOST_BODY_TOKENS = 2_000_000  # of all of them together, to bound the memory
# Short words that common vocabularies know as one token each, so that a prompt has about as many tokens as words.
_TEXT = (
    "time year people way day man thing woman life child world school state family student group country problem hand part "
    "place case week company system program question work night point home water room mother area money story fact month"
)
WORDS = tuple(_TEXT.split())


class ArrivalKind(StrEnum):
    """How requests follow one another."""

    CONSTANT = "constant"
    POISSON = "poisson"
    BURSTY = "bursty"


class LoadApi(StrEnum):
    """Which interface the requests speak."""

    CHAT = "chat"
    COMPLETIONS = "completions"
    GENERATE = "generate"  # of TGI


PATHS = {LoadApi.CHAT: "/v1/chat/completions", LoadApi.COMPLETIONS: "/v1/completions", LoadApi.GENERATE: "/generate"}


@dataclass(frozen=True, slots=True)
class TokenLengths:
    """Tokens of prompts and answers: those of each request in turn, or drawn from a lognormal with this mean and sigma."""

    mean: float
    sigma: float = 0.0
    longest: float | None = None

    def drawn(self, count: int, chance: np.random.Generator) -> Floats:
        if self.sigma <= 0.0:
            values = np.full(count, self.mean)
        else:
            values = self.mean * np.exp(self.sigma * chance.standard_normal(count) - self.sigma**2 / 2.0)
        return np.clip(np.round(values), 1.0, self.longest)


@dataclass(frozen=True, slots=True)
class BodyForm:
    api: LoadApi = LoadApi.CHAT
    model: str = ""
    streams: bool = True
    shared_prefix: int = 0  # words at the start of every prompt that are the same

    @property
    def path(self) -> str:
        return "/generate_stream" if self.api is LoadApi.GENERATE and self.streams else PATHS[self.api]

    def body(self, prompt: str, answer_tokens: int) -> bytes:
        if self.api is LoadApi.GENERATE:
            return json.dumps({"inputs": prompt, "parameters": {"max_new_tokens": answer_tokens}}).encode()
        document: dict[str, object] = {"model": self.model, "max_tokens": answer_tokens, "stream": self.streams}
        if self.api is LoadApi.CHAT:
            document["messages"] = [{"role": "user", "content": prompt}]
        else:
            document["prompt"] = prompt
        if self.streams:
            document["stream_options"] = {"include_usage": True}
        return json.dumps(document, separators=(",", ":")).encode()


def arrivals(kind: ArrivalKind, per_s: float, duration_s: float, burstiness: float, chance: np.random.Generator) -> Floats:
    """Instants in seconds. `burstiness` is the coefficient of variation of the gaps, as in a workload file."""
    match kind:
        case ArrivalKind.CONSTANT:
            return constant(per_s, duration_s)
        case ArrivalKind.POISSON:
            return poisson(per_s, duration_s, chance)
        case ArrivalKind.BURSTY:
            return bursty(per_s, duration_s, burstiness**2, chance)


def bodies(form: BodyForm, prompts: Sequence[float] | Floats, answers: Sequence[float] | Floats, seed: int) -> list[bytes]:
    """One for each pair of lengths, of the first ones at most so many that they fit the bounds."""
    chance = np.random.default_rng(seed)
    words = np.array(WORDS)
    prefix = words[np.random.default_rng(0).integers(0, len(words), form.shared_prefix)].tolist()
    result: list[bytes] = []
    total = 0
    for prompt, answer in zip(prompts, answers, strict=True):
        own = max(1, int(prompt) - form.shared_prefix)
        total += int(prompt)
        if len(result) >= MOST_BODIES or (result and total > MOST_BODY_TOKENS):
            break
        text = " ".join(prefix + words[chance.integers(0, len(words), own)].tolist())
        result.append(form.body(text, max(1, int(answer))))
    return result
