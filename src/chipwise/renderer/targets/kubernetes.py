"""Kubernetes: namespace with its guards, and a Job, an Indexed Job or a Deployment with all that belongs to it."""

from __future__ import annotations

from chipwise.renderer.cluster import devices, guards, hours, jobs, live, resource_claims, services
from chipwise.renderer.cluster.accelerators import resource_of
from chipwise.renderer.deployment import Deployment, Form
from chipwise.renderer.file import CannotRender, File
from chipwise.renderer.heading import heading
from chipwise.renderer.launch import streams
from chipwise.renderer.layout import meets
from chipwise.renderer.refusals import one_stage
from chipwise.renderer.yaml_text import document

FITS = "jobs and services on any cluster; multi-node jobs as Indexed Jobs"
EXPRESSES = frozenset({"streams", "hours", "groups", "pulls", "slices", "claims"})
WRITES = ("workload.yaml",)
MANIFESTS = True


def render(deployment: Deployment) -> list[File]:
    match deployment.form:
        case Form.PIPELINE:
            raise CannotRender(
                "Plain Kubernetes cannot order stages.",
                remedy=f"Use --to argo, or {one_stage(deployment)}.",
            )
        case Form.SESSIONS:
            raise CannotRender("Notebooks need a hub that starts and stops them.", remedy="Use --to jupyterhub.")
        case Form.DEVICES:
            raise CannotRender(
                f"{deployment.node.chip} is an edge device, one at each site; a cluster does not reach it.",
                remedy="Use --to compose for one device, or dockerfile for its image.",
            )
    resource_of(deployment.node)  # raises for what Kubernetes cannot hand out
    resource_claims.check(deployment)
    work = [*guards.claims(deployment)]
    if deployment.form is Form.SERVICE:
        scaler = services.autoscaler(deployment)
        work += [services.deployment_object(deployment), services.disruption_budget(deployment)]
        work += [services.service(deployment)] if deployment.software.port is not None else []
        work += [scaler] if scaler is not None else []
        work += hours.clocks(deployment)
    else:
        work += [jobs.rendezvous(deployment)] if meets(deployment) else []
        work.append(jobs.job(deployment, by_hours=deployment.hours is not None))
        work += hours.pauses(deployment)
    runs = "What runs; its clocks suspend it and resume it." if deployment.hours is not None else "What runs."
    files = [
        File(
            "namespace.yaml",
            document(
                *guards.surroundings(deployment),
                *resource_claims.objects(deployment),
                title=heading(deployment, "What surrounds it: apply this first."),
            ),
        ),
        File("workload.yaml", document(*work, title=heading(deployment, runs))),
    ]
    if streams.live(deployment):
        files.insert(1, File(live.FILE, live.stream_file(deployment)))
    plugins = devices.device_files(deployment) if not deployment.claims else []
    return [*files, *plugins]
