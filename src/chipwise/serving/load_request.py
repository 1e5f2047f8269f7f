"""What a load test sends: options over the defaults and over a workload, as instants, bodies and goals."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from chipwise.serving.arrivals import MOST_REQUESTS, replayed
from chipwise.serving.load_goals import TRIAL_S, Goals
from chipwise.serving.load_report import LoadGoals
from chipwise.serving.load_shape import ArrivalKind, BodyForm, LoadApi, TokenLengths, arrivals, bodies
from chipwise.serving.load_values import WANTED_SHARE, LoadRequest
from chipwise.workload.demand import Length, Trace
from chipwise.workload.kinds import Serve
from chipwise.workload.lengths import spread
from chipwise.workload.trace import read_requests

if TYPE_CHECKING:
    from chipwise.workload.goals import Goals as WorkloadGoals

Floats = NDArray[np.float64]
LOCAL_URL = "http://127.0.0.1:8000"  # of a service on this machine, as vLLM has it


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


def with_options(base: LoadRequest, options: LoadOptions, trace: Trace | None) -> LoadRequest:
    """`trace`: of the options' own."""
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
    if trace is not None:
        changed |= {"trace": trace, "trace_folder": ""}
    elif options.rate is not None:
        base = replace(base, trace=None)
    stated = {"ttft": options.ttft, "tpot": options.tpot, "latency": options.latency}
    percentile = None if options.percentile is None else options.percentile / 100.0
    goals = {(name, percentile or WANTED_SHARE): seconds for name, seconds in stated.items() if seconds is not None}
    of_file = {goal: seconds for goal, seconds in base.goals.items() if stated[goal[0]] is None}
    if percentile is not None:  # the limit of the file's highest percentile, for this one
        of_file = {(name, percentile): seconds for (name, _), seconds in sorted(of_file.items())}
    goals = of_file | goals
    share = percentile or max((share for _, share in goals), default=WANTED_SHARE)
    stated_values = {name: value for name, value in changed.items() if value is not None}
    return replace(base, form=form, goals=goals, share=share, **stated_values)


def of_service(work: Serve, source: str, request: LoadRequest) -> LoadRequest:
    """The load that a workload file describes."""
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


def _goals(goals: WorkloadGoals) -> dict[tuple[str, float], float]:
    by_metric = {"ttft": goals.ttft, "tpot": goals.tpot, "latency": goals.latency}
    limits = ((name, goal) for name, goal in by_metric.items() if goal is not None)
    return {(name, percent / 100.0): seconds for name, goal in limits for percent, seconds in goal.limits}


def sent_requests(request: LoadRequest) -> tuple[Floats, list[bytes], float]:
    """When, what, and for how long."""
    chance = np.random.default_rng(request.seed)
    if request.trace is not None:
        rows = read_requests(request.trace, request.trace_folder, MOST_REQUESTS)
        due = replayed(rows[:, 0], request.speed)
        if request.duration_s is not None:
            rows = rows[: int(np.searchsorted(due, request.duration_s))]
        due = due[: len(rows)]
        sent_for_s = float(due[-1]) if due.size else 0.0
        lengths = (rows[:, 1], rows[:, 2])
    else:
        sent_for_s = TRIAL_S if request.duration_s is None else request.duration_s
        due = arrivals(request.arrivals, request.per_s, sent_for_s, request.burstiness, chance)
        lengths = (np.full(len(due), np.nan), np.full(len(due), np.nan))
    drawn = (request.prompts.drawn(len(due), chance), request.answers.drawn(len(due), chance))
    prompts, answers = (np.where(np.isnan(known), other, known) for known, other in zip(lengths, drawn, strict=True))
    return due, bodies(request.form, prompts, answers, request.seed) or [request.form.body("hello", 1)], sent_for_s


def loosest(goals: Goals) -> LoadGoals:
    """A request is good that keeps the highest percentile's limit of each metric."""
    last = {name: goals[name, max(share for other, share in goals if other == name)] for name, _ in goals}
    return LoadGoals(last.get("ttft"), last.get("tpot"), last.get("latency"))
