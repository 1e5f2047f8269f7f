"""Classes of the volumes that pods claim, by name: built into GKE and AKS, written out for EKS, unknown elsewhere."""

from __future__ import annotations

from collections.abc import Iterable

from chipwise.renderer.cluster.pod import USER, Object, mounted_volumes
from chipwise.renderer.deployment import Deployment, Volume
from chipwise.renderer.yaml_text import Noted, Yaml

SHARED, DISK = "chipwise-efs", "chipwise-gp3"
_CLASS_REASON = "The StorageClass of this name in namespace.yaml."
# (class, what it needs) for volumes of several machines and of one.
_BUILT_IN = {
    "gcp": (("standard-rwx", "Filestore, built into GKE: its CSI driver must be on."), ("premium-rwo", "Built into GKE.")),
    "azure": (("azurefile-csi-premium", "Built into AKS."), ("managed-csi-premium", "Built into AKS.")),
    "aws": ((SHARED, _CLASS_REASON), (DISK, _CLASS_REASON)),
}


def class_of(deployment: Deployment, volume: Volume) -> Yaml:
    """None: the cluster's own default, or one that the reader must name."""
    known = _BUILT_IN.get(deployment.node.provider)
    if known is None:
        return None
    name, reason = known[0 if volume.shared else 1]
    return Noted(name, reason)


def classes(deployments: Iterable[Deployment]) -> list[Object]:
    """Written once for a cluster; other workloads may have the same."""
    volumes = [volume for one in deployments if one.node.provider == "aws" for volume in mounted_volumes(one)]
    objects: list[Object] = []
    if any(volume.shared for volume in volumes):
        objects.append(_efs())
    if any(not volume.shared for volume in volumes):
        objects.append(_ebs())
    return objects


def _efs() -> Object:
    parameters: Object = {
        "provisioningMode": "efs-ap",
        "fileSystemId": Noted("fs-PUT-YOURS", "Of an EFS file system with mount targets in the subnets of the nodes."),
        "directoryPerms": "700",
        "uid": Noted(str(USER), "The user of the pods."),
        "gid": str(USER),
    }
    needs = "For volumes that several machines use. Needs the add-on aws-efs-csi-driver, which --to eksctl installs."
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": Noted("StorageClass", needs),
        "metadata": {"name": SHARED},
        "provisioner": "efs.csi.aws.com",
        "parameters": parameters,
    }


def _ebs() -> Object:
    needs = "For volumes of one machine. Needs the add-on aws-ebs-csi-driver, which --to eksctl installs."
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": Noted("StorageClass", needs),
        "metadata": {"name": DISK},
        "provisioner": "ebs.csi.aws.com",
        "parameters": {"type": "gp3", "encrypted": "true"},
        "volumeBindingMode": Noted("WaitForFirstConsumer", "In the zone of the pod, which is known only then."),
        "allowVolumeExpansion": True,
    }
