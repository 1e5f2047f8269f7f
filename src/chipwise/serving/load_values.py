"""A load test as values: what is sent and wanted, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from chipwise.serving.load_goals import Goals, GoalVerdict
from chipwise.serving.load_report import LoadReport
from chipwise.serving.load_shape import ArrivalKind, BodyForm, TokenLengths
from chipwise.workload.demand import Trace

WANTED_SHARE = 0.95
FIRST_RATE, PROMPT_TOKENS, ANSWER_TOKENS = 1.0, 256.0, 128.0


@dataclass(frozen=True, slots=True)
class LoadRequest:
    """What is sent, to whom, and what is wanted of the answers."""

    url: str
    form: BodyForm = field(default_factory=BodyForm)
    key_variable: str | None = None  # of the environment, with the API key
    arrivals: ArrivalKind = ArrivalKind.POISSON
    per_s: float = FIRST_RATE
    duration_s: float | None = None  # None: as long as the trace, or as a trial needs
    warm_up_s: float = 0.0
    burstiness: float = 1.0
    trace: Trace | None = None
    trace_folder: str = ""
    speed: float = 1.0
    prompts: TokenLengths = field(default_factory=lambda: TokenLengths(PROMPT_TOKENS))
    answers: TokenLengths = field(default_factory=lambda: TokenLengths(ANSWER_TOKENS))
    goals: Goals = field(default_factory=dict)
    share: float = WANTED_SHARE  # of the requests: the percentile that is shown with its interval and its prediction
    connections: int = 4096
    seed: int = 1
    usd_per_hour: float | None = None


@dataclass(frozen=True, slots=True)
class LoadOutcome:
    per_s: float | None  # None: as a trace has it
    report: LoadReport
    goals: tuple[GoalVerdict, ...]
    sent_for_s: float  # in which requests were due

    @property
    def is_within_goals(self) -> bool:
        return all(goal.holds for goal in self.goals) and not self.report.errors


@dataclass(frozen=True, slots=True)
class LoadResult:
    request: LoadRequest
    outcome: LoadOutcome  # of the search: at the highest rate that holds, else at the lowest that was tried
    trials: tuple[LoadOutcome, ...]
    predicted: Mapping[str, Mapping[str, float]] | None  # seconds by metric and percentile; None: nobody asked
    highest: tuple[float | None, float | None] | None = None  # of a search: the highest rate that held, the lowest that did not
