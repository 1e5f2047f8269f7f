"""A container as ECS and Batch describe it: processors, memory, chips, devices, settings, secrets, directories."""

from __future__ import annotations

from chipwise.renderer.aws.parts import (
    chips,
    copies,
    counted,
    divided,
    is_torch,
    settings,
    shard,
    shell_words,
    together,
    torchrun,
    uses_efa,
    words,
)
from chipwise.renderer.cluster.accelerators import KEPT_BACK
from chipwise.renderer.deployment import Deployment, Form
from chipwise.renderer.file import CannotRender
from chipwise.renderer.launch import nodes
from chipwise.renderer.launch.mounted import mounted_volumes
from chipwise.renderer.launch.starting import quoted
from chipwise.renderer.quoting import shell
from chipwise.units import MIB


def vcpus(deployment: Deployment) -> int:
    return max(int((deployment.node.vcpus or 4) * (1 - KEPT_BACK) / copies(deployment)), 1)


def memory_mib(deployment: Deployment) -> int:
    size = deployment.node.memory_bytes
    total_mib = size / MIB if size is not None else 16 * 1024 * max(deployment.node.chips, 1)
    return max(int(total_mib * (1 - KEPT_BACK) / copies(deployment)), 256)


def shared_mib(deployment: Deployment) -> int:
    """Readers and NCCL share memory; 64 MiB is the default."""
    return max(memory_mib(deployment) // 8, 64)


def gpus(deployment: Deployment) -> int:
    return chips(deployment) if deployment.node.kind == "gpu" else 0


def devices(deployment: Deployment) -> list[dict[str, object]]:
    """Chips without a resource of their own, and network cards, are devices of the host."""
    node = deployment.node
    paths = []
    if node.kind == "neuron":
        if copies(deployment) > 1:
            raise CannotRender(
                f"ECS and Batch hand out Neuron chips by the machine; the plan puts {copies(deployment)} programs on one.",
                remedy="Use --to kubernetes or ec2.",
            )
        paths += [f"/dev/neuron{at}" for at in range(node.chips)]
    if uses_efa(deployment):
        paths += [f"/dev/infiniband/uverbs{at}" for at in range(node.interfaces)]
    return [{"hostPath": path, "containerPath": path, "permissions": ["READ", "WRITE", "MKNOD"]} for path in paths]


def environment(deployment: Deployment, extra: dict[str, str] | None = None) -> list[dict[str, str]]:
    nobody = {"HOME": "/tmp", "USER": "app"}  # no image has our user in its passwd
    variables = nobody | settings(deployment) | (extra or {})
    return [{"name": key, "value": value} for key, value in variables.items()]


def command(deployment: Deployment, number: str, head: str) -> list[str]:
    """`number` and `head`: what the shell of the container calls its part, run or machine, and the first machine. An empty
    number: PART or RUN is set already."""
    if is_torch(deployment) and together(deployment):
        line = shell(torchrun(deployment, "HEAD")[1:]).replace("--rdzv-endpoint=HEAD:", f'--rdzv-endpoint="{head}":', 1)
        return ["/bin/sh", "-c", f'exec torchrun --node-rank="{number}" {line}']
    if nodes.counts(deployment) and together(deployment):
        line = nodes.exports(deployment, number, head)
        return ["/bin/sh", "-c", f"{line}; exec {' '.join(quoted(deployment.software.command))}"]
    sets = []
    if divided(deployment):
        name = counted(deployment)
        sets += [f'{name}="{number}"'] if number else []
        sets += [f'SHARD="{shard(number or f"${name}")}"'] if name == "PART" else []
    if not sets:
        return list(words(deployment))
    return ["/bin/sh", "-c", f"export {' '.join(sets)}; exec {' '.join(shell_words(deployment))}"]


def keeps(deployment: Deployment) -> str:
    """Directories whose contents somebody wants later, and that no object store holds or takes them from."""
    if deployment.form is not Form.JOB:
        return ""
    return ", ".join(one.path for one in mounted_volumes(deployment) if one.name != "models")
