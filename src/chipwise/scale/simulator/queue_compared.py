"""What rules of queues come to on a trace of jobs, side by side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chipwise.scale.simulator.queue import QueueOutcome

_JOBS = 60  # that are drawn one by one
_POINTS = 400  # of a line over the time


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueAnswer:
    policy: str
    jobs: int
    mean_jct_s: float
    p99_jct_s: float
    makespan_s: float
    ratio_to_bound: float
    fairness: float
    utilisation: float
    preemptions: int
    late: int  # jobs after their deadline


@dataclass(frozen=True, slots=True)
class JobBar:
    """One job over the time, in hours after the first arrival."""

    number: int
    arrival_h: float
    end_h: float
    runs_h: tuple[tuple[float, float], ...]  # begin and end of each time that it had GPUs


@dataclass(frozen=True, slots=True)
class QueueTimeline:
    """Of one rule: some jobs, evenly spaced in the order of arrival, and the GPUs that were in use."""

    policy: str
    jobs: tuple[JobBar, ...]
    hours: tuple[float, ...]
    gpus: tuple[float, ...]
    cluster_gpus: int


@dataclass(frozen=True, slots=True)
class QueueComparison:
    answers: tuple[QueueAnswer, ...]
    timelines: tuple[QueueTimeline, ...]


def queue_timeline(policy: str, outcome: QueueOutcome) -> QueueTimeline:
    first_s = float(outcome.arrival_s.min())
    order = np.argsort(outcome.arrival_s, kind="stable")
    drawn = order[np.unique(np.linspace(0, len(order) - 1, min(_JOBS, len(order))).round().astype(np.int64))]
    runs: dict[int, list[tuple[float, float]]] = {int(number): [] for number in drawn}
    for number, begin_s, end_s in outcome.stretches:
        if number in runs:
            runs[number].append(((begin_s - first_s) / 3600.0, (end_s - first_s) / 3600.0))
    bars = tuple(
        JobBar(
            number=number,
            arrival_h=(float(outcome.arrival_s[number]) - first_s) / 3600.0,
            end_h=(float(outcome.end_s[number]) - first_s) / 3600.0,
            runs_h=tuple(sorted(parts)),
        )
        for number, parts in runs.items()
    )
    edges_s = first_s + np.linspace(0.0, max(outcome.makespan_s, 1e-6), _POINTS + 1)
    gpu_s = np.diff(_used_until(outcome, edges_s))
    return QueueTimeline(
        policy=policy,
        jobs=bars,
        hours=tuple(((edges_s[:-1] - first_s) / 3600.0).tolist()),
        gpus=tuple((gpu_s / np.diff(edges_s)).tolist()),
        cluster_gpus=outcome.cluster_gpus,
    )


def _used_until(outcome: QueueOutcome, moments_s: np.typing.NDArray[np.float64]) -> np.typing.NDArray[np.float64]:
    """GPU seconds that were in use before each moment."""
    numbers, begins_s, ends_s = (np.array(column) for column in zip(*outcome.stretches, strict=True))
    gpus = outcome.gpus[numbers.astype(np.int64)]
    changes_s = np.concatenate([begins_s, ends_s])
    order = np.argsort(changes_s, kind="stable")
    in_use = np.cumsum(np.concatenate([gpus, -gpus])[order])
    changes_s = changes_s[order]
    until = np.concatenate([[0.0], np.cumsum(in_use[:-1] * np.diff(changes_s))])
    return np.asarray(np.interp(moments_s, changes_s, until))
