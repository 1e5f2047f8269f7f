"""A load test as values: what is sent and wanted, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from chipwise.serving.load_report import LoadReport
from chipwise.serving.load_shape import ArrivalKind, BodyForm, TokenLengths
from chipwise.workload.demand import Trace

FIRST_RATE, PROMPT_TOKENS, ANSWER_TOKENS = 1.0, 256.0, 128.0


@dataclass(frozen=True, slots=True)
class LoadRequest:
    """What is sent, to whom, and what is wanted of the answers."""

    url: str
    form: BodyForm = field(default_factory=BodyForm)
    key_variable: str | None = None  # of the environment, with the API key
    arrivals: ArrivalKind = ArrivalKind.POISSON
    per_s: float = FIRST_RATE
    duration_s: float = 30.0
    warm_up_s: float = 0.0
    burstiness: float = 1.0
    trace: Trace | None = None
    trace_folder: str = ""
    speed: float = 1.0
    prompts: TokenLengths = field(default_factory=lambda: TokenLengths(PROMPT_TOKENS))
    answers: TokenLengths = field(default_factory=lambda: TokenLengths(ANSWER_TOKENS))
    goals: Mapping[tuple[str, float], float] = field(default_factory=dict)  # seconds, by metric and share of the requests
    connections: int = 4096
    seed: int = 1
    usd_per_hour: float | None = None


@dataclass(frozen=True, slots=True)
class LoadOutcome:
    per_s: float | None  # None: as a trace has it
    report: LoadReport
    holds: Mapping[tuple[str, float], bool]  # by goal

    @property
    def is_within_goals(self) -> bool:
        return all(self.holds.values()) and not self.report.errors


@dataclass(frozen=True, slots=True)
class LoadResult:
    request: LoadRequest
    outcome: LoadOutcome  # of the search: at the highest rate that holds, else at the lowest that was tried
    trials: tuple[LoadOutcome, ...]
    predicted: Mapping[str, Mapping[str, float]] | None  # seconds by metric and percentile; None: nobody asked
    notes: tuple[str, ...] = ()
