"""A node pool of a GKE cluster that is there already: GPUs with their driver, or slices of TPUs."""

from __future__ import annotations

from chipwise.renderer.cluster.accelerators import tpu_selector
from chipwise.renderer.deployment import Deployment, Form
from chipwise.renderer.file import File
from chipwise.renderer.layout import most_machines
from chipwise.renderer.terraform.gcp import PROVIDER, accelerator, disk_type, labels, machine_type, provider
from chipwise.renderer.terraform.hcl import Block, Nested, Raw, Value, output, resource, text_of, variable
from chipwise.renderer.terraform.module import files, region_variable, versions
from chipwise.renderer.terraform.shape import pool_disk_gb, sizes, together
from chipwise.renderer.yaml_text import Noted


def modules(deployment: Deployment) -> list[File]:
    return files(
        deployment,
        "A node pool for the cluster that is there; what runs on it comes from `chipwise render --to kubernetes`.",
        {
            "versions.tf": versions("hashicorp/google", PROVIDER, provider()),
            "variables.tf": [
                variable("project", "string", "Project that pays."),
                region_variable(deployment),
                variable("cluster", "string", "The GKE cluster that the machines join."),
                *(
                    []
                    if deployment.node.kind != "tpu" or _host(deployment)
                    else [
                        variable("machine_type", "string", f"Machine type of one host of {deployment.node.chip}."),
                    ]
                ),
                variable("zones", "list(string)", f"Zones of the region that have the machines. {_zones(deployment)}"),
            ],
            "main.tf": _main(deployment),
            "outputs.tf": [output("node_pools", Raw("google_container_node_pool.this[*].name"), "Their names in the cluster.")],
        },
        "gke/",
    )


def _zones(deployment: Deployment) -> str:
    return (
        "One only: machines that work together are in one zone."
        if _one_zone(deployment)
        else "Several make up for a short one."
    )


def _one_zone(deployment: Deployment) -> bool:
    return together(deployment) or deployment.node.kind == "tpu"


def _main(deployment: Deployment) -> list[Block]:
    return [
        Block("locals", (), {"name": deployment.name, "labels": dict(labels(deployment))}),
        resource(
            "google_service_account",
            "nodes",
            {
                "account_id": Raw('"${substr(local.name, 0, 22)}-nodes"'),
                "display_name": text_of("Nodes of ", Raw("local.name")),
            },
        ),
        resource(
            "google_project_iam_member",
            "nodes",
            {
                "project": Raw("var.project"),
                "role": "roles/container.defaultNodeServiceAccount",
                "member": text_of("serviceAccount:", Raw("google_service_account.nodes.email")),
            },
            "What every node needs. Rights of the program belong to its own service account (Workload Identity).",
        ),
        _pool(deployment),
    ]


def _pool(deployment: Deployment) -> Block:
    tpu, counts = deployment.node.kind == "tpu", sizes(deployment)
    slices = deployment.machines if tpu else 1
    wide = tpu and deployment.node.hosts > 1
    body: dict[str, Value] = {
        "count": Noted(slices, "One pool for each slice.") if tpu and slices > 1 else None,
        "name": text_of(Raw("substr(local.name, 0, 36)"), "-", Raw("count.index"))
        if tpu and slices > 1
        else Raw("substr(local.name, 0, 39)"),
        "cluster": Raw("var.cluster"),
        "location": Raw("var.region"),
        "node_locations": Raw("var.zones"),
        "initial_node_count": deployment.node.hosts if tpu else None,
    }
    if not wide:
        service = deployment.form is Form.SERVICE
        body["autoscaling"] = Nested(
            {
                "total_min_node_count": counts.minimum if service else Noted(0, "Nothing is paid for while no job runs."),
                "total_max_node_count": max(most_machines(deployment), counts.usual),
                "location_policy": "ANY" if deployment.spot else "BALANCED",
            }
        )
    else:
        body["autoscaling"] = Nested(
            {
                "min_node_count": Noted(0, "A slice of several hosts comes and goes as a whole."),
                "max_node_count": deployment.node.hosts,
            }
        )
    body["management"] = Nested({"auto_repair": True, "auto_upgrade": True})
    if tpu and wide:
        topology = tpu_selector(deployment.node)["cloud.google.com/gke-tpu-topology"]
        body["placement_policy"] = Nested({"type": "COMPACT", "tpu_topology": topology})
    elif together(deployment):
        body["placement_policy"] = Noted(Nested({"type": "COMPACT"}), "Close together: they exchange data at every step.")
    body["node_config"] = Nested(_config(deployment))
    return resource("google_container_node_pool", "this", body)


def _config(deployment: Deployment) -> dict[str, Value]:
    node = deployment.node
    machine = _host(deployment) if node.kind == "tpu" else machine_type(deployment)
    fields: dict[str, Value] = {
        "machine_type": machine or Raw("var.machine_type"),
        "spot": True if deployment.spot else None,
        "disk_size_gb": min(pool_disk_gb(deployment), 2000),
        "disk_type": disk_type(machine or node.machine),
        "image_type": "COS_CONTAINERD",
        "service_account": Raw("google_service_account.nodes.email"),
        "oauth_scopes": ["https://www.googleapis.com/auth/cloud-platform"],
        "labels": {"chipwise-deployment": deployment.name},
        "metadata": {"disable-legacy-endpoints": "true"},
        "shielded_instance_config": Nested({"enable_secure_boot": True, "enable_integrity_monitoring": True}),
        "workload_metadata_config": Nested({"mode": Noted("GKE_METADATA", "Pods do not reach the node's credentials.")}),
        "gvnic": Nested({"enabled": True}),
    }
    if accelerator(deployment) and node.accelerated:
        card: dict[str, Value] = {
            "type": accelerator(deployment),
            "count": node.chips,
            "gpu_driver_installation_config": Nested(
                {
                    "gpu_driver_version": Noted("LATEST", f"GKE installs it; {deployment.software.driver} or newer is needed.")
                    if deployment.software.driver
                    else "LATEST",
                }
            ),
        }
        if node.profile:
            card["gpu_partition_size"] = Noted(node.profile, "Each chip is cut into slices of this kind.")
        elif node.sharing and node.users_per_chip > 1:
            card["gpu_sharing_config"] = Nested(
                {
                    "gpu_sharing_strategy": "TIME_SHARING",
                    "max_shared_clients_per_gpu": node.users_per_chip,
                }
            )
        fields["guest_accelerator"] = Noted(Nested(card), "GKE taints such nodes by itself with nvidia.com/gpu.")
    return fields


def _host(deployment: Deployment) -> str:
    """Slices of one host have machine types of their own size; those of several are made of hosts with four chips."""
    known = deployment.platforms.get("Machine", {}).get("host", "")
    if deployment.node.hosts == 1 and known.endswith("-4t"):
        return f"{known.removesuffix('-4t')}-{deployment.node.chips}t"
    return known
