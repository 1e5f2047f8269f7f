"""A plain command in an image as objects: one Job, whose pods each hold what was asked for.

Several machines are pods of one Indexed Job that know their rank and where the first of them is, by the variables that torchrun
sets. Own failures are not tried again by the Job, nor are lost pods: the controller does, as another attempt, so that nothing
of the one before has a say any more.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from chipwise.errors import BadInput
from chipwise.renderer.cluster.jobs import INDEX
from chipwise.renderer.cluster.pod import QUEUE_LABEL, RENDEZVOUS_PORT
from chipwise.renderer.quoting import dns_name, kubernetes
from chipwise.runner.job import Needs, Spec

from .kinds import Object
from .objects import NAME

GPU = "nvidia.com/gpu"
ANYWHERE = "chipwise"  # a namespace that the engine replaces by its own, in addresses too
_IMAGE = re.compile(r"[A-Za-z0-9][\w.:/@-]{0,399}", re.ASCII)


def command_objects(spec: Spec, image: str, queue: str = "", device: str = GPU) -> tuple[Object, ...]:
    """Of `spec` are read its name, command and needs. `queue`: of Kueue. `device`: what the cluster calls a GPU."""
    if not image:
        raise BadInput(
            f"{spec.name} is a plain command, and a cluster needs an image to run it in.",
            remedy="Name one with --image, such as --image pytorch/pytorch:latest.",
        )
    if not _IMAGE.fullmatch(image):
        raise BadInput(f"{image[:80]!r} is not an image name.", remedy="Write it as team/trainer:1.4.")
    if spec.needs.processes > 1:
        raise BadInput(
            f"{spec.name} asks for {spec.needs.processes} processes, and a pod starts one.",
            remedy=f"Let it start them: torchrun --nproc-per-node {spec.needs.processes} train.py.",
        )
    name = dns_name(spec.name)
    meta: dict[str, Any] = {"name": name, "namespace": ANYWHERE, "labels": {NAME: name}}
    body: dict[str, Any] = {
        "backoffLimit": 0,
        "completions": spec.needs.machines,
        "parallelism": spec.needs.machines,
        "completionMode": "Indexed",
        "template": {"metadata": {"labels": {NAME: name}}, "spec": _pod(spec, name, image, device)},
    }
    services = [_service(meta, name)] if spec.needs.machines > 1 else []
    if queue:
        body["suspend"] = True  # Kueue starts it when the quota has room
        meta = {**meta, "labels": {**meta["labels"], QUEUE_LABEL: queue}}
    return (*services, {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": body})


def _pod(spec: Spec, name: str, image: str, device: str) -> dict[str, Any]:
    needs = spec.needs
    devices = {device: str(needs.gpus)} if needs.gpus else {}
    container: dict[str, Any] = {
        "name": "main",
        "image": image,
        "command": [kubernetes(word) for word in spec.command],
        "env": _places(needs, name),
        "resources": {"requests": {"cpu": str(needs.cpus), **devices}, "limits": devices},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],
    }
    if spec.folder:
        container["workingDir"] = spec.folder  # of the image
    pod: dict[str, Any] = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "containers": [container],
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory"}}],  # 64 MiB otherwise: too little for data loaders
    }
    if needs.gpus:
        pod["tolerations"] = [{"key": device, "operator": "Exists", "effect": "NoSchedule"}]
    if needs.machines > 1:
        pod["subdomain"] = name
    return pod


def _places(needs: Needs, name: str) -> list[Mapping[str, Any]]:
    if needs.machines <= 1:
        return []
    values = {
        "WORLD_SIZE": str(needs.machines),
        "LOCAL_RANK": "0",
        "LOCAL_WORLD_SIZE": "1",
        "MASTER_ADDR": f"{name}-0.{name}.{ANYWHERE}.svc",
        "MASTER_PORT": str(RENDEZVOUS_PORT),
    }
    rank = {"name": "RANK", "valueFrom": {"fieldRef": {"fieldPath": INDEX}}}
    return [rank, *({"name": key, "value": value} for key, value in values.items())]


def _service(meta: Mapping[str, Any], name: str) -> Object:
    """A name for each pod, before it is ready."""
    port = {"name": "rendezvous", "port": RENDEZVOUS_PORT}
    spec = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {NAME: name}, "ports": [port]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": dict(meta), "spec": spec}
