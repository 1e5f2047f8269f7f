"""Kueue: flavors of machines by type and purchase, a queue with the plan's quota that may borrow, and the work in it."""

from __future__ import annotations

from chipwise.renderer.cluster import guards, hours, jobs, live, queues, services
from chipwise.renderer.cluster.accelerators import resource_of
from chipwise.renderer.cluster.pod import queue_of
from chipwise.renderer.deployment import Deployment, Form
from chipwise.renderer.file import CannotRender, File
from chipwise.renderer.heading import heading
from chipwise.renderer.launch import streams
from chipwise.renderer.layout import meets
from chipwise.renderer.refusals import one_stage
from chipwise.renderer.yaml_text import Yaml, document

FITS = "jobs and services that share a cluster's quota: flavors, queues with borrowing, priorities, and the work itself"
EXPRESSES = frozenset({"layers", "streams", "hours", "groups", "pulls", "slices"})
WRITES = ("queues.yaml",)
MANIFESTS = True
_ABOUT_WORK = (
    "What runs, when its queue lets it.\nKueue must manage its kind: see integrations.frameworks in its configuration."
)


def render(deployment: Deployment) -> list[File]:
    match deployment.form:
        case Form.PIPELINE:
            raise CannotRender(
                "A queue holds one piece of work, not stages in order.",
                remedy=f"Use --to argo, or {one_stage(deployment)}.",
            )
        case Form.SESSIONS:
            raise CannotRender("Notebooks do not wait in a queue: people do.", remedy="Use --to jupyterhub.")
        case Form.DEVICES:
            raise CannotRender(
                f"{deployment.node.chip} is an edge device; no cluster hands it out.",
                remedy="Use --to compose or dockerfile.",
            )
    resource_of(deployment.node)  # raises for what Kubernetes cannot hand out
    work: list[Yaml] = [*guards.claims(deployment)]
    if deployment.form is Form.SERVICE:
        scaler = services.autoscaler(deployment)
        work.append(services.deployment_object(deployment, queue_of(deployment)))
        work += [services.service(deployment)] if deployment.software.port is not None else []
        work += [services.disruption_budget(deployment), *([scaler] if scaler is not None else [])]
        work += hours.clocks(deployment)
    else:
        work += [jobs.rendezvous(deployment)] if meets(deployment) else []
        work.append(jobs.job(deployment, queue_of(deployment)))
    about_namespace = "What surrounds it: apply this first. The quota is in queues.yaml, in place of a ResourceQuota."
    listed = [File(live.FILE, live.stream_file(deployment))] if streams.live(deployment) else []
    return [
        File(
            "namespace.yaml",
            document(*guards.surroundings(deployment, quota_here=False), title=heading(deployment, about_namespace)),
        ),
        *listed,
        File("queues.yaml", document(*queues.queues(deployment), title=heading(deployment, queues.ABOUT))),
        File(
            "workload.yaml",
            document(
                *work,
                title=heading(deployment, _ABOUT_WORK),
            ),
        ),
    ]
