"""The identity of machines on Azure, its rights, and the storage that they use."""

from __future__ import annotations

from chipwise.renderer.deployment import Deployment, Form
from chipwise.renderer.terraform.hcl import Block, Nested, Raw, Value, resource, text_of
from chipwise.renderer.terraform.shape import bucket_volumes, kept_words
from chipwise.renderer.yaml_text import Noted


def location() -> dict[str, Value]:
    return {
        "resource_group_name": Raw("azurerm_resource_group.this.name"),
        "location": Raw("azurerm_resource_group.this.location"),
        "tags": Raw("local.tags"),
    }


def access(deployment: Deployment) -> list[Block]:
    principal = Raw("azurerm_user_assigned_identity.machines.principal_id")
    blocks = [resource("azurerm_user_assigned_identity", "machines", {"name": Raw("local.name")} | location())]
    if bucket_volumes(deployment):
        blocks.append(
            resource(
                "azurerm_role_assignment",
                "work",
                {
                    "scope": Raw("azurerm_storage_account.work.id"),
                    "role_definition_name": "Storage Blob Data Contributor",
                    "principal_id": principal,
                },
            )
        )
    if deployment.software.secrets:
        blocks.append(
            resource(
                "azurerm_role_assignment",
                "secrets",
                {
                    "scope": Raw("var.key_vault.id"),
                    "role_definition_name": "Key Vault Secrets User",
                    "principal_id": principal,
                },
            )
        )
    if deployment.form is Form.JOB:
        blocks += [
            resource(
                "azurerm_role_definition",
                "leave",
                {
                    "name": text_of(Raw("local.name"), ": let go of hardware"),
                    "scope": Raw("azurerm_resource_group.this.id"),
                    "permissions": Nested({"actions": ["Microsoft.Compute/virtualMachines/deallocate/action"]}),
                    "assignable_scopes": [Raw("azurerm_resource_group.this.id")],
                },
                "The one thing that a machine may do to machines of its group.",
            ),
            resource(
                "azurerm_role_assignment",
                "leave",
                {
                    "scope": Raw("azurerm_resource_group.this.id"),
                    "role_definition_id": Raw("azurerm_role_definition.leave.role_definition_resource_id"),
                    "principal_id": principal,
                },
            ),
        ]
    names = [one.name for one in deployment.volumes if one.url is not None]
    if names:
        reason = f"The workload names places of its own ({', '.join(names)}): give this identity its rights there."
        blocks[0] = Block(blocks[0].kind, blocks[0].labels, blocks[0].body, reason)
    return blocks


def storage(deployment: Deployment) -> list[Block]:
    if not bucket_volumes(deployment):
        return []
    return [
        resource(
            "azurerm_storage_account",
            "work",
            {
                "name": Noted(Raw('substr("cw${md5("${var.subscription_id}${local.name}")}", 0, 24)'), "Unique in the world."),
            }
            | location()
            | {
                "account_tier": "Standard",
                "account_replication_type": "LRS",
                "min_tls_version": "TLS1_2",
                "allow_nested_items_to_be_public": False,
                "shared_access_key_enabled": Noted(False, "Identities only: no key that could leak."),
                "https_traffic_only_enabled": True,
                "blob_properties": Nested(
                    {
                        "versioning_enabled": True,
                        "delete_retention_policy": Nested({"days": 14}),
                    }
                ),
            },
            kept_words(deployment),
        ),
        resource(
            "azurerm_storage_container",
            "work",
            {
                "name": "work",
                "storage_account_id": Raw("azurerm_storage_account.work.id"),
                "container_access_type": "private",
            },
        ),
    ]
