"""Which chips and machines a pod asks for by the labels of its node, as the catalog knows them."""

from __future__ import annotations

from chipwise.auditor.pods import Pod, node_labels
from chipwise.catalog.chip import Chip
from chipwise.catalog.load import load
from chipwise.catalog.machine import Machine
from chipwise.catalog.names import Names, names_of

_CHIP_LABELS = (
    "nvidia.com/gpu.product",
    "cloud.google.com/gke-accelerator",
    "eks.amazonaws.com/instance-gpu-name",
    "karpenter.k8s.aws/instance-gpu-name",
    "k8s.amazonaws.com/accelerator",
    "amd.com/gpu.product-name",
    "gpu.nvidia.com/class",
)
_MACHINE_LABELS = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")


def _names() -> Names:
    return names_of(load(prices=False))


def machines_named(name: str) -> tuple[Machine, ...]:
    return _names().machines_or_none(name) or ()


def chips_named(name: str) -> tuple[Chip, ...]:
    return _names().chips_or_none(name) or ()


def machines_for(pod: Pod) -> tuple[Machine, ...]:
    labels = node_labels(pod.spec)
    return tuple(one for label in _MACHINE_LABELS for name in labels.get(label, ()) for one in machines_named(name))


def chips_for(pod: Pod) -> tuple[Chip, ...]:
    """Every chip that its labels leave open; none where they say nothing, or something that the catalog does not know."""
    labels = node_labels(pod.spec)
    names = [name for label in _CHIP_LABELS for name in labels.get(label, ())]
    names += [machine.chip for machine in machines_for(pod) if machine.chip]
    return tuple({chip.name: chip for name in names for chip in chips_named(name)}.values())


def architectures_for(pod: Pod) -> set[str]:
    """`arm64` or `amd64`, by label or by machine."""
    stated = node_labels(pod.spec).get("kubernetes.io/arch", ())
    known = {"arm64" if one.cpu_arch in ("arm64", "aarch64") else "amd64" for one in machines_for(pod) if one.cpu_arch}
    known |= {"arm64" for chip in chips_for(pod) if chip.name.startswith(("GH200", "GB200", "GB300"))}
    return set(stated) or known
