"""Classes of the volumes that pods claim, by name: built into GKE and AKS, written out for EKS, unknown elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from chipwise.catalog.price_tables import StoragePrice
from chipwise.renderer.cluster.pod import USER, Object, claimed_volumes
from chipwise.renderer.deployment import Deployment, Node, Volume
from chipwise.renderer.yaml_text import Noted, Yaml
from chipwise.text import price, usd
from chipwise.units import GB

SHARED, DISK = "chipwise-efs", "chipwise-gp3"
WORTH_SAYING_BYTES = 100 * GB  # some $30 a month
_CLASS_REASON = "The StorageClass of this name in namespace.yaml."
# (class, what it needs) for volumes of several machines and of one.
_BUILT_IN = {
    "gcp": (("standard-rwx", "Filestore, built into GKE: its CSI driver must be on."), ("premium-rwo", "Built into GKE.")),
    "azure": (("azurefile-csi-premium", "Built into AKS."), ("managed-csi-premium", "Built into AKS.")),
    "aws": ((SHARED, _CLASS_REASON), (DISK, _CLASS_REASON)),
}


def class_of(deployment: Deployment, volume: Volume) -> Yaml:
    """None: the cluster's own default, or one that the reader must name."""
    if volume.storage_class:
        return Noted(volume.storage_class, "The workload's own: the cluster must have it, for several machines at once.")
    known = _BUILT_IN.get(deployment.node.provider)
    if known is None:
        return None
    name, reason = known[0 if volume.shared else 1]
    return Noted(name, reason)


def classes(deployments: Iterable[Deployment]) -> list[Object]:
    """Written once for a cluster; other workloads may have the same."""
    on_aws = [one for one in deployments if one.node.provider == "aws"]
    volumes = [volume for one in on_aws for volume in claimed_volumes(one) if not volume.storage_class]
    objects: list[Object] = []
    if any(volume.shared for volume in volumes):
        rates = on_aws[0].platforms.get("Storage", {})
        objects.append(_efs(_monthly(rates, sum(volume.size_bytes for volume in volumes if volume.shared))))
    if any(not volume.shared for volume in volumes):
        objects.append(_ebs())
    return objects


def storage_rates(rows: Iterable[StoragePrice], node: Node) -> dict[str, str]:
    """USD for a GB and month of what clusters share, and of a bucket: in the node's region, or else where it is known."""
    rates: dict[str, str] = {}
    for row in sorted(rows, key=lambda row: row.region != node.region):
        if row.provider == node.provider and row.item == "Standard storage" and row.unit == "GB-month" and row.usd is not None:
            rates.setdefault(row.service, f"{row.usd:g}")
    return rates


def _monthly(rates: Mapping[str, str], size_bytes: float) -> str:
    """What the file system costs, where that is no small sum and known."""
    if "EFS" not in rates or size_bytes < WORTH_SAYING_BYTES:
        return ""
    size_gb, rate = size_bytes / GB, float(rates["EFS"])
    bucket = f"; a bucket would be {usd(size_gb * float(rates['S3']))}" if "S3" in rates else ""
    return (
        f"\nEFS takes about {usd(size_gb * rate)} a month for {size_gb:,.0f} GB ({price(rate)} a GB), and for what is read and"
        f" written.\nNone of it is in the price of the machines above{bucket}."
    )


def _efs(cost: str) -> Object:
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
        "kind": Noted("StorageClass", needs + cost),
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
