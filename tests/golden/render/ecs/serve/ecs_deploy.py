#!/usr/bin/env python3
# chat-api: serve on 2 x g6e.xlarge (aws eu-central-1, on-demand). Written by chipwise from the plan.
# Expected: $1,534 and 55 kg CO2e a month.
"""Runs the plan on ECS, on machines of an auto scaling group of yours.

    python ecs_deploy.py                                      shows what it would do
    python ecs_deploy.py --up --auto-scaling-group ARN        registers the task and starts it
    python ecs_deploy.py --down                               stops it, empties the group, removes service and cluster

The group has the machine types and the image below, and protects new machines from scale-in: ECS decides which may go.
Needs boto3 (pip install boto3) and AWS credentials in one of the places where boto3 looks for them.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

SETTINGS: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
NAME: str = SETTINGS["NAME"]
OWNER_TAG: str = SETTINGS["MINE"]
REGION: str = SETTINGS["REGION"]
MACHINES: list[str] = SETTINGS["MACHINES"]  # what the auto scaling group has
IMAGE_PARAMETER: str | None = SETTINGS["IMAGE_PARAMETER"]  # the SSM parameter of the group's image
IMAGE: str | None = SETTINGS["IMAGE"]  # without one, --image names it
PROVIDER: str = SETTINGS["PROVIDER"]
LOGS: str = SETTINGS["LOGS"]
STRATEGY: list[dict[str, Any]] = SETTINGS["STRATEGY"]
SERVICE: bool = SETTINGS["SERVICE"]
COUNTED: str | None = SETTINGS["COUNTED"]  # in this setting each task finds its number, from 0
COPIES: int = SETTINGS["COPIES"]
MIN_TASKS: int = SETTINGS["LEAST"]
MAX_TASKS: int = SETTINGS["MOST"]
ROLLOUT: dict[str, Any] = SETTINGS["ROLLOUT"]
PLACEMENT: list[dict[str, str]] = SETTINGS["PLACEMENT"]
PORT: int | None = SETTINGS["PORT"]
STARTUP_SECONDS: int = SETTINGS["STARTUP_SECONDS"]
LOAD: dict[str, Any] | None = SETTINGS["LOAD"]  # what it is scaled by: a metric of AWS and how much of it a task may have
SCHEDULE: dict[str, list[Any]] = SETTINGS["SCHEDULE"]  # name: when, time zone, least, most
SECRETS: list[list[str]] = SETTINGS["SECRETS"]  # setting, name of the secret, its key: never values
USER: int = SETTINGS["USER"]  # the program, and the owner of its directories
KEEPS: str = SETTINGS["KEEPS"]
TAGS: dict[str, str] = SETTINGS["TAGS"]


class DeploymentFailed(Exception):
    """Told to the user without a traceback."""


def tag_list() -> list[dict[str, str]]:
    return [{"key": key, "value": value} for key, value in TAGS.items()]


def task(session: Any, options: argparse.Namespace) -> dict[str, Any]:
    """The task definition beside this file, with what only an account knows."""
    wanted: dict[str, Any] = json.loads(Path(__file__).with_name("task-definition.json").read_text())
    inside = wanted["containerDefinitions"][0]
    inside["image"] = options.image
    if SECRETS:
        store = session.client("secretsmanager")
        arns = {name: store.describe_secret(SecretId=name)["ARN"] for _, name, _ in SECRETS}  # where it is, not what it is
        inside["secrets"] = [{"name": setting, "valueFrom": f"{arns[name]}:{key}::"} for setting, name, key in SECRETS]
    if options.execution_role:
        wanted["executionRoleArn"] = options.execution_role
    if options.task_role:
        wanted["taskRoleArn"] = options.task_role
    if options.efs:
        for volume in wanted["volumes"]:
            volume.pop("host", None)
            volume["efsVolumeConfiguration"] = on_efs(session.client("efs"), options.efs, volume["name"])
    return wanted


def access_point(efs: Any, file_system: str, name: str) -> str:
    """A door to one directory of the file system, which is made for the program's user when it is first mounted. Without one, a
    directory that is not there is not mounted, and a new one belongs to root."""
    path = f"/{NAME}/{name}"
    for page in efs.get_paginator("describe_access_points").paginate(FileSystemId=file_system):
        for point in page["AccessPoints"]:
            if point["RootDirectory"]["Path"] == path and point["LifeCycleState"] in ("creating", "available"):
                return str(point["AccessPointId"])
    directory = {"Path": path, "CreationInfo": {"OwnerUid": USER, "OwnerGid": USER, "Permissions": "0700"}}
    tags = [{"Key": key, "Value": value} for key, value in TAGS.items()]
    point_id: str = efs.create_access_point(FileSystemId=file_system, RootDirectory=directory, Tags=tags)["AccessPointId"]

    def is_available() -> bool:
        (point,) = efs.describe_access_points(AccessPointId=point_id)["AccessPoints"]
        return bool(point["LifeCycleState"] == "available")

    wait(f"the access point of {path}", is_available)
    return point_id


def on_efs(efs: Any, file_system: str, name: str) -> dict[str, Any]:
    door = {"accessPointId": access_point(efs, file_system, name)}
    return {"fileSystemId": file_system, "transitEncryption": "ENABLED", "authorizationConfig": door}


def logs(client: Any) -> None:
    """By who deploys, so that the machines' role needs no right to do it. Logs outlive the service, for a month."""
    with contextlib.suppress(client.exceptions.ResourceAlreadyExistsException):
        client.create_log_group(logGroupName=LOGS, tags=TAGS)
    client.put_retention_policy(logGroupName=LOGS, retentionInDays=30)


def capacity(ecs: Any, group: str) -> None:
    """Machines come and go with the tasks."""
    scaling = {"status": "ENABLED", "targetCapacity": 100, "minimumScalingStepSize": 1, "maximumScalingStepSize": 100}
    provider = {
        "autoScalingGroupArn": group,
        "managedScaling": scaling,
        "managedTerminationProtection": "ENABLED",
        "managedDraining": "ENABLED",
    }
    ecs.create_cluster(clusterName=NAME, tags=tag_list(), settings=[{"name": "containerInsights", "value": "enabled"}])
    ecs.create_capacity_provider(name=PROVIDER, autoScalingGroupProvider=provider, tags=tag_list())
    ecs.put_cluster_capacity_providers(cluster=NAME, capacityProviders=[PROVIDER], defaultCapacityProviderStrategy=STRATEGY)


def start(session: Any, ecs: Any, options: argparse.Namespace) -> None:
    definition = ecs.register_task_definition(**task(session, options), tags=tag_list())["taskDefinition"]["taskDefinitionArn"]
    if not SERVICE:
        for part in range(COPIES):
            override: dict[str, Any] = {"name": "main"}
            if COUNTED is not None:
                override["environment"] = [{"name": COUNTED, "value": str(part)}]
            run = ecs.run_task(
                cluster=NAME,
                taskDefinition=definition,
                capacityProviderStrategy=STRATEGY,
                overrides={"containerOverrides": [override]},
                tags=tag_list(),
            )
            if run.get("failures"):
                raise DeploymentFailed(f"part {part}: {run['failures'][0].get('reason')}")
        print(f"started {COPIES} tasks of {definition}")
        return
    wanted: dict[str, Any] = {
        "cluster": NAME,
        "serviceName": NAME,
        "taskDefinition": definition,
        "desiredCount": COPIES,
        "capacityProviderStrategy": STRATEGY,
        "deploymentConfiguration": ROLLOUT,
        "placementStrategy": PLACEMENT,
        "propagateTags": "SERVICE",
        "enableECSManagedTags": True,
        "tags": tag_list(),
    }
    if options.target_group:
        wanted["loadBalancers"] = [{"targetGroupArn": options.target_group, "containerName": "main", "containerPort": PORT}]
        wanted["healthCheckGracePeriodSeconds"] = STARTUP_SECONDS
    ecs.create_service(**wanted)
    scale(session.client("application-autoscaling"), session.client("elbv2"), options.target_group)
    print(f"service {NAME}: {COPIES} tasks")


def load_metric(balancers: Any, target_group: str | None) -> dict[str, str] | None:
    """What the scaling watches. Requests are counted by the load balancer, which is named with its target group."""
    if LOAD is None or LOAD["metric"] != "ALBRequestCountPerTarget":
        return {"PredefinedMetricType": LOAD["metric"]} if LOAD is not None else None
    if target_group is None:
        return None
    (group,) = balancers.describe_target_groups(TargetGroupArns=[target_group])["TargetGroups"]
    if not group["LoadBalancerArns"]:
        return None
    balancer = group["LoadBalancerArns"][0].partition("loadbalancer/")[2]
    label = f"{balancer}/{target_group.rpartition(':')[2]}"
    return {"PredefinedMetricType": LOAD["metric"], "ResourceLabel": label}


def scale(client: Any, balancers: Any, target_group: str | None) -> None:
    if MIN_TASKS == MAX_TASKS:
        return
    target = {
        "ServiceNamespace": "ecs",
        "ResourceId": f"service/{NAME}/{NAME}",
        "ScalableDimension": "ecs:service:DesiredCount",
    }
    client.register_scalable_target(**target, MinCapacity=MIN_TASKS, MaxCapacity=MAX_TASKS)
    kind = load_metric(balancers, target_group)
    if LOAD is None or kind is None:
        reason = "without --target-group nobody counts requests" if LOAD else "no metric shows its load"
        print(f"not scaled by its load: {reason}", file=sys.stderr)
    else:
        policy = {"PredefinedMetricSpecification": kind, "ScaleInCooldown": 600, "ScaleOutCooldown": 60}
        policy["TargetValue"] = LOAD["target"]
        client.put_scaling_policy(
            PolicyName="load", PolicyType="TargetTrackingScaling", TargetTrackingScalingPolicyConfiguration=policy, **target
        )
    for name, (schedule, zone, minimum, maximum) in SCHEDULE.items():
        action = {"MinCapacity": minimum, "MaxCapacity": maximum}
        client.put_scheduled_action(
            ScheduledActionName=name, Schedule=schedule, Timezone=zone, ScalableTargetAction=action, **target
        )


def up(session: Any, options: argparse.Namespace) -> None:
    if options.image is None:
        raise DeploymentFailed(
            "Push the image of `chipwise render --to dockerfile` to a registry, and give its full name with --image."
        )
    if SECRETS and not options.execution_role:
        raise DeploymentFailed("Secrets are handed over by the execution role: give --execution-role.")
    if KEEPS and not options.efs and not options.loses_work:
        raise DeploymentFailed(f"{KEEPS} would be lost with the machine: give --efs fs-..., or accept it with --loses-work.")
    if not options.up:
        print(f"{COPIES} tasks on {' or '.join(MACHINES)} in {REGION}; the group's image: {IMAGE_PARAMETER}")
        print("Nothing was created. Start it with --up.")
        return
    if not options.auto_scaling_group:
        raise DeploymentFailed("Give --auto-scaling-group with the ARN of a group of " + " or ".join(MACHINES) + ".")
    ecs = session.client("ecs")
    clusters = ecs.describe_clusters(clusters=[NAME])["clusters"]
    if any(one["status"] == "ACTIVE" for one in clusters):
        raise DeploymentFailed(f"There is a cluster {NAME} already. Remove it first with --down.")
    try:
        logs(session.client("logs"))
        capacity(ecs, options.auto_scaling_group)
        start(session, ecs, options)
    except BaseException:  # Ctrl-C too
        print("did not succeed: removing what was created", file=sys.stderr)
        down(session)
        raise


def wait(action: str, is_done: Callable[[], bool], seconds: int = 600) -> None:
    for _ in range(seconds // 3):
        if is_done():
            return
        time.sleep(3)
    raise DeploymentFailed(f"{action}: not after {seconds} s.")


def down(session: Any) -> None:
    ecs = session.client("ecs")
    clusters = ecs.describe_clusters(clusters=[NAME], include=["TAGS"])["clusters"]
    own_clusters = [
        one for one in clusters if one["status"] == "ACTIVE" and {"key": OWNER_TAG, "value": NAME} in one.get("tags", [])
    ]
    if not own_clusters:
        print("nothing of it is there")
        return
    end_services(session, ecs)
    for page in ecs.get_paginator("list_tasks").paginate(cluster=NAME):
        for arn in page["taskArns"]:
            ecs.stop_task(cluster=NAME, task=arn, reason="ended by ecs_deploy.py --down")
    wait("stopping tasks", lambda: not ecs.list_tasks(cluster=NAME)["taskArns"])
    for arn in ecs.list_task_definitions(familyPrefix=NAME, status="ACTIVE")["taskDefinitionArns"]:
        ecs.deregister_task_definition(taskDefinition=arn)
    known = ecs.describe_capacity_providers(capacityProviders=[PROVIDER], include=["TAGS"])["capacityProviders"]
    for provider in known:
        if provider["status"] == "ACTIVE" and {"key": OWNER_TAG, "value": NAME} in provider.get("tags", []):
            group, scaling = provider["autoScalingGroupProvider"]["autoScalingGroupArn"], session.client("autoscaling")
            # A provider with machines cannot be taken from its cluster, nor can a cluster with machines be removed.
            wait("ending machines", functools.partial(empty, scaling, ecs, group), 1800)
            ecs.put_cluster_capacity_providers(cluster=NAME, capacityProviders=[], defaultCapacityProviderStrategy=[])
            wait("taking the provider from the cluster", lambda: settled(ecs))
            ecs.delete_capacity_provider(capacityProvider=PROVIDER)
            wait("removing the provider", lambda: removed(ecs))
    ecs.delete_cluster(cluster=NAME)
    print(f"removed cluster {NAME}; the auto scaling group stays, with 0 machines, and the logs in {LOGS}")


def end_services(session: Any, ecs: Any) -> None:
    arns = ecs.list_services(cluster=NAME)["serviceArns"]
    if not arns:
        return
    scaling = session.client("application-autoscaling")
    with contextlib.suppress(scaling.exceptions.ObjectNotFoundException):  # or it would start tasks again
        scaling.deregister_scalable_target(
            ServiceNamespace="ecs", ResourceId=f"service/{NAME}/{NAME}", ScalableDimension="ecs:service:DesiredCount"
        )
    for service in ecs.describe_services(cluster=NAME, services=arns)["services"]:
        if service["status"] == "ACTIVE":  # and not one that an earlier --down is ending
            ecs.update_service(cluster=NAME, service=service["serviceArn"], desiredCount=0)
            ecs.delete_service(cluster=NAME, service=service["serviceArn"], force=True)
    wait("ending services", lambda: ended(ecs, arns))
    print(f"removed service {NAME}")


def ended(ecs: Any, arns: list[str]) -> bool:
    return all(one["status"] == "INACTIVE" for one in ecs.describe_services(cluster=NAME, services=arns)["services"])


def empty(client: Any, ecs: Any, arn: str) -> bool:
    """Lets the machines go; true once ECS has none. The group protects new ones from scale-in, so it is asked each time."""
    name = arn.partition("autoScalingGroupName/")[2]
    for group in client.describe_auto_scaling_groups(AutoScalingGroupNames=[name])["AutoScalingGroups"]:
        inside = [one for one in group.get("Instances", []) if one["LifecycleState"] == "InService"]
        ids = [one["InstanceId"] for one in inside if one["ProtectedFromScaleIn"]]
        for offset in range(0, len(ids), 50):  # as many as one call takes
            batch = ids[offset : offset + 50]
            client.set_instance_protection(AutoScalingGroupName=name, InstanceIds=batch, ProtectedFromScaleIn=False)
    client.update_auto_scaling_group(AutoScalingGroupName=name, MinSize=0, DesiredCapacity=0)
    return not ecs.list_container_instances(cluster=NAME)["containerInstanceArns"]


def settled(ecs: Any) -> bool:
    (cluster,) = ecs.describe_clusters(clusters=[NAME], include=["ATTACHMENTS"])["clusters"]
    return bool(cluster.get("attachmentsStatus") != "UPDATE_IN_PROGRESS")


def removed(ecs: Any) -> bool:
    """It lives on for a while, and its name with it: a new --up would meet it."""
    known = ecs.describe_capacity_providers(capacityProviders=[PROVIDER])["capacityProviders"]
    return all(one.get("updateStatus") != "DELETE_IN_PROGRESS" for one in known)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    actions = parser.add_mutually_exclusive_group()
    actions.add_argument("--up", action="store_true", help="create it and start")
    actions.add_argument("--down", action="store_true", help="stop and remove it")
    parser.add_argument("--image", default=IMAGE, help="container image, with its registry")
    parser.add_argument("--auto-scaling-group", metavar="ARN", help="where machines come from")
    parser.add_argument("--target-group", metavar="ARN", help="of the load balancer before the service")
    parser.add_argument("--execution-role", metavar="ARN", help="pulls the image and reads the secrets")
    parser.add_argument("--task-role", metavar="ARN", help="what the program may do")
    parser.add_argument("--efs", metavar="fs-ID", help="file system for directories that stay")
    parser.add_argument("--loses-work", action="store_true", help="start without --efs")
    options = parser.parse_args()
    session = boto3.Session(region_name=REGION)
    try:
        if options.down:
            down(session)
        else:
            up(session, options)
    except DeploymentFailed as error:
        print(error, file=sys.stderr)
        return 1
    except (ClientError, BotoCoreError) as error:  # no credentials and no network too
        print(f"AWS: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
