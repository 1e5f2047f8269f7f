"""What a run needs of a function: memory, processors and time, and what is refused, with the numbers."""

from __future__ import annotations

from chipwise.renderer.aws.parts import together
from chipwise.renderer.deployment import Deployment, Form
from chipwise.renderer.file import CannotRender
from chipwise.renderer.refusals import one_stage
from chipwise.text import gib
from chipwise.units import GIB, MIB

_STORES = {"aws": "s3", "gcp": "gs", "azure": "az"}


def refuse_forms(deployment: Deployment) -> None:
    if deployment.form is Form.PIPELINE:
        raise CannotRender(
            f"A function runs one stage, and {deployment.title} has {len(deployment.stages)}.",
            remedy=f"Use --to argo, or {one_stage(deployment)}.",
        )
    if deployment.form is Form.SESSIONS:
        raise CannotRender("Notebooks need a hub that starts and stops them.", remedy="Use --to jupyterhub.")
    if deployment.form is Form.DEVICES:
        raise CannotRender(
            f"{deployment.node.chip} is an edge device; no function runs there.", remedy="Use --to compose or dockerfile."
        )
    if deployment.kind in ("stream", "transcode") and deployment.form is Form.SERVICE:
        raise CannotRender(
            f"{deployment.title} works on streams that do not end; a function answers and goes.",
            remedy="Use --to kubernetes or terraform.",
        )
    if together(deployment):
        raise CannotRender(
            f"{deployment.title} is one program over {deployment.machines} machines; functions do not see each other.",
            remedy="Use --to kubernetes, slurm, sagemaker or ec2.",
        )


def trigger_of(deployment: Deployment) -> tuple[str, str] | None:
    """(bucket, prefix) whose new objects start a run; None: nothing does."""
    if deployment.trigger is None:
        return None
    scheme, _, place = deployment.trigger.partition("://")
    wanted = _STORES.get(deployment.node.provider, "")
    if scheme != wanted:
        raise CannotRender(
            f"Objects arrive at {scheme}://, and the plan is on {deployment.node.provider}, whose functions hear of {wanted}://.",
            remedy="Plan for the cloud of the bucket with --cloud NAME, or move program.trigger.",
        )
    bucket, _, prefix = place.partition("/")
    return bucket, prefix


def run_seconds(deployment: Deployment) -> float:
    """The latest end of a run: the whole job, or the slowest answer of a service."""
    if deployment.form is Form.JOB:
        return deployment.predicted.high_s
    answers = [seconds for goal, seconds in deployment.predicted.latency.items() if goal.startswith("latency")]
    return max(answers, default=30.0)


def weights(deployment: Deployment) -> float:
    return deployment.model.weight_bytes or 0.0 if deployment.model is not None else 0.0


def memory_bytes(deployment: Deployment) -> float:
    """Weights, half as much again while they are loaded, and the interpreter with its libraries. Where no model is known,
    what the plan's machine has, less what its system keeps."""
    if deployment.model is not None:
        return 1.5 * weights(deployment) + GIB
    return 0.9 * (deployment.node.memory_bytes or 2 * GIB)


def settings(deployment: Deployment) -> dict[str, str]:
    """A function writes below /tmp only, and has no volume for weights."""
    return {key: "/tmp/hub" if value == "/models/hub" else value for key, value in deployment.software.env}


def refuse_memory(deployment: Deployment, service: str, most_mib: float) -> None:
    needed = memory_bytes(deployment) / MIB
    if needed > most_mib:
        detail = (
            f"weights of {gib(weights(deployment))} and its program"
            if deployment.model is not None
            else f"a {deployment.node.machine}, which the plan chose"
        )
        raise CannotRender(
            f"{service} has at most {most_mib:,.0f} MiB of memory; {deployment.title} needs {needed:,.0f} MiB ({detail}).",
            remedy="Use --to ecs, batch or kubernetes, or plan a smaller model or number format.",
        )


def refuse_time(deployment: Deployment, service: str, seconds: float, limit: float, subject: str = "a run") -> None:
    if seconds > limit:
        raise CannotRender(
            f"{service} gives {subject} {limit:,.0f} s; this one takes up to {seconds:,.0f} s.",
            remedy="Use --to batch, kubernetes or ec2, or cut the work into smaller parts.",
        )
