"""`serve` as a verb: replicas are started and ready, then the gateway stands before them."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from chipwise.api.running import held, place
from chipwise.api.serving import folders
from chipwise.api.serving.engines import check_here, machine_here
from chipwise.api.serving.options import ScalingOptions, ServeOptions, checked_scaling, needs_of, replica_counts, wait_gateway
from chipwise.api.serving.replicas import (
    Say,
    free_port,
    stop_jobs,
    submit_gateway,
    submit_replica,
    submit_scaler,
    wait_ready,
    with_cold_start,
)
from chipwise.api.serving.resolving import ServedThing, ServeRequest, resolve
from chipwise.errors import BadInput
from chipwise.renderer.served import COMMAND
from chipwise.serving.routing import policy_names
from chipwise.serving.service import ServiceDoor, ServiceRecord, ServiceVersion
from chipwise.spelling import nearest

if TYPE_CHECKING:
    from chipwise.api.session.wiring import Session


def serve(session: Session, request: ServeRequest, options: ServeOptions, say: Say = lambda line: None) -> ServiceRecord:
    """Ready when it returns. What cannot be is refused before anything starts, and what fails on the way is taken back."""
    served = resolve(session, request)
    if served.name in folders.names(session):
        raise BadInput(
            f"{served.name} is running already.",
            remedy=f"Change it with `chipwise serve scale` or `rollout`, end it with `chipwise serve stop {served.name}`, "
            "or start another with --name.",
        )
    check_here(session, served.engine, served.request, request.components)
    door = _door(options)
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
            return _started(session, service, served, count, options.ready_within, say)
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


def _door(options: ServeOptions) -> ServiceDoor:
    from chipwise.adapters.http.gateway import Door, is_loopback
    from chipwise.adapters.http.key_file import read_keys

    if options.key_file is not None:
        read_keys(Path(options.key_file))
    elif not is_loopback(options.host):
        raise BadInput(
            f"{options.host} can be reached from other machines.",
            remedy="Add --key-file FILE; `chipwise serve key NAME --key-file FILE` makes a key.",
        )
    if (options.certificate is None) != (options.private_key is None):
        raise BadInput("TLS needs a certificate and its private key.", remedy="Give --certificate and --private-key.")
    if options.certificate is not None and options.private_key is not None:
        door = Door(certificate=Path(options.certificate), private_key=Path(options.private_key))
        try:
            door.context()
        except (OSError, ValueError) as error:
            raise BadInput(f"The certificate cannot be used: {error}.", remedy="Give both as PEM files.") from None
    paths = {name: _path(getattr(options, name)) for name in ("key_file", "certificate", "private_key")}
    return ServiceDoor(host=options.host, port=free_port(options.host, options.port), **paths)


def _path(text: str | None) -> str:
    return str(Path(text).absolute()) if text else ""


def _policy(name: str) -> str:
    from chipwise.errors import UnknownName

    if name not in policy_names():
        raise UnknownName("routing policy", name, nearest(name, policy_names()), known=policy_names())
    return name
