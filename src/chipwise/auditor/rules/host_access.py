"""A pod that sees its machine's files, network or processes is not contained."""

from __future__ import annotations

from collections.abc import Iterator

from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.pods import Pod, pods_of, title_of, variables
from chipwise.auditor.source import Sources, line_of, listed, look
from chipwise.auditor.workloads import spans_machines

ABOUT = "pods do not reach into their machine"
# What a device plugin or a collector of metrics is for: it runs on every machine and serves the others.
_DAEMONS = ("DaemonSet",)


# Rights of root that reach beyond the container. IPC_LOCK, which fast networks need, does not.
_REACHING = {"ALL", "SYS_ADMIN", "SYS_MODULE", "SYS_PTRACE", "SYS_RAWIO", "NET_ADMIN", "DAC_READ_SEARCH", "BPF"}
_SOCKETS = ("/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock")


def check(sources: Sources) -> Iterator[Finding]:
    for pod in pods_of(sources, partial=True):
        if pod.owner.kind not in _DAEMONS:
            yield from _every_device(pod)
    for pod in pods_of(sources):
        if pod.owner.kind in _DAEMONS:
            yield from _whole_machine(pod)
            continue
        for key in ("hostNetwork", "hostPID", "hostIPC"):
            if key == "hostNetwork" and pod.chips and spans_machines(pod.owner):
                continue  # fast networks of several machines are reached through it
            if pod.spec.get(key) is True:
                fix = f"Drop {key}; shared memory is an emptyDir with medium Memory." if key == "hostIPC" else f"Drop {key}."
                yield Finding(
                    rule="host-access",
                    weight=Weight.HIGH,
                    path=pod.owner.path,
                    line=line_of(pod.spec, key),
                    what=f"{pod.owner.title} sets {key}",
                    fix=fix,
                )
        yield from _capabilities(pod)
        for volume in listed(pod.spec.get("volumes")):
            if look(volume, "hostPath") is not None:
                path = look(volume, "hostPath", "path")
                yield Finding(
                    rule="host-access",
                    weight=Weight.HIGH,
                    path=pod.owner.path,
                    line=line_of(volume, "hostPath"),
                    what=f"{pod.owner.title} mounts {path} of its machine",
                    fix="Use a PersistentVolumeClaim or an emptyDir.",
                )
    for compose in sources.compose:
        services = compose.body.get("services")
        for name, service in services.items() if isinstance(services, dict) else ():
            for key in ("network_mode", "pid", "ipc"):
                if look(service, key) == "host":
                    yield Finding(
                        rule="host-access",
                        weight=Weight.MEDIUM,
                        path=compose.path,
                        line=line_of(service, key),
                        what=f"service {name} sets {key}: host",
                        fix="Drop it; shared memory is shm_size."
                        if key == "ipc"
                        else "Drop it, and publish the ports it needs.",
                    )
            mounts = [str(look(volume, "source") or volume) for volume in listed(look(service, "volumes"))]
            if any(mount.partition(":")[0] in _SOCKETS for mount in mounts):
                yield Finding(
                    rule="host-access",
                    weight=Weight.HIGH,
                    path=compose.path,
                    line=line_of(service, "volumes"),
                    what=f"service {name} holds the socket of the container engine, which is root on the machine",
                    fix="Drop the mount.",
                )


def _whole_machine(pod: Pod) -> Iterator[Finding]:
    """Even a daemon needs no right to write all files of its machine; collectors of metrics read them."""
    roots = {look(one, "name"): one for one in listed(pod.spec.get("volumes")) if look(one, "hostPath", "path") == "/"}
    mounts = (mount for container in pod.containers for mount in listed(container.get("volumeMounts")))
    written = {str(look(mount, "name")) for mount in mounts if look(mount, "readOnly") is not True}
    for name, volume in roots.items():
        if str(name) in written:
            yield Finding(
                rule="host-access",
                weight=Weight.HIGH,
                path=pod.owner.path,
                line=line_of(volume, "hostPath"),
                what=f"{pod.owner.title} may write every file of its machine",
                fix="Mount the directories that it needs, readOnly: true where it only reads.",
            )


def _every_device(pod: Pod) -> Iterator[Finding]:
    """The setting goes round the count of devices: whoever has it uses those of others."""
    for container in pod.mains:
        for name, value, line in variables(container):
            if name == "NVIDIA_VISIBLE_DEVICES" and value == "all":
                yield Finding(
                    rule="host-access",
                    weight=Weight.MEDIUM,
                    path=pod.owner.path,
                    line=line,
                    what=f"{title_of(pod, container)} sees every GPU of its machine, those of other pods too",
                    fix="Drop the variable, and ask for GPUs by resources.limits.",
                )


def _capabilities(pod: Pod) -> Iterator[Finding]:
    for container in pod.containers:
        added = {str(one).removeprefix("CAP_") for one in listed(look(container, "securityContext", "capabilities", "add"))}
        for right in sorted(added & _REACHING):
            yield Finding(
                rule="host-access",
                weight=Weight.HIGH,
                path=pod.owner.path,
                line=line_of(container, "securityContext", "capabilities"),
                what=f"{title_of(pod, container)} has the capability {right}",
                fix=f"Drop {right}.",
            )
