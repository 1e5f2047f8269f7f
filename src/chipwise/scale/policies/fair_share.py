"""Fair shares: every team has a quota, borrows what others leave idle, and gives it back when they want it.

A team within its quota comes before all that borrow; of both the team that uses least of its quota is first, and in a team who
came first, unless it does not fit. A job within its team's quota takes the GPUs of borrowers, of those that began last first,
and never more than they borrow. Quotas that nobody set are even shares of the cluster.
"""

from __future__ import annotations

from math import inf

import numpy as np

from chipwise.scale.queue import QueuedJob, QueueRule, QueueSettings, QueueState, RunningColumns, Seconds

KIND = "queue"
SUMMARY = "Teams by the share of their quota in use; idle quota is lent and taken back."
NEEDS = "teams, quotas (even where not set), checkpoints"


def quotas(settings: QueueSettings) -> dict[str, float]:
    """Of every team, in GPUs."""
    teams = sorted({job.team for job in settings.jobs})
    others = [team for team in teams if team not in settings.quotas]
    rest = max(settings.cluster.gpus - sum(settings.quotas.values()), 0.0)
    return {**settings.quotas, **{team: rest / len(others) for team in others}}


def begin(settings: QueueSettings) -> QueueRule:
    quota = quotas(settings)

    def turn(queued: QueuedJob, state: QueueState) -> tuple[float, ...]:
        team, used = queued.job.team, state.used.get(queued.job.team, 0)
        limit = max(quota.get(team, 0.0), 1e-9)
        return (float(used + queued.job.gpus > limit), used / limit, queued.job.arrival_s)

    def claim(queued: QueuedJob, rank: float, state: QueueState) -> float:
        is_within = state.used.get(queued.job.team, 0) + queued.job.gpus <= quota.get(queued.job.team, 0.0)
        return 0.0 if is_within else inf

    def running(columns: RunningColumns, state: QueueState) -> Seconds:
        """The youngest of what is borrowed has the highest rank; the rest is never taken."""
        ranks = np.full(len(columns.rank), -inf)
        order = np.argsort(-columns.since_s, kind="stable")
        for position, team in enumerate(state.teams):
            borrowed = state.used.get(team, 0) - quota.get(team, 0.0)
            if borrowed > 0:
                own = order[columns.team[order] == position]
                lent = own[np.cumsum(columns.gpus_here[own]) <= borrowed + 1e-9]
                ranks[lent] = 1.0 + columns.since_s[lent]
        return ranks

    return QueueRule(
        rank=lambda queued: queued.job.arrival_s,
        preempts=True,
        running=running,
        line=lambda job: (job.team, job.gpus),
        turn=turn,
        claim=claim,
    )
