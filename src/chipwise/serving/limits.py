"""Rates and budgets of an API key: token buckets as values, and a daily budget in tokens and dollars."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

DAY_S = 86_400.0


class Bucket(NamedTuple):
    """How much may be taken at once, and when that was so. A level below zero is a debt that time pays back."""

    level: float
    at_s: float


def drawn(bucket: Bucket, amount: float, per_s: float, capacity: float, now: float) -> Bucket | float:
    """The bucket without the amount, or the seconds until it may be taken; more than fits in waits for a full bucket."""
    level = bucket.level + per_s * (now - bucket.at_s) if now > bucket.at_s else bucket.level
    if level > capacity:
        level = capacity
    missing = (amount if amount < capacity else capacity) - level
    return missing / per_s if missing > 0.0 else Bucket(level - amount, now)


@dataclass(frozen=True, slots=True)
class KeyLimits:
    """None: without limit."""

    requests_per_s: float | None = None
    tokens_per_s: float | None = None
    burst_s: float = 10.0  # what was not used of so many seconds may be used at once
    requests_at_once: int | None = None
    tokens_per_day: float | None = None
    usd_per_day: float | None = None


NO_LIMITS = KeyLimits()


class Limit(StrEnum):
    """Which limit refused a request."""

    REQUEST_RATE = "request_rate"
    TOKEN_RATE = "token_rate"
    AT_ONCE = "requests_at_once"
    TOKEN_BUDGET = "token_budget"
    USD_BUDGET = "usd_budget"


class Exceeded(NamedTuple):
    limit: Limit
    retry_after_s: float


class Account:
    """What a key has used. Days are those of UTC; `now` is of a clock that starts with them, such as seconds since 1970."""

    __slots__ = ("_limits", "_requests", "_tokens", "at_once", "day", "tokens_today", "usd_today")

    def __init__(self, limits: KeyLimits, now: float) -> None:
        self._limits = limits
        self._requests = Bucket(max(1.0, (limits.requests_per_s or 0.0) * limits.burst_s), now)
        self._tokens = Bucket((limits.tokens_per_s or 0.0) * limits.burst_s, now)
        self.at_once = 0
        self.day = now // DAY_S
        self.tokens_today = 0.0
        self.usd_today = 0.0

    def take(self, tokens: float, usd: float, now: float) -> Exceeded | None:
        """Takes what a request is expected to need, or nothing and says which limit is in the way."""
        limits = self._limits
        if limits is NO_LIMITS:
            self._count(tokens, usd, now)
            return None
        if limits.requests_at_once is not None and self.at_once >= limits.requests_at_once:
            return Exceeded(Limit.AT_ONCE, 1.0)
        if now // DAY_S != self.day:
            self.day, self.tokens_today, self.usd_today = now // DAY_S, 0.0, 0.0
        midnight = (self.day + 1) * DAY_S - now
        if limits.tokens_per_day is not None and self.tokens_today + tokens > limits.tokens_per_day:
            return Exceeded(Limit.TOKEN_BUDGET, midnight)
        if limits.usd_per_day is not None and self.usd_today + usd > limits.usd_per_day:
            return Exceeded(Limit.USD_BUDGET, midnight)
        requests, left = self._requests, self._tokens
        if limits.requests_per_s is not None:
            capacity = max(1.0, limits.requests_per_s * limits.burst_s)
            after = drawn(requests, 1.0, limits.requests_per_s, capacity, now)
            if isinstance(after, float):
                return Exceeded(Limit.REQUEST_RATE, after)
            requests = after
        if limits.tokens_per_s is not None:
            after = drawn(left, tokens, limits.tokens_per_s, limits.tokens_per_s * limits.burst_s, now)
            if isinstance(after, float):
                return Exceeded(Limit.TOKEN_RATE, after)
            left = after
        self._requests, self._tokens = requests, left
        self._count(tokens, usd, now)
        return None

    def _count(self, tokens: float, usd: float, now: float) -> None:
        if now // DAY_S != self.day:
            self.day, self.tokens_today, self.usd_today = now // DAY_S, 0.0, 0.0
        self.at_once += 1
        self.tokens_today += tokens
        self.usd_today += usd

    def settle(self, more_tokens: float, more_usd: float) -> None:
        """The request is over; it used so much more (or less, if negative) than was taken for it."""
        self.at_once -= 1
        self.tokens_today = max(0.0, self.tokens_today + more_tokens)
        self.usd_today = max(0.0, self.usd_today + more_usd)
        if self._limits.tokens_per_s is not None:
            self._tokens = Bucket(self._tokens.level - more_tokens, self._tokens.at_s)
