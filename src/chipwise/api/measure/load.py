"""The verb `load`: requests sent to a service at instants that do not wait for its answers, and what came of them.

Times count from the instant at which a request was due, so that a service that stands still is not spared (no coordinated
omission). The predicted percentiles beside the measured ones are those of `predict` for the same rate and lengths.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chipwise.errors import BadInput, OutsideFailed
from chipwise.files.handed import check_ends
from chipwise.files.source import NamedText
from chipwise.serving.load_goals import judged, trial_seconds
from chipwise.serving.load_report import share_name, summarise
from chipwise.serving.load_request import LOCAL_URL, loosest, of_service, sent_requests, with_options
from chipwise.serving.load_request import LoadOptions as LoadOptions
from chipwise.serving.load_values import LoadOutcome, LoadRequest, LoadResult
from chipwise.serving.rate_search import RateTrial, highest_rate, lowest_failed, next_rate
from chipwise.workload.demand import Trace, TraceFormat
from chipwise.workload.kinds import Serve

if TYPE_CHECKING:
    from chipwise.api.session.wiring import Session

Report = Callable[[int, int | None, str], None]
TOLD_EVERY_S = 10
ANY_TIME_S = 3600.0  # a goal that says nothing: a prediction has only percentiles of goals


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
    result = load(with_options(base, options, None if options.trace is None else _trace(options.trace)), report, options.search)
    per_s = result.outcome.per_s
    if options.chip is None or per_s is None:
        return result
    settings = {} if options.replicas is None else {"replicas": options.replicas}
    return replace(result, predicted=predicted(session, target, options.chip, per_s, result.request, settings))


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
    return of_service(work, str(source), request)


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
        seconds = request.warm_up_s + trial_seconds(request.duration_s, per_s, [share for _, share in request.goals])
        outcome = _test(replace(request, per_s=per_s, duration_s=seconds), report)
        trials.append(outcome)
        rate_trials.append(RateTrial(per_s, outcome.is_within_goals))
    best, failed = highest_rate(rate_trials), lowest_failed(rate_trials)
    chosen = min(trials, key=lambda trial: abs((trial.per_s or 0.0) - (best or 0.0)))
    request = replace(request, per_s=chosen.per_s or request.per_s)
    return LoadResult(request, chosen, tuple(trials), None, highest=(best, failed))


def _test(request: LoadRequest, report: Report) -> LoadOutcome:
    from chipwise.adapters.http.load import LoadTest, Patience
    from chipwise.adapters.http.load_target import target_of
    from chipwise.adapters.http.loops import run

    due, sent, sent_for_s = sent_requests(request)
    total = len(due)
    title = "" if request.trace is not None else f"{request.per_s:.4g}/s, "

    def progress(over: int, elapsed_s: float) -> None:
        report(over, total, f"{title}{int(elapsed_s // TOLD_EVERY_S) * TOLD_EVERY_S} s")

    test = LoadTest(
        target_of(request),
        due_s=due,
        bodies=sent,
        patience=Patience(connections=request.connections),
        progress=progress,
    )
    shots = run(test.run())
    seen = summarise(shots, loosest(request.goals), request.warm_up_s, (request.share, *(share for _, share in request.goals)))
    if not seen.answered and seen.errors.get("no_connection") == seen.requests:
        raise OutsideFailed(f"Nothing answers at {request.url}.", remedy="Start the service, or give its address.")
    return LoadOutcome(
        per_s=None if request.trace is not None else request.per_s,
        report=seen,
        goals=judged(shots, request.goals, request.warm_up_s),
        sent_for_s=sent_for_s,
    )


def predicted(
    session: Session, source: str, chip: str, per_s: float, request: LoadRequest, settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Seconds by metric and percentile, at this rate; the percentile of the test is among them."""
    from chipwise.api.verbs import predict

    goal_s = next((seconds for (name, _), seconds in request.goals.items() if name == "ttft"), ANY_TIME_S)
    goal = {"ttft": goal_s, "percentile": 100.0 * request.share}
    view = predict(session, source, chip, "serve", {"rate": per_s, **goal, **settings})
    percentiles = view.get("percentiles") or {}
    if not percentiles:
        raise BadInput("There is no prediction at this rate for this workload.", remedy="Leave out --on.")
    return {
        name.removesuffix("_s"): {share_name(float(share[1:]) / 100.0): seconds for share, seconds in values.items()}
        for name, values in percentiles.items()
    }
