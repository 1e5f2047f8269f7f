"""A job's prediction beside its measurement, from its record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chipwise.runner.comparing import Compared as Compared
from chipwise.runner.comparing import compare
from chipwise.runner.events import Measured
from chipwise.runner.job import Job
from chipwise.runner.record import Happened


def compared(job: Job, happened: Sequence[Happened]) -> tuple[Compared, ...]:
    """By the newest measurement: a job that was started again is measured again."""
    measurements = [one.event for one in happened if isinstance(one.event, Measured)]
    return compare(job.spec, measurements[-1] if measurements and job.phase.over else None)


def view(rows: Sequence[Compared]) -> list[dict[str, Any]]:
    return [
        {
            "name": row.name,
            "unit": row.unit,
            "predicted": row.predicted,
            "low": row.low,
            "high": row.high,
            "measured": row.measured,
            "ratio": row.ratio,
            "inside": row.inside,
        }
        for row in rows
    ]
