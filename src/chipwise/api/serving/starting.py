"""`serve` as a verb: replicas are started and ready, then the gateway stands before them."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from chipwise.api.running import asking
from chipwise.api.serving import folders
from chipwise.api.serving.engines import check_here, machine_here
from chipwise.api.serving.replicas import Say, free_port, stop_jobs, submit_gateway, submit_replica, submit_scaler, wait_ready
from chipwise.api.serving.resolving import ServedThing, ServeRequest, resolve
from chipwise.errors import BadInput, OutsideFailed
from chipwise.serving.routing import policy_names
from chipwise.serving.service import ReplicaNeeds, ServiceDoor, ServiceRecord, ServiceVersion
from chipwise.spelling import nearest

if TYPE_CHECKING:
    from chipwise.api.session.wiring import Session

PORT = 8080
POLICY = "least-work"
QUEUE_S = 30.0
STARTS_WITHIN_S = 1800.0  # large models take long to load
GATEWAY_WITHIN_S = 30.0
MOST_REPLICAS = 256


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """Options of `chipwise serve` that say how it runs."""

    replicas: int | str | None = None  # 2, or 1-4 to scale between; None: as the plan says, else one
    port: int = PORT
    host: str = "127.0.0.1"
    key_file: str | None = None
    certificate: str | None = None
    private_key: str | None = None
    policy: str = POLICY
    queue: float = QUEUE_S
    ready_within: float = STARTS_WITHIN_S
    cpus: int = 0
    team: str | None = None
    project: str | None = None
    labels: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    folder: Path | None = None


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
    count, most_replicas = _counts(options.replicas if options.replicas is not None else served.replicas)
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
        fewest_replicas=count,
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
    with asking.opened(session, makes=True) as runtime:
        for _ in range(count):
            service = submit_replica(runtime, service, service.versions[0])
    wait_ready(session, service.replicas, service, served.expected, within_s, say)
    with asking.opened(session) as runtime:
        service = submit_gateway(runtime, service)
        if service.most_replicas is not None:
            service = submit_scaler(runtime, service)
    wait_gateway(session, service)
    return service


def wait_gateway(session: Session, service: ServiceRecord, within_s: float = GATEWAY_WITHIN_S) -> None:
    """Until it has taken over the service's file as it is now, and all replicas that should take requests do."""
    until = time.monotonic() + within_s
    while True:
        seen = folders.seen(session, service.name)
        replicas = seen.get("replicas", {})
        away = [record.name for record in service.replicas if replicas.get(record.name, {}).get("away", True)]
        if seen.get("revision") == service.revision and not away:
            return
        if time.monotonic() > until:
            job = f"`chipwise logs {service.gateway}` shows what it printed."
            trouble = f"it does not reach {', '.join(away)}" if seen and away else "it does not answer"
            raise OutsideFailed(f"The gateway of {service.name} is not ready after {within_s:g} s: {trouble}.", remedy=job)
        time.sleep(0.05)


def take_back(session: Session, name: str) -> None:
    """All jobs of a service that could not be started."""
    if name in folders.names(session):
        service = folders.load(session, name)
        ids = [service.scaler, service.gateway, *(record.job for record in service.replicas)]
        stop_jobs(session, [id for id in ids if id], "not started")
        folders.delete(session, name)


def needs_of(served: ServedThing, options: ServeOptions) -> ReplicaNeeds:
    folder = str(options.folder.absolute()) if options.folder is not None else served.folder
    return ReplicaNeeds(
        gpus=served.request.gpus,
        cpus=options.cpus,
        team=options.team or "",
        project=options.project or "",
        labels=options.labels,
        settings=(*(f"{name}={value}" for name, value in served.env.items()), *options.settings),
        secrets=(*(f"{name}={kept}" for name, kept in served.secrets.items()), *options.secrets),
        folder=folder or str(Path.cwd()),
    )


def _door(options: ServeOptions) -> ServiceDoor:
    from chipwise.adapters.http.gateway import Door, is_loopback
    from chipwise.adapters.http.key_file import read_keys

    if options.key_file is not None:
        read_keys(Path(options.key_file))
    elif not is_loopback(options.host):
        raise BadInput(
            f"{options.host} can be reached from other machines.",
            remedy="Add --key-file FILE; `chipwise serve new-key NAME --key-file FILE` makes a key.",
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


def _counts(replicas: int | str) -> tuple[int, int | None]:
    """How many are started, and between that and which number they are scaled; None: they are not."""
    from chipwise.runner.submission.ranges import workers

    most, fewest = workers(str(replicas), "--replicas")
    if not 1 <= (most if fewest is None else fewest) <= most <= MOST_REPLICAS:
        raise BadInput(f"{replicas} replicas cannot be started.", remedy=f"Start 1 to {MOST_REPLICAS}, as 2 or 1-4.")
    return (most, None) if fewest is None else (fewest, most)


def _path(text: str | None) -> str:
    return str(Path(text).absolute()) if text else ""


def _policy(name: str) -> str:
    from chipwise.errors import UnknownName

    if name not in policy_names():
        raise UnknownName("routing policy", name, nearest(name, policy_names()), known=policy_names())
    return name


def as_options(options: ServeOptions, version: ServiceVersion) -> ServeOptions:
    """Those of a version that runs, where none are given for the next."""
    needs = version.needs
    return replace(
        options,
        cpus=options.cpus or needs.cpus,
        team=options.team or needs.team,
        project=options.project or needs.project,
        settings=options.settings or needs.settings,
        secrets=options.secrets or needs.secrets,
        folder=options.folder or Path(needs.folder),
    )
