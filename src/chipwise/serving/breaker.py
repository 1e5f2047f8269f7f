"""The circuit breaker of a replica, as a value: after repeated failures no request is sent to it until one trial succeeded."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BreakerRule:
    failures: int = 5  # in a row that open it
    open_s: float = 2.0  # before a trial; doubled after each failed trial
    longest_open_s: float = 60.0


@dataclass(frozen=True, slots=True)
class Breaker:
    failures: int = 0
    open_until: float | None = None  # None: closed
    open_s: float = 0.0
    on_trial: bool = False

    def allows(self, now: float) -> bool:
        return self.open_until is None or (not self.on_trial and now >= self.open_until)

    def sent(self) -> Breaker:
        """A request goes to the replica: the one trial, where the breaker is open."""
        if self.open_until is None:
            return self
        return Breaker(failures=self.failures, open_until=self.open_until, open_s=self.open_s, on_trial=True)

    def failed(self, rule: BreakerRule, now: float) -> Breaker:
        failures = self.failures + 1
        if self.open_until is not None:
            if not self.on_trial:
                return self  # a request that had been sent before it opened
            open_s = min(rule.longest_open_s, 2.0 * self.open_s)
            return Breaker(failures=failures, open_until=now + open_s, open_s=open_s)
        if failures < rule.failures:
            return Breaker(failures=failures)
        return Breaker(failures=failures, open_until=now + rule.open_s, open_s=rule.open_s)

    def given_up(self) -> Breaker:
        """A trial ended without a verdict, as when the client left: the next request is a trial again."""
        if not self.on_trial:
            return self
        return Breaker(failures=self.failures, open_until=self.open_until, open_s=self.open_s)


CLOSED = Breaker()
