"""Settings of NCCL that were right on another machine turn off what makes this one fast, or let its ranks find nobody."""

from __future__ import annotations

from collections.abc import Iterator

from chipwise.auditor.commands import words_of_container
from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.hardware import machines_for
from chipwise.auditor.pods import chips_of, pods_of, title_of, variables
from chipwise.auditor.source import Located, Sources, look, mapped
from chipwise.auditor.tasks import exported, settings_of, tasks_of
from chipwise.auditor.workloads import spans_machines

ABOUT = "settings of NCCL leave the fast paths on"
_SWITCHED_ON = ("1", "true", "TRUE")
_PATHS = {"NCCL_P2P_DISABLE": "direct copies between GPUs", "NCCL_SHM_DISABLE": "shared memory between ranks"}
_FABRICS = ("vpc.amazonaws.com/efa", "rdma/", "nvidia.com/hostdev", "openshift.io/")
_WHOLE_MACHINE, _HALF_MACHINE = 8, 4
_LOCAL = ("lo", "docker0", "=lo")


def check(sources: Sources) -> Iterator[Finding]:
    fast = {id(pod.owner) for pod in pods_of(sources, partial=True) if any(one.fabric == "efa" for one in machines_for(pod))}
    for pod in pods_of(sources, partial=True):
        group = spans_machines(pod.owner)
        is_parallel = group or sum(pod.chips.values()) > 1
        for container in pod.containers if is_parallel else ():
            settings = [*variables(container), *exported(words_of_container(container))]
            if settings:
                takes_machine = group and sum(chips_of(container).values()) >= _WHOLE_MACHINE  # not sold without a fast network
                fabric = _fabric(container, settings) or takes_machine or (group and id(pod.owner) in fast)
                yield from _wrong(pod.owner.path, title_of(pod, container), settings, group, fabric)
    for task in tasks_of(sources):
        if task.nodes > 1 or task.devices > 1:
            slurm = "partition" in task.manifest.body or "tasks_per_node" in task.manifest.body
            fabric = task.nodes > 1 and task.devices >= (_HALF_MACHINE if slurm else _WHOLE_MACHINE)  # not sold without one
            yield from _wrong(task.path, "the task", list(settings_of(task)), task.nodes > 1, fabric)


def _fabric(container: Located, settings: list[tuple[str, str, int]]) -> bool:
    """Whether it is on a network that NCCL reaches without sockets."""
    limits = mapped(look(container, "resources", "limits"))
    stated = any(name == "FI_PROVIDER" and value == "efa" for name, value, _ in settings)
    return stated or any(str(name).startswith(_FABRICS) for name in limits)


def _wrong(path: str, title: str, settings: list[tuple[str, str, int]], group: bool, fabric: bool) -> Iterator[Finding]:
    for name, value, line in settings:
        if group and name in ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME") and value in _LOCAL:
            message = f"{title}: {name} is {value}, where no other machine is"
            yield _finding(path, line, message, f"Drop {name}, or name the interface that machines share.", Weight.HIGH)
        elif name in _PATHS and value in _SWITCHED_ON:
            yield _finding(path, line, f"{title}: {name} turns off {_PATHS[name]}", f"Drop {name}.")
        elif fabric and ((name == "NCCL_NET" and value == "Socket") or (name == "NCCL_IB_DISABLE" and value in _SWITCHED_ON)):
            message = f"{title} has a fast network, and {name}={value} leaves it for sockets"
            yield _finding(path, line, message, f"Drop {name}.")


def _finding(path: str, line: int, message: str, fix: str, weight: Weight = Weight.MEDIUM) -> Finding:
    return Finding(rule="collective-settings", weight=weight, path=path, line=line, what=message, fix=fix)
