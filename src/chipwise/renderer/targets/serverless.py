"""Functions: Lambda or a serverless endpoint on AWS, Cloud Run, Azure Container Apps; started by objects that arrive, where
the workload says so. What does not fit is refused with the numbers."""

from __future__ import annotations

from chipwise.renderer.aws.endpoint import endpoint, memory_mb
from chipwise.renderer.deployment import Deployment, Form
from chipwise.renderer.file import CannotRender, File
from chipwise.renderer.functions.aws_function import function_files
from chipwise.renderer.functions.cloud_run import cloud_run_files
from chipwise.renderer.functions.container_apps import container_app_files
from chipwise.renderer.functions.needs import refuse_forms
from chipwise.renderer.left_out import without_hours

EXPRESSES = frozenset({"no run"})  # nothing is paid while nobody calls
FITS = "short runs and small services that cost nothing while idle: Lambda, Cloud Run with a GPU, Container Apps"
STARTS_MACHINES = True


def render(deployment: Deployment) -> list[File]:
    refuse_forms(deployment)
    if deployment.form is Form.JOB and deployment.node.provider != "azure":  # Container Apps alone have a clock
        deployment = without_hours(deployment)
    match deployment.node.provider:
        case "aws":
            return _aws(deployment)
        case "gcp":
            return cloud_run_files(deployment)
        case "azure":
            return container_app_files(deployment)
    raise CannotRender(
        f"No functions of {deployment.node.provider} are known to us.",
        remedy="Plan with --cloud aws,gcp,azure, or take --to kubernetes.",
    )


def _aws(deployment: Deployment) -> list[File]:
    node = deployment.node
    if node.accelerated:
        lambda_mb = deployment.platforms.get("Lambda", {}).get("most memory MB", "10240")
        sizes = deployment.platforms.get("SageMaker Serverless", {}).get("memory MB", "6144").split()
        raise CannotRender(
            f"AWS has no function with an accelerator (Lambda: processors, {int(lambda_mb):,} MB; SageMaker serverless: "
            f"processors, {int(sizes[-1]):,} MB); the plan uses {node.chips} x {node.chip}.",
            remedy="Use --to sagemaker (asynchronous endpoints go to zero), ecs or batch, or plan for Cloud Run's L4 with "
            "--cloud gcp --chip L4.",
        )
    if deployment.form is Form.SERVICE and deployment.trigger is None:
        if memory_mb(deployment) is None:
            sizes = deployment.platforms.get("SageMaker Serverless", {}).get("memory MB", "6144").split()
            size = (deployment.model.weight_bytes or 0.0) / 2**30 if deployment.model is not None else 0.0
            raise CannotRender(
                f"A serverless endpoint has at most {int(sizes[-1]):,} MB; weights of {size:.1f} GiB need more.",
                remedy="Use --to sagemaker (real-time) or ecs.",
            )
        return endpoint(deployment, "serverless", "Nothing is paid while nobody asks; the first answer waits for the weights.")
    return function_files(deployment)
