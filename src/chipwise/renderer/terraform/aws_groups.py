"""Auto scaling groups on AWS: spot with a way out, a group for each machine of a job, sizes that follow clock and load."""

from __future__ import annotations

from collections.abc import Sequence

from chipwise.renderer.deployment import BUSY, Deployment, Form, MachineLayer
from chipwise.renderer.terraform.hcl import Block, Nested, Raw, Value, resource, text_of
from chipwise.renderer.terraform.shape import ready_s, sizes, together
from chipwise.renderer.yaml_text import Noted

RIGHTS = [Raw("aws_iam_role_policy.machines")]  # before the first machine, which uses them at once
SPOT_CAN = "price-capacity-optimized"


def blocks(deployment: Deployment) -> list[Block]:
    return [_group(deployment), *_schedules(deployment), *_scaling(deployment)]


def _group(deployment: Deployment) -> Block:
    job, counts = deployment.form is Form.JOB, sizes(deployment)
    ranked = job and deployment.machines > 1
    later, held = job and bool(deployment.starts), deployment.reservation is not None
    body: dict[str, Value] = {}
    if ranked:
        body["count"] = deployment.machines
    body |= {
        "name": text_of(Raw("local.name"), "-", Raw("count.index")) if ranked else Raw("local.name"),
        "min_size": Noted(0, "A machine whose work is done leaves for good.") if job else counts.minimum,
        "max_size": 1 if job else counts.maximum,
        "desired_capacity": Noted(0, "The clock starts it.") if later else 1 if job else counts.usual,
        "vpc_zone_identifier": [Raw("var.subnet_ids[0]")] if together(deployment) or held else Raw("var.subnet_ids"),
        "wait_for_capacity_timeout": _patience(deployment),
        "health_check_type": None if job else Raw('length(var.target_group_arns) > 0 ? "ELB" : "EC2"'),
        "health_check_grace_period": None if job else Noted(ready_s(deployment), "Seconds: image and weights come first."),
        "target_group_arns": None if job else Raw("var.target_group_arns"),
        "capacity_rebalance": True if deployment.spot and not job else None,
        "launch_template": _TEMPLATE if held else None,
        "mixed_instances_policy": None if held else _mix(deployment),
    }
    if not job:
        body["instance_refresh"] = Nested(
            {
                "strategy": "Rolling",
                "preferences": Nested({"min_healthy_percentage": 100 if counts.minimum < 2 else 50}),
            }
        )
    body["dynamic"] = Nested(
        {
            "for_each": Raw('merge(local.tags, { "chipwise-first-rank" = count.index })') if ranked else Raw("local.tags"),
            "content": Nested({"key": Raw("tag.key"), "value": Raw("tag.value"), "propagate_at_launch": True}),
        },
        ("tag",),
    )
    body["lifecycle"] = Nested({"ignore_changes": _left_alone(deployment)})
    body["depends_on"] = RIGHTS
    reason = (
        "One group of one for each machine: who stands in for a lost one keeps its number, and goes on from its checkpoint."
        if ranked
        else "A lost machine is replaced and goes on from the last checkpoint."
        if job
        else ""
    )
    return resource("aws_autoscaling_group", "machines", body, reason)


_TEMPLATE = Nested(
    {"id": Raw("aws_launch_template.machines.id"), "version": Raw("aws_launch_template.machines.latest_version")}
)


def _patience(deployment: Deployment) -> Noted | None:
    if deployment.reservation is not None and deployment.reservation.block:
        return Noted("0", "Machines come when the block begins; apply does not wait.")
    return Noted("0", "Spot may take its time; apply does not wait.") if deployment.spot else None


def _left_alone(deployment: Deployment) -> Noted:
    """What others change. The clock sets all three sizes: an apply after hours would wake the machines."""
    if deployment.starts or deployment.stops:
        sizes_of_it = [Raw("desired_capacity"), Raw("min_size"), Raw("max_size")]
        return Noted(sizes_of_it, "The clock changes them; apply must not. New sizes come with the next start.")
    actor = "The machines change" if deployment.form is Form.JOB else "Scaling changes"
    return Noted([Raw("desired_capacity")], f"{actor} it; apply must not.")


def _mix(deployment: Deployment) -> Nested:
    spot, service = deployment.spot, deployment.form is Form.SERVICE
    distribution: dict[str, Value] = {}
    steady = [one for one in deployment.rented if one.purchase != "spot"] if len(deployment.rented) > 1 else []
    if spot:
        first = Noted(1, "One stays when spot goes.") if service else 0
        distribution["on_demand_base_capacity"] = Noted(sum(one.machines for one in steady), _base(steady)) if steady else first
        distribution["on_demand_percentage_above_base_capacity"] = Raw("var.on_demand_percentage")
        distribution["spot_allocation_strategy"] = SPOT_CAN
    else:
        distribution["on_demand_percentage_above_base_capacity"] = Noted(100, _base(steady)) if steady else 100
    distribution["on_demand_allocation_strategy"] = "prioritized"
    return Nested(
        {
            "instances_distribution": Nested(distribution),
            "launch_template": Nested(
                {
                    "launch_template_specification": Nested(
                        {
                            "launch_template_id": Raw("aws_launch_template.machines.id"),
                            "version": Raw("aws_launch_template.machines.latest_version"),
                        }
                    ),
                    "dynamic": Nested(
                        {
                            "for_each": Raw("var.instance_types"),
                            "content": Nested({"instance_type": Raw("override.value")}),
                        },
                        ("override",),
                    ),
                }
            ),
        }
    )


def _base(steady: Sequence[MachineLayer]) -> str:
    """A promise is made for a machine type and lowers the bill: the group itself does not know of it."""
    layers = "; ".join(one.title for one in steady)
    if not any(one.committed for one in steady):
        return f"The plan's base: {layers}."
    return (
        f"The plan's layers from the base up: {layers}.\nCommitments are bought separately, for the first of the machine types."
    )


def _schedules(deployment: Deployment) -> list[Block]:
    counts, job = sizes(deployment), deployment.form is Form.JOB
    ranked = job and deployment.machines > 1
    group = Raw(f"aws_autoscaling_group.machines{'[count.index]' if ranked else ''}.name")
    blocks = []
    for name, cron, minimum, usual, maximum, reason in (
        (
            "starts",
            deployment.starts,
            0 if job else counts.minimum,
            1 if job else counts.usual,
            1 if job else counts.maximum,
            "When the work begins." if job else "When users come.",
        ),
        (
            "stops",
            deployment.stops,
            0,
            0,
            0 if not job else 1,
            "What is not done by then waits in its checkpoint." if job else "When nobody comes any more.",
        ),
    ):
        if cron:
            body: dict[str, Value] = {
                "count": deployment.machines if ranked else None,
                "scheduled_action_name": name,
                "autoscaling_group_name": group,
                "recurrence": cron,
                "time_zone": deployment.time_zone,
                "min_size": minimum,
                "max_size": maximum,
                "desired_capacity": usual,
            }
            blocks.append(resource("aws_autoscaling_schedule", name, body, reason))
    return blocks


def _scaling(deployment: Deployment) -> list[Block]:
    scaling = deployment.scaling
    if scaling is None or scaling.busy_per_minute is None or sizes(deployment).minimum == sizes(deployment).maximum:
        return []
    unit = "machine" if deployment.per_machine == 1 else "copy (each has a target group of its own)"
    return [
        resource(
            "aws_autoscaling_policy",
            "requests",
            {
                "count": Raw("var.alb_resource_label == null ? 0 : 1"),
                "name": "requests",
                "autoscaling_group_name": Raw("aws_autoscaling_group.machines.name"),
                "policy_type": "TargetTrackingScaling",
                "estimated_instance_warmup": ready_s(deployment),
                "target_tracking_configuration": Nested(
                    {
                        "target_value": Noted(
                            float(f"{scaling.busy_per_minute:.3g}"),
                            f"Requests a minute and {unit}: {BUSY:.0%} of what the plan says one answers within the goals.",
                        ),
                        "predefined_metric_specification": Nested(
                            {
                                "predefined_metric_type": "ALBRequestCountPerTarget",
                                "resource_label": Raw("var.alb_resource_label"),
                            }
                        ),
                    }
                ),
            },
            "Requests, and not the load of the processor: that of an accelerator does not show there.",
        )
    ]
