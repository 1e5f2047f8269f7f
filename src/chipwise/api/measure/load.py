"""The verb `load`: requests sent to a service at instants that do not wait for its answers, and what came of them.

Times count from the instant at which a request was due, so that a service that stands still is not spared (no coordinated
omission). The predicted percentiles beside the measured ones are those of `predict` for the same rate and lengths.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from chipwise.errors import BadInput, OutsideFailed
from chipwise.files.handed import check_ends
from chipwise.files.source import NamedText
from chipwise.serving.arrivals import MOST_REQUESTS, replayed
from chipwise.serving.load_report import LoadGoals, LoadReport, summarise
from chipwise.serving.load_shape import ArrivalKind, BodyForm, LoadApi, TokenLengths, arrivals, bodies
from chipwise.serving.load_values import LoadOutcome, LoadRequest, LoadResult
from chipwise.serving.rate_search import RateTrial, highest_rate, next_rate
from chipwise.serving.replica import Address
from chipwise.workload.demand import Length, Trace, TraceFormat
from chipwise.workload.kinds import Serve
from chipwise.workload.lengths import spread
from chipwise.workload.trace import read_requests

if TYPE_CHECKING:
    from chipwise.api.session.wiring import Session
    from chipwise.workload.goals import Goals

Floats = NDArray[np.float64]
Report = Callable[[int, int | None, str], None]
LOCAL_URL = "http://127.0.0.1:8000"
WANTED_SHARE = 0.95  # of the requests of a trial that must be good for its rate to hold
TOLD_EVERY_S = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions:
    """What somebody states over the defaults and over a workload file; None: nothing."""

    url: str | None = None
    environment: str | None = None
    rate: float | None = None
    duration: float | None = None
    warm_up: float | None = None
    arrivals: str | None = None
    burstiness: float | None = None
    trace: str | None = None
    speed: float | None = None
    input: float | None = None
    output: float | None = None
    model: str | None = None
    api: str | None = None
    stream: bool = True
    key_variable: str | None = None
    ttft: float | None = None
    tpot: float | None = None
    latency: float | None = None
    percentile: float | None = None
    connections: int | None = None
    seed: int | None = None
    usd_per_hour: float | None = None
    search: bool = False
    chip: str | None = None
    replicas: int | None = None


def is_workload(target: str) -> bool:
    return isinstance(target, NamedText) or target.endswith((".yaml", ".yml"))


def measured(session: Session, target: str, options: LoadOptions, report: Report) -> LoadResult:
    """What `chipwise load` does: `target` is a URL or a workload file."""
    if options.chip is not None and not is_workload(target):
        raise BadInput(
            "A prediction needs a workload, and a URL is none.", remedy="chipwise load FILE.yaml --url URL --on CHIP"
        )
    if options.url is not None and not is_workload(target):
        raise BadInput("There are two addresses.", remedy="Give --url with a workload file only.")
    base = LoadRequest(url=options.url or (LOCAL_URL if is_workload(target) else target))
    if is_workload(target):
        base = from_workload(session, target, base, options.environment)
    result = load(_with_options(base, options), report, options.search)
    per_s = result.outcome.per_s
    if options.chip is None or per_s is None:
        return result
    settings = {} if options.replicas is None else {"replicas": options.replicas}
    return replace(result, predicted=predicted(session, target, options.chip, per_s, settings))


def _with_options(base: LoadRequest, options: LoadOptions) -> LoadRequest:
    form = replace(
        base.form,
        api=LoadApi(options.api) if options.api else base.form.api,
        model=options.model or base.form.model,
        streams=options.stream,
    )
    changed: dict[str, Any] = {
        "per_s": options.rate,
        "duration_s": options.duration,
        "warm_up_s": options.warm_up,
        "burstiness": options.burstiness,
        "speed": options.speed,
        "connections": options.connections,
        "seed": options.seed,
        "usd_per_hour": options.usd_per_hour,
        "key_variable": options.key_variable,
        "arrivals": ArrivalKind(options.arrivals) if options.arrivals else None,
        "prompts": None if options.input is None else TokenLengths(options.input),
        "answers": None if options.output is None else TokenLengths(options.output),
    }
    if options.burstiness is not None and options.arrivals is None:
        changed["arrivals"] = ArrivalKind.BURSTY
    if options.trace is not None:
        changed |= {"trace": _trace(options.trace), "trace_folder": ""}
    elif options.rate is not None:
        base = replace(base, trace=None)
    share = (options.percentile or 100.0 * WANTED_SHARE) / 100.0
    stated = {"ttft": options.ttft, "tpot": options.tpot, "latency": options.latency}
    goals = {(name, share): seconds for name, seconds in stated.items() if seconds is not None}
    other_goals = {goal: seconds for goal, seconds in base.goals.items() if stated[goal[0]] is None}
    stated_values = {name: value for name, value in changed.items() if value is not None}
    return replace(base, form=form, goals=other_goals | goals, **stated_values)


def _trace(path: str) -> Trace:
    """By its first line: the public Azure traces have names of their own."""
    try:
        if check_ends(Path(path)):
            raise BadInput(f"{path} is a pipe, and a trace is read twice.", remedy="Write it into a file first, and give that.")
        with Path(path).open("rb") as stream:
            first = stream.readline(4096)
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}.", remedy="Give a CSV file of arrivals.") from error
    return Trace(path=path, format=TraceFormat.AZURE_LLM if b"TIMESTAMP" in first else TraceFormat.CSV)


def from_workload(session: Session, source: str, request: LoadRequest, environment: str | None) -> LoadRequest:
    """The load that a workload file describes."""
    from chipwise.planner.check import check

    work = check(session.known, source, environment).workload
    if not isinstance(work, Serve):
        raise BadInput(f"A workload of kind {work.kind} has no requests.", remedy="Give one of kind serve, or a URL.")
    arrival = work.arrival
    per_s = arrival.rate or arrival.peak or request.per_s
    prefix = int(work.shared_prefix_tokens or 0)
    return replace(
        request,
        form=BodyForm(model=work.model if isinstance(work.model, str) else work.name, shared_prefix=prefix),
        per_s=per_s,
        burstiness=arrival.burstiness,
        arrivals=ArrivalKind.POISSON if arrival.burstiness == 1.0 else ArrivalKind.BURSTY,
        trace=arrival.trace,
        trace_folder=str(source),
        prompts=_lengths(work.input_tokens, request.prompts),
        answers=_lengths(work.output_tokens, request.answers),
        goals=_goals(work.goals),
    )


def _lengths(length: Length | None, otherwise: TokenLengths) -> TokenLengths:
    return otherwise if length is None else TokenLengths(length.mean, spread(length)[0], length.max)


def _goals(goals: Goals) -> dict[tuple[str, float], float]:
    by_metric = {"ttft": goals.ttft, "tpot": goals.tpot, "latency": goals.latency}
    limits = ((name, goal) for name, goal in by_metric.items() if goal is not None)
    return {(name, percent / 100.0): seconds for name, goal in limits for percent, seconds in goal.limits}


def load(request: LoadRequest, report: Report, searches: bool = False) -> LoadResult:
    """One test, or the search for the highest rate that keeps the goals."""
    if not searches:
        outcome = _test(request, report)
        return LoadResult(request, outcome, (outcome,), None)
    if not request.goals or request.trace is not None:
        raise BadInput("A search needs goals and a rate, no trace.", remedy="Add --ttft, --tpot or --latency.")
    trials: list[LoadOutcome] = []
    rate_trials: list[RateTrial] = []
    while (per_s := next_rate(rate_trials, request.per_s)) is not None:
        outcome = _test(replace(request, per_s=per_s), report)
        trials.append(outcome)
        rate_trials.append(RateTrial(per_s, outcome.is_within_goals))
    best = highest_rate(rate_trials)
    chosen = min(trials, key=lambda trial: abs((trial.per_s or 0.0) - (best or 0.0)))
    return LoadResult(replace(request, per_s=chosen.per_s or request.per_s), chosen, tuple(trials), None)


def _test(request: LoadRequest, report: Report) -> LoadOutcome:
    from chipwise.adapters.http.load import LoadTest, Patience
    from chipwise.adapters.http.loops import run

    due, sent = _sent(request)
    total = len(due)
    title = "" if request.trace is not None else f"{request.per_s:.4g}/s, "

    def progress(over: int, elapsed_s: float) -> None:
        report(over, total, f"{title}{int(elapsed_s // TOLD_EVERY_S) * TOLD_EVERY_S} s")

    test = LoadTest(
        _target(request),
        due_s=due,
        bodies=sent,
        patience=Patience(connections=request.connections),
        progress=progress,
    )
    seen = summarise(run(test.run()), _loosest(request.goals), request.warm_up_s)
    if not seen.answered and seen.errors.get("no_connection") == seen.requests:
        raise OutsideFailed(f"Nothing answers at {request.url}.", remedy="Start the service, or give its address.")
    return LoadOutcome(None if request.trace is not None else request.per_s, seen, _holds(seen, request.goals))


def _sent(request: LoadRequest) -> tuple[Floats, list[bytes]]:
    """When, and what."""
    chance = np.random.default_rng(request.seed)
    if request.trace is not None:
        rows = read_requests(request.trace, request.trace_folder, MOST_REQUESTS)
        due = replayed(rows[:, 0], request.speed)
        rows = rows[: int(np.searchsorted(due, request.duration_s))]
        due = due[: len(rows)]
        lengths = (rows[:, 1], rows[:, 2])
    else:
        due = arrivals(request.arrivals, request.per_s, request.duration_s, request.burstiness, chance)
        lengths = (np.full(len(due), np.nan), np.full(len(due), np.nan))
    drawn = (request.prompts.drawn(len(due), chance), request.answers.drawn(len(due), chance))
    prompts, answers = (np.where(np.isnan(known), other, known) for known, other in zip(lengths, drawn, strict=True))
    return due, bodies(request.form, prompts, answers, request.seed) or [request.form.body("hello", 1)]


def _target(request: LoadRequest) -> Any:
    from chipwise.adapters.http.load import Target

    parts = urlsplit(request.url if "//" in request.url else f"http://{request.url}")
    try:
        port = parts.port
    except ValueError:
        port = 0
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0 or not parts.path.isascii():
        raise BadInput(f"{request.url[:80]!r} is no address of a service.", remedy=f"Write it like {LOCAL_URL}.")
    is_secure = parts.scheme == "https"
    headers: tuple[str, ...] = ()
    if request.key_variable is not None:
        key = os.environ.get(request.key_variable, "")
        if not re.fullmatch(r"[!-~]+", key):
            raise BadInput(
                f"The variable {request.key_variable} holds no API key.", remedy=f"export {request.key_variable}=KEY"
            )
        headers = (f"authorization: Bearer {key}",)
    base = parts.path.rstrip("/")
    path = request.form.path
    path = path if base == "" else f"{base}{path.removeprefix('/v1')}" if base.endswith("/v1") else f"{base}{path}"
    return Target(Address(parts.hostname, port or (443 if is_secure else 80)), path, headers, is_secure)


def _loosest(goals: Mapping[tuple[str, float], float]) -> LoadGoals:
    """A request is good that keeps the highest percentile's limit of each metric."""
    last = {name: goals[name, max(share for other, share in goals if other == name)] for name, _ in goals}
    return LoadGoals(last.get("ttft"), last.get("tpot"), last.get("latency"))


def _holds(seen: LoadReport, goals: Mapping[tuple[str, float], float]) -> dict[tuple[str, float], bool]:
    measured = {"ttft": seen.first_token, "tpot": seen.per_token, "latency": seen.total}
    holds = {}
    for (name, share), limit in goals.items():
        values = measured[name]
        seconds = math.nan if values is None else values.value_at(share)
        if seconds is not None:  # a percentile that is not counted is not judged
            holds[name, share] = seconds <= limit
    return holds


def predicted(session: Session, source: str, chip: str, per_s: float, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Seconds by metric and percentile, at this rate."""
    from chipwise.api.verbs import predict

    view = predict(session, source, chip, "serve", {"rate": per_s, **settings})
    percentiles = view.get("percentiles") or {}
    if not percentiles:
        raise BadInput("There is no prediction at this rate for this workload.", remedy="Leave out --on.")
    return {name.removesuffix("_s"): dict(values) for name, values in percentiles.items()}
