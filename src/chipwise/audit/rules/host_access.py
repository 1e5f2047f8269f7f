"""A pod that sees its machine's files, network or processes is not contained."""

from __future__ import annotations

from collections.abc import Iterator

from chipwise.audit.finding import Finding, Weight
from chipwise.audit.pods import pods_of
from chipwise.audit.source import Sources, line_of, listed, look

ABOUT = "pods do not reach into their machine"
# What a device plugin or a collector of metrics is for: it runs on every machine and serves the others.
_DAEMONS = ("DaemonSet",)


def check(sources: Sources) -> Iterator[Finding]:
    for pod in pods_of(sources):
        if pod.owner.kind in _DAEMONS:
            continue
        for key in ("hostNetwork", "hostPID", "hostIPC"):
            if pod.spec.get(key) is True:
                fix = f"Drop {key}; shared memory is an emptyDir with medium Memory." if key == "hostIPC" else f"Drop {key}."
                yield Finding(
                    "host-access", Weight.HIGH, pod.owner.path, line_of(pod.spec, key), f"{pod.owner.title} sets {key}", fix
                )
        for volume in listed(pod.spec.get("volumes")):
            if look(volume, "hostPath") is not None:
                where = look(volume, "hostPath", "path")
                yield Finding(
                    "host-access", Weight.HIGH, pod.owner.path, line_of(volume, "hostPath"),
                    f"{pod.owner.title} mounts {where} of its machine",
                    "Use a PersistentVolumeClaim or an emptyDir.",
                )  # fmt: skip
