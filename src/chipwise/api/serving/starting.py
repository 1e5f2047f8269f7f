"""`serve` as a verb: replicas are started and ready, then the gateway stands before them."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from chipwise.api.running import held, place
from chipwise.api.serving import clusters, folders
from chipwise.api.serving.engines import check_here, machine_here
from chipwise.api.serving.options import ScalingOptions, ServeOptions, checked_scaling, needs_of, replica_counts, wait_gateway
from chipwise.api.serving.replicas import (
    Say,
    stop_jobs,
    submit_gateway,
    submit_replica,
    submit_scaler,
    wait_ready,
    with_cold_start,
)
from chipwise.api.serving.resolving import ServedThing, ServeRequest, resolve
from chipwise.renderer.served import COMMAND
from chipwise.serving.routing import policy_names
from chipwise.serving.service import ServiceRecord, ServiceVersion
from chipwise.spelling import nearest

if TYPE_CHECKING:
    from chipwise.api.session.wiring import Session


def serve(session: Session, request: ServeRequest, options: ServeOptions, say: Say = lambda line: None) -> ServiceRecord:
    """Ready when it returns. What cannot be is refused before anything starts, and what fails on the way is taken back."""
    if clusters.is_cluster(session, request.engine):
        return clusters.serve(session, request, options, say)
    served = resolve(session, request)
    folders.refuse_running(session, served.name)
    check_here(session, served.engine, served.request, request.components)
    from chipwise.adapters.http.service_door import service_door

    door = service_door(options)
    fewest, most_replicas = replica_counts(options.replicas if options.replicas is not None else served.replicas)
    count = max(fewest, 1)  # one is started at any rate: it shows that it can, and how long that takes
    scaling = ScalingOptions(options.scaling, options.scale_every, options.idle)
    threads = options.cpus or max(machine_here(session).cpus // count, 1)  # replicas that all use all are slower together
    replica = replace(served.request, cpus=threads)
    version = ServiceVersion(
        number=1, engine=served.engine, request=replica, created=time.time(), needs=needs_of(served, options)
    )
    service = ServiceRecord(
        name=served.name,
        door=door,
        versions=(version,),
        policy=_policy(options.policy),
        queue_s=options.queue,
        goals=served.goals,
        workload=served.workload,
        most_replicas=most_replicas,
        fewest_replicas=fewest,
        scaling=checked_scaling(scaling, most_replicas),
    )
    with folders.changing(session, served.name):
        try:
            return _started(session, service, served, count, options.within_s, say)
        except BaseException:
            take_back(session, served.name)
            raise


def _started(
    session: Session, service: ServiceRecord, served: ServedThing, count: int, within_s: float, say: Say
) -> ServiceRecord:
    service = folders.store(session, service)
    if served.engine == COMMAND and (unseen := place.unseen_gpus(session, service.versions[0].needs.gpus)):
        say(unseen)
    begun = time.monotonic()
    with held.opened(session, makes=True) as runtime:
        for _ in range(count):
            service = submit_replica(runtime, service, service.versions[0])
    wait_ready(session, service.replicas, service, served.expected, within_s, say)
    service = with_cold_start(session, service, time.monotonic() - begun)
    with held.opened(session) as runtime:
        service = submit_gateway(runtime, service)
        if service.most_replicas is not None:
            service = submit_scaler(runtime, service)
    wait_gateway(session, service)
    return service


def take_back(session: Session, name: str) -> None:
    """All jobs of a service that could not be started."""
    if name in folders.names(session):
        service = folders.load(session, name)
        ids = [service.scaler, service.gateway, *(record.job for record in service.replicas)]
        stop_jobs(session, [id for id in ids if id], "not started")
        folders.delete(session, name)


def _policy(name: str) -> str:
    from chipwise.errors import UnknownName

    if name not in policy_names():
        raise UnknownName("routing policy", name, nearest(name, policy_names()), known=policy_names())
    return name
