"""What replicas of a service need, and when its gateway is ready."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from chipwise.api.serving import folders
from chipwise.errors import OutsideFailed
from chipwise.renderer.served import ServedThing
from chipwise.runner.submission.serving import DRAINS_WITHIN_S as DRAINS_WITHIN_S
from chipwise.runner.submission.serving import STARTS_WITHIN_S as STARTS_WITHIN_S
from chipwise.runner.submission.serving import RolloutOptions as RolloutOptions
from chipwise.runner.submission.serving import ScalingOptions as ScalingOptions
from chipwise.runner.submission.serving import ServeOptions as ServeOptions
from chipwise.runner.submission.serving import as_options as as_options
from chipwise.runner.submission.serving import check_in_cluster as check_in_cluster
from chipwise.runner.submission.serving import checked_scaling as checked_scaling
from chipwise.runner.submission.serving import replica_counts as replica_counts
from chipwise.serving.service import ReplicaNeeds, ServiceRecord

if TYPE_CHECKING:
    from chipwise.api.session.wiring import Session

GATEWAY_WITHIN_S = 30.0


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
