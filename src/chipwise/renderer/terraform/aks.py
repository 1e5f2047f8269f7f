"""A node pool of an AKS cluster that is there already; Azure installs the driver of NVIDIA chips."""

from __future__ import annotations

from chipwise.renderer.cluster.accelerators import chip_taint
from chipwise.renderer.deployment import Deployment, Form
from chipwise.renderer.file import File
from chipwise.renderer.layout import most_machines
from chipwise.renderer.terraform.azure import PROVIDER, provider, tags
from chipwise.renderer.terraform.hcl import Block, Nested, Raw, Value, output, resource, variable
from chipwise.renderer.terraform.module import files, versions
from chipwise.renderer.terraform.shape import pool_disk_gb, sizes, together
from chipwise.renderer.yaml_text import Noted

LONGEST = 12  # signs of a pool's name: small letters and digits


def modules(deployment: Deployment) -> list[File]:
    return files(
        deployment,
        "A node pool for the cluster that is there; what runs on it comes from `chipwise render --to kubernetes`.",
        {
            "versions.tf": versions("hashicorp/azurerm", PROVIDER, provider()),
            "variables.tf": [
                variable("subscription_id", "string", "Subscription that pays."),
                variable("cluster_id", "string", f"Resource ID of the AKS cluster, in {deployment.node.region}."),
                variable("subnet_id", "string", "Subnet of the machines. null: that of the cluster.", None),
            ],
            "main.tf": _main(deployment),
            "outputs.tf": [output("node_pool", Raw("azurerm_kubernetes_cluster_node_pool.this.name"), "Its name there.")],
        },
        "aks/",
    )


def _name(deployment: Deployment) -> str:
    """What fits of the name, and enough of its end to tell two apart."""
    plain = deployment.name.replace("-", "")
    return plain if len(plain) <= LONGEST else plain[: LONGEST - 4] + plain[-4:]


def _main(deployment: Deployment) -> list[Block]:
    counts, node, taint = sizes(deployment), deployment.node, chip_taint(deployment.node)
    service = deployment.form is Form.SERVICE
    body: dict[str, Value] = {
        "name": _name(deployment),
        "kubernetes_cluster_id": Raw("var.cluster_id"),
        "vm_size": node.machine,
        "vnet_subnet_id": Raw("var.subnet_id"),
        "os_sku": "Ubuntu",
        "os_disk_size_gb": min(pool_disk_gb(deployment), 2048),
        "auto_scaling_enabled": True,
        "min_count": counts.minimum if service else Noted(0, "Nothing is paid for while no job runs."),
        "max_count": max(most_machines(deployment), counts.usual),
        "gpu_driver": Noted("Install", "AKS brings the driver; the device plugin comes with `--to kubernetes`.")
        if node.accelerated and node.vendor == "NVIDIA"
        else None,
        "gpu_instance": f"MIG{node.profile.partition('.')[0]}" if node.profile and node.vendor == "NVIDIA" else None,
    }
    if deployment.spot:
        body |= {
            "priority": "Spot",
            "eviction_policy": "Delete",
            "spot_max_price": Noted(-1, "Up to the price on demand: taken away for capacity, never for price."),
        }
    if together(deployment):
        body["proximity_placement_group_id"] = Raw("azurerm_proximity_placement_group.close.id")
    labels = {"chipwise.dev/deployment": deployment.name}
    taints = [f"{taint.key}={taint.value}:{taint.effect}"] if taint is not None else []
    if deployment.spot:  # Azure sets both by itself; stated, so that the next plan shows no difference
        labels["kubernetes.azure.com/scalesetpriority"] = "spot"
        taints.append("kubernetes.azure.com/scalesetpriority=spot:NoSchedule")
    body["node_labels"] = labels
    if taints:
        body["node_taints"] = Noted(taints, "Pods that do not ask for these machines stay away from them.")
    body["tags"] = dict(tags(deployment))
    body["upgrade_settings"] = None if deployment.spot else Nested({"max_surge": "1"})
    blocks = [resource("azurerm_kubernetes_cluster_node_pool", "this", body)]
    if together(deployment):
        blocks.insert(
            0,
            resource(
                "azurerm_proximity_placement_group",
                "close",
                {
                    "name": deployment.name,
                    "location": node.region,
                    "resource_group_name": Raw('element(split("/", var.cluster_id), 4)'),
                },
                "Close together: the machines exchange data at every step.",
            ),
        )
    return blocks
