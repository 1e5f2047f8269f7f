"""Chips by dynamic resource allocation (resource.k8s.io/v1): a class of devices, and a claim for each pod from a template.

The attributes are those that NVIDIA's driver publishes (gpu.nvidia.com): `type` is gpu or mig, `profile` that of a slice.
"""

from __future__ import annotations

from chipwise.renderer.cluster.accelerators import pod_chips
from chipwise.renderer.cluster.pod import CHIPS, Object, meta
from chipwise.renderer.deployment import Deployment, Node
from chipwise.renderer.file import CannotRender
from chipwise.renderer.quoting import dns_name
from chipwise.renderer.yaml_text import Noted, Yaml

API = "resource.k8s.io/v1"
DRIVER = "gpu.nvidia.com"


def check(deployment: Deployment) -> None:
    node = deployment.node
    if deployment.claims and not (node.kind == "gpu" and node.vendor == "NVIDIA" and node.accelerated):
        raise CannotRender(
            f"Claims are written for NVIDIA's driver, and the plan has {node.chip}.", remedy="Leave program.devices out."
        )


def class_name(node: Node) -> str:
    return dns_name(f"chipwise-mig-{node.profile}" if node.profile else "chipwise-gpu", 60)


def quota_key(node: Node) -> str:
    """Under which a ResourceQuota counts devices of a class."""
    return f"{class_name(node)}.deviceclass.resource.k8s.io/devices"


def objects(deployment: Deployment) -> list[Yaml]:
    """The class, once for a cluster, and the template of this workload."""
    return [device_class(deployment.node), template(deployment)] if deployment.claims else []


def device_class(node: Node) -> Object:
    kind = "mig" if node.profile else "gpu"
    terms = [f'device.driver == "{DRIVER}"', f'device.attributes["{DRIVER}"].type == "{kind}"']
    if node.profile:
        terms.append(f'device.attributes["{DRIVER}"].profile == "{node.profile}"')
    reason = "Needs NVIDIA's DRA driver in place of its device plugin: on one node there is one or the other."
    if node.profile:
        reason += f"\nSlices must be there: the GPU operator's MIG manager cuts by nvidia.com/mig.config=all-{node.profile}."
    return {
        "apiVersion": API,
        "kind": Noted("DeviceClass", reason),
        "metadata": {"name": class_name(node)},
        "spec": {"selectors": [{"cel": {"expression": " && ".join(terms)}}]},
    }


def template(deployment: Deployment) -> Object:
    exactly: Object = {"deviceClassName": class_name(deployment.node), "count": pod_chips(deployment)}
    return {
        "apiVersion": API,
        "kind": "ResourceClaimTemplate",
        "metadata": meta(deployment),
        "spec": {"spec": {"devices": {"requests": [{"name": CHIPS, "exactly": exactly}]}}},
    }
