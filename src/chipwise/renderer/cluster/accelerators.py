"""How Kubernetes names what a machine has: resources, node labels, taints, and what a pod of one machine may ask for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chipwise.renderer.deployment import Deployment, Form, Node
from chipwise.renderer.file import CannotRender
from chipwise.renderer.layout import chips_each
from chipwise.units import GIB

MACHINE = "node.kubernetes.io/instance-type"
SHARED = "nvidia.com/gpu.shared"
KEPT_BACK = 0.1  # of a machine's processors and memory, for the system and its daemons; but at least
LEAST_CPUS = 0.3  # these, which count on small machines
# What a virtual machine shows less than is listed; what a kubelet with 58 pods keeps, its eviction threshold and small daemons.
NOT_SHOWN, KUBELET_BYTES = 0.075, 1.4 * GIB
_RESOURCES = {"NVIDIA": "nvidia.com/gpu", "AMD": "amd.com/gpu", "Intel": "gpu.intel.com/i915"}
# GKE's own names of slices, and the topology of each number of chips (general knowledge of its documentation).
_TPUS = {
    "TPU-v4": ("tpu-v4-podslice", 3),
    "TPU-v5e": ("tpu-v5-lite-podslice", 2),
    "TPU-v5p": ("tpu-v5p-slice", 3),
    "TPU-v6e": ("tpu-v6e-slice", 2),
    "TPU-v7": ("tpu7x", 3),
}
_FLAT = {1: "1x1", 4: "2x2", 8: "2x4", 16: "4x4", 32: "4x8", 64: "8x8", 128: "8x16", 256: "16x16"}
_CUBE = {4: "2x2x1", 8: "2x2x2", 16: "2x2x4", 32: "2x4x4", 64: "4x4x4", 128: "4x4x8", 256: "4x8x8", 512: "8x8x8"}


@dataclass(frozen=True, slots=True)
class Taint:
    key: str
    value: str = ""
    effect: str = "NoSchedule"


def resource_of(node: Node) -> str | None:
    """What a pod asks for to be given a chip; None: the machine has none."""
    if not node.accelerated:
        return None
    match node.kind:
        case "gpu":
            if node.profile and node.vendor == "NVIDIA":
                return f"nvidia.com/mig-{node.profile}"
            if node.sharing and node.users_per_chip > 1 and node.vendor == "NVIDIA":
                return SHARED  # another name than that of whole ones: who needs all of a chip never gets a part
            return _RESOURCES.get(node.vendor, "nvidia.com/gpu")
        case "neuron":
            return "aws.amazon.com/neuron"
        case "tpu":
            return "google.com/tpu"
        case "gaudi":
            return "habana.ai/gaudi"
    raise CannotRender(
        f"{node.chip} ({node.kind}) has no device plugin that we know, so Kubernetes cannot hand it out.",
        remedy="Use --to ec2, terraform or compose; or plan for another chip with --chip CHIP.",
    )


def chip_taint(node: Node) -> Taint | None:
    """What keeps pods without accelerators away from machines that have them."""
    resource = resource_of(node)
    if resource is None:
        return None
    key = resource if not resource.startswith("nvidia.com/") else "nvidia.com/gpu"
    return Taint(key, "present" if node.provider != "aws" or node.kind == "gpu" else "true")


def spot_taints(node: Node) -> tuple[Taint, ...]:
    """What providers put on machines that may be taken away."""
    match node.provider:
        case "gcp":
            return (Taint("cloud.google.com/gke-spot", "true"),)
        case "azure":
            return (Taint("kubernetes.azure.com/scalesetpriority", "spot"),)
    return ()


def capacity_labels(deployment: Deployment) -> tuple[tuple[str, str], ...]:
    """Labels of which a node has one, by how it was bought and by what brought it: any of them will do."""
    spot = deployment.losable
    if spot and any(one.purchase != "spot" for one in deployment.rented):  # layers of both: a pod takes what there is
        return ()
    match deployment.node.provider:
        case "aws" if deployment.reservation is not None:
            bought = "CAPACITY_BLOCK" if deployment.reservation.block else "ON_DEMAND"
            return (("karpenter.sh/capacity-type", "reserved"), ("eks.amazonaws.com/capacityType", bought))
        case "aws":
            return (
                ("karpenter.sh/capacity-type", "spot" if spot else "on-demand"),
                ("eks.amazonaws.com/capacityType", "SPOT" if spot else "ON_DEMAND"),
            )
        case "gcp" if spot:
            return (("cloud.google.com/gke-spot", "true"),)
        case "azure" if spot:
            return (("kubernetes.azure.com/scalesetpriority", "spot"),)
    return ()


def tpu_selector(node: Node) -> dict[str, str]:
    """GKE places pods of a slice by these two labels; a slice is several machines of which each pod takes one."""
    family = next((name for name in _TPUS if node.chip.startswith(name)), None)
    if family is None:
        raise CannotRender(f"{node.chip} is not offered on GKE as far as we know.", remedy="Plan for another chip.")
    name, dimensions = _TPUS[family]
    topology = (_FLAT if dimensions == 2 else _CUBE).get(node.chips)
    if topology is None:
        raise CannotRender(
            f"GKE has no slice of {node.chips} {node.chip}.", remedy=f"Plan with --limit chip_count={min(_FLAT)}, 4, 8, 16..."
        )
    return {"cloud.google.com/gke-tpu-accelerator": name, "cloud.google.com/gke-tpu-topology": topology}


def pod_chips(deployment: Deployment) -> int:
    """Chips of one pod."""
    per_replica = chips_each(deployment)
    return max(per_replica // deployment.node.hosts, 1) if per_replica else 0


def pod_share(deployment: Deployment) -> float:
    """Part of a machine that one pod takes."""
    node, per_replica = deployment.node, chips_each(deployment)
    if node.chips and per_replica:
        return min(per_replica / (node.parts if deployment.form is Form.SERVICE else node.chips), 1.0)
    return 1.0 / max(deployment.per_machine, 1)


def cpu_request(deployment: Deployment, nodes: Sequence[Node] = ()) -> str:
    """Left after what the system keeps, in whole processors where there is more than one; of the smallest of `nodes`, where
    several will do."""
    known = [one.vcpus for one in nodes or (deployment.node,) if one.vcpus is not None]
    if not known:
        return str(4 * max(pod_chips(deployment), 1))
    cpus = min(known) / deployment.node.hosts
    left = (cpus - max(cpus * KEPT_BACK, LEAST_CPUS)) * pod_share(deployment)
    return str(int(left)) if left >= 1 else f"{max(int(left * 1000), 100)}m"


def memory_request(deployment: Deployment, nodes: Sequence[Node] = ()) -> str:
    known = [one.memory_bytes for one in nodes or (deployment.node,) if one.memory_bytes is not None]
    if not known:
        return f"{16 * max(pod_chips(deployment), 1)}Gi"
    size = min(known) / deployment.node.hosts
    reserved = max(size * KEPT_BACK, size * NOT_SHOWN + KUBELET_BYTES)
    left = max(size - reserved, size / 2) * pod_share(deployment) / GIB
    return f"{int(left)}Gi" if left >= 1 else f"{max(int(left * 1024), 64)}Mi"
