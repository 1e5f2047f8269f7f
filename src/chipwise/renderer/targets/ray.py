"""Ray on Kubernetes (KubeRay): a RayJob, a RayService or a RayCluster on the plan's machines."""

from __future__ import annotations

import math
from dataclasses import replace

from chipwise.renderer.cluster import guards, storage
from chipwise.renderer.cluster.accelerators import resource_of
from chipwise.renderer.cluster.pod import Object, meta
from chipwise.renderer.deployment import Deployment, Form
from chipwise.renderer.file import CannotRender, File
from chipwise.renderer.heading import heading
from chipwise.renderer.launch.program_notes import program_note
from chipwise.renderer.launch.shards import in_shards
from chipwise.renderer.launch.starting import alone, part_reason
from chipwise.renderer.launch.timing import drain_seconds, ready_seconds
from chipwise.renderer.layout import replica_machines
from chipwise.renderer.left_out import without_hours
from chipwise.renderer.limits import KUBERNETES
from chipwise.renderer.quoting import dns_name, shell
from chipwise.renderer.ray import cluster as ray
from chipwise.renderer.ray import launcher
from chipwise.renderer.refusals import one_stage
from chipwise.renderer.serving.settings import engine_settings, generating, weights
from chipwise.renderer.yaml_text import Noted, Yaml, document

FITS = "jobs, served text models and shared clusters by KubeRay, on any cluster that has its operator"
EXPRESSES = frozenset({"hours", "groups", "pulls"})  # of jobs
WRITES = ("namespace.yaml",)
MANIFESTS = True
LONGEST_NAME = 47  # of a RayJob
KEPT_S = 3600


def render(deployment: Deployment) -> list[File]:
    _can(deployment)
    if deployment.form is Form.SERVICE and deployment.stops:
        deployment = without_hours(deployment)
    deployment = replace(deployment, name=dns_name(deployment.name, LONGEST_NAME))
    workers = _workers(deployment)
    launched = deployment.form is Form.JOB and ray.workers(deployment) > 1
    rules = [
        guards.namespace(deployment),
        guards.priority_class(deployment),
        guards.service_account(deployment),
        ray.quota(deployment, workers[1]),
        guards.limit_range(deployment),
        ray.network_policy(deployment),
        *storage.classes([deployment]),
        *guards.claims(deployment),
    ]
    if launched:
        rules.append(_launch_map(deployment, launcher.launcher(deployment)))
    match deployment.form:
        case Form.SERVICE:
            name, work, about = (
                "service.yaml",
                _service(deployment, *workers),
                "The service: head, replicas, and what they serve.",
            )
        case Form.SESSIONS:
            name, work, about = "cluster.yaml", _standing(deployment, *workers), "A cluster that people share."
        case _:
            name, work, about = "job.yaml", _job(deployment, *workers, launched), "The job, with a cluster of its own."
    first = "What surrounds it: apply this first. It needs the KubeRay operator (ray.io/v1)."
    return [
        File("namespace.yaml", document(*rules, title=heading(deployment, first))),
        File(name, document(work, title=heading(deployment, about))),
    ]


def _can(deployment: Deployment) -> None:
    match deployment.form:
        case Form.PIPELINE:
            raise CannotRender("Ray runs one program at a time.", remedy=f"Use --to argo, or {one_stage(deployment)}.")
        case Form.DEVICES:
            raise CannotRender(
                f"{deployment.node.chip} is an edge device; a Ray cluster does not reach it.", remedy="Use --to compose."
            )
        case Form.SERVICE if _import_path(deployment) is None:
            generating(deployment, "Ray Serve, without an application of your own (program.command: [serve, run, app:main]),")
        case Form.JOB if deployment.software.framework == "mpi" and ray.workers(deployment) > 1:
            raise CannotRender(
                f"The program runs over {deployment.machines} machines by MPI, and Ray starts no MPI ranks.",
                remedy="Use --to slurm or parallelcluster.",
            )
    resource_of(deployment.node)  # raises for what Kubernetes cannot hand out


def _import_path(deployment: Deployment) -> str | None:
    """Of a Serve application of the user's own."""
    words = deployment.software.command
    return words[2] if deployment.software.is_custom and words[:2] == ("serve", "run") and len(words) > 2 else None


def _arguments(deployment: Deployment) -> Object:
    """Of a Serve application of the user's own, as `serve run app:main key=value` gives them. Ray takes them as text."""
    words = deployment.software.command[3:]
    if other := next((word for word in words if word.startswith("-") or "=" not in word), None):
        raise CannotRender(
            f"{other[:60]!r} is an option of `serve run`, which a RayService does not start with.",
            remedy="Give only the application and its arguments: [serve, run, app:main, size=large].",
        )
    return {key: value for key, _, value in (word.partition("=") for word in words)}


def _workers(deployment: Deployment) -> tuple[int, int]:
    """Pods at least and at most. A replica that is larger than a machine takes several."""
    scaling = deployment.scaling
    if scaling is not None:
        pods = replica_machines(deployment)
        return scaling.minimum * pods, scaling.maximum * pods
    if deployment.form is Form.SESSIONS:
        seats = deployment.machines * max(deployment.node.chips, 1) * max(deployment.node.users_per_chip, 1)
        return 0, seats
    count = ray.workers(deployment)
    return count, count


def _cluster(deployment: Deployment, minimum: int, maximum: int, launched: bool = False) -> Object:
    extra: tuple[Yaml, ...] = ()
    if launched:
        extra = (
            {"name": "launch", "mountPath": launcher.FOLDER, "readOnly": True},
            {"name": "launch", "configMap": {"name": f"{deployment.name}-launch"}},
        )
    return ray.cluster(deployment, minimum, maximum, extra)


def _job(deployment: Deployment, minimum: int, maximum: int, launched: bool) -> Object:
    spec: Object = {}
    if launched:
        note = "Starts the command on every worker: torchrun, ranks or parts (see the ConfigMap in namespace.yaml)."
        spec["entrypoint"] = Noted(f"python {launcher.FOLDER}/{launcher.FILE}", note)
    else:
        note = program_note(deployment) or "The workload's own command."
        note = "\n".join(part_reason(deployment)) if in_shards(deployment) else note
        spec["entrypoint"] = Noted(KUBERNETES.script(shell(alone(deployment))), note)
        spec |= _on_worker(deployment)
    if job_settings := ray.job_settings(deployment):
        settings: Object = {"env_vars": dict(job_settings)}
        spec["runtimeEnvYAML"] = Noted(document(settings), "Settings of the program; libraries are in the image.")
    spec["shutdownAfterJobFinishes"] = Noted(True, "The machines go when the job is done.")
    spec["ttlSecondsAfterFinished"] = Noted(KEPT_S, "An hour with the dashboard, for inspection.")
    if deployment.deadline_s is not None:
        spec["activeDeadlineSeconds"] = Noted(math.ceil(deployment.deadline_s), "The workload's deadline, waiting included.")
    again = 6 if deployment.spot else 2
    reason = "A lost machine ends the run; the next begins from the last checkpoint." if deployment.spot else "New starts."
    spec["backoffLimit"] = Noted(again, reason)
    spec["submissionMode"] = Noted("HTTPMode", "The operator submits it itself: no pod that only waits.")
    spec["rayClusterSpec"] = _cluster(deployment, minimum, maximum, launched)
    if not deployment.starts:
        return {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": meta(deployment), "spec": spec}
    zone = f"CRON_TZ={deployment.time_zone} " if deployment.time_zone != "UTC" else ""
    return {
        "apiVersion": "ray.io/v1",
        "kind": Noted("RayCronJob", "Alpha, from KubeRay 1.6 on (feature gate RayCronJob)."),
        "metadata": meta(deployment),
        "spec": {"schedule": f"{zone}{deployment.starts}", "jobTemplate": spec},
    }


def _on_worker(deployment: Deployment) -> Object:
    """Without it the program would run on the head, which has no chips."""
    amounts = launcher.bundle(deployment)
    reason = "On a worker: the head has no chips."
    if "GPU" in amounts:
        return {"entrypointNumGpus": Noted(int(amounts["GPU"]), reason)}
    own = {name: many for name, many in amounts.items() if name != "CPU"}
    if own:
        return {
            "entrypointResources": Noted("{" + ", ".join(f'"{name}": {many:g}' for name, many in own.items()) + "}", reason)
        }
    return {"entrypointNumCpus": Noted(1, "On a worker: the head does no work.")}


def _service(deployment: Deployment, minimum: int, maximum: int) -> Object:
    serving: Object = {"applications": [_application(deployment)]}
    comes = ready_seconds(deployment)
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayService",
        "metadata": meta(deployment),
        "spec": {
            "deploymentUnhealthySecondThreshold": Noted(
                comes, "The machine, the image, and the weights, which come at 150 MB/s the first time."
            ),
            "serviceUnhealthySecondThreshold": comes,
            "serveConfigV2": document(serving),
            "rayClusterConfig": _cluster(deployment, minimum, maximum),
        },
    }


def _application(deployment: Deployment) -> Object:
    path, scaling, model = _import_path(deployment), deployment.scaling, deployment.model
    assert scaling is not None
    fields: Object = {"name": deployment.name, "route_prefix": "/"}
    if path is not None:
        fields["import_path"] = path
        return fields | ({"args": arguments} if (arguments := _arguments(deployment)) else {})
    assert model is not None
    replicas: Object = {"min_replicas": scaling.minimum, "max_replicas": scaling.maximum}
    options: Object = {"autoscaling_config": replicas}
    if scaling.busy is not None:
        replicas["target_ongoing_requests"] = Noted(scaling.busy, f"{scaling.busy_reason}.")
    if scaling.slots is not None:
        options["max_ongoing_requests"] = scaling.slots
    drain = Noted(drain_seconds(deployment.predicted.longest_s), "For answers that were begun; Ray itself would wait 20 s.")
    options["graceful_shutdown_timeout_s"] = drain
    replicas["downscale_delay_s"] = Noted(600, "A machine takes minutes to come: do not let it go for a lull.")
    config: Object = {
        "model_loading_config": {
            "model_id": Noted(model.served, "What clients ask for."),
            "model_source": weights(model),
        },
        "engine_kwargs": {one.key: Noted(one.value, one.reason) for one in engine_settings(deployment)},
        "deployment_config": options,
    }
    return fields | {"import_path": "ray.serve.llm:build_openai_app", "args": {"llm_configs": [config]}}


def _standing(deployment: Deployment, minimum: int, maximum: int) -> Object:
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": meta(deployment),
        "spec": _cluster(deployment, minimum, maximum),
    }


def _launch_map(deployment: Deployment, texts: dict[str, str]) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": meta(deployment, f"{deployment.name}-launch"),
        "data": dict(texts),
    }
