"""Processes on several GPUs talk through /dev/shm, of which a container has 64 MiB unless it is given more."""

from __future__ import annotations

from collections.abc import Iterator, Set

from chipwise.auditor.commands import TENSOR, number_of, words_of_container
from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.pods import chips_of, pods_of, title_of
from chipwise.auditor.source import Located, Sources, line_of, listed, look, mapped, whole_number

ABOUT = "containers with several GPUs have shared memory"
_GPUS = ("nvidia.com/gpu", "amd.com/gpu")


def check(sources: Sources) -> Iterator[Finding]:
    yield from _services(sources)
    for pod in pods_of(sources):
        if pod.owner.kind == "DaemonSet" or pod.spec.get("hostIPC") is True:
            continue
        volumes = {str(look(one, "name")) for one in listed(pod.spec.get("volumes"))}
        for container in pod.containers:
            gpus = sum(count for name, count in chips_of(container).items() if name in _GPUS)
            if gpus > 1 and not _shared(volumes, container) and "sharedMemory" not in container:
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


def _services(sources: Sources) -> Iterator[Finding]:
    """Of Compose and of ECS."""
    for compose in sources.compose:
        for name, service in mapped(compose.body.get("services")).items():
            devices = [
                one
                for one in listed(look(service, "deploy", "resources", "reservations", "devices"))
                if "gpu" in map(str, listed(look(one, "capabilities")))
            ]
            counted = max(
                (whole_number(look(one, "count")) or len(listed(look(one, "device_ids"))) for one in devices), default=0
            )
            split = number_of(words_of_container(service), TENSOR) if isinstance(service, Located) else None
            several = counted > 1 or (devices and split and split.value > 1)
            if several and not look(service, "shm_size") and look(service, "ipc") != "host":
                yield Finding(
                    rule="shared-memory",
                    weight=Weight.MEDIUM,
                    path=compose.path,
                    line=line_of(service, "deploy"),
                    what=f"service {name} has several GPUs and 64 MiB of shared memory",
                    fix="Set shm_size: 8gb (linuxParameters.sharedMemorySize of ECS).",
                )


def _shared(volumes: Set[str], container: Located) -> bool:
    return any(
        str(look(mount, "name")) in volumes
        for mount in listed(container.get("volumeMounts"))
        if look(mount, "mountPath") in ("/dev/shm", "/dev/shm/")
    )
