"""A managed node group of an EKS cluster that is there already, for what `--to kubernetes` writes."""

from __future__ import annotations

import json

from chipwise.renderer.aws.tags import tags
from chipwise.renderer.cluster import buckets
from chipwise.renderer.cluster.accelerators import chip_taint
from chipwise.renderer.cluster.pod import namespace_of
from chipwise.renderer.deployment import Deployment, Form
from chipwise.renderer.file import File
from chipwise.renderer.layout import bought, most_machines, part_word
from chipwise.renderer.nodes import locked_memory
from chipwise.renderer.terraform import aws_reserved
from chipwise.renderer.terraform.aws import PROVIDER, cards
from chipwise.renderer.terraform.aws_rights import machine_role
from chipwise.renderer.terraform.hcl import Block, Nested, Raw, Value, call, data, output, resource, text_of, variable
from chipwise.renderer.terraform.module import files, region_variable, versions
from chipwise.renderer.terraform.shape import fabric, machine_types, pool_disk_gb, sizes, together
from chipwise.renderer.yaml_text import Noted, plain

# AWS's names of the node images, by the variant that `joining` finds for the chip.
_AMI_TYPES = {
    ("NVIDIA", "amd64"): "AL2023_x86_64_NVIDIA",
    ("NVIDIA", "arm64"): "AL2023_ARM_64_NVIDIA",
    ("Neuron", "amd64"): "AL2023_x86_64_NEURON",
    ("standard", "amd64"): "AL2023_x86_64_STANDARD",
    ("standard", "arm64"): "AL2023_ARM_64_STANDARD",
}
_POLICIES = ("AmazonEKSWorkerNodePolicy", "AmazonEKS_CNI_Policy", "AmazonEC2ContainerRegistryPullOnly")


def ami_type(deployment: Deployment) -> str | None:
    """None: EKS has no image for the chip."""
    node = deployment.node
    if not node.accelerated:
        variant = "standard"
    elif node.kind == "neuron":
        variant = "Neuron"
    else:
        variant = "NVIDIA" if node.kind == "gpu" and node.vendor == "NVIDIA" else ""
    return _AMI_TYPES.get((variant, node.arch))


def modules(deployment: Deployment) -> list[File]:
    if ami_type(deployment) is None:
        return []
    module = files(
        deployment,
        "A node group for the cluster that is there; what runs on it comes from `chipwise render --to kubernetes`.",
        {
            "versions.tf": versions(
                "hashicorp/aws",
                PROVIDER,
                Block(
                    "provider",
                    ("aws",),
                    {
                        "region": Raw("var.region"),
                        "default_tags": Nested({"tags": Raw("local.tags")}),
                    },
                ),
            ),
            "variables.tf": _variables(deployment),
            "main.tf": _main(deployment),
            "outputs.tf": [
                output(
                    f"node_group_{_label(word)}" if word else "node_group",
                    Raw(f"aws_eks_node_group.{_label(word)}.node_group_name"),
                    "Its name in the cluster.",
                )
                for word in (part_word(deployment, part) for part in bought(deployment))
            ],
        },
        "eks/",
    )
    return [*module, File("eks/nodes.txt", locked_memory.user_data())] if fabric(deployment) else module


def _variables(deployment: Deployment) -> list[Block]:
    one_place = "a placement group" if deployment.reservation is None else "what is held"
    one_zone = " One only: machines that work together are in one zone." if together(deployment) else ""
    return [
        region_variable(deployment),
        variable("cluster_name", "string", "The EKS cluster that the machines join."),
        *aws_reserved.variables(deployment),
        variable(
            "subnet_ids",
            "list(string)",
            f"Private subnets of the cluster for the machines.{one_zone}",
            check=("length(var.subnet_ids) == 1", f"Give one subnet: {one_place} is in one zone.")
            if together(deployment) or deployment.reservation is not None
            else ("length(var.subnet_ids) > 0", "Give at least one subnet."),
        ),
    ]


def _main(deployment: Deployment) -> list[Block]:
    blocks = [
        Block("locals", (), {"name": deployment.name, "tags": dict(tags(deployment))}),
        data("aws_partition", "current", {}),
        data("aws_eks_cluster", "this", {"name": Raw("var.cluster_name")}),
        *_role(),
        _template(deployment),
        *_program(deployment),
    ]
    if together(deployment) and not aws_reserved.block(deployment):
        blocks.append(resource("aws_placement_group", "close", {"name": Raw("local.name"), "strategy": "cluster"}))
    if fabric(deployment):
        group = Raw("aws_security_group.fabric.id")
        blocks.append(
            resource(
                "aws_security_group",
                "fabric",
                {
                    "name_prefix": text_of(Raw("local.name"), "-"),
                    "description": "EFA among the machines",
                    "vpc_id": Raw("data.aws_eks_cluster.this.vpc_config[0].vpc_id"),
                    "lifecycle": Nested({"create_before_destroy": True}),
                },
            )
        )
        rule = {
            "security_group_id": group,
            "referenced_security_group_id": group,
            "ip_protocol": "-1",
            "description": "Among the machines",
        }
        blocks.append(resource("aws_vpc_security_group_ingress_rule", "fabric", rule))
        blocks.append(resource("aws_vpc_security_group_egress_rule", "fabric", rule))
    return [*blocks, *(_group(part, part_word(deployment, part), deployment.name) for part in bought(deployment))]


def _role() -> list[Block]:
    return [
        *machine_role("nodes"),
        resource(
            "aws_iam_role_policy_attachment",
            "nodes",
            {
                "for_each": Raw("toset([" + ", ".join(f'"{one}"' for one in _POLICIES) + "])"),
                "role": Raw("aws_iam_role.nodes.name"),
                "policy_arn": text_of(
                    "arn:", Raw("data.aws_partition.current.partition"), ":iam::aws:policy/", Raw("each.value")
                ),
            },
            "What every node needs. Rights of the program belong to its own service account (Pod Identity).",
        ),
    ]


def _program(deployment: Deployment) -> list[Block]:
    """The rights of the workload's own service account: its buckets. Nothing where it names none."""
    if not buckets.buckets(deployment):
        return []
    trust: dict[str, Value] = {
        "actions": ["sts:AssumeRole", "sts:TagSession"],
        "principals": Nested({"type": "Service", "identifiers": ["pods.eks.amazonaws.com"]}),
    }
    role: dict[str, Value] = {
        "name_prefix": text_of(Raw("substr(local.name, 0, 30)"), "-"),
        "assume_role_policy": Raw("data.aws_iam_policy_document.pods.json"),
    }
    rights = json.dumps(plain(buckets.policy(deployment)))
    link: dict[str, Value] = {
        "cluster_name": Raw("var.cluster_name"),
        "namespace": namespace_of(deployment),
        "service_account": deployment.name,
        "role_arn": Raw("aws_iam_role.program.arn"),
    }
    reason = "What the service account of --to kubernetes may do with its buckets; needs the add-on eks-pod-identity-agent."
    return [
        data("aws_iam_policy_document", "pods", {"statement": Nested(trust)}),
        resource("aws_iam_role", "program", role),
        resource("aws_iam_role_policy", "program", {"role": Raw("aws_iam_role.program.id"), "policy": rights}),
        resource("aws_eks_pod_identity_association", "program", link, reason),
    ]


def _template(deployment: Deployment) -> Block:
    groups = [Raw("data.aws_eks_cluster.this.vpc_config[0].cluster_security_group_id")]
    body: dict[str, Value] = {
        "name_prefix": text_of(Raw("local.name"), "-"),
        "update_default_version": True,
        "vpc_security_group_ids": None if fabric(deployment) else groups,
        "metadata_options": Nested(
            {
                "http_endpoint": "enabled",
                "http_tokens": "required",
                "http_put_response_hop_limit": Noted(1, "Pods do not reach the node's credentials."),
            }
        ),
        "block_device_mappings": Nested(
            {
                "device_name": Noted("/dev/xvda", "Of the AL2023 node images."),
                "ebs": Nested(
                    {
                        "volume_type": "gp3",
                        "volume_size": pool_disk_gb(deployment),
                        "throughput": 500,
                        "iops": 3000,
                        "encrypted": True,
                        "delete_on_termination": True,
                    }
                ),
            }
        ),
    }
    if fabric(deployment):
        user_data = Noted(
            call("base64encode", Raw('file("${path.module}/nodes.txt")')), f"{locked_memory.REASON} EKS adds its own part."
        )
        body = {"name_prefix": body.pop("name_prefix"), "user_data": user_data} | body
        body["dynamic"] = cards(deployment, [*groups, Raw("aws_security_group.fabric.id")], None)
    body |= aws_reserved.template(deployment)
    if aws_reserved.block(deployment):
        body["instance_type"] = Noted(deployment.node.machine, "Of a block EKS takes it from here.")
    if together(deployment) and not aws_reserved.block(deployment):
        body["placement"] = Nested({"group_name": Raw("aws_placement_group.close.name")})
    body["tag_specifications"] = [
        Nested({"resource_type": kind, "tags": Raw("local.tags")}) for kind in ("instance", "volume", "network-interface")
    ]
    return resource("aws_launch_template", "nodes", body)


def _label(word: str) -> str:
    return word.replace("-", "_") or "this"


def _group(deployment: Deployment, word: str, name: str) -> Block:
    """`word`: of one of several layers, which the load is bought in."""
    counts, service = sizes(deployment), deployment.form is Form.SERVICE
    taint, block = chip_taint(deployment.node), aws_reserved.block(deployment)
    body: dict[str, Value] = {
        "cluster_name": Raw("data.aws_eks_cluster.this.name"),
        "node_group_name_prefix": text_of(Raw("substr(local.name, 0, 36)"), "-")
        if not word
        else text_of(Raw("substr(local.name, 0, 24)"), f"-{word}-"),
        "node_role_arn": Raw("aws_iam_role.nodes.arn"),
        "subnet_ids": Raw("var.subnet_ids"),
        "ami_type": Noted(ami_type(deployment), _driver(deployment)),
        "capacity_type": "CAPACITY_BLOCK" if block else "SPOT" if deployment.spot else "ON_DEMAND",
        "instance_types": None if block else machine_types(deployment),
        "labels": {"app.kubernetes.io/managed-by": "chipwise", "chipwise.dev/deployment": name},
        "launch_template": Nested(
            {
                "id": Raw("aws_launch_template.nodes.id"),
                "version": Raw("aws_launch_template.nodes.latest_version"),
            }
        ),
        "scaling_config": Nested(
            {
                "min_size": counts.minimum if service and not deployment.stops else Noted(0, _empty(deployment)),
                "desired_size": counts.usual if not block else Noted(counts.usual, "Apply this when the block has begun."),
                "max_size": max(most_machines(deployment), counts.usual),
            }
        ),
        "update_config": _update(deployment),
        "node_repair_config": Nested({"enabled": True}),
    }
    if taint is not None:
        effect = {"NoSchedule": "NO_SCHEDULE", "NoExecute": "NO_EXECUTE"}.get(taint.effect, "PREFER_NO_SCHEDULE")
        body["taint"] = Noted(
            Nested({"key": taint.key, "value": taint.value, "effect": effect}),
            "Pods that need no accelerator stay away from machines that have one.",
        )
    body["lifecycle"] = Nested(
        {
            "ignore_changes": Noted([Raw("scaling_config[0].desired_size")], "The autoscaler changes it; apply must not."),
            "create_before_destroy": None if deployment.reservation is not None else True,
        }
    )
    body["depends_on"] = [Raw("aws_iam_role_policy_attachment.nodes")]
    return resource("aws_eks_node_group", _label(word), body, _layer(deployment) if word else "")


def _update(deployment: Deployment) -> Value:
    update = Nested({"max_unavailable": 1})
    if deployment.reservation is None:
        return update
    reason = (
        "EKS starts a new node before it ends an old one, for which a full reservation has no room. Let it end one first\n"
        "(this provider has no field for it): aws eks update-nodegroup-config --update-config updateStrategy=MINIMAL"
    )
    return Noted(update, reason)


def _empty(deployment: Deployment) -> str:
    if deployment.reservation is not None:
        return "The Cluster Autoscaler takes empty machines away; what is held is paid for anyway."
    return "Nothing is paid for while it does not run: the Cluster Autoscaler takes empty machines away."


def _layer(deployment: Deployment) -> str:
    layer = deployment.layers[0]
    if layer.committed:
        return f"The base of the load: {layer.title}, paid for whether they run or not. The commitment is bought separately."
    return f"Above the base: {layer.purchase}, for as long as the load needs them."


def _driver(deployment: Deployment) -> str:
    known = deployment.platforms.get("EKS", {})
    if not deployment.node.accelerated:
        return "The plain node image."
    carried = f" ({known['driver']} in release {known['release']})" if "driver" in known and "release" in known else ""
    return f"The node image with the driver of {deployment.node.chip}{carried}."
