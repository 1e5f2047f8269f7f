"""`scale`, `rollout` and `stop` as verbs: replicas come ready, requests move, and replicas that leave end what they have."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from chipwise.api.running import asking
from chipwise.api.serving import folders
from chipwise.api.serving.engines import check_here
from chipwise.api.serving.replicas import Say, stop_jobs, submit_replica, tell, wait_ready
from chipwise.api.serving.resolving import UNMEASURED, ServeRequest, resolve
from chipwise.api.serving.starting import MOST_REPLICAS, STARTS_WITHIN_S, ServeOptions, as_options, needs_of, wait_gateway
from chipwise.errors import BadInput, NoResult
from chipwise.runner.job import Outcome
from chipwise.serving.canary import CanaryJudgement, CanaryVerdict, judge, read_outcomes
from chipwise.serving.service import ServiceRecord, ServiceVersion
from chipwise.text import duration, percent, plural

if TYPE_CHECKING:
    from chipwise.api.session.wiring import Session

DRAINS_WITHIN_S = 120.0
SHARE = 0.1
JUDGES_FOR_S = 300.0
LOOKS_S = 0.5


@dataclass(frozen=True, slots=True)
class RolloutOptions:
    share: float = SHARE  # of the requests, while it is judged
    judge_for: float = JUDGES_FOR_S
    instant: bool = False  # all requests at once, without judgement
    drain: float = DRAINS_WITHIN_S


def scale(
    session: Session, name: str, count: int, say: Say = lambda line: None, drain_s: float = DRAINS_WITHIN_S
) -> ServiceRecord:
    if not 1 <= count <= MOST_REPLICAS:
        raise BadInput(f"{count} replicas are not possible.", remedy=f"Write 1 to {MOST_REPLICAS}, or `chipwise serve stop`.")
    with folders.changing(session, name):
        service = folders.load(session, name)
        _refuse_canary(service)
        live = [record for record in service.of_version(service.stable) if not record.is_draining]
        if count < len(live):
            return _drained(session, service, {record.name for record in live[count:]}, say, drain_s)
        return _grown(session, service, service.stable, count - len(live), STARTS_WITHIN_S, say)


def _refuse_canary(service: ServiceRecord) -> None:
    if service.canary is not None:
        raise BadInput(
            f"Version {service.canary} of {service.name} is being rolled out.",
            remedy=f"Wait for it, or take it back with `chipwise serve rollout {service.name} --back`.",
        )


def _grown(session: Session, service: ServiceRecord, number: int, count: int, within_s: float, say: Say) -> ServiceRecord:
    """With more replicas of a version, which take requests when they are ready. Those that do not come are taken back."""
    before = {record.name for record in service.replicas}
    try:
        with asking.opened(session) as runtime:
            for _ in range(count):
                service = submit_replica(runtime, service, service.version(number))
        fresh = [record for record in service.replicas if record.name not in before]
        wait_ready(session, fresh, service, UNMEASURED, within_s, say)
        wait_gateway(session, service)
    except BaseException:
        service = folders.load(session, service.name)
        _drained(session, service, {record.name for record in service.replicas} - before, say, 0.0)
        raise
    return service


def _drained(session: Session, service: ServiceRecord, names: set[str], say: Say, within_s: float) -> ServiceRecord:
    """Without these: they get nothing new, end what they have, and are stopped."""
    if not names:
        return service
    service = folders.store(session, service.draining(names))
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        seen = folders.seen(session, service.name)
        busy = sum(state["requests"] for name, state in seen.get("replicas", {}).items() if name in names)
        if seen.get("revision") == service.revision and not busy:
            break
        time.sleep(0.05)
    leaving = [record for record in service.replicas if record.name in names]
    service = folders.store(session, service.without(names))
    stop_jobs(session, [record.job for record in leaving], "its service needs it no more")
    say(f"{', '.join(sorted(names))} ended")
    return service


def rollout(
    session: Session,
    name: str,
    request: ServeRequest,
    serving: ServeOptions,
    options: RolloutOptions,
    say: Say = lambda line: None,
) -> ServiceRecord:
    """A new version, tried on a share of the requests and judged; taken back where it is worse."""
    if not 0.0 < options.share <= 1.0:
        raise BadInput(f"{options.share:g} is not a share of the requests.", remedy="Give one such as 10%.")
    with folders.changing(session, name):
        service = folders.load(session, name)
        _refuse_canary(service)
        before = service.version(service.stable)
        service = _with_version(session, service, before, request, serving)
        fresh, count = service.versions[-1], len(service.of_version(before.number))
        service = folders.store(session, replace(service, canary=fresh.number, canary_share=0.0))
        try:
            service = _grown(session, service, fresh.number, count if options.instant else 1, serving.ready_within, say)
            if not options.instant:
                service = folders.store(session, replace(service, canary_share=options.share))
                say(f"version {fresh.number} gets {percent(options.share)} of the requests")
                judgement = _judged(session, service, before.number, options.judge_for)
                _note(session, service, judgement)
                if judgement.verdict is not CanaryVerdict.GOOD:
                    raise NoResult(
                        f"Version {fresh.number} was taken back: {'; '.join(judgement.reasons)}.",
                        remedy="--instant moves all requests without judgement."
                        if judgement.verdict is CanaryVerdict.UNDECIDED
                        else "",
                    )
                say(f"version {fresh.number} is judged good: {'; '.join(judgement.reasons)}")
                service = _grown(session, service, fresh.number, count - 1, serving.ready_within, say)
        except BaseException:
            taken_back(session, name, say)
            raise
        service = folders.store(session, replace(service, canary_share=1.0))
        say(f"version {fresh.number} gets all requests")
        old = {record.name for record in service.replicas if record.version != fresh.number}
        service = _drained(session, service, old, say, options.drain)
        return folders.store(session, replace(service, canary=None, canary_share=0.0))


def _with_version(
    session: Session, service: ServiceRecord, before: ServiceVersion, request: ServeRequest, serving: ServeOptions
) -> ServiceRecord:
    served = resolve(session, replace(request, name=service.name))
    check_here(session, served.engine, served.request, request.components)
    # Clients go on calling it by its name.
    replica = replace(served.request, served=before.request.served, cpus=serving.cpus or before.request.cpus)
    number = max(version.number for version in service.versions) + 1
    version = ServiceVersion(
        number=number,
        engine=served.engine,
        request=replica,
        created=time.time(),
        needs=needs_of(served, as_options(serving, before)),
    )
    return replace(service, versions=(*service.versions, version))


def _judged(session: Session, service: ServiceRecord, old: int, within_s: float) -> CanaryJudgement:
    """By the access log from now on; a replica that ends in the meantime decides it too."""
    assert service.canary is not None
    versions = {record.name: record.version for record in service.replicas}
    canaries = service.of_version(service.canary)
    begins = time.time()
    until = time.monotonic() + within_s
    while True:
        outcomes = read_outcomes(_log_lines(session, service.name, begins), versions)
        judgement = judge(outcomes.get(old, []), outcomes.get(service.canary, []), service.goals)
        if crashed := _crashed(session, [record.job for record in canaries]):
            return CanaryJudgement(CanaryVerdict.BAD, judgement.requests, (crashed,))
        if judgement.verdict is not CanaryVerdict.UNDECIDED:
            return judgement
        if time.monotonic() > until:
            waited = f"within {duration(within_s)}"
            return replace(judgement, reasons=tuple(f"{reason} {waited}" for reason in judgement.reasons))
        time.sleep(LOOKS_S)


def _log_lines(session: Session, name: str, begins: float) -> Iterator[Mapping[str, Any]]:
    path = folders.folder_of(session, name) / folders.ACCESS_LOG
    for file in (path.with_suffix(".log.1"), path):
        if not file.exists():
            continue
        with file.open(encoding="utf-8", errors="replace") as lines:
            for text in lines:
                try:
                    line = json.loads(text)
                except ValueError:
                    continue  # the last one, while it is written
                if isinstance(line, dict) and line.get("time", 0.0) >= begins:
                    yield line


def _crashed(session: Session, ids: list[str]) -> str:
    with asking.opened(session) as runtime:
        for id in ids:
            job = runtime.job(id)
            ends = [attempt for attempt in job.attempts if attempt.outcome in (Outcome.FAILED, Outcome.LOST)]
            if ends or job.phase.over:
                return f"{job.spec.name} ended: {ends[-1].reason if ends else job.reason}"
    return ""


def _note(session: Session, service: ServiceRecord, judgement: CanaryJudgement) -> None:
    with asking.opened(session) as runtime:
        text = f"version {service.canary} is judged {judgement.verdict}: {'; '.join(judgement.reasons)}"
        tell(runtime, service.gateway, text)


def back(session: Session, name: str, say: Say = lambda line: None) -> ServiceRecord:
    """A rollout that was left in the middle is taken back."""
    with folders.changing(session, name):
        if folders.load(session, name).canary is None:
            raise BadInput(f"No version of {name} is being rolled out.", remedy="`chipwise serve status` shows what runs.")
        return taken_back(session, name, say)


def taken_back(session: Session, name: str, say: Say) -> ServiceRecord:
    """The old version gets all requests at once; the new one ends those that it has."""
    service = folders.load(session, name)
    number = service.canary
    if number is None:
        return service
    service = folders.store(session, replace(service, canary_share=0.0))
    service = _drained(session, service, {record.name for record in service.of_version(number)}, say, DRAINS_WITHIN_S)
    rest = tuple(version for version in service.versions if version.number != number)
    return folders.store(session, replace(service, canary=None, versions=rest))


def stop(session: Session, name: str, say: Say = lambda line: None, *, now: bool = False) -> None:
    """The gateway takes nothing new and ends what it has; then replicas end."""
    service = folders.load(session, name)
    if service.scaler:
        stop_jobs(session, [service.scaler], "its service is stopped", now=True)
    if service.gateway:
        stop_jobs(session, [service.gateway], "its service is stopped", now=now)
    stop_jobs(session, [record.job for record in service.replicas], "its service is stopped", now=now)
    folders.delete(session, name)
    say(f"{name} ended, with {plural(len(service.replicas), 'replica')}")
