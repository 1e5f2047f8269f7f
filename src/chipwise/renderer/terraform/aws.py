"""Plain machines on AWS: a launch template, and instances or auto scaling groups made from it."""

from __future__ import annotations

import math

from chipwise.renderer.aws.tags import tags
from chipwise.renderer.deployment import Deployment, Form
from chipwise.renderer.file import File
from chipwise.renderer.limits import EC2_PACKED
from chipwise.renderer.terraform import aws_groups, aws_reserved, aws_rights
from chipwise.renderer.terraform.hcl import Block, Nested, Raw, Value, data, output, resource, text_of, variable
from chipwise.renderer.terraform.module import files, image_variable, region_variable, settings, versions
from chipwise.renderer.terraform.shape import bucket_volumes, copied, disk_gb, fabric, grouped, machine_types, ports, together
from chipwise.renderer.terraform.startup import ObjectStore, script
from chipwise.renderer.yaml_text import Noted

PROVIDER = "~> 5.100"

_STORE = ObjectStore("aws", "s3")


def modules(deployment: Deployment) -> list[File]:
    module = files(
        deployment,
        "Plain EC2 machines that run the container by themselves; the directory eks/ has the same as a node group.",
        {
            "versions.tf": _versions(deployment),
            "variables.tf": _variables(deployment),
            "main.tf": _main(deployment),
            "network.tf": aws_rights.network(deployment),
            "access.tf": aws_rights.access(deployment),
            "storage.tf": aws_rights.storage(deployment),
            "outputs.tf": _outputs(deployment),
        },
    )
    return [*module, File("start.sh", EC2_PACKED.script(script(deployment, _STORE)))]


def _versions(deployment: Deployment) -> list[Block]:
    provider = Block(
        "provider",
        ("aws",),
        {"region": Raw("var.region"), "default_tags": Nested({"tags": Raw("local.tags")})},
    )
    return versions("hashicorp/aws", PROVIDER, provider)


def ami(deployment: Deployment) -> str:
    return deployment.platforms.get("AMI", {}).get("ec2", "")


def _variables(deployment: Deployment) -> list[Block]:
    subnets = "Private subnets with a way out (NAT or endpoints), for images and weights."
    zones = (
        f"{subnets} The first is used: machines that work together are in one zone."
        if together(deployment)
        else f"{subnets} Several zones: spot is short in one zone at a time."
    )
    blocks = [
        region_variable(deployment),
        variable(
            "subnet_ids",
            "list(string)",
            f"{zones} Networks are made by their owners, so this module makes none.",
            check=("length(var.subnet_ids) > 0", "Give at least one subnet."),
        ),
        image_variable(deployment),
    ]
    node = deployment.node
    if ami(deployment):
        blocks.append(variable("ami_id", "string", _about_ami(), None))
    else:
        blocks.append(
            variable(
                "ami_id", "string", f"AMI with the driver of {node.chip} and Docker: no public parameter is known for one."
            )
        )
    blocks.append(
        variable(
            "instance_types",
            "list(string)",
            _about_types(deployment),
            machine_types(deployment) if grouped(deployment) else [node.machine],
        )
    )
    blocks += aws_reserved.variables(deployment)
    if grouped(deployment) and deployment.spot:
        blocks.append(
            variable(
                "on_demand_percentage",
                "number",
                "Share of machines that are not spot. Set it to 100 when spot is not available for long.",
                0,
                check=("var.on_demand_percentage >= 0 && var.on_demand_percentage <= 100", "Between 0 and 100."),
            )
        )
    if deployment.form is Form.SERVICE:
        blocks.append(
            variable("client_security_group_ids", "list(string)", "Who may call the service: the balancer's group.", [])
        )
        blocks.append(_target_groups(deployment))
        blocks.append(
            variable(
                "alb_resource_label",
                "string",
                "app/NAME/ID/targetgroup/NAME/ID of the balancer: the group follows its requests. null: it keeps its size.",
                None,
            )
        )
    blocks.append(
        variable(
            "session_manager",
            "bool",
            "Let people sign in through Session Manager. There is no SSH and no open port for it.",
            False,
        )
    )
    blocks.append(
        variable("budget_email", "string", "Who is notified when the budget is nearly spent. Empty: no budget is made.", "")
    )
    blocks.append(
        variable(
            "budget_usd",
            "number",
            "Budget a month. null: none was stated.",
            math.ceil(deployment.budget_usd) if deployment.budget_usd else None,
        )
    )
    return blocks


def _about_ami() -> str:
    return (
        "AMI of your own, to pin it. null: the public image with the driver that is the newest at the first apply; it is then "
        "kept until `terraform apply -replace=terraform_data.ami[0]`."
    )


def _about_types(deployment: Deployment) -> str:
    if together(deployment):
        return "Machine type. One only: machines that work together wait for the slowest."
    if deployment.spot and grouped(deployment):
        return "Machine types, the plan's choice first. Spot takes those that are cheap and not about to be taken away."
    if not grouped(deployment):
        return "Machine type: the first is taken."
    return "Machine types in order of preference; those after the first have the same chip, for when it is short."


def _main(deployment: Deployment) -> list[Block]:
    blocks: list[Block] = [
        Block(
            "locals",
            (),
            {
                "name": deployment.name,
                "tags": Noted(dict(tags(deployment)), "Activate them as cost allocation tags, or the bill does not show them."),
                **_settings(deployment),
            },
        ),
        *_image(deployment),
        _template(deployment),
    ]
    if together(deployment) and not aws_reserved.block(deployment):
        blocks.append(
            resource(
                "aws_placement_group",
                "close",
                {"name": Raw("local.name"), "strategy": "cluster"},
                "Close together in one zone: the machines exchange data at every step.",
            )
        )
    if not grouped(deployment):
        return [*blocks, _instances(deployment)]
    return [*blocks, *aws_groups.blocks(deployment)]


def _settings(deployment: Deployment) -> dict[str, Value]:
    values: dict[str, Value] = {
        "IMAGE": Raw("var.image"),
        "NAME": Raw("local.name"),
        "LOG_GROUP": Raw("aws_cloudwatch_log_group.this.name"),
    }
    if bucket_volumes(deployment):
        values["KEEP"] = text_of("s3://", Raw("aws_s3_bucket.work.id"))
    return settings(values)


def _image(deployment: Deployment) -> list[Block]:
    parameter = ami(deployment)
    body: dict[str, Value] = {"owners": ["amazon", "aws-marketplace", "self"]}
    if not parameter:
        return [data("aws_ami", "this", {**body, "filter": Nested({"name": "image-id", "values": [Raw("var.ami_id")]})})]
    chip = deployment.node.chip
    carries = (
        f"carries the driver of {chip}, Docker and its container toolkit" if deployment.node.accelerated else "is kept patched"
    )
    return [
        data(
            "aws_ssm_parameter",
            "ami",
            {"count": Raw("var.ami_id == null ? 1 : 0"), "name": parameter},
            f"The public image that {carries}.",
        ),
        resource(
            "terraform_data",
            "ami",
            {
                "count": Raw("var.ami_id == null ? 1 : 0"),
                "input": Raw("nonsensitive(data.aws_ssm_parameter.ami[0].value)"),
                "lifecycle": Nested({"ignore_changes": [Raw("input")]}),
            },
            "The one of the first apply: a newer image must not replace machines because something else has changed.\n"
            "To take the newest: terraform apply -replace='terraform_data.ami[0]'",
        ),
        data(
            "aws_ami",
            "this",
            {
                **body,
                "filter": Nested(
                    {
                        "name": "image-id",
                        "values": [Raw("var.ami_id != null ? var.ami_id : terraform_data.ami[0].output")],
                    }
                ),
            },
        ),
    ]


def _template(deployment: Deployment) -> Block:
    groups = [Raw("aws_security_group.machines.id")]
    body: dict[str, Value] = {
        "name_prefix": text_of(Raw("local.name"), "-"),
        "image_id": Raw("data.aws_ami.this.id"),
        "instance_type": Raw("var.instance_types[0]"),
        "user_data": Noted(Raw("base64gzip(local.start)"), "EC2 takes 16 KiB; packed, long commands fit too."),
        "ebs_optimized": True,
        "update_default_version": True,
        "instance_initiated_shutdown_behavior": "terminate",
        "vpc_security_group_ids": None if fabric(deployment) else groups,
        "iam_instance_profile": Nested({"arn": Raw("aws_iam_instance_profile.machines.arn")}),
        "metadata_options": Nested(
            {
                "http_endpoint": "enabled",
                "http_tokens": Noted("required", "IMDSv2 only: a program that fetches any URL must not reach the credentials."),
                "http_put_response_hop_limit": _hops(deployment),
                "instance_metadata_tags": Noted("enabled", "The script reads there which machine it is."),
            }
        ),
        "block_device_mappings": Nested(
            {
                "device_name": Raw("data.aws_ami.this.root_device_name"),
                "ebs": Nested(
                    {
                        "volume_type": "gp3",
                        "volume_size": Noted(
                            disk_gb(deployment), "GiB: system and image, and what the program keeps beside it."
                        ),
                        "throughput": 500,
                        "iops": 3000,
                        "encrypted": True,
                        "delete_on_termination": True,
                    }
                ),
            }
        ),
        "monitoring": Nested({"enabled": True}),
    }
    if fabric(deployment):
        body["dynamic"] = cards(deployment, groups, None if grouped(deployment) else Raw("var.subnet_ids[0]"))
    body |= aws_reserved.template(deployment)
    if together(deployment) and not aws_reserved.block(deployment):
        body["placement"] = Nested({"group_name": Raw("aws_placement_group.close.name")})
    marks = [Nested({"resource_type": kind, "tags": Raw("local.tags")}) for kind in ("instance", "volume", "network-interface")]
    body["tag_specifications"] = [
        Noted(marks[0], "Default tags of the provider do not reach what a template starts."),
        *marks[1:],
    ]
    body["lifecycle"] = Nested({"create_before_destroy": True})
    return resource("aws_launch_template", "machines", body)


def _hops(deployment: Deployment) -> Noted:
    if any(one.url is not None and one not in copied(deployment) for one in deployment.volumes):
        return Noted(2, "The program reads its data where they lie, with the machine's rights, from inside its container.")
    return Noted(1, "Not from inside a container with a network of its own.")


def cards(deployment: Deployment, groups: list[Raw], subnet: Raw | None) -> Value:
    """An EFA interface on each network card. The first card also carries ordinary traffic; the others need no address."""
    node, card = deployment.node, "network_interfaces.value"
    first, rest = ("interface", "efa-only") if node.first_card else ("efa", "efa-only")
    return Noted(
        Nested(
            {
                "for_each": Raw(f"range({node.interfaces + node.first_card})"),
                "content": Nested(
                    {
                        "network_card_index": Raw(card),
                        "device_index": Raw(f"{card} == 0 ? 0 : 1"),
                        "interface_type": Raw(f'{card} == 0 ? "{first}" : "{rest}"'),
                        "security_groups": groups,
                        "subnet_id": subnet,
                        "delete_on_termination": True,
                    }
                ),
            },
            ("network_interfaces",),
        ),
        f"EFA on {node.interfaces} cards; the first carries ordinary traffic too.",
    )


def _instances(deployment: Deployment) -> Block:
    body: dict[str, Value] = {
        "count": Noted(deployment.machines, "The work is split for this number.") if deployment.machines > 1 else None,
        "subnet_id": None if fabric(deployment) else Raw("var.subnet_ids[0]"),
        "launch_template": Nested(
            {
                "id": Raw("aws_launch_template.machines.id"),
                "version": Raw("aws_launch_template.machines.latest_version"),
            }
        ),
    }
    if deployment.machines > 1:
        body["tags"] = Noted({"chipwise-first-rank": Raw("count.index")}, "Machine 0 is where the others meet.")
    body["depends_on"] = aws_groups.RIGHTS
    return resource(
        "aws_instance",
        "machines",
        body,
        "A machine ends itself when its work is done. The next `terraform apply` would then start it again: "
        "`terraform destroy`\nwhen you have the results.",
    )


def _outputs(deployment: Deployment) -> list[Block]:
    blocks = [output("log_group", Raw("aws_cloudwatch_log_group.this.name"), "Where the program's output goes.")]
    if bucket_volumes(deployment):
        blocks.append(
            output(
                "bucket",
                Raw("aws_s3_bucket.work.id"),
                "What outlives the machines: " + ", ".join(f"{one.name}/" for one in bucket_volumes(deployment)) + ".",
            )
        )
    if grouped(deployment):
        blocks.append(
            output(
                "groups",
                Raw("aws_autoscaling_group.machines[*].name"),
                "Auto scaling groups. To run the job again: aws autoscaling set-desired-capacity --desired-capacity 1 "
                "--auto-scaling-group-name NAME"
                if deployment.form is Form.JOB
                else "Auto scaling groups.",
            )
        )
    else:
        blocks.append(output("instances", Raw("aws_instance.machines[*].id"), "The machines."))
    blocks.append(output("security_group", Raw("aws_security_group.machines.id"), "Of the machines."))
    return [*blocks, *_ports(deployment)]


def _target_groups(deployment: Deployment) -> Block:
    """A target group sends to one port of a machine, so that copies which share a machine have one each."""
    name, span = "target_group_arns", ports(deployment)
    if span is None or span[0] == span[1]:
        return variable(name, "list(string)", "Target groups of a balancer that the machines join.", [])
    count = span[1] - span[0] + 1
    about = f"Target groups of a balancer, one for each port from {span[0]} to {span[1]}: a machine holds {count} copies."
    fault = f"Give {count} target groups, of the ports {span[0]} to {span[1]}, to one listener with equal weights, or none."
    return variable(name, "list(string)", about, [], (f"contains([0, {count}], length(var.{name}))", fault))


def _ports(deployment: Deployment) -> list[Block]:
    span = ports(deployment)
    if span is None:
        return []
    first = output("port", span[0], "Where a machine answers.")
    if span[0] == span[1]:
        return [first]
    return [first, output("ports", list(range(span[0], span[1] + 1)), "Where the copies of a machine answer, one on each.")]
