"""Where services stand: their door, versions and replicas, with what the gateway and the record say of each."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from chipwise.api.running import held
from chipwise.api.serving import folders
from chipwise.serving.service import ReplicaRecord, ServiceRecord
from chipwise.views.services import example as example
from chipwise.views.services import heading as heading
from chipwise.views.services import scaling_lines as scaling_lines
from chipwise.views.services import scaling_view

if TYPE_CHECKING:
    from chipwise.api.running.held import Runtime
    from chipwise.api.session.wiring import Session

LOOKS_S = 0.5
SILENT_S = 15.0  # of a gateway that tells what it sees every five


def standing(session: Session, name: str | None = None) -> list[dict[str, Any]]:
    """Of one service, or of all."""
    records = [folders.load(session, known) for known in ([name] if name is not None else folders.names(session))]
    if not records:
        return []
    with held.opened(session) as runtime:
        return [_view(runtime, service) for service in records]


def _view(runtime: Runtime, service: ServiceRecord) -> dict[str, Any]:
    seen = folders.seen(runtime.session, service.name)
    silent_s = time.time() - seen["at"] if "at" in seen else None
    gateway = runtime.record.job(service.gateway) if service.gateway else None
    return {
        "name": service.name,
        "url": service.door.url,
        "gateway": {
            "job": service.gateway or None,
            "phase": str(gateway.phase) if gateway is not None else None,
            "answers": silent_s is not None and silent_s < SILENT_S,
            "waiting": seen.get("waiting"),
            "connections": seen.get("connections"),
        },
        "policy": service.policy,
        "scaling": scaling_view(service),
        "canary": None if service.canary is None else {"version": service.canary, "share": service.canary_share},
        "versions": [
            {"version": version.number, "engine": version.engine, "model": version.request.model}
            for version in service.versions
        ],
        "replicas": [_replica(runtime, service, record, seen) for record in service.replicas],
    }


def _replica(runtime: Runtime, service: ServiceRecord, record: ReplicaRecord, seen: dict[str, Any]) -> dict[str, Any]:
    job, state = runtime.record.job(record.job), seen.get("replicas", {}).get(record.name, {})
    return {
        "name": record.name,
        "job": record.job,
        "version": record.version,
        "phase": "unknown" if job is None else str(job.phase),
        "attempts": 0 if job is None else len(job.attempts),
        "port": record.port,
        "ready": not state.get("away", True),
        "draining": record.is_draining,
        "requests": state.get("requests"),
        "tokens": state.get("tokens"),
    }


def policies() -> list[str]:
    from chipwise.serving.routing import policy_names

    return policy_names()


def new_key(key_file: str, name: str, team: str = "") -> str:
    from pathlib import Path

    from chipwise.adapters.http.key_file import add_key

    return add_key(Path(key_file), name, team)


def news(session: Session, name: str) -> Iterator[str]:
    """What happens to it, until another command ends it."""
    known: dict[str, tuple[object, ...]] = {}
    while name in folders.names(session):
        service = folders.load(session, name)
        with held.opened(session) as runtime:
            jobs = {service.gateway: "gateway", **{record.job: record.name for record in service.replicas}}
            for id, title in jobs.items():
                job = runtime.job(id) if id else None
                if job is None:
                    continue
                state = (job.phase, len(job.attempts))
                if id in known and known[id] != state:
                    again = f", attempt {len(job.attempts)}" if len(job.attempts) > 1 else ""
                    cause = job.reason or job.waiting
                    yield f"{title} is {job.phase}{again}{f': {cause}' if cause else ''}"
                known[id] = state
        time.sleep(LOOKS_S)
