"""The service account of machines on Google Cloud and its rights, their buckets and disks, and ports by their names."""

from __future__ import annotations

from chipwise.renderer.deployment import Deployment, Form
from chipwise.renderer.terraform.hcl import Block, Nested, Raw, Value, resource, text_of
from chipwise.renderer.terraform.shape import bucket_volumes, grouped, kept_words, place, saved
from chipwise.renderer.yaml_text import Noted


def access(deployment: Deployment) -> list[Block]:
    member = text_of("serviceAccount:", Raw("google_service_account.machines.email"))
    blocks = [
        resource(
            "google_service_account",
            "machines",
            {
                "account_id": Raw("substr(local.name, 0, 28)"),
                "display_name": text_of("Machines of ", Raw("local.name")),
            },
        ),
        resource(
            "google_project_iam_member",
            "logs",
            {
                "project": Raw("var.project"),
                "role": "roles/logging.logWriter",
                "member": member,
            },
        ),
    ]
    sent = {one.name for one in saved(deployment)}
    for number, volume in enumerate(deployment.volumes):
        location = place(volume.url, "gs")
        if location is not None:
            role = "roles/storage.objectUser" if volume.name in sent else "roles/storage.objectViewer"
            blocks.append(
                resource(
                    "google_storage_bucket_iam_member",
                    f"named_{number}",
                    {
                        "bucket": location.bucket,
                        "role": role,
                        "member": member,
                    },
                    f"The place of {volume.name} that the workload names.",
                )
            )
    if bucket_volumes(deployment):
        blocks.append(
            resource(
                "google_storage_bucket_iam_member",
                "work",
                {
                    "bucket": Raw("google_storage_bucket.work.name"),
                    "role": "roles/storage.objectUser",
                    "member": member,
                },
            )
        )
    for number, name in enumerate(sorted({name for _, name, _ in deployment.software.secrets})):
        blocks.append(
            resource(
                "google_secret_manager_secret_iam_member",
                f"secret_{number}",
                {
                    "secret_id": name,
                    "role": "roles/secretmanager.secretAccessor",
                    "member": member,
                },
            )
        )
    if deployment.form is Form.JOB and grouped(deployment):
        blocks += [
            resource(
                "google_project_iam_custom_role",
                "leave",
                {
                    "role_id": Raw('replace("${local.name}_leave", "-", "_")'),
                    "title": text_of(Raw("local.name"), ": leave the group"),
                    "permissions": ["compute.instanceGroupManagers.get", "compute.instanceGroupManagers.update"],
                },
                "A machine whose work is done takes itself out of its group.",
            ),
            resource(
                "google_project_iam_member",
                "leave",
                {
                    "project": Raw("var.project"),
                    "role": Raw("google_project_iam_custom_role.leave.id"),
                    "member": member,
                },
            ),
        ]
    return blocks


def storage(deployment: Deployment) -> list[Block]:
    if not bucket_volumes(deployment):
        return []
    return [
        resource(
            "google_storage_bucket",
            "work",
            {
                "name": text_of(Raw("var.project"), "-", Raw("local.name")),
                "location": Raw("var.region"),
                "uniform_bucket_level_access": True,
                "public_access_prevention": "enforced",
                "force_destroy": Noted(False, "A destroy stops here while there is something in it."),
                "versioning": Nested({"enabled": True}),
                "lifecycle_rule": Nested(
                    {
                        "action": Nested({"type": "Delete"}),
                        "condition": Nested({"days_since_noncurrent_time": 14}),
                    }
                ),
            },
            kept_words(deployment),
        )
    ]


def named_ports(span: tuple[int, int]) -> Value:
    """One for each copy that a machine holds: a backend service sends to one port by its name."""
    first, *rest = [
        Nested({"name": "http" if port == span[0] else f"http-{port - span[0]}", "port": port})
        for port in range(span[0], span[1] + 1)
    ]
    if not rest:
        return first
    reason = (
        f"A machine holds {len(rest) + 1} copies: give each name a backend service, and the balancer's route equal weights."
    )
    return [Noted(first, reason), *rest]


def watched(span: tuple[int, int]) -> Value:
    alone = span[0] == span[1]
    return span[0] if alone else Noted(span[0], "Of the first copy; checks of the backend services watch each.")
