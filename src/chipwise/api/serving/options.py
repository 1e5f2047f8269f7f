"""What a service is started with, and what later changes of it need."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from chipwise.api.serving import folders
from chipwise.api.serving.resolving import ServedThing
from chipwise.errors import BadInput, OutsideFailed
from chipwise.serving.service import ReplicaNeeds, ServiceRecord, ServiceScaling, ServiceVersion

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
    scaling: str | None = None  # a policy of `chipwise policies`, or a file; where it is scaled between two numbers
    scale_every: float | None = None
    idle: float | None = None  # without a request, before the last replica of 0-N goes
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


@dataclass(frozen=True, slots=True)
class ScalingOptions:
    """None: not given."""

    policy: str | None = None
    every_s: float | None = None
    idle_s: float | None = None


def replica_counts(replicas: int | str) -> tuple[int, int | None]:
    """How many there are at first, and between that and which number they are scaled; None: they are not."""
    from chipwise.runner.submission.ranges import workers

    most_replicas, fewest = workers(str(replicas), "--replicas")
    if not (1 if fewest is None else 0) <= (most_replicas if fewest is None else fewest) <= most_replicas <= MOST_REPLICAS:
        zero = " Write 0-4 to let the last one go while nobody asks." if most_replicas == 0 else ""
        raise BadInput(f"{replicas} replicas cannot be started.", remedy=f"Start 1 to {MOST_REPLICAS}, as 2 or 1-4.{zero}")
    return (most_replicas, None) if fewest is None else (fewest, most_replicas)


def checked_scaling(options: ScalingOptions, most_replicas: int | None, before: ServiceScaling | None = None) -> ServiceScaling:
    """As the service's file has it; a policy that does not exist, or a file that cannot be read, is refused here."""
    from chipwise.scale.questions.scaling import scaling_policy

    if most_replicas is None:
        if any(value is not None for value in (options.policy, options.every_s, options.idle_s)):
            raise BadInput("A fixed number of replicas is not scaled.", remedy="Give two numbers: 1-4, or 0-4.")
        return ServiceScaling()
    before = before or ServiceScaling()
    name = before.policy if options.policy is None else options.policy
    if name:
        scaling_policy(name)
    if name.endswith(".py"):
        name = str(Path(name).expanduser().absolute())
    idle_s = before.idle_s if options.idle_s is None else options.idle_s
    return ServiceScaling(policy=name, every_s=options.every_s or before.every_s, idle_s=idle_s)


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
