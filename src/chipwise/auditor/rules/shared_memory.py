"""Processes on several GPUs talk through /dev/shm, of which a container has 64 MiB unless it is given more."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from math import inf
from typing import Any

from chipwise.auditor.commands import TENSOR, number_of, words_of_container
from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.pods import chips_of, pods_of, title_of
from chipwise.auditor.source import Located, Sources, line_of, listed, look, mapped, whole_number
from chipwise.text import size

ABOUT = "containers with several GPUs have shared memory"
_SHARED_BY_OPERATOR = ("RayCluster", "RayService", "RayJob")  # KubeRay mounts an emptyDir in memory at /dev/shm
_GPUS = ("nvidia.com/gpu", "amd.com/gpu")
_GIVEN = ("DynamoGraphDeployment", "DynamoComponentDeployment")  # their operator mounts 8 GiB by itself
LEAST_BYTES = 2.0**29  # below it, the first collective of two processes may not find room
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgtb]?)(?:i?b?)")


def check(sources: Sources) -> Iterator[Finding]:
    yield from _services(sources)
    for pod in pods_of(sources):
        if pod.owner.kind in _SHARED_BY_OPERATOR or pod.owner.kind == "DaemonSet" or pod.spec.get("hostIPC") is True:
            continue
        volumes = {str(look(one, "name")): look(one, "emptyDir", "sizeLimit") for one in listed(pod.spec.get("volumes"))}
        for container in pod.containers:
            gpus = sum(count for name, count in chips_of(container).items() if name in _GPUS)
            shared_bytes = _shared(volumes, container)
            if gpus > 1 and shared_bytes < LEAST_BYTES and pod.owner.kind not in _GIVEN and "sharedMemory" not in container:
                title = title_of(pod, container)
                message = f"{title} has {gpus} GPUs and {size(shared_bytes)} of shared memory"
                yield Finding(
                    rule="shared-memory",
                    weight=Weight.MEDIUM,
                    path=pod.owner.path,
                    line=line_of(container, "volumeMounts"),
                    what=message,
                    fix="Mount an emptyDir with medium Memory at /dev/shm.",
                )


def _services(sources: Sources) -> Iterator[Finding]:
    """Of Compose and of ECS."""
    for compose in sources.compose:
        for name, service in mapped(compose.body.get("services")).items():
            devices = [
                device
                for device in listed(look(service, "deploy", "resources", "reservations", "devices"))
                if "gpu" in map(str, listed(look(device, "capabilities")))
            ]
            counted = max(
                (whole_number(look(one, "count")) or len(listed(look(one, "device_ids"))) for one in devices), default=0
            )
            split = number_of(words_of_container(service), TENSOR) if isinstance(service, Located) else None
            is_parallel = counted > 1 or (devices and split and split.value > 1)
            stated_bytes = _bytes(look(service, "shm_size"))
            if is_parallel and look(service, "ipc") != "host" and (stated_bytes is None or stated_bytes < LEAST_BYTES):
                yield Finding(
                    rule="shared-memory",
                    weight=Weight.MEDIUM,
                    path=compose.path,
                    line=line_of(service, "shm_size" if stated_bytes is not None else "deploy"),
                    what=f"service {name} has several GPUs and {size(stated_bytes or 2**26)} of shared memory",
                    fix="Set shm_size: 8gb (linuxParameters.sharedMemorySize of ECS).",
                )


def _shared(volumes: Mapping[str, Any], container: Located) -> float:
    """Bytes at /dev/shm: of its volume, or what a container has by itself."""
    names = [
        str(look(mount, "name"))
        for mount in listed(container.get("volumeMounts"))
        if look(mount, "mountPath") in ("/dev/shm", "/dev/shm/")
    ]
    sizes = [_bytes(volumes[name]) for name in names if name in volumes]
    return max((inf if limit is None else limit for limit in sizes), default=2.0**26)


def _bytes(text: object) -> float | None:
    """`8Gi`, `8gb`, `64m`; None where nothing is said, or something else."""
    match = _SIZE.fullmatch(str(text or "").strip().lower())
    return float(match[1]) * 1024 ** ("bkmgt".index(match[2]) if match[2] else 0) if match else None
