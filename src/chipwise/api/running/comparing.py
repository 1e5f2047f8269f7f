"""A job's prediction beside its measurement, from its record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chipwise.runner.comparing import Compared, compare
from chipwise.runner.events import Measured
from chipwise.runner.job import Job
from chipwise.runner.record import Happened


def compared(job: Job, happened: Sequence[Happened]) -> tuple[Compared, ...]:
    """By the newest measurement: a job that was started again is measured again."""
    found = [one.event for one in happened if isinstance(one.event, Measured)]
    return compare(job.spec, found[-1] if found and job.phase.over else None)


def view(rows: Sequence[Compared]) -> list[dict[str, Any]]:
    return [
        {
            "name": one.name,
            "unit": one.unit,
            "predicted": one.predicted,
            "low": one.low,
            "high": one.high,
            "measured": one.measured,
            "ratio": one.ratio,
            "inside": one.inside,
        }
        for one in rows
    ]
