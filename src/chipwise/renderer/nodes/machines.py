"""The machines of one plan as nodes of an EKS cluster: labels, taints, disks, tags, and what the cluster is called."""

from __future__ import annotations

from collections.abc import Mapping

from chipwise.renderer.cluster.accelerators import Taint, chip_taint
from chipwise.renderer.deployment import Deployment, Form
from chipwise.renderer.file import CannotRender
from chipwise.renderer.layout import meets
from chipwise.renderer.quoting import one_line, shell, tag_value
from chipwise.units import GB

CLUSTER = "chipwise"  # what the files call the cluster; a reader has a name of their own
IMAGES_GIB = 100  # container images of accelerators take tens of GiB, and the system its own
SCRATCH_GIB = 100  # beside them, where the machine has no disk of its own
MOST_TAGS = 40  # of 50 that a resource may have; eksctl, Karpenter and EKS add some of their own
PRESENT = "nvidia.com/gpu.present"  # what the chart of NVIDIA's device plugin looks for
MIG_LAYOUT = "nvidia.com/mig.config"  # what the MIG manager of NVIDIA's GPU operator cuts chips by


def placed_together(deployment: Deployment) -> bool:
    """Machines for which a placement group is named. Those of a capacity block stand close to each other without one."""
    block = deployment.reservation is not None and deployment.reservation.block
    return meets(deployment) and deployment.machines > 1 and not block


def placement_words(deployment: Deployment) -> str:
    """Why a placement group is named, and the command that makes it."""
    group = shell(
        [
            "aws",
            "ec2",
            "create-placement-group",
            "--strategy",
            "cluster",
            "--region",
            deployment.node.region,
            "--group-name",
            deployment.name,
        ]
    )
    return f"Close together in one building. Make it once:\n{group}"


def check(deployment: Deployment, tool: str) -> None:
    """Raises where the plan is not of machines on AWS."""
    if deployment.form is Form.DEVICES or deployment.node.kind == "edge":
        raise CannotRender(
            f"{one_line(deployment.node.chip)} is an edge device; {tool} brings machines of AWS.",
            remedy="Use --to compose for one device, or dockerfile for its image.",
        )
    if deployment.node.provider != "aws":
        raise CannotRender(
            f"The plan is on {one_line(deployment.node.provider)}; {tool} brings machines of AWS.",
            remedy="Plan for AWS with --cloud aws, or take --to terraform or kubernetes.",
        )
    if "variant" not in deployment.platforms.get("EKS", {}):
        raise CannotRender(
            f"No node image of EKS is known that carries a driver for {one_line(deployment.node.chip)}.",
            remedy="Use --to ec2 or terraform, or plan for another chip with --chip CHIP.",
        )


def labels(deployment: Deployment) -> dict[str, str]:
    """What nodes are told about themselves, beside what the cloud tells."""
    node = deployment.node
    if node.kind != "gpu" or node.vendor != "NVIDIA" or not node.accelerated:
        return {}
    return {PRESENT: "true"} | ({MIG_LAYOUT: f"all-{node.profile}"} if node.profile else {})


def label_reason(own: Mapping[str, str]) -> str:
    """Who reads the labels of nodes."""
    plugin = "The chart of NVIDIA's device plugin runs where it finds the first."
    if MIG_LAYOUT not in own:
        return "The chart of NVIDIA's device plugin runs where it finds this."
    return f"{plugin} The MIG manager of NVIDIA's GPU operator cuts\nchips as the second says; without it nothing does."


def taints(deployment: Deployment) -> list[Taint]:
    taint = chip_taint(deployment.node)
    return [taint] if taint is not None else []


def tags(deployment: Deployment) -> Mapping[str, str]:
    """For the bill: what the workload is and who pays."""
    pairs = {"chipwise:workload": deployment.name}
    for key, value in deployment.labels.items():
        name, text = tag_value(key)[:100], tag_value(value)
        if name and text and len(pairs) < MOST_TAGS:
            pairs[f"chipwise:{name}"] = text
    return pairs


def has_disk(deployment: Deployment) -> bool:
    """Local and fast disks that can hold what containers write. Those of the smallest machines are not worth it."""
    size = deployment.node.disk_bytes
    return size is not None and size >= 100 * GB


def volume_gib(deployment: Deployment) -> int:
    """Of the root disk: images, and what containers write where there is no disk beside it."""
    return IMAGES_GIB if has_disk(deployment) or not deployment.node.accelerated else IMAGES_GIB + SCRATCH_GIB


def stages(deployment: Deployment) -> tuple[Deployment, ...]:
    """A pipeline needs the machines of all its stages."""
    return deployment.stages if deployment.form is Form.PIPELINE else (deployment,)
