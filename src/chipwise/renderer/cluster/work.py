"""What `chipwise run` and `chipwise serve` give to a cluster: the work of a plan alone, as objects.

What surrounds it (namespace, quotas, priority classes, queues) is for who runs the cluster. A priority class is left out, for
pods that name one that is not there are refused, and to make one takes rights over the whole cluster. So is the deadline: each
attempt's Job would count it anew, and the controller knows it. And so are tries of a single pod after failures of its own:
the controller counts those, as `--retries` says, and knows whether the program came any further.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from chipwise.renderer.cluster import guards, jobs, services
from chipwise.renderer.cluster.accelerators import resource_of
from chipwise.renderer.cluster.pod import PRIORITY_LABEL
from chipwise.renderer.deployment import Deployment, Form
from chipwise.renderer.file import CannotRender
from chipwise.renderer.launch import streams
from chipwise.renderer.layout import grouped, meets, replica_machines
from chipwise.renderer.yaml_text import Yaml, plain


def work(
    deployment: Deployment, queue: str = "", image: str = "", *, with_groups: bool = False
) -> tuple[Mapping[str, object], ...]:
    """`queue`: of Kueue, in the namespace where it will run. `image`: instead of the workload's own. `with_groups`: replicas
    may be groups of machines."""
    _runnable(deployment, with_groups)
    if image:
        deployment = replace(deployment, software=replace(deployment.software, image=image, built=False))
    if deployment.software.built:
        raise CannotRender(
            f"{deployment.title} names no image, and a cluster pulls what it runs.",
            remedy="chipwise render --to dockerfile writes one to build and push; then --image, or program: {image: ...}.",
        )
    resource_of(deployment.node)  # raises for what Kubernetes cannot hand out
    objects: list[Yaml] = [guards.service_account(deployment), guards.network_policy(deployment), *guards.claims(deployment)]
    if deployment.form is Form.SERVICE:
        scaler = services.autoscaler(deployment)
        objects += [services.deployment_object(deployment, queue or None), services.disruption_budget(deployment)]
        objects += [services.service(deployment)] if deployment.software.port is not None else []
        objects += [scaler] if scaler is not None else []
    else:
        objects += [jobs.rendezvous(deployment)] if meets(deployment) else []
        objects.append(jobs.job(deployment, queue or None))
    return tuple(_by_itself(plain(one)) for one in objects)


def _runnable(deployment: Deployment, with_groups: bool) -> None:
    match deployment.form:
        case Form.PIPELINE:
            raise CannotRender("A cluster runs one stage at a time.", remedy="Run each stage as a job after the one before.")
        case Form.SESSIONS:
            raise CannotRender("Notebooks need a hub that starts and stops them.", remedy="chipwise render --to jupyterhub.")
        case Form.DEVICES:
            raise CannotRender(
                f"{deployment.node.chip} is an edge device; no cluster reaches it.", remedy="chipwise render --to compose."
            )
    apply = "Render it with --to kubernetes and kubectl apply the files"
    if grouped(deployment) and not with_groups:
        machines = replica_machines(deployment)
        raise CannotRender(f"A replica of {deployment.title} is a group of {machines} machines.", remedy=f"{apply}.")
    if streams.live(deployment):
        raise CannotRender(f"{deployment.title} is a StatefulSet of live streams.", remedy=f"{apply}.")
    if deployment.starts or deployment.hours:
        raise CannotRender(
            f"{deployment.title} has a schedule, which needs CronJobs in the cluster.",
            remedy=f"{apply}, or take the schedule out of the workload.",
        )


def _by_itself(manifest: Any) -> Mapping[str, object]:
    manifest["metadata"].get("labels", {}).pop(PRIORITY_LABEL, None)
    if manifest["kind"] == "PersistentVolumeClaim":
        manifest["spec"].pop("storageClassName", None)  # the cluster's own: classes are for who runs it
    if manifest["kind"] in ("Job", "Deployment"):
        manifest["spec"]["template"]["spec"].pop("priorityClassName", None)
        manifest["spec"].pop("activeDeadlineSeconds", None)
    if manifest["kind"] == "LeaderWorkerSet":
        for template in ("leaderTemplate", "workerTemplate"):
            manifest["spec"]["leaderWorkerTemplate"][template]["spec"].pop("priorityClassName", None)
    if (
        manifest["kind"] == "Job" and manifest["spec"].get("completions") == 1
    ):  # a lost machine does not count: podFailurePolicy
        manifest["spec"]["backoffLimit"] = 0
    result: Mapping[str, object] = manifest
    return result
