"""Plain machines on Azure: virtual machines for jobs, a scale set for services."""

from __future__ import annotations

from chipwise.renderer.deployment import Deployment, Form
from chipwise.renderer.file import File
from chipwise.renderer.limits import AZURE_MACHINE
from chipwise.renderer.quoting import tag_value
from chipwise.renderer.terraform.azure_access import access, location, storage
from chipwise.renderer.terraform.hcl import Block, Nested, Raw, Value, call, data, output, resource, text_of, variable
from chipwise.renderer.terraform.module import files, image_variable, region_variable, settings, versions
from chipwise.renderer.terraform.shape import bucket_volumes, disk_gb, port_range, ports, sizes, together
from chipwise.renderer.terraform.startup import ObjectStore, script
from chipwise.renderer.yaml_text import Noted

PROVIDER = "~> 4.0"
_FORBIDDEN = str.maketrans(dict.fromkeys("<>%&\\?/", "-"))  # signs that the name of a tag may not have

_STORE = ObjectStore("azure", "https", ".blob.core.windows.net")


def modules(deployment: Deployment) -> list[File]:
    module = files(
        deployment,
        "Plain machines that run the container by themselves; the directory aks/ has the same as a node pool.",
        {
            "versions.tf": versions("hashicorp/azurerm", PROVIDER, provider()),
            "variables.tf": _variables(deployment),
            "main.tf": _main(deployment),
            "network.tf": _network(deployment),
            "access.tf": access(deployment),
            "storage.tf": storage(deployment),
            "outputs.tf": _outputs(deployment),
        },
    )
    return [*module, File("start.sh", AZURE_MACHINE.script(script(deployment, _STORE)))]


def provider() -> Block:
    return Block("provider", ("azurerm",), {"subscription_id": Raw("var.subscription_id"), "features": Nested({})})


def tags(deployment: Deployment) -> dict[str, str]:
    pairs = {"chipwise-deployment": deployment.name}
    for key, value in deployment.labels.items():
        name, text = tag_value(key).translate(_FORBIDDEN), tag_value(value)
        if name and text and len(pairs) < 40:
            pairs.setdefault(name, text)
    return pairs


def _variables(deployment: Deployment) -> list[Block]:
    image = deployment.platforms.get("Machine", {}).get("image", "")
    about = f"Image with the driver of {deployment.node.chip} and Docker: publisher, offer, sku, version."
    kind = "object({ publisher = string, offer = string, sku = string, version = string })"
    default = dict(zip(("publisher", "offer", "sku", "version"), image.split(":"), strict=False))
    blocks = [
        variable("subscription_id", "string", "Subscription that pays."),
        region_variable(deployment, "location"),
        variable("subnet_id", "string", "Subnet with a way out (NAT gateway): the machines have no public address."),
        image_variable(deployment),
        variable("boot_image", kind, f"{about} Pin the version for production.", default)
        if len(default) == 4
        else variable("boot_image", kind, f"{about} None is known to us."),
        variable("ssh_public_key", "string", "Azure insists on a key; no port is open for it. Use Bastion."),
    ]
    if deployment.software.secrets:
        blocks.append(variable("key_vault", "object({ name = string, id = string })", "Key Vault that holds the secrets."))
    if deployment.form is Form.SERVICE:
        blocks.append(
            variable(
                "client_range", "string", "Addresses that may call the service: your balancer's subnet. Empty: nobody.", ""
            )
        )
        blocks.append(variable("backend_pool_ids", "list(string)", "Backend pools of a balancer that the machines join.", []))
    return blocks


def _main(deployment: Deployment) -> list[Block]:
    values: dict[str, Value] = {
        "IMAGE": Raw("var.image"),
        "NAME": Raw("local.name"),
        "IDENTITY": Raw("azurerm_user_assigned_identity.machines.client_id"),
    }
    if bucket_volumes(deployment):
        values["KEEP"] = text_of(Raw("azurerm_storage_account.work.primary_blob_endpoint"), "work")
    if deployment.software.secrets:
        values["VAULT"] = Raw("var.key_vault.name")
    blocks = [
        Block("locals", (), {"name": deployment.name, "tags": dict(tags(deployment)), **settings(values)}),
        resource(
            "azurerm_resource_group",
            "this",
            {
                "name": Raw("local.name"),
                "location": Raw("var.location"),
                "tags": Raw("local.tags"),
            },
            "All of it in one group: one place to see what it costs, and to delete.",
        ),
    ]
    if together(deployment):
        blocks.append(
            resource(
                "azurerm_proximity_placement_group",
                "close",
                location() | {"name": Raw("local.name")},
                "Close together: the machines exchange data at every step.",
            )
        )
    return [*blocks, *(_scale_set(deployment) if deployment.form is Form.SERVICE else _machines(deployment))]


def _common(deployment: Deployment) -> dict[str, Value]:
    fields: dict[str, Value] = {
        "admin_username": "chipwise",
        "disable_password_authentication": True,
        "custom_data": Raw("base64encode(local.start)"),
        "encryption_at_host_enabled": Noted(True, "Local disks too. The subscription must have the feature EncryptionAtHost."),
    }
    if deployment.spot:
        fields |= {
            "priority": "Spot",
            "eviction_policy": Noted("Deallocate", "What is on its disk stays for the time when there is room again."),
            "max_bid_price": Noted(-1, "Up to the price on demand: taken away for capacity, never for price."),
        }
    if together(deployment):
        fields["proximity_placement_group_id"] = Raw("azurerm_proximity_placement_group.close.id")
    fields |= {
        "admin_ssh_key": Nested({"username": "chipwise", "public_key": Raw("var.ssh_public_key")}),
        "source_image_reference": Nested(
            {key: Raw(f"var.boot_image.{key}") for key in ("publisher", "offer", "sku", "version")}
        ),
        "os_disk": Nested(
            {
                "storage_account_type": "Premium_LRS",
                "caching": "ReadWrite",
                "disk_size_gb": disk_gb(deployment),
            }
        ),
        "identity": Nested({"type": "UserAssigned", "identity_ids": [Raw("azurerm_user_assigned_identity.machines.id")]}),
        "boot_diagnostics": Nested({}),
    }
    return fields


def _machines(deployment: Deployment) -> list[Block]:
    name = text_of(Raw("local.name"), "-", Raw("count.index"))
    reason = "A machine lets go of its hardware when its work is done; destroy it when you have the results."
    if deployment.spot:
        reason += (
            "\nOne that was taken away is started again with `az vm start` when there is room, and goes on from its checkpoint."
        )
    if deployment.starts:
        reason += (
            f"\nThe plan starts it by the clock ({deployment.starts}, {deployment.time_zone}): let a pipeline apply this then."
        )
    count: dict[str, Value] = {"count": deployment.machines}
    return [
        resource(
            "azurerm_network_interface",
            "machines",
            count
            | {"name": name}
            | location()
            | {
                "accelerated_networking_enabled": True,
                "ip_configuration": Nested(
                    {
                        "name": "internal",
                        "subnet_id": Raw("var.subnet_id"),
                        "private_ip_address_allocation": "Dynamic",
                    }
                ),
            },
        ),
        resource(
            "azurerm_network_interface_security_group_association",
            "machines",
            count
            | {
                "network_interface_id": Raw("azurerm_network_interface.machines[count.index].id"),
                "network_security_group_id": Raw("azurerm_network_security_group.machines.id"),
            },
        ),
        resource(
            "azurerm_linux_virtual_machine",
            "machines",
            count
            | {
                "name": name,
                "computer_name": Noted(name, "The script reads its number from it."),
            }
            | location()
            | {
                "size": deployment.node.machine,
                "network_interface_ids": [Raw("azurerm_network_interface.machines[count.index].id")],
            }
            | _common(deployment),
            reason,
        ),
    ]


def _scale_set(deployment: Deployment) -> list[Block]:
    counts, span = sizes(deployment), ports(deployment)
    body: dict[str, Value] = (
        {"name": Raw("local.name")}
        | location()
        | {
            "sku": deployment.node.machine,
            "instances": counts.usual,
            "upgrade_mode": Noted("Manual", "New machines take the new model; replace the others one by one."),
            "overprovision": Noted(False, "Machines with accelerators are expensive: no more than asked for."),
        }
        | _common(deployment)
    )
    body["network_interface"] = Nested(
        {
            "name": "internal",
            "primary": True,
            "enable_accelerated_networking": True,
            "network_security_group_id": Raw("azurerm_network_security_group.machines.id"),
            "ip_configuration": Nested(
                {
                    "name": "internal",
                    "primary": True,
                    "subnet_id": Raw("var.subnet_id"),
                    "load_balancer_backend_address_pool_ids": Raw("var.backend_pool_ids"),
                }
            ),
        }
    )
    health = deployment.software.health
    if span is not None and health is not None:
        body["extension"] = Noted(
            Nested(
                {
                    "name": "health",
                    "publisher": "Microsoft.ManagedServices",
                    "type": "ApplicationHealthLinux",
                    "type_handler_version": "1.0",
                    "settings": call("jsonencode", {"protocol": "http", "port": span[0], "requestPath": health}),
                }
            ),
            "Repairs machines whose program no longer answers.",
        )
        body["automatic_instance_repair"] = Nested({"enabled": True, "grace_period": "PT30M"})
    if deployment.spot:
        body["spot_restore"] = Nested({"enabled": Noted(True, "Tries to get back what was taken away."), "timeout": "PT1H"})
    body["lifecycle"] = Nested({"ignore_changes": Noted([Raw("instances")], "Scaling changes it; apply must not.")})
    return [resource("azurerm_linux_virtual_machine_scale_set", "machines", body)]


def _network(deployment: Deployment) -> list[Block]:
    span = ports(deployment)
    body: dict[str, Value] = {"name": Raw("local.name")} | location()
    if together(deployment):
        body["security_rule"] = Nested(
            {
                "name": "each-other",
                "priority": 100,
                "direction": "Inbound",
                "access": "Allow",
                "protocol": "*",
                "source_port_range": "*",
                "destination_port_range": "*",
                "source_address_prefixes": Raw("data.azurerm_subnet.this.address_prefixes"),
                "destination_address_prefix": "*",
            }
        )
    if span is not None:
        body["dynamic"] = Nested(
            {
                "for_each": Raw('var.client_range == "" ? [] : [var.client_range]'),
                "content": Nested(
                    {
                        "name": "clients",
                        "priority": 200,
                        "direction": "Inbound",
                        "access": "Allow",
                        "protocol": "Tcp",
                        "source_port_range": "*",
                        "destination_port_range": port_range(span),
                        "source_address_prefix": Raw("security_rule.value"),
                        "destination_address_prefix": "*",
                    }
                ),
            },
            ("security_rule",),
        )
    deny: dict[str, Value] = {
        "name": "nobody-else",
        "priority": 4000,
        "direction": "Inbound",
        "access": "Deny",
        "protocol": "*",
        "source_port_range": "*",
        "destination_port_range": "*",
        "source_address_prefix": "*",
        "destination_address_prefix": "*",
        "resource_group_name": Raw("azurerm_resource_group.this.name"),
        "network_security_group_name": Raw("azurerm_network_security_group.machines.name"),
    }
    if together(deployment) or span is not None:
        made_deny = {
            key: value for key, value in deny.items() if key not in ("resource_group_name", "network_security_group_name")
        }
        rule = Noted(Nested(made_deny), "Azure lets a whole network in by default.")
        current = body.get("security_rule")
        body["security_rule"] = [current, rule] if current is not None else [rule]
    blocks = [resource("azurerm_network_security_group", "machines", body)]
    if not together(deployment) and span is None:
        blocks.append(resource("azurerm_network_security_rule", "nobody", deny, "Azure lets a whole network in by default."))
    if together(deployment):
        parts = Raw('split("/", var.subnet_id)')
        blocks.insert(
            0,
            data(
                "azurerm_subnet",
                "this",
                {
                    "name": Raw(f"element({parts.text}, 10)"),
                    "virtual_network_name": Raw(f"element({parts.text}, 8)"),
                    "resource_group_name": Raw(f"element({parts.text}, 4)"),
                },
            ),
        )
    return blocks


def _outputs(deployment: Deployment) -> list[Block]:
    kind = (
        "azurerm_linux_virtual_machine_scale_set.machines.id"
        if deployment.form is Form.SERVICE
        else "azurerm_linux_virtual_machine.machines[*].id"
    )
    blocks = [
        output("machines", Raw(kind), "The machines."),
        output("resource_group", Raw("azurerm_resource_group.this.name"), "All of it."),
    ]
    if bucket_volumes(deployment):
        blocks.append(
            output(
                "storage",
                text_of(Raw("azurerm_storage_account.work.primary_blob_endpoint"), "work"),
                "What outlives the machines.",
            )
        )
    return blocks
