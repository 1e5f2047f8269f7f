"""A user's own rule of a queue: a function that ranks a job; the lowest rank goes first.

    PREEMPTS = True        # optional: take GPUs of running jobs that had a higher rank when they started
    OVERTAKING = "any"     # optional: who may start when the first does not fit: "none", "easy" or "any"

    def rank(job):
        return job.estimate_left_s * job.gpus

Who wants more defines `begin(settings)` as the rules of `scale/policies/` do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite

from chipwise.errors import BadInput
from chipwise.scale.queue import BeginQueue, Overtaking, QueuedJob, QueueRule, QueueSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingJob:
    """A job that waits. Times in seconds."""

    name: str
    team: str
    gpus: int
    arrival_s: float
    estimate_left_s: float
    attained_s: float  # GPU seconds so far
    deadline_s: float | None
    starts: int  # so far: above zero where it was preempted or its machine failed


def ranked(name: str, rank: Callable[[WaitingJob], object], names: Mapping[str, object]) -> BeginQueue:
    """`names`: what else its file defines."""
    word = str(names.get("OVERTAKING", "any"))
    if word.upper() not in Overtaking.__members__:
        raise BadInput(f"{name}: OVERTAKING is {word[:40]!r}.", remedy="Allowed: 'none', 'easy' and 'any'.")
    preempts = bool(names.get("PREEMPTS", False))

    def begin(settings: QueueSettings) -> QueueRule:
        return QueueRule(rank=lambda queued: _rank(name, rank, queued), overtaking=Overtaking[word.upper()], preempts=preempts)

    return begin


def _rank(name: str, rank: Callable[[WaitingJob], object], queued: QueuedJob) -> float:
    job = queued.job
    view = WaitingJob(
        name=job.name,
        team=job.team,
        gpus=job.gpus,
        arrival_s=job.arrival_s,
        estimate_left_s=queued.estimate_left_s,
        attained_s=queued.attained_s,
        deadline_s=job.deadline_s,
        starts=queued.starts,
    )
    try:
        answer = rank(view)
    except Exception as error:
        raise BadInput(f"{name}: rank failed for {job.name}: {type(error).__name__}: {str(error)[:200]}") from error
    if not isinstance(answer, int | float) or not isfinite(answer):
        raise BadInput(f"{name}: rank answered {str(answer)[:40]!r}.", remedy="Return a number; the lowest goes first.")
    return float(answer)
