"""`scale`, `rollout` and `stop` as verbs: replicas come ready, requests move, and replicas that leave end what they have."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from chipwise.adapters.http.log_lines import log_lines
from chipwise.api.running import held
from chipwise.api.serving import clusters, folders
from chipwise.api.serving.deciding import scaling_decision
from chipwise.api.serving.engines import check_here
from chipwise.api.serving.options import (
    DRAINS_WITHIN_S,
    STARTS_WITHIN_S,
    RolloutOptions,
    ScalingOptions,
    ServeOptions,
    as_options,
    check_in_cluster,
    checked_scaling,
    needs_of,
    replica_counts,
    wait_gateway,
)
from chipwise.api.serving.replicas import Say, stop_jobs, submit_replica, submit_scaler, tell, wait_ready, with_cold_start
from chipwise.api.serving.resolving import UNMEASURED, ServeRequest, resolve
from chipwise.errors import BadInput, ChipwiseError, NoResult
from chipwise.runner.asked_policy import AskedPolicy
from chipwise.runner.job import Outcome
from chipwise.serving.canary import CanaryJudgement, CanaryVerdict, judge, read_outcomes
from chipwise.serving.scaling import ScalingDecision, ScalingState
from chipwise.serving.service import ServiceRecord, ServiceVersion
from chipwise.text import duration, percent, plural

if TYPE_CHECKING:
    from chipwise.api.session.wiring import Session

LOOKS_S = 0.5


def scale(
    session: Session,
    name: str,
    replicas: int | str,
    say: Say = lambda line: None,
    drain_s: float = DRAINS_WITHIN_S,
    scaling: ScalingOptions | None = None,
) -> ServiceRecord:
    """To a number, which stays, or between two from now on."""
    count, most_replicas = replica_counts(replicas)
    scaling = scaling or ScalingOptions()
    with folders.changing(session, name):
        service = folders.load(session, name)
        _refuse_canary(service)
        if service.place:
            return clusters.scale(session, service, (count, most_replicas), scaling, say)
        was_scaled = service.most_replicas is not None
        settings = checked_scaling(scaling, most_replicas, service.scaling if was_scaled else None)
        if most_replicas is None and was_scaled:
            say(f"{name} is no longer scaled between {service.fewest_replicas} and {service.most_replicas} replicas")
        service = replace(service, fewest_replicas=count, most_replicas=most_replicas, scaling=settings)
        service = folders.store(session, service)
        if most_replicas is None and service.scaler:
            stop_jobs(session, [service.scaler], "its service has a fixed number of replicas", now=True)
            service = folders.store(session, replace(service, scaler=""))
        elif most_replicas is not None and not service.scaler:
            with held.opened(session) as runtime:
                service = submit_scaler(runtime, service)
    if most_replicas is None:
        return scale_to(session, name, count, say, drain_s)
    live = sum(not record.is_draining for record in service.of_version(service.stable))
    return scale_to(session, name, min(max(live, count), most_replicas), say, drain_s)


def scale_to(
    session: Session, name: str, count: int, say: Say = lambda line: None, drain_s: float = DRAINS_WITHIN_S
) -> ServiceRecord:
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
    before, begun = {record.name for record in service.replicas}, time.monotonic()
    try:
        with held.opened(session) as runtime:
            for _ in range(count):
                service = submit_replica(runtime, service, service.version(number))
        fresh = [record for record in service.replicas if record.name not in before]
        wait_ready(session, fresh, service, UNMEASURED, within_s, say)
        service = with_cold_start(session, service, time.monotonic() - begun) if count else service
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
        if service.place:
            check_in_cluster(options)
            return clusters.rollout(session, service, request, serving, say)
        before = service.version(service.stable)
        service = _with_version(session, service, before, request, serving)
        fresh, count = service.versions[-1], len(service.of_version(before.number))
        is_instant = options.instant or not count  # without replicas nobody asks, and there is nothing to compare with
        if not count:
            say(f"{name} sleeps, so version {fresh.number} is not judged; it replaces the old one when it is ready")
        service = folders.store(session, replace(service, canary=fresh.number, canary_share=0.0))
        try:
            service = _grown(session, service, fresh.number, max(count, 1) if is_instant else 1, serving.within_s, say)
            if not is_instant:
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
                service = _grown(session, service, fresh.number, count - 1, serving.within_s, say)
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
        outcomes = read_outcomes(log_lines(folders.folder_of(session, service.name), begins), versions)
        judgement = judge(outcomes.get(old, []), outcomes.get(service.canary, []), service.goals)
        if crashed := _crashed(session, [record.job for record in canaries]):
            return CanaryJudgement(CanaryVerdict.BAD, judgement.requests, (crashed,))
        if judgement.verdict is not CanaryVerdict.UNDECIDED:
            return judgement
        if time.monotonic() > until:
            waited = f"within {duration(within_s)}"
            return replace(judgement, reasons=tuple(f"{reason} {waited}" for reason in judgement.reasons))
        time.sleep(LOOKS_S)


def _crashed(session: Session, ids: list[str]) -> str:
    with held.opened(session) as runtime:
        for id in ids:
            job = runtime.job(id)
            ends = [attempt for attempt in job.attempts if attempt.outcome in (Outcome.FAILED, Outcome.LOST)]
            if ends or job.phase.over:
                return f"{job.spec.name} ended: {ends[-1].reason if ends else job.reason}"
    return ""


def _note(session: Session, service: ServiceRecord, judgement: CanaryJudgement) -> None:
    with held.opened(session) as runtime:
        text = f"version {service.canary} is judged {judgement.verdict}: {'; '.join(judgement.reasons)}"
        tell(runtime, service.gateway, text)


def back(session: Session, name: str, say: Say = lambda line: None) -> ServiceRecord:
    """A rollout that was left in the middle is taken back."""
    with folders.changing(session, name):
        service = folders.load(session, name)
        if service.canary is None:
            raise BadInput(f"No version of {name} is being rolled out.", remedy="`chipwise serve status` shows what runs.")
        if service.place:
            return clusters.back(session, service, say)
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
    if service.place:
        clusters.stop(session, service, say, now=now)
        return
    if service.scaler:
        stop_jobs(session, [service.scaler], "its service is stopped", now=True)
    if service.gateway:
        stop_jobs(session, [service.gateway], "its service is stopped", now=now)
    stop_jobs(session, [record.job for record in service.replicas], "its service is stopped", now=now)
    folders.delete(session, name)
    say(f"{name} ended, with {plural(len(service.replicas), 'replica')}")


SCALER_LOOKS_S, ASLEEP_LOOKS_S = 1.0, 0.1  # at what the gateway sees; without replicas somebody waits for the next look
LONGEST_PAUSE_S = 60.0  # after errors


def keep(session: Session, name: str) -> None:
    """Until the service is gone."""
    state, policy, errors = ScalingState(), None, 0
    while name in folders.names(session):
        pause_s = SCALER_LOOKS_S
        try:
            service = folders.load(session, name)
            if policy is None or policy.name != service.scaling.policy:
                policy = AskedPolicy(service.scaling.policy) if service.scaling.policy else None
            decision = scaling_decision(session, service, state, policy, time.time())
            if decision is not None:
                state = decision.state
                if decision.reason:
                    _carry_out(session, service, decision)
                pause_s = ASLEEP_LOOKS_S if not decision.replicas else SCALER_LOOKS_S
            errors = 0
        except ChipwiseError as error:  # another command changes it, or a replica does not start: the next look decides anew
            print(error, flush=True)
            errors += 1
            pause_s = min(SCALER_LOOKS_S * 2.0 ** min(errors, 6), LONGEST_PAUSE_S)
        time.sleep(pause_s)


def _carry_out(session: Session, service: ServiceRecord, decision: ScalingDecision) -> None:
    begun, stated_s = time.monotonic(), service.cold_start_s
    was_asleep = not any(not record.is_draining for record in service.replicas)
    _note_text(session, service.gateway, decision.reason)
    after = scale_to(session, service.name, decision.replicas, lambda line: print(line, flush=True))
    if was_asleep:
        waited, stated = duration(time.monotonic() - begun), "" if stated_s is None else f"; {duration(stated_s)} was stated"
        count = plural(len(after.replicas), "replica")
        _note_text(session, after.gateway, f"{count} ready {waited} after a request was parked{stated}")


def _note_text(session: Session, gateway: str, text: str) -> None:
    print(text, flush=True)
    with held.opened(session) as runtime:
        tell(runtime, gateway, text)


if __name__ == "__main__":
    from chipwise.api.session.wiring import open_session

    keep(open_session(), sys.argv[1])
