"""What a rule found, as a value: cause, evidence, price, and what to try next."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from chipwise.predictor.interval import Interval


class Severity(StrEnum):
    NOTE = "note"  # good to know; nothing need be done
    WARNING = "warning"  # speed or money is lost
    CRITICAL = "critical"  # the result or the device is in danger


@dataclass(frozen=True, slots=True)
class Fact:
    """A number that a finding rests on."""

    metric: str
    value: float
    unit: str
    text: str  # "GPU 0 waited for data 82% of the time"


@dataclass(frozen=True, slots=True)
class Finding:
    rule: str  # the name of its file and of its page
    severity: Severity
    cause: str  # one sentence, in the words of the field
    evidence: tuple[Fact, ...]
    span_s: tuple[float, float]  # from, to, since the start of the recording
    confidence: float  # probability that this is the cause
    lost_share: float  # of the paid time that is lost to it, 0 to 1: findings are ranked by it
    speedup: Interval | None  # of the program, if it were removed; None: unknown, and `cause` says so
    next_step: str  # what to try, as an imperative
    usd_lost_per_hour: float | None = None
    source: str = ""  # a device, if it is about one
