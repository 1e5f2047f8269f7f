"""Jobs as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chipwise.runner.comparing import Compared as Compared
from chipwise.runner.job import Attempt, Job, MachinePlace
from chipwise.runner.record import Row
from chipwise.runner.sighting import Sighting


def job_view(job: Job, sighting: Sighting | None = None) -> dict[str, Any]:
    spec, reason = job.spec, job.reason or job.waiting
    return {
        "id": job.id,
        "name": spec.name,
        "pipeline": spec.pipeline,
        **_seen_view(str(job.phase), reason, sighting),
        "wish": str(job.wish),
        "engine": spec.engine,
        "place": spec.place,
        "command": list(spec.command),
        "folder": spec.folder,
        "owner": spec.owner,
        "team": spec.team,
        "project": spec.project,
        "labels": dict(spec.labels),
        "priority": spec.priority,
        "gpus": spec.needs.gpus,
        "cpus": spec.needs.cpus,
        "machines": spec.needs.machines,
        "processes": spec.needs.processes,
        "held": held_view(job),
        "gpus_least": spec.needs.gpus_least,
        "machines_least": spec.needs.machines_least,
        "recover": [str(one) for one in spec.recover],
        "places": [place_view(one) for one in spec.places],
        "submitted": job.submitted,
        "ended": job.ended,
        "leave_by": job.leave_by,
        "after": list(spec.after),
        "predicted": dict(spec.predicted),
        "attempts": [attempt_view(one) for one in job.attempts],
    }


def place_view(place: MachinePlace) -> dict[str, Any]:
    return {
        "purchase": str(place.purchase),
        "provider": place.provider,
        "region": place.region,
        "zone": place.zone,
        "machine": place.machine,
    }


def held_view(job: Job) -> dict[str, int] | None:
    """What it has now, which may be less than it wants; None while it has nothing."""
    attempt = job.attempt
    if attempt is None or not job.phase.placed:
        return None
    gpus = job.gpus_of(attempt)
    return {"gpus": gpus, "machines": attempt.machines, "processes": job.spec.needs.processes_on(gpus)}


def attempt_view(attempt: Attempt) -> dict[str, Any]:
    return {
        "number": attempt.number,
        **place_view(attempt.where),
        "machines": attempt.machines,
        "gpus": list(attempt.devices),
        "cpus": list(attempt.cpus),
        "placed": attempt.placed,
        "begun": attempt.begun,
        "ended": attempt.ended,
        "outcome": None if attempt.outcome is None else str(attempt.outcome),
        "code": attempt.code,
        "reason": attempt.reason,
        "step": attempt.step,
    }


def _seen_view(phase: str, reason: str, sighting: Sighting | None) -> dict[str, Any]:
    """What is known now stands above what was recorded; `seen`: when it was last seen alive, of one that is under way."""
    if sighting is None:
        return {"phase": phase, "reason": reason, "seen": None}
    return {"phase": sighting.phase, "reason": sighting.note or reason, "seen": sighting.seen}


def row_view(row: Row, sighting: Sighting | None = None) -> dict[str, Any]:
    return {
        "id": row.id,
        "name": row.name,
        **_seen_view(str(row.phase), row.reason, sighting),
        "engine": row.engine,
        "place": row.place,
        "owner": row.owner,
        "team": row.team,
        "project": row.project,
        "priority": row.priority,
        "gpus": row.gpus,
        "cpus": row.cpus,
        "machines": row.machines,
        "attempts": row.attempts,
        "submitted": row.submitted,
        "begun": row.begun,
        "ended": row.ended,
    }


def compared_view(rows: Sequence[Compared]) -> list[dict[str, Any]]:
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
