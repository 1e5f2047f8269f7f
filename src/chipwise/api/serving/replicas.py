"""Replicas and gateways as jobs: submitted, waited for, measured, stopped."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from chipwise.api.running import held, jobs, place, submitting, wanted
from chipwise.api.serving import folders
from chipwise.api.serving.engines import engine_named
from chipwise.errors import BadInput, OutsideFailed
from chipwise.runner.events import Told
from chipwise.runner.job import Job, Outcome, Retry, Spec, Wish
from chipwise.runner.record import Change, Stale
from chipwise.runner.submission.request import RunRequest
from chipwise.serving.cold_start import ColdStart, cold_start_words, part_words
from chipwise.serving.engine import ReplicaStart
from chipwise.serving.replica import Address
from chipwise.serving.service import ReplicaNeeds, ReplicaRecord, ServiceRecord, ServiceVersion

if TYPE_CHECKING:
    from chipwise.api.running.held import Runtime
    from chipwise.api.session.wiring import Session

RETRY = Retry(wait_s=1.0, longest_wait_s=30.0)  # a replica is missed at once
FAILURES = 2  # of a replica that was never ready, after which nobody waits for it
LOOKS_S = 0.3
SHOWN_LINES = 3
GRACE_S = 30.0
Say = Callable[[str], None]


def submit_replica(runtime: Runtime, service: ServiceRecord, version: ServiceVersion) -> ServiceRecord:
    """One more replica of a version, recorded in the service's file."""
    from chipwise.adapters.http.service_door import free_port

    needs = version.needs
    request = replace(version.request, port=free_port())
    start = engine_named(version.engine).start(request)
    name = f"{service.name}-{service.next_number}"
    health = f"http://127.0.0.1:{request.port}{start.health}"
    job = _submit(runtime, name, start, needs, {"service": service.name, "version": str(version.number)}, health)
    record = ReplicaRecord(
        name=name, job=job.id, version=version.number, port=request.port, health=start.health, at_once=start.at_once
    )
    return folders.store(runtime.session, service.with_replica(record))


def submit_gateway(runtime: Runtime, service: ServiceRecord) -> ServiceRecord:
    folder = folders.folder_of(runtime.session, service.name)
    start = ReplicaStart((sys.executable, "-P", "-m", "chipwise.adapters.http", str(folder)))
    plain = replace(service.versions[0].needs, gpus=0, cpus=0, settings=(), secrets=(), folder=str(folder))
    job = _submit(runtime, f"{service.name}-gateway", start, plain, {"service": service.name, "role": "gateway"}, "")
    return folders.store(runtime.session, replace(service, gateway=job.id))


def submit_scaler(runtime: Runtime, service: ServiceRecord) -> ServiceRecord:
    """A job that works on this record, so it is told where that is."""
    from chipwise.api.running.controlling import environment

    here = {name: value for name, value in environment(runtime.session).items() if name.startswith("CHIPWISE_")}
    start = ReplicaStart((sys.executable, "-P", "-m", "chipwise.api.serving.changing", service.name), env=here)
    plain = replace(service.versions[0].needs, gpus=0, cpus=0, settings=(), secrets=())
    job = _submit(runtime, f"{service.name}-scaler", start, plain, {"service": service.name, "role": "scaler"}, "")
    return folders.store(runtime.session, replace(service, scaler=job.id))


def _submit(runtime: Runtime, name: str, start: ReplicaStart, needs: ReplicaNeeds, labels: dict[str, str], health: str) -> Job:
    request = RunRequest(
        words=start.command,
        name=name,
        gpus=needs.gpus,
        cpus=needs.cpus,
        team=needs.team,
        project=needs.project,
        labels=(*needs.labels, *(f"{key}={value}" for key, value in labels.items())),
        settings=(*needs.settings, *(f"{key}={value}" for key, value in start.env.items())),
        secrets=needs.secrets,
        folder=Path(needs.folder) if needs.folder else None,
    )
    session = runtime.session
    specs = [(id, _as_service(spec, health)) for id, spec in wanted.named_specs(session, request, runtime)]
    for _, spec in specs:
        submitting.checked(spec, runtime.engine, runtime.rules)
    [job] = submitting.submit(runtime.record, specs, place.passing_dir(session), wanted.values(needs.secrets))
    runtime.awake(job)
    return job


def _as_service(spec: Spec, health: str) -> Spec:
    return replace(spec, service=True, health=health, retry=RETRY, grace_s=GRACE_S)


def wait_ready(
    session: Session, records: Sequence[ReplicaRecord], service: ServiceRecord, expected: ColdStart, within_s: float, say: Say
) -> list[ColdStart]:
    """Until each takes requests; what its start took is told in its story."""
    with ThreadPoolExecutor(max(len(records), 1)) as pool:
        tasks = [pool.submit(_started, session, record, service, expected, within_s) for record in records]
        starts = [task.result() for task in tasks]
    for record, start in zip(records, starts, strict=True):
        say(f"{record.name} is ready: {part_words(start)}")
    return starts


def with_cold_start(session: Session, service: ServiceRecord, seconds: float) -> ServiceRecord:
    """From the order of replicas to the first token of each: what the first request waits for where none is there."""
    return folders.store(session, replace(service, cold_start_s=seconds))


def _started(
    session: Session, record: ReplicaRecord, service: ServiceRecord, expected: ColdStart, within_s: float
) -> ColdStart:
    from chipwise.adapters.http.starting import first_token_s, ready_times

    until = time.monotonic() + within_s
    last_look = time.monotonic()
    with held.opened(session) as runtime:

        def carries_on() -> None:
            nonlocal last_look
            if time.monotonic() > until:
                raise OutsideFailed(f"{record.name} was not ready within {within_s:g} s.", remedy=_see(record))
            if time.monotonic() - last_look > LOOKS_S:
                last_look = time.monotonic()
                _check_alive(runtime, record)

        address = Address("127.0.0.1", record.port)
        listening, ready = ready_times(address, record.health, carries_on)
        version = service.version(record.version)
        first = engine_named(version.engine).start(replace(version.request, port=record.port)).first
        token_s = first_token_s(address, first) if first is not None else None
        job = runtime.job(record.job)
        begun = job.attempts[-1].begun if job.attempts and job.attempts[-1].begun is not None else job.submitted
        start = replace(
            expected, process_s=max(listening - begun, 0.0), weights_s=max(ready - listening, 0.0), first_token_s=token_s
        )
        tell(runtime, record.job, cold_start_words(start))
    return start


def _check_alive(runtime: Runtime, record: ReplicaRecord) -> None:
    job = runtime.job(record.job)
    failures = [attempt for attempt in job.attempts if attempt.outcome in (Outcome.FAILED, Outcome.LOST)]
    if not job.phase.over and len(failures) < FAILURES:
        return
    from chipwise.api.running.following import tail_of

    number = failures[-1].number if failures else None
    printed = tail_of(runtime, job, number, SHOWN_LINES).decode("utf-8", "replace").strip() if job.attempts else ""
    reason = failures[-1].reason if failures else job.reason or job.phase
    last = f" It printed: {printed[-400:]}" if printed else ""
    raise OutsideFailed(f"{record.name} did not start: {reason}.{last}", remedy=_see(record))


def _see(record: ReplicaRecord) -> str:
    return f"`chipwise logs {record.job}` shows all that it printed."


def tell(runtime: Runtime, id: str, text: str) -> None:
    """A line in the story of a job; its controller may write at the same time."""
    for _ in range(jobs.TRIES):
        job = runtime.record.job(id)
        if job is None or job.phase.over or not job.attempts:
            return
        [answer] = runtime.record.write([Change(job, (Told(len(job.attempts), text),))], time.time())
        if not isinstance(answer, Stale):
            return
        time.sleep(0.01)


def stop_jobs(session: Session, ids: Sequence[str], reason: str, *, now: bool = False) -> None:
    """Asked to end, and waited for."""
    from contextlib import suppress

    with held.opened(session) as runtime:
        live = [job for job in map(runtime.record.job, ids) if job is not None and not job.phase.over]
        for job in live:
            with suppress(BadInput):  # over meanwhile
                jobs.ask(runtime.record, job, Wish.END if now else Wish.STOP, submitting.submitter(), reason)
                runtime.awake(job)
        for job in live:
            while not runtime.job(job.id).phase.over:
                time.sleep(0.1)
