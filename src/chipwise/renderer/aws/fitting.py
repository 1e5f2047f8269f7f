"""What every target of AWS refuses, and what each needs to be told because no plan can know it."""

from __future__ import annotations

from chipwise.renderer.aws.parts import together
from chipwise.renderer.deployment import Deployment, Form, Node
from chipwise.renderer.file import CannotRender
from chipwise.renderer.launch.starting import run_machines
from chipwise.renderer.platforms import OPEN_DRIVER
from chipwise.renderer.refusals import one_stage

_CLOUDS = {"gcp": "terraform or kubernetes", "azure": "terraform or kubernetes"}


def check(deployment: Deployment, target: str, *forms: Form) -> None:
    """Raises unless the plan is on AWS and of one of the forms."""
    provider = deployment.node.provider
    if deployment.form is Form.PIPELINE:
        raise CannotRender(
            f"{target} runs one stage at a time, and {deployment.title} has {len(deployment.stages)}.",
            remedy=f"Use --to argo, or {one_stage(deployment)}.",
        )
    if provider != "aws":
        alternatives = _CLOUDS.get(provider, "kubernetes or compose")
        raise CannotRender(
            f"The plan is on {provider}, and {target} runs on AWS only.",
            remedy=f"Plan for AWS with --cloud aws, or take --to {alternatives}.",
        )
    if deployment.form not in forms:
        message, remedy = _FORMS[deployment.form](deployment, target)
        raise CannotRender(message, remedy=remedy)


def _job(deployment: Deployment, target: str) -> tuple[str, str]:
    return f"{deployment.title} is a job that ends, and {target} keeps things running.", "Use --to batch, ec2 or sagemaker."


def _service(deployment: Deployment, target: str) -> tuple[str, str]:
    return f"{deployment.title} is a service that stays, and {target} runs jobs that end.", "Use --to ecs, sagemaker or ec2."


def _sessions(deployment: Deployment, target: str) -> tuple[str, str]:
    return f"{deployment.title} is for people who come and go, and {target} starts and stops nothing for them.", (
        "Use --to jupyterhub."
    )


def _devices(deployment: Deployment, target: str) -> tuple[str, str]:
    return f"{deployment.node.chip} is an edge device; {target} does not reach it.", "Use --to compose or dockerfile."


_FORMS = {Form.JOB: _job, Form.SERVICE: _service, Form.SESSIONS: _sessions, Form.DEVICES: _devices}


def refuse_fpga(deployment: Deployment, target: str) -> None:
    """Services that hand out machines with their own images have none with the tools of FPGAs and other special cards."""
    node = deployment.node
    if node.accelerated and node.kind not in ("gpu", "neuron"):
        raise CannotRender(
            f"{node.chip} ({node.kind}) needs a machine image with its own tools, which {target} does not offer.",
            remedy="Use --to ec2 with --ami, or plan for another chip with --chip CHIP.",
        )
    if node.share < 1:
        raise CannotRender(
            f"{node.machine} has {node.share:g} of a chip, which takes NVIDIA's GRID driver; images of {target} have another.",
            remedy="Take --to eksctl and kubernetes, whose images have both, or ec2 with --ami.",
        )
    if node.kind == "gpu" and node.vendor != "NVIDIA":
        raise CannotRender(
            f"{target} hands out NVIDIA and Neuron chips; {node.chip} is of {node.vendor}.", remedy="Use --to ec2 with --ami."
        )


def refuse_ranks(deployment: Deployment, target: str) -> None:
    """Programs over several machines whose ranks start each other, and runs of them: both are what schedulers are for."""
    if not together(deployment):
        return
    machines = run_machines(deployment)
    if deployment.software.framework == "mpi":
        raise CannotRender(
            f"{deployment.title} is one MPI program over {machines} machines, and {target} starts no ranks across machines.",
            remedy="Use --to slurm or parallelcluster.",
        )
    if deployment.runs > 1:
        raise CannotRender(
            f"{deployment.title} is {deployment.runs} runs, each over {machines} machines; {target} starts one such program.",
            remedy="Use --to slurm or parallelcluster.",
        )


def machines(deployment: Deployment) -> tuple[Node, ...]:
    """The plan's machine, then the others that the same machine image drives."""
    node = deployment.node
    old = [one for one in deployment.alternatives if one.kind == "gpu" and (one.capability or 0.0) < OPEN_DRIVER]
    if node.kind != "gpu" or (node.capability or 0.0) < OPEN_DRIVER:
        return (node, *deployment.alternatives)
    return (node, *(one for one in deployment.alternatives if one not in old))


def unpullable(deployment: Deployment) -> bool:
    """The image exists only once somebody has built it and pushed it somewhere."""
    return deployment.software.built
