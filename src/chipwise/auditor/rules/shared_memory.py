"""Processes on several GPUs talk through /dev/shm, of which a container has 64 MiB unless it is given more."""

from __future__ import annotations

from collections.abc import Iterator, Set

from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.pods import chips_of, pods_of, title_of
from chipwise.auditor.source import Located, Sources, line_of, listed, look

ABOUT = "containers with several GPUs have shared memory"
_GPUS = ("nvidia.com/gpu", "amd.com/gpu")


def check(sources: Sources) -> Iterator[Finding]:
    for pod in pods_of(sources):
        if pod.owner.kind == "DaemonSet" or pod.spec.get("hostIPC") is True:
            continue
        volumes = {str(look(one, "name")) for one in listed(pod.spec.get("volumes"))}
        for container in pod.containers:
            gpus = sum(count for name, count in chips_of(container).items() if name in _GPUS)
            if gpus > 1 and not _shared(volumes, container):
                title = title_of(pod, container)
                message = f"{title} has {gpus} GPUs and 64 MiB of shared memory"
                yield Finding(
                    rule="shared-memory",
                    weight=Weight.MEDIUM,
                    path=pod.owner.path,
                    line=line_of(container, "volumeMounts"),
                    what=message,
                    fix="Mount an emptyDir with medium Memory at /dev/shm.",
                )


def _shared(volumes: Set[str], container: Located) -> bool:
    return any(
        str(look(mount, "name")) in volumes
        for mount in listed(container.get("volumeMounts"))
        if look(mount, "mountPath") in ("/dev/shm", "/dev/shm/")
    )
