"""A cold start in its parts, beside what the plan reckons with."""

from __future__ import annotations

from dataclasses import dataclass

from chipwise.text import decimal_size, duration


@dataclass(frozen=True, slots=True)
class ColdStart:
    """Seconds. None: nobody could see it."""

    process_s: float  # until it takes connections
    weights_s: float  # from then until it says that it is ready: reading weights, compiling, warming up
    first_token_s: float | None = None  # of the first request
    weight_bytes: float | None = None
    expected_s: float | None = None  # for reading the weights, as the plan reckons
    allowed_s: float | None = None  # within which the plan wants it to be ready

    @property
    def total_s(self) -> float:
        return self.process_s + self.weights_s + (self.first_token_s or 0.0)


def part_words(start: ColdStart) -> str:
    parts = [f"process {duration(start.process_s)}", f"loading {duration(start.weights_s)}"]
    if start.first_token_s is not None:
        parts.append(f"first token {duration(start.first_token_s)}")
    return ", ".join(parts)


def cold_start_words(start: ColdStart) -> str:
    words = f"cold start {duration(start.total_s)}: {part_words(start)}"
    if start.expected_s is not None and start.weight_bytes:
        size = decimal_size(start.weight_bytes)
        words += f"; the plan counts {duration(start.expected_s)} for reading {size} of weights, without what prepares them"
    if start.allowed_s is not None:
        words += f"; it allows {duration(start.allowed_s)} in all"
    return words
