"""Cloud Run: a service with or without a GPU, a job, or a service that Pub/Sub calls for each object that arrives."""

from __future__ import annotations

import json
import math

from chipwise.renderer.aws.parts import parts
from chipwise.renderer.deployment import Deployment, Form
from chipwise.renderer.file import CannotRender, File
from chipwise.renderer.functions.needs import memory_bytes, refuse_memory, refuse_time, run_seconds, settings, trigger_of
from chipwise.renderer.heading import heading
from chipwise.renderer.limits import CLOUD_RUN
from chipwise.renderer.program_files import Setting, python_files, shell_file
from chipwise.renderer.quoting import label_value
from chipwise.renderer.sold import most_instances, sold_as
from chipwise.renderer.yaml_text import Noted, Yaml, document
from chipwise.units import GIB

Object = dict[str, Yaml]
PORT = 8080
MOST_LABELS = 40


def cloud_run_files(deployment: Deployment) -> list[File]:
    _refuse(deployment)
    gpu = deployment.node.accelerated
    deployment = (
        sold_as(deployment, "Cloud Run GPU", "", "no zonal redundancy")
        if gpu
        else sold_as(deployment, "Cloud Run", "CPU, billed by request", "billed by request")
    )
    trigger = trigger_of(deployment)
    title = heading(deployment)
    offered = deployment.platforms.get("Cloud Run", {})
    if trigger is not None:
        longest_s = float(offered.get("most seconds of a pushed message", "600"))
        refuse_time(deployment, "Pub/Sub", run_seconds(deployment), longest_s, "a pushed message")
        command = Setting("COMMAND", list(deployment.software.command), "It finds the object's address in OBJECT_URL.")
        return [
            File("service.yaml", document(_service(deployment, pushed=True), title=title)),
            *python_files("handler.py", "push_handler.py", title, [command], executable=False),
            File("Dockerfile", _dockerfile(deployment)),
            _deploy(deployment, trigger),
        ]
    if deployment.form is Form.JOB:
        limit = float(offered.get("most seconds of a task", "604800"))
        refuse_time(deployment, "Cloud Run", deployment.predicted.high_s, limit, "a task")
        return [File("job.yaml", document(_job(deployment), title=title)), _deploy(deployment, None)]
    refuse_time(
        deployment, "Cloud Run", run_seconds(deployment), float(offered.get("most seconds of a call", "3600")), "a call"
    )
    return [
        File("service.yaml", document(_service(deployment, pushed=False), title=title)),
        _deploy(deployment, None),
    ]


def _refuse(deployment: Deployment) -> None:
    node, offered, software = deployment.node, deployment.platforms.get("Cloud Run", {}), deployment.software
    if node.accelerated:
        if "accelerator" not in offered:
            raise CannotRender(
                f"Cloud Run has L4 and RTX PRO 6000 GPUs; the plan uses {node.chip}.",
                remedy="Plan with --chip L4 --cloud gcp, or take --to kubernetes or terraform.",
            )
        if max(deployment.chips_each, 1) > 1:
            raise CannotRender(
                f"An instance of Cloud Run has one GPU; the plan needs {deployment.chips_each} for one replica.",
                remedy="Plan a smaller model or number format, or take --to kubernetes.",
            )
        has, needs = float(offered.get("driver", "inf")), float(software.driver or 0)
        if needs > has and software.image == software.base:
            raise CannotRender(
                f"{software.purpose} {software.version} needs driver {needs:.0f}; Cloud Run's {node.chip} has {has:.0f}.",
                remedy="Give program.image with a build for CUDA 12, or take --to kubernetes.",
            )
        return
    refuse_memory(deployment, "Cloud Run", float(offered.get("most memory GiB", "32")) * 1024)


def _resources(deployment: Deployment) -> Object:
    offered = deployment.platforms.get("Cloud Run", {})
    if deployment.node.accelerated:
        minimum = float(offered.get("least memory GiB", "16"))
        memory = max(minimum, min(math.ceil(memory_bytes(deployment) / GIB), 32)) if minimum < 32 else minimum
        cpu = max(int(float(offered.get("least vcpus", "4"))), 8 if memory > 16 and minimum < 32 else 0)
        return {"cpu": str(cpu), "memory": f"{memory:.0f}Gi", "nvidia.com/gpu": "1"}
    needed = max(math.ceil(memory_bytes(deployment) / GIB), 1)
    sizes = ((1, 4), (2, 8), (4, 16), (6, 24), (8, 32))  # processors and the most memory that goes with them
    wanted = min(deployment.node.vcpus or 1, 8)
    cpu = next((cpu for cpu, most in sizes if most >= needed and cpu >= wanted), 8)
    return {"cpu": str(cpu), "memory": f"{needed}Gi"}


def _container(deployment: Deployment, pushed: bool) -> Object:
    software = deployment.software
    image: Yaml = software.image
    if pushed:
        image = Noted(
            f"REGION-docker.pkg.dev/PROJECT/chipwise/{deployment.name}:1",
            "Built from the Dockerfile beside this file; deploy.sh fills in region and project.",
        )
    elif software.built:
        image = Noted(software.image, "Built from the Dockerfile of `--to dockerfile`; push it and put its full name here.")
    fields: Object = {"image": image}
    if not pushed:
        fields |= {"command": list(software.command[:1]), "args": list(software.command[1:])}
    env: list[Yaml] = [{"name": key, "value": value} for key, value in CLOUD_RUN.settings(settings(deployment)).items()]
    env += [
        {"name": setting, "valueFrom": {"secretKeyRef": {"name": f"{name}-{key}", "key": "latest"}}}
        for setting, name, key in software.secrets
    ]
    if env:
        fields["env"] = env
    fields["resources"] = {"limits": _resources(deployment)}
    return fields


def _labels(deployment: Deployment) -> Object:
    """Labels of Google Cloud: small letters only, a letter first in keys, and 64 at most with those of others."""
    pairs = [(label_value(key).lower().replace(".", "-"), label_value(value)) for key, value in deployment.labels.items()]
    fits = [(key, value.lower().replace(".", "-")) for key, value in pairs if key[:1].isalpha()]
    return dict(fits[:MOST_LABELS])


def _service(deployment: Deployment, pushed: bool) -> Object:
    scaling, node = deployment.scaling, deployment.node
    notes: Object = {
        "autoscaling.knative.dev/maxScale": str(most_instances(deployment, 10)),
        "run.googleapis.com/execution-environment": "gen2",
    }
    minimum = scaling.minimum if scaling is not None else 0
    warm = deployment.host_service.warm if deployment.host_service is not None else 0
    notes["autoscaling.knative.dev/minScale"] = (
        Noted(
            str(warm), "Kept warm, and paid for, as the plan computes: without them too many requests would wait for a start."
        )
        if warm
        else Noted("0", "Nothing runs, and nothing is paid, while nobody asks; the first answer waits for the weights.")
        if deployment.node.accelerated or not minimum
        else str(minimum)
    )
    spec: Object = {}
    if node.accelerated:
        notes["run.googleapis.com/cpu-throttling"] = Noted("false", "A GPU is paid for as long as its instance lives.")
        notes["run.googleapis.com/gpu-zonal-redundancy-disabled"] = Noted(
            "true", "Cheaper; another zone is found if one fails."
        )
        spec["nodeSelector"] = {"run.googleapis.com/accelerator": deployment.platforms["Cloud Run"]["accelerator"]}
    slots = scaling.slots if scaling is not None else None
    if deployment.host_service is not None and deployment.host_service.at_once:
        slots = deployment.host_service.at_once
    if pushed or slots:
        spec["containerConcurrency"] = Noted(1 if pushed else slots, "What one instance works on at a time.")
    limit = deployment.platforms.get("Cloud Run", {}).get("most seconds of a call", "3600")
    spec["timeoutSeconds"] = (
        int(float(limit)) if pushed else min(max(300, math.ceil(2 * run_seconds(deployment))), int(float(limit)))
    )
    inside = _container(deployment, pushed)
    port = PORT if pushed else deployment.software.port or PORT
    inside["ports"] = [{"containerPort": port}]
    path = "/" if pushed else deployment.software.health
    if path is not None:
        inside["startupProbe"] = {"httpGet": {"path": path, "port": port}, "periodSeconds": 10, "failureThreshold": 60}
    spec["containers"] = [inside]
    return {
        "apiVersion": "serving.knative.dev/v1",
        "kind": "Service",
        "metadata": {
            "name": deployment.name,
            "labels": _labels(deployment),
            "annotations": {"run.googleapis.com/ingress": Noted("internal-and-cloud-load-balancing", "Not open to the world.")},
        },
        "spec": {"template": {"metadata": {"annotations": notes}, "spec": spec}},
    }


def _job(deployment: Deployment) -> Object:
    offered, node, part_count = deployment.platforms.get("Cloud Run", {}), deployment.node, parts(deployment)
    limit = int(float(offered.get("most seconds of a task", "604800")))
    inner: Object = {"maxRetries": 3, "timeoutSeconds": str(min(math.ceil(max(2 * deployment.predicted.high_s, 600)), limit))}
    notes: Object = {"run.googleapis.com/execution-environment": "gen2"}
    if node.accelerated:
        inner["nodeSelector"] = {"run.googleapis.com/accelerator": offered["accelerator"]}
        notes["run.googleapis.com/gpu-zonal-redundancy-disabled"] = "true"
    inner["containers"] = [_container(deployment, pushed=False)]
    tasks: Object = {"taskCount": part_count, "parallelism": part_count, "template": {"spec": inner}}
    if part_count > 1:
        tasks["taskCount"] = Noted(part_count, "Each finds its part in CLOUD_RUN_TASK_INDEX of CLOUD_RUN_TASK_COUNT.")
    return {
        "apiVersion": "run.googleapis.com/v1",
        "kind": "Job",
        "metadata": {"name": deployment.name, "labels": _labels(deployment)},
        "spec": {"template": {"metadata": {"annotations": notes}, "spec": tasks}},
    }


def _dockerfile(deployment: Deployment) -> str:
    software = deployment.software
    base = software.base if software.built else software.image
    return (
        "".join(f"# {line}\n" for line in heading(deployment).splitlines())
        + f"FROM {base}\nWORKDIR /app\nCOPY . .\nUSER 10001\nENTRYPOINT {json.dumps(['python', 'handler.py'])}\n"
    )


def _deploy(deployment: Deployment, trigger: tuple[str, str] | None) -> File:
    kind = "pushed" if trigger is not None else "job" if deployment.form is Form.JOB else "service"
    bucket, prefix = trigger or ("", "")
    settings = {"NAME": deployment.name, "REGION": deployment.node.region, "KIND": kind, "BUCKET": bucket, "PREFIX": prefix}
    return shell_file("deploy.sh", "cloud_run_deploy.sh", heading(deployment), settings)
