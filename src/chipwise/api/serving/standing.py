"""Where services stand: their door, versions and replicas, with what the gateway and the record say of each."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from chipwise.api.running import asking
from chipwise.api.serving import folders
from chipwise.serve.service import ReplicaRecord, ServiceRecord

if TYPE_CHECKING:
    from chipwise.api.running.asking import Runtime
    from chipwise.api.session.wiring import Session

SILENT_S = 15.0  # of a gateway that tells what it sees every five


def standing(session: Session, name: str | None = None) -> list[dict[str, Any]]:
    """Of one service, or of all."""
    records = [folders.load(session, known) for known in ([name] if name is not None else folders.names(session))]
    if not records:
        return []
    with asking.opened(session) as runtime:
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
