"""Rates and budgets of an API key: token buckets, and a daily budget in tokens and dollars."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

DAY_S = 86_400.0


class Bucket:
    """How much may be taken at once; time fills it. A level below zero is a debt that time pays back."""

    __slots__ = ("_at_s", "_capacity", "_per_s", "level")

    def __init__(self, per_s: float, capacity: float, now: float) -> None:
        self._per_s = per_s
        self._capacity = self.level = capacity
        self._at_s = now

    def wait_s(self, amount: float, now: float) -> float:
        """Until the amount may be taken; 0: now. More than fits in waits for a full bucket."""
        if now > self._at_s:
            level = self.level + self._per_s * (now - self._at_s)
            self.level = level if level < self._capacity else self._capacity
            self._at_s = now
        missing = (amount if amount < self._capacity else self._capacity) - self.level
        return missing / self._per_s if missing > 0.0 else 0.0


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
        requests, tokens, burst = limits.requests_per_s, limits.tokens_per_s, limits.burst_s
        self._requests = None if requests is None else Bucket(requests, max(1.0, requests * burst), now)
        self._tokens = None if tokens is None else Bucket(tokens, tokens * burst, now)
        self.at_once = 0
        self.day = now // DAY_S
        self.tokens_today = 0.0
        self.usd_today = 0.0

    def take(self, tokens: float, usd: float, now: float) -> Exceeded | None:
        """Takes what a request is expected to need, or nothing and says which limit is in the way."""
        if now // DAY_S != self.day:
            self.day, self.tokens_today, self.usd_today = now // DAY_S, 0.0, 0.0
        limits = self._limits
        if limits is not NO_LIMITS:
            exceeded = self._budget(limits, tokens, usd, now) or self._rate(tokens, now)
            if exceeded is not None:
                return exceeded
        self.at_once += 1
        self.tokens_today += tokens
        self.usd_today += usd
        return None

    def _budget(self, limits: KeyLimits, tokens: float, usd: float, now: float) -> Exceeded | None:
        if limits.requests_at_once is not None and self.at_once >= limits.requests_at_once:
            return Exceeded(Limit.AT_ONCE, 1.0)
        if limits.tokens_per_day is not None and self.tokens_today + tokens > limits.tokens_per_day:
            return Exceeded(Limit.TOKEN_BUDGET, (self.day + 1) * DAY_S - now)
        if limits.usd_per_day is not None and self.usd_today + usd > limits.usd_per_day:
            return Exceeded(Limit.USD_BUDGET, (self.day + 1) * DAY_S - now)
        return None

    def _rate(self, tokens: float, now: float) -> Exceeded | None:
        """Takes from both rates, or from none."""
        by_requests, by_tokens = self._requests, self._tokens
        if by_requests is not None and (wait := by_requests.wait_s(1.0, now)) > 0.0:
            return Exceeded(Limit.REQUEST_RATE, wait)
        if by_tokens is not None:
            if (wait := by_tokens.wait_s(tokens, now)) > 0.0:
                return Exceeded(Limit.TOKEN_RATE, wait)
            by_tokens.level -= tokens
        if by_requests is not None:
            by_requests.level -= 1.0
        return None

    def settle(self, more_tokens: float, more_usd: float) -> None:
        """The request is over; it used so much more (or less, if negative) than was taken for it."""
        self.at_once -= 1
        self.tokens_today = max(0.0, self.tokens_today + more_tokens)
        self.usd_today = max(0.0, self.usd_today + more_usd)
        if self._tokens is not None:
            self._tokens.level -= more_tokens
