"""How many tokens a request will need, before any tokenizer has seen it: bytes by a ratio, answers by those that went before.

Both are learned from what replicas report. Where they report nothing, four bytes of English are one token, and an answer has as
many tokens as events were streamed.
"""

from __future__ import annotations

FIRST_BYTES_PER_TOKEN = 4.0
FIRST_ANSWER_TOKENS = 200.0
LEAST_RATIO, MOST_RATIO = 0.5, 100.0  # bytes of a token; what is beyond is no report to learn from
WEIGHT = 0.02  # of the newest answer: the last fifty or so count


class Learned:
    __slots__ = ("answer_tokens", "bytes_per_token")

    def __init__(self) -> None:
        self.bytes_per_token = FIRST_BYTES_PER_TOKEN
        self.answer_tokens = FIRST_ANSWER_TOKENS

    def prompt_tokens(self, prompt_bytes: int) -> float:
        return prompt_bytes / self.bytes_per_token

    def answer(self, limit: float | None, count: int = 1) -> float:
        """Of all answers of a request together; `limit` is the client's for each."""
        tokens = self.answer_tokens
        return (tokens if limit is None or tokens < limit else limit) * count

    def learn(self, prompt_bytes: int, prompt_tokens: float | None, answer_tokens: float) -> None:
        if prompt_tokens and prompt_bytes:
            seen = prompt_bytes / prompt_tokens
            if LEAST_RATIO < seen < MOST_RATIO:
                self.bytes_per_token += WEIGHT * (seen - self.bytes_per_token)
        self.answer_tokens += WEIGHT * (answer_tokens - self.answer_tokens)
