"""Plain machines on Google Cloud: instances, or a managed group that replaces what is taken away."""

from __future__ import annotations

from chipwise.renderer.deployment import Deployment, Form
from chipwise.renderer.file import CannotRender, File
from chipwise.renderer.limits import GOOGLE_MACHINE
from chipwise.renderer.terraform.gcp_access import access, named_ports, storage, watched
from chipwise.renderer.terraform.hcl import Block, Nested, Raw, Value, output, resource, text_of, variable
from chipwise.renderer.terraform.module import files, image_variable, label_key, label_text, region_variable, settings, versions
from chipwise.renderer.terraform.shape import (
    bucket_volumes,
    disk_gb,
    grouped,
    port_range,
    ports,
    ready_s,
    sizes,
    together,
)
from chipwise.renderer.terraform.startup import ObjectStore, script
from chipwise.renderer.yaml_text import Noted

PROVIDER = "~> 7.0"
OWNER_TAG = "chipwise-deployment"
LONGEST_DELAY_S = 3600  # that Google waits before it heals
_HYPERDISK = ("a3-ultra", "a4", "g4", "c4", "n4", "ct6e", "tpu7x")  # families that take no persistent disk

_STORE = ObjectStore("google", "gs")


def modules(deployment: Deployment) -> list[File]:
    _refuse(deployment)
    module = files(
        deployment,
        "Plain machines that run the container by themselves; the directory gke/ has the same as a node pool.",
        {
            "versions.tf": versions("hashicorp/google", PROVIDER, provider()),
            "variables.tf": _variables(deployment),
            "main.tf": _main(deployment),
            "network.tf": _network(deployment),
            "access.tf": access(deployment),
            "storage.tf": storage(deployment),
            "outputs.tf": _outputs(deployment),
        },
    )
    return [*module, File("start.sh", GOOGLE_MACHINE.script(script(deployment, _STORE)))]


def provider() -> Block:
    return Block(
        "provider",
        ("google",),
        {
            "project": Raw("var.project"),
            "region": Raw("var.region"),
            "default_labels": Raw("local.labels"),
        },
    )


def _refuse(deployment: Deployment) -> None:
    if deployment.node.kind == "tpu":
        raise CannotRender("A slice of TPUs is no plain machine.", remedy="Use the node pool in gke/, or --to skypilot.")


def labels(deployment: Deployment) -> dict[str, str]:
    pairs = {OWNER_TAG: deployment.name}
    for key, value in deployment.labels.items():
        name, text = label_key(key), label_text(value)
        if name and text and len(pairs) < 40:
            pairs.setdefault(name, text)
    return pairs


def machine_type(deployment: Deployment) -> str:
    """Without what the catalog adds to tell apart machines with different cards."""
    return deployment.node.machine.partition("+")[0]


def accelerator(deployment: Deployment) -> str:
    return deployment.platforms.get("Machine", {}).get("accelerator", "")


def disk_type(machine: str) -> str:
    return "hyperdisk-balanced" if machine.startswith(_HYPERDISK) else "pd-balanced"


def _variables(deployment: Deployment) -> list[Block]:
    image = deployment.platforms.get("Machine", {}).get("image", "")
    about = f"Image with the driver of {deployment.node.chip}, Docker and its toolkit, as projects/P/global/images/..."
    boot = (
        variable("boot_image", "string", "What the machines boot from. Pin an image of the family for production.", image)
        if image
        else variable("boot_image", "string", f"{about} None is known to us.")
    )
    blocks = [
        variable("project", "string", "Project that pays."),
        region_variable(deployment),
        variable("zone", "string", f"Zone of the region that has {machine_type(deployment)}."),
        variable("subnetwork", "string", "Subnetwork with a way out (Cloud NAT): the machines have no public address."),
        image_variable(deployment),
        boot,
    ]
    if deployment.form is Form.SERVICE:
        blocks.append(variable("client_ranges", "list(string)", "Addresses that may call the service: your balancer's.", []))
    return blocks


def _main(deployment: Deployment) -> list[Block]:
    values: dict[str, Value] = {"IMAGE": Raw("var.image"), "NAME": Raw("local.name"), "ZONE": Raw("var.zone")}
    if bucket_volumes(deployment):
        values["KEEP"] = text_of("gs://", Raw("google_storage_bucket.work.name"))
    blocks = [Block("locals", (), {"name": deployment.name, "labels": dict(labels(deployment)), **settings(values)})]
    if together(deployment):
        blocks.append(
            resource(
                "google_compute_resource_policy",
                "close",
                {
                    "name": Raw("local.name"),
                    "group_placement_policy": Nested(
                        {
                            "collocation": "COLLOCATED",
                            "vm_count": deployment.machines,
                        }
                    ),
                },
                _why_close(deployment),
            )
        )
    if not grouped(deployment):
        return [*blocks, _instance(deployment)]
    return [*blocks, _template(deployment), *_group(deployment)]


def _why_close(deployment: Deployment) -> str:
    reason = "Close together: the machines exchange data at every step."
    if deployment.node.fabric and deployment.node.fabric != "no":
        reason += (
            f"\nThese machines have one interface each. The full {deployment.node.fabric} fabric takes networks of its own:"
            "\nuse the node pool in gke/ with multi-networking, or Google's cluster toolkit, for more than a few machines."
        )
    return reason


def _common(deployment: Deployment, template: bool) -> dict[str, Value]:
    """What instances and templates have in common."""
    node = deployment.node
    disk: dict[str, Value] = {"auto_delete": True}
    if template:
        disk |= {
            "boot": True,
            "source_image": Raw("var.boot_image"),
            "disk_size_gb": disk_gb(deployment),
            "disk_type": disk_type(machine_type(deployment)),
        }
    else:
        disk["initialize_params"] = Nested(
            {"image": Raw("var.boot_image"), "size": disk_gb(deployment), "type": disk_type(machine_type(deployment))}
        )
    spot = (
        {
            "provisioning_model": "SPOT",
            "preemptible": True,
            "automatic_restart": False,
            "instance_termination_action": "STOP",
        }
        if deployment.spot
        else {"automatic_restart": True}
    )
    body: dict[str, Value] = {
        "machine_type": machine_type(deployment),
        "tags": [Raw("local.name")],
        "metadata": {
            "enable-oslogin": Noted("TRUE", "Who may sign in is a matter of IAM, not of keys on the machine."),
            "block-project-ssh-keys": "TRUE",
            "startup-script": Raw("local.start"),
        },
        "resource_policies": [Raw("google_compute_resource_policy.close.id")] if together(deployment) else None,
        "disk" if template else "boot_disk": Nested(disk),
        "network_interface": Nested(
            {
                "subnetwork": Raw("var.subnetwork"),
                "nic_type": Noted("GVNIC", "Full bandwidth needs it. No access_config: no public address."),
            }
        ),
        "scheduling": Nested(
            {
                "on_host_maintenance": Noted("TERMINATE", "Machines with accelerators do not move.")
                if node.accelerated
                else "TERMINATE"
                if deployment.spot
                else "MIGRATE",
                **spot,
            }
        ),
        "service_account": Nested(
            {
                "email": Raw("google_service_account.machines.email"),
                "scopes": Noted(["cloud-platform"], "What it may do is decided by its roles in access.tf."),
            }
        ),
        "shielded_instance_config": Nested(
            {
                "enable_vtpm": True,
                "enable_integrity_monitoring": True,
                "enable_secure_boot": Noted(False, "Drivers are not signed in every image.") if node.accelerated else True,
            }
        ),
    }
    if "+" in node.machine and accelerator(deployment):
        body["guest_accelerator"] = Nested({"type": accelerator(deployment), "count": node.chips})
    return body


def _instance(deployment: Deployment) -> Block:
    numbered = deployment.machines > 1
    body: dict[str, Value] = {
        "count": deployment.machines if numbered else None,
        "name": text_of(Raw("local.name"), "-", Raw("count.index")) if numbered else Raw("local.name"),
        "zone": Raw("var.zone"),
    } | _common(deployment, False)
    if numbered:
        metadata = body["metadata"]
        assert isinstance(metadata, dict)
        body["metadata"] = {**metadata, "chipwise-rank": Raw("tostring(count.index)")}
    return resource(
        "google_compute_instance",
        "machines",
        body,
        "A machine shuts itself down when its work is done; destroy it when you have the results.",
    )


def _template(deployment: Deployment) -> Block:
    body: dict[str, Value] = {"name_prefix": text_of(Raw("local.name"), "-")} | _common(deployment, True)
    return resource(
        "google_compute_instance_template", "machines", {**body, "lifecycle": Nested({"create_before_destroy": True})}
    )


def _group(deployment: Deployment) -> list[Block]:
    job, counts = deployment.form is Form.JOB, sizes(deployment)
    body: dict[str, Value] = {
        "name": Raw("local.name"),
        "base_instance_name": Raw("local.name"),
        "zone": Raw("var.zone"),
        "target_size": Noted(Raw("null"), "The machines below, by name.") if job else counts.usual,
        "version": Nested({"instance_template": Raw("google_compute_instance_template.machines.id")}),
        "update_policy": Nested(
            {
                "type": "OPPORTUNISTIC" if job else "PROACTIVE",
                "minimal_action": "REPLACE",
                "max_surge_fixed": 0,
                "max_unavailable_fixed": 1,
                "replacement_method": "RECREATE",
            }
        ),
    }
    span = ports(deployment)
    if span is not None:
        body["named_port"] = named_ports(span)
    health = deployment.software.health if span is not None else None
    blocks: list[Block] = []
    if span is not None and health is not None:
        body["auto_healing_policies"] = Nested(
            {
                "health_check": Raw("google_compute_health_check.service.id"),
                "initial_delay_sec": Noted(min(ready_s(deployment), LONGEST_DELAY_S), "Image and weights come first."),
            }
        )
        blocks.append(
            resource(
                "google_compute_health_check",
                "service",
                {
                    "name": Raw("local.name"),
                    "check_interval_sec": 15,
                    "timeout_sec": 5,
                    "unhealthy_threshold": 4,
                    "http_health_check": Nested({"port": watched(span), "request_path": health}),
                },
            )
        )
    if not job:
        body["lifecycle"] = Nested({"ignore_changes": Noted([Raw("target_size")], "Scaling changes it; apply must not.")})
    blocks.append(
        resource(
            "google_compute_instance_group_manager",
            "machines",
            body,
            "A machine that is taken away comes again by the same name and number, and goes on from its checkpoint."
            if job
            else "",
        )
    )
    if job:
        blocks.append(
            resource(
                "google_compute_per_instance_config",
                "machines",
                {
                    "count": deployment.machines,
                    "name": text_of(Raw("local.name"), "-", Raw("count.index")),
                    "zone": Raw("var.zone"),
                    "instance_group_manager": Raw("google_compute_instance_group_manager.machines.name"),
                    "remove_instance_on_destroy": True,
                    "preserved_state": Nested({"metadata": {"chipwise-rank": Raw("tostring(count.index)")}}),
                },
            )
        )
    elif counts.maximum > counts.minimum:
        blocks.append(
            resource(
                "google_compute_autoscaler",
                "machines",
                {
                    "name": Raw("local.name"),
                    "zone": Raw("var.zone"),
                    "target": Raw("google_compute_instance_group_manager.machines.id"),
                    "autoscaling_policy": Nested(
                        {
                            "min_replicas": counts.minimum,
                            "max_replicas": counts.maximum,
                            "cooldown_period": ready_s(deployment),
                            "load_balancing_utilization": Noted(
                                Nested({"target": 0.7}), "Of the rate that the balancer states: the host does not show it."
                            ),
                        }
                    ),
                },
            )
        )
    return blocks


def _network(deployment: Deployment) -> list[Block]:
    blocks = []
    if together(deployment):
        blocks.append(
            resource(
                "google_compute_firewall",
                "each_other",
                {
                    "name": text_of(Raw("local.name"), "-each-other"),
                    "network": Raw("data.google_compute_subnetwork.this.network"),
                    "source_tags": [Raw("local.name")],
                    "target_tags": [Raw("local.name")],
                    "allow": [Nested({"protocol": "tcp"}), Nested({"protocol": "udp"})],
                },
                "Only among the machines.",
            )
        )
    span = ports(deployment)
    if span is not None:
        blocks.append(
            resource(
                "google_compute_firewall",
                "clients",
                {
                    "count": Raw("length(var.client_ranges) > 0 ? 1 : 0"),
                    "name": text_of(Raw("local.name"), "-clients"),
                    "network": Raw("data.google_compute_subnetwork.this.network"),
                    "source_ranges": Raw("var.client_ranges"),
                    "target_tags": [Raw("local.name")],
                    "allow": Nested({"protocol": "tcp", "ports": [port_range(span)]}),
                },
            )
        )
    if blocks:
        blocks.insert(0, Block("data", ("google_compute_subnetwork", "this"), {"self_link": Raw("var.subnetwork")}))
    return blocks


def _outputs(deployment: Deployment) -> list[Block]:
    kind = (
        "google_compute_instance_group_manager.machines.instance_group"
        if grouped(deployment)
        else "google_compute_instance.machines[*].self_link"
    )
    blocks = [output("machines", Raw(kind), "The group of machines." if grouped(deployment) else "The machines.")]
    if bucket_volumes(deployment):
        blocks.append(output("bucket", Raw("google_storage_bucket.work.url"), "What outlives the machines."))
    return blocks
