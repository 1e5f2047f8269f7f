"""Where services stand: their door, versions and replicas, with what the gateway and the record say of each."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from chipwise.api.running import held
from chipwise.api.serving import clusters, folders
from chipwise.serving.service import ServiceRecord
from chipwise.views.services import example as example
from chipwise.views.services import heading as heading
from chipwise.views.services import reached as reached
from chipwise.views.services import scaling_lines as scaling_lines
from chipwise.views.services import service_view

if TYPE_CHECKING:
    from chipwise.api.running.held import Runtime
    from chipwise.api.session.wiring import Session

LOOKS_S = 0.5


def standing(session: Session, name: str | None = None) -> list[dict[str, Any]]:
    """Of one service, or of all."""
    records = [folders.load(session, known) for known in ([name] if name is not None else folders.names(session))]
    if not records:
        return []
    if all(service.place for service in records):
        return [clusters.view(session, service) for service in records]
    with held.opened(session) as runtime:
        return [clusters.view(session, one) if one.place else _view(runtime, one) for one in records]


def _view(runtime: Runtime, service: ServiceRecord) -> dict[str, Any]:
    ids = [service.gateway, *(replica.job for replica in service.replicas)]
    jobs = {id: job for id in ids if id and (job := runtime.record.job(id)) is not None}
    return service_view(service, folders.seen(runtime.session, service.name), jobs, time.time())


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
