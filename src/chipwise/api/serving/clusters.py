"""Services in a cluster: planned and recorded here; whoever keeps services there makes, follows and removes them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from chipwise.api import render as rendering
from chipwise.api.catalog.check import check
from chipwise.api.running import elsewhere, engines
from chipwise.api.running.installed import package
from chipwise.api.serving import folders
from chipwise.api.serving.engines import engine_named, names
from chipwise.api.serving.options import ScalingOptions, ServeOptions, check_in_cluster, replica_counts
from chipwise.errors import ChipwiseError, NoResult, UnknownName
from chipwise.files.source import read_text
from chipwise.planner.options import with_limits
from chipwise.renderer.served import ServeRequest, named
from chipwise.renderer.served_in_cluster import PORT, check_request, in_cluster, lasting_path, version_of
from chipwise.runner.abilities import AppliesObjects
from chipwise.serving.cluster import KeepsServices, Say, ServiceKeeper
from chipwise.serving.service import ReplicaNeeds, ServiceDoor, ServiceRecord, ServiceVersion
from chipwise.views.services import cluster_view

if TYPE_CHECKING:
    from chipwise.api.session.wiring import Session
    from chipwise.renderer.deployment import Deployment


def is_cluster(session: Session, engine: str | None) -> bool:
    """Whether it says where replicas run, and not what serves."""
    if engine is None or engine in names():
        return False
    with suppress(UnknownName):
        if isinstance(package(engines.kind_of(session, engine)), AppliesObjects):
            return True
    engine_named(engine)  # raises, and says which there are
    return False


@contextmanager
def _keeper(session: Session, reach: engines.Reach) -> Iterator[ServiceKeeper]:
    engine = engines.connect(session, reach)
    assert isinstance(engine, KeepsServices)
    try:
        yield engine.services()
    finally:
        engine.close()


def serve(session: Session, request: ServeRequest, options: ServeOptions, say: Say) -> ServiceRecord:
    check_request(replace(request, engine=None), options.of_this_machine)
    reach = engines.reach(session, request.engine, {"namespace": options.namespace or ""})
    name = named(request.name or check(session, request.words[0], request.environment).workload.name)
    folders.refuse_running(session, name)
    with _keeper(session, reach) as keeper:
        deployment = _planned(session, reach, request)
        version = _version(keeper, reach, deployment, replace(request, name=name), options, 1)
        keeper.check(name, version)
        door = ServiceDoor(f"{name}.{keeper.namespace}.svc", PORT)
        path = lasting_path(request.words[0])
        service = ServiceRecord(name, door, (version,), goals=deployment.goals, workload=path, place=keeper.place)
        with folders.changing(session, name):
            engines.remember(session, keeper.place, reach)
            service = folders.store(session, service)
            try:
                keeper.start(name, version, options.ready_within, say)
            except BaseException:
                with suppress(ChipwiseError):  # a cluster that is not reached: the record stays, and `stop` ends it later
                    stop(session, service, say, now=True)
                raise
    return service


def _planned(session: Session, reach: engines.Reach, request: ServeRequest) -> Deployment:
    """What the plan deploys, within what the cluster may get."""
    path = request.words[0]
    limits = elsewhere.limits(session, path, request.environment, reach)
    text = with_limits(read_text(path), path, limits)
    return rendering.deployment_of(session, path, rendering.RenderRequest(environment=request.environment, text=text))


def _version(
    keeper: ServiceKeeper,
    reach: engines.Reach,
    deployment: Deployment,
    request: ServeRequest,
    options: ServeOptions,
    number: int,
) -> ServiceVersion:
    counts = replica_counts(options.replicas) if options.replicas is not None else None
    needs = ReplicaNeeds(team=options.team or "", project=options.project or "", labels=options.labels)
    queue = keeper.queue_for(needs.team, reach.setting("queue"))
    named_so = in_cluster(deployment, request.name or deployment.name, counts)
    return version_of(named_so, number, time.time(), queue, needs, request.environment or "")


def scale(
    session: Session, service: ServiceRecord, counts: tuple[int, int | None], rules: ScalingOptions, say: Say
) -> ServiceRecord:
    check_in_cluster(rules)
    with _keeper(session, engines.reach_of(session, service.place)) as keeper:
        keeper.scale(service.name, service.versions[-1], *counts, say)
    return service


def rollout(session: Session, service: ServiceRecord, request: ServeRequest, options: ServeOptions, say: Say) -> ServiceRecord:
    """A version comes replica by replica as the cluster does it; the one before comes back where it does not come up."""
    before, reach = service.versions[-1], engines.reach_of(session, service.place)
    assert before.in_cluster is not None
    if not request.words:
        environment = request.environment or before.in_cluster.environment or None
        request = replace(request, words=(service.workload,), environment=environment)
    request = replace(request, name=service.name)
    check_request(request, options.of_this_machine)
    with _keeper(session, reach) as keeper:
        options = replace(options, team=before.needs.team, project=before.needs.project, labels=before.needs.labels)
        fresh = _version(keeper, reach, _planned(session, reach, request), request, options, before.number + 1)
        keeper.check(service.name, fresh)
        service = folders.store(session, replace(service, versions=(before, fresh), canary=fresh.number))
        try:
            keeper.replace(service.name, before, fresh, options.ready_within, say)
        except (NoResult, KeyboardInterrupt):  # it is taken back; after other errors `rollout --back` does it
            folders.store(session, replace(service, versions=(before,), canary=None))
            raise
    return folders.store(session, replace(service, canary=None, workload=lasting_path(request.words[0])))


def back(session: Session, service: ServiceRecord, say: Say) -> ServiceRecord:
    before = service.versions[0]
    with _keeper(session, engines.reach_of(session, service.place)) as keeper:
        keeper.undo(service.name, before, say)
    return folders.store(session, replace(service, versions=(before,), canary=None))


def stop(session: Session, service: ServiceRecord, say: Say, *, now: bool) -> None:
    with _keeper(session, engines.reach_of(session, service.place)) as keeper:
        keeper.stop(service.name, say, now=now)
    folders.delete(session, service.name)


def view(session: Session, service: ServiceRecord) -> dict[str, Any]:
    try:
        with _keeper(session, engines.reach_of(session, service.place)) as keeper:
            return cluster_view(service, keeper.look(service.name))
    except ChipwiseError as error:  # the others are shown nonetheless
        return cluster_view(service, None, str(error))
