"""Terraform: the machines of a plan on AWS, Google Cloud or Azure with all that belongs to them, and a node pool beside it."""

from __future__ import annotations

from dataclasses import replace

from chipwise.renderer.deployment import Deployment, Form
from chipwise.renderer.file import CannotRender, File
from chipwise.renderer.launch.streams import needs_addresses
from chipwise.renderer.left_out import HOURS, REGIONS, STREAMS, with_notes, without_hours
from chipwise.renderer.refusals import one_stage
from chipwise.renderer.terraform import aks, aws, azure, eks, gcp, gke
from chipwise.renderer.terraform.shape import too_large

FITS = "jobs and services on AWS, Google Cloud and Azure: plain machines, and node pools of EKS, GKE and AKS"
EXPRESSES = frozenset({"layers", "regions", "hours", "reservations"})
_PLAIN = {"aws": aws.modules, "gcp": gcp.modules, "azure": azure.modules}
_POOLS = {"aws": eks.modules, "gcp": gke.modules, "azure": aks.modules}


def render(deployment: Deployment) -> list[File]:
    """Plain machines at the top, a node pool in a directory of its own. People who come and go get the pool alone, for the hub
    that starts and stops their notebooks; so do TPUs, whose slices no plain machine is, and live streams, which plain machines
    are not told apart by."""
    provider = deployment.node.provider
    match deployment.form:
        case Form.PIPELINE:
            raise CannotRender(
                "Terraform creates machines and cannot order stages.",
                remedy=f"Use --to argo, or {one_stage(deployment)}.",
            )
        case Form.DEVICES:
            raise CannotRender(
                f"{deployment.node.chip} is an edge device, one at each site; no provider of Terraform makes it.",
                remedy="Use --to compose for one device, or dockerfile for its image.",
            )
    if provider not in _PLAIN:
        raise CannotRender(
            f"The plan is on {provider}, and this target knows AWS, Google Cloud and Azure.",
            remedy="Use --to skypilot, dockerfile or compose, or plan elsewhere with --cloud aws.",
        )
    if len(deployment.rented) > 1 and provider != "aws":
        deployment = with_notes(deployment, {REGIONS, STREAMS, HOURS})
    if provider != "aws" and (deployment.form is Form.JOB or deployment.stops):  # groups have no clock there
        deployment = without_hours(deployment)
    if larger := too_large(deployment):
        deployment = replace(
            deployment, notes=(*deployment.notes, f"{larger} There is a node pool alone, which claims volumes.")
        )
    alone = bool(larger) or deployment.form is Form.SESSIONS or deployment.node.kind == "tpu" or needs_addresses(deployment)
    plain = replace(deployment, purchase="spot") if provider == "aws" and deployment.losable else deployment
    modules = [] if alone else _PLAIN[provider](plain)
    return [*modules, *_POOLS[provider](deployment)]
