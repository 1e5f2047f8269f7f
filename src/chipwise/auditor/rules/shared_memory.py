"""Processes on several GPUs talk through /dev/shm, of which a container has 64 MiB unless it is given more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.pods import Pod, chips_of, pods_of
from chipwise.auditor.source import Located, Sources, line_of, listed, look

ABOUT = "containers with several GPUs have shared memory"
_GPUS = ("nvidia.com/gpu", "amd.com/gpu")


def check(sources: Sources) -> Iterator[Finding]:
    for pod in pods_of(sources):
        if pod.owner.kind == "DaemonSet" or pod.spec.get("hostIPC") is True:
            continue
        for container in pod.containers:
            many = sum(count for name, count in chips_of(container).items() if name in _GPUS)
            if many > 1 and not _shared(pod, container):
                yield Finding(
                    "shared-memory",
                    Weight.MEDIUM,
                    pod.owner.path,
                    line_of(container, "volumeMounts"),
                    f"{pod.owner.title}: container {container.get('name', '?')} has {many} GPUs and 64 MiB of shared memory",
                    "Mount an emptyDir with medium Memory at /dev/shm.",
                )


def _shared(pod: Pod, container: Located) -> bool:
    names: set[Any] = {
        look(one, "name")
        for one in listed(container.get("volumeMounts"))
        if look(one, "mountPath") in ("/dev/shm", "/dev/shm/")
    }
    return any(look(one, "name") in names for one in listed(pod.spec.get("volumes")))
