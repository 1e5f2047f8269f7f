"""Devices cannot be shared beyond what there is: Kubernetes rejects a request for one without a limit of the same number."""

from __future__ import annotations

import re
from collections.abc import Iterator

from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.pods import node_labels, pods_of, title_of
from chipwise.auditor.source import Sources, line_of, look, mapped

ABOUT = "devices such as nvidia.com/gpu have a limit that equals the request, and names that exist"
_FRACTION = re.compile(r"\d*\.\d+|\d+m")
_SLIPS = {
    **dict.fromkeys(("nvidia.com/gpu", "nvidia/gpu", "nvidia.com-gpu", "gpu", "gpu.nvidia.com"), "nvidia.com/gpu"),
    **dict.fromkeys(("nvidia.com/nvidia-gpu", "alpha.kubernetes.io/nvidia-gpu", "kubernetes.io/gpu"), "nvidia.com/gpu"),
    **dict.fromkeys(("amd.com/gpu", "amd/gpu", "gpu.amd.com"), "amd.com/gpu"),
    **dict.fromkeys(("aws.amazon.com/neuron", "amazonaws.com/neuron", "aws.amazon.com/inferentia"), "aws.amazon.com/neuron"),
    **dict.fromkeys(("google.com/tpu", "cloud.google.com/tpu", "cloud-tpus.google.com/tpu", "tpu"), "google.com/tpu"),
    **dict.fromkeys(("vpc.amazonaws.com/efa", "aws.amazon.com/efa", "vpc.amazon.com/efa"), "vpc.amazonaws.com/efa"),
}


def check(sources: Sources) -> Iterator[Finding]:
    for pod in pods_of(sources):
        for container in pod.containers:
            limits = mapped(look(container, "resources", "limits"))
            requests = mapped(look(container, "resources", "requests"))
            if "nvidia.com/gpu" in limits and any(name.startswith("amd.com/") for name in node_labels(pod.spec)):
                yield Finding(
                    rule="device-limits",
                    weight=Weight.HIGH,
                    path=pod.owner.path,
                    line=line_of(limits, "nvidia.com/gpu"),
                    what=f"{title_of(pod, container)} asks for nvidia.com/gpu on machines of AMD, which offer amd.com/gpu",
                    fix="Write amd.com/gpu.",
                )
            for side in (limits, requests):
                for name in (one for one in side if (device := _device_meant(one)) and device != one):
                    yield Finding(
                        rule="device-limits",
                        weight=Weight.HIGH,
                        path=pod.owner.path,
                        line=line_of(side, name),
                        what=f"{title_of(pod, container)} asks for {name}, which nothing offers",
                        fix=f"Write {_device_meant(name)}.",
                    )
            for name in (one for one in limits if _is_device(one) and _FRACTION.fullmatch(str(limits[one]))):
                yield Finding(
                    rule="device-limits",
                    weight=Weight.HIGH,
                    path=pod.owner.path,
                    line=line_of(limits, name),
                    what=f"{title_of(pod, container)} asks for {limits[name]} {name}; Kubernetes counts whole devices only",
                    fix="Ask for a whole one, or for a share by MIG or time slicing (nvidia.com/mig-1g.10gb).",
                )
            for name in filter(_is_device, requests):
                if str(limits.get(name)) == str(requests[name]):
                    continue
                stated = f"a limit of {limits[name]}" if name in limits else "no limit"
                yield Finding(
                    rule="device-limits",
                    weight=Weight.HIGH,
                    path=pod.owner.path,
                    line=line_of(requests, name),
                    what=f"{title_of(pod, container)} requests {requests[name]} {name} and has {stated}; Kubernetes rejects it",
                    fix=f"Set resources.limits.{name} to {requests[name]}; the request then follows by itself.",
                )


def _device_meant(name: object) -> str | None:
    """The device whose name this is, or a slip of it."""
    bare = str(name).lower().replace("_", "-")
    return _SLIPS.get(bare) or _SLIPS.get(bare.removesuffix("s"))


def _is_device(name: object) -> bool:
    """nvidia.com/gpu, amd.com/gpu, vpc.amazonaws.com/efa; not what Kubernetes counts itself."""
    domain, slash, _ = str(name).partition("/")
    return bool(slash) and not domain.endswith("kubernetes.io")
