#!/usr/bin/env python3
"""Runs the job of the plan on AWS Batch.

    python batch_job.py              shows the requests; creates nothing
    python batch_job.py --up         creates compute environment, queue and job definition, and submits the job
    python batch_job.py --down       ends the job and removes all of it

Machines come when the job is queued and go when it is done: between two runs nothing is paid for.
Needs boto3 (pip install boto3) and AWS credentials in one of the places where boto3 looks for them.
"""

from __future__ import annotations

import argparse
import base64
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
MACHINES: list[str] = SETTINGS["MACHINES"]
SPOT: bool = SETTINGS["SPOT"]
STRATEGY: str = SETTINGS["STRATEGY"]
MOST_VCPUS: int = SETTINGS["MOST_VCPUS"]  # what the plan uses, and no more: a mistake in a submission cannot rent the region
NODES: int = SETTINGS["NODES"]
PARTS: int = SETTINGS["PARTS"]
IMAGE_TYPE: str = SETTINGS["IMAGE_TYPE"]
IMAGE_PARAMETER: str | None = SETTINGS["IMAGE_PARAMETER"]
IMAGE: str | None = SETTINGS["IMAGE"]  # without one, --image names it
EFA_INTERFACES: int = SETTINGS["EFA_INTERFACES"]
FIRST_CARD: int = SETTINGS["FIRST_CARD"]
CONTAINER: dict[str, Any] = SETTINGS["CONTAINER"]
SECRETS: list[list[str]] = SETTINGS["SECRETS"]  # setting, name of the secret, its key: never values
VOLUMES: list[list[str]] = SETTINGS["VOLUMES"]  # name, path
USER: int = SETTINGS["USER"]  # the programs, and the owner of their directories
KEEPS: str = SETTINGS["KEEPS"]  # what would be lost with a machine
RETRIES: dict[str, Any] = SETTINGS["RETRIES"]  # a lost machine is no fault of the program; the program's own failure is final
SECONDS: int | None = SETTINGS["SECONDS"]
TAGS: dict[str, str] = SETTINGS["TAGS"]
DISK: dict[str, Any] = SETTINGS["DISK"]


COMPUTE, QUEUES = ("compute_environments", "computeEnvironments"), ("job_queues", "jobQueues")  # call, and key of its answer
FOLDERS = "/var/lib/chipwise"  # where directories are on a machine's own disk
SETTLED = ("VALID", "INVALID", None)  # nothing changes any more; what is INVALID can be removed all the same


class JobFailed(Exception):
    """Told to the user without a traceback."""


def code_of(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def tag_list() -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in TAGS.items()]


def wait(action: str, is_done: Callable[[], bool], seconds: int = 600) -> None:
    for _ in range(seconds // 3):
        if is_done():
            return
        time.sleep(3)
    raise JobFailed(f"{action}: not after {seconds} s.")


def user_data() -> str:
    """Directories on the machine's own disk, for the program's user: docker would make them for root. In parts, as Batch adds
    some of its own."""
    folders = " ".join(f"{FOLDERS}/{name}" for name, _ in VOLUMES)
    script = f"#!/bin/sh\nmkdir -p {folders}\nchown {USER}:{USER} {folders}\n"
    head = 'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="part"\n\n--part\n'
    text = f'{head}Content-Type: text/x-shellscript; charset="us-ascii"\n\n{script}\n--part--\n'
    return base64.b64encode(text.encode()).decode()


def template(group: str, subnet: str) -> dict[str, Any]:
    data: dict[str, Any] = {
        "BlockDeviceMappings": [{"DeviceName": "/dev/xvda", "Ebs": DISK}],
        # IMDSv2, and not from within containers: they have the rights of the job's role, not of the machine's.
        "MetadataOptions": {"HttpTokens": "required", "HttpPutResponseHopLimit": 1},
        "TagSpecifications": [{"ResourceType": kind, "Tags": tag_list()} for kind in ("instance", "volume")],
    }
    if VOLUMES:
        data["UserData"] = user_data()
    if EFA_INTERFACES:
        card: dict[str, Any] = {"Groups": [group], "SubnetId": subnet, "DeleteOnTermination": True}
        first = {**card, "NetworkCardIndex": 0, "DeviceIndex": 0, "InterfaceType": "interface"}
        efa_interfaces = [
            {**card, "NetworkCardIndex": card_index, "DeviceIndex": 1 if card_index == 0 else 0, "InterfaceType": "efa-only"}
            for card_index in range(FIRST_CARD, FIRST_CARD + EFA_INTERFACES)
        ]
        data["NetworkInterfaces"] = [first, *efa_interfaces]
    return data


def container(session: Any, options: argparse.Namespace) -> dict[str, Any]:
    properties: dict[str, Any] = json.loads(json.dumps(CONTAINER))
    properties["image"] = options.image
    properties["user"] = f"{USER}:{USER}"
    if options.job_role:
        properties["jobRoleArn"] = options.job_role
    if SECRETS:
        store = session.client("secretsmanager")
        arns = {name: store.describe_secret(SecretId=name)["ARN"] for _, name, _ in SECRETS}  # where it is, not what it is
        properties["secrets"] = [{"name": setting, "valueFrom": f"{arns[name]}:{key}::"} for setting, name, key in SECRETS]
        properties["executionRoleArn"] = options.execution_role
    properties["mountPoints"] = [{"containerPath": path, "sourceVolume": name} for name, path in VOLUMES]
    properties["volumes"] = [volume(session, options, name) for name, _ in VOLUMES]
    return properties


def access_point(efs: Any, file_system: str, name: str) -> str:
    """A door to one directory of the file system, which is made for the program's user when it is first mounted. Without one, a
    directory that is not there is not mounted, and a new one belongs to root."""
    path = f"/{NAME}/{name}"
    for page in efs.get_paginator("describe_access_points").paginate(FileSystemId=file_system):
        for point in page["AccessPoints"]:
            if point["RootDirectory"]["Path"] == path and point["LifeCycleState"] in ("creating", "available"):
                return str(point["AccessPointId"])
    directory = {"Path": path, "CreationInfo": {"OwnerUid": USER, "OwnerGid": USER, "Permissions": "0700"}}
    point_id: str = efs.create_access_point(FileSystemId=file_system, RootDirectory=directory, Tags=tag_list())["AccessPointId"]

    def is_available() -> bool:
        (point,) = efs.describe_access_points(AccessPointId=point_id)["AccessPoints"]
        return bool(point["LifeCycleState"] == "available")

    wait(f"the access point of {path}", is_available)
    return point_id


def on_efs(efs: Any, file_system: str, name: str) -> dict[str, Any]:
    door = {"accessPointId": access_point(efs, file_system, name)}
    return {"fileSystemId": file_system, "transitEncryption": "ENABLED", "authorizationConfig": door}


def volume(session: Any, options: argparse.Namespace, name: str) -> dict[str, Any]:
    if options.efs:
        return {"name": name, "efsVolumeConfiguration": on_efs(session.client("efs"), options.efs, name)}
    return {"name": name, "host": {"sourcePath": f"{FOLDERS}/{name}"}}


def definition(session: Any, options: argparse.Namespace) -> dict[str, Any]:
    wanted: dict[str, Any] = {"jobDefinitionName": NAME, "retryStrategy": RETRIES, "tags": TAGS, "propagateTags": True}
    if SECONDS is not None:
        wanted["timeout"] = {"attemptDurationSeconds": SECONDS}
    inside = container(session, options)
    if NODES > 1:
        inside["instanceType"] = MACHINES[0]
        nodes = {"numNodes": NODES, "mainNode": 0, "nodeRangeProperties": [{"targetNodes": "0:", "container": inside}]}
        return {**wanted, "type": "multinode", "nodeProperties": nodes}
    return {**wanted, "type": "container", "platformCapabilities": ["EC2"], "containerProperties": inside}


def compute(options: argparse.Namespace, group: str, subnets: list[str], image: str | None) -> dict[str, Any]:
    resources: dict[str, Any] = {
        "type": "SPOT" if SPOT else "EC2",
        "allocationStrategy": STRATEGY,
        "minvCpus": 0,
        "maxvCpus": MOST_VCPUS,
        "instanceTypes": MACHINES,
        "subnets": subnets,
        "securityGroupIds": [group],
        "instanceRole": options.instance_profile,
        "tags": TAGS,
        "launchTemplate": {"launchTemplateName": f"chipwise-{NAME}", "version": "$Latest"},
        "ec2Configuration": [{"imageType": IMAGE_TYPE, **({"imageIdOverride": image} if image else {})}],
    }
    if NODES > 1:
        resources["placementGroup"] = f"chipwise-{NAME}"
    environment = {
        "computeEnvironmentName": NAME,
        "type": "MANAGED",
        "state": "ENABLED",
        "computeResources": resources,
        "tags": TAGS,
    }
    return {**environment, "serviceRole": options.service_role} if options.service_role else environment


def find_subnets(ec2: Any, subnet_ids: list[str]) -> list[dict[str, Any]]:
    if subnet_ids:
        return list(ec2.describe_subnets(SubnetIds=subnet_ids)["Subnets"])
    if EFA_INTERFACES:
        raise JobFailed("Machines with several network interfaces get no public address: give a private subnet with --subnet.")
    return list(ec2.describe_subnets(Filters=[{"Name": "default-for-az", "Values": ["true"]}])["Subnets"])


def create(session: Any, options: argparse.Namespace) -> None:
    ec2, batch = session.client("ec2"), session.client("batch")
    image = session.client("ssm").get_parameter(Name=IMAGE_PARAMETER)["Parameter"]["Value"] if IMAGE_PARAMETER else None
    subnet_entries = find_subnets(ec2, options.subnet)
    if not subnet_entries:
        raise JobFailed(f"There is no default VPC in {REGION}: give --subnet.")
    subnets = [one["SubnetId"] for one in subnet_entries]
    subnets = subnets[:1] if NODES > 1 else subnets  # machines that talk to each other are in one zone
    name = f"chipwise-{NAME}"
    security_group = ec2.create_security_group(
        GroupName=name,
        Description="Machines of one chipwise deployment",
        VpcId=subnet_entries[0]["VpcId"],
        TagSpecifications=[{"ResourceType": "security-group", "Tags": tag_list()}],
    )
    group = security_group["GroupId"]
    if NODES > 1:  # EFA needs both directions by name, even where everything may go out
        among = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}]
        ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=among)
        ec2.authorize_security_group_egress(GroupId=group, IpPermissions=among)
        ec2.create_placement_group(GroupName=name, Strategy="cluster")
    ec2.create_launch_template(LaunchTemplateName=name, LaunchTemplateData=template(group, subnets[0]))
    batch.create_compute_environment(**compute(options, group, subnets, image))
    wait("compute environment", lambda: valid(batch, *COMPUTE))
    order = [{"order": 1, "computeEnvironment": NAME}]
    batch.create_job_queue(jobQueueName=NAME, state="ENABLED", priority=1, computeEnvironmentOrder=order, tags=TAGS)
    batch.register_job_definition(**definition(session, options))


def description_of(batch: Any, call: str, key: str) -> dict[str, Any]:
    descriptions = getattr(batch, f"describe_{call}")(**{key: [NAME]})[key]
    return dict(descriptions[0]) if descriptions else {"status": "DELETED"}


def status_of(batch: Any, call: str, key: str) -> str | None:
    """None: it is not there."""
    status = str(description_of(batch, call, key).get("status", "VALID"))
    return None if status == "DELETED" else status


def valid(batch: Any, call: str, key: str) -> bool:
    """Fails where waiting is of no use."""
    description = description_of(batch, call, key)
    if description.get("status") == "INVALID":
        raise JobFailed(f"{call.replace('_', ' ')}: {description.get('statusReason')}. Remove it with --down.")
    return bool(description.get("status", "VALID") == "VALID")


def submit(batch: Any) -> None:
    wanted: dict[str, Any] = {"jobName": NAME, "jobQueue": NAME, "jobDefinition": NAME, "tags": TAGS, "propagateTags": True}
    if PARTS > 1:
        wanted["arrayProperties"] = {"size": PARTS}
    print(f"submitted {batch.submit_job(**wanted)['jobId']}")


def up(session: Any, options: argparse.Namespace) -> None:
    if options.image is None:
        raise JobFailed(
            "Push the image to a registry, and give its full name with --image; see the notes on IMAGE in batch_job.json."
        )
    if KEEPS and not options.efs and not options.loses_work:
        raise JobFailed(f"{KEEPS} would be lost with the machine: give --efs fs-..., or accept it with --loses-work.")
    if SECRETS and not options.execution_role:
        raise JobFailed("Secrets are handed over by the execution role: give --execution-role.")
    if not options.up:
        environment = compute(options, "sg-made-by-up", options.subnet or ["subnet-of-the-default-vpc"], None)
        print(
            json.dumps({"compute environment": environment, "container": CONTAINER, "parts": PARTS, "nodes": NODES}, indent=2)
        )
        print("Nothing was created. Start it with --up.")
        return
    batch = session.client("batch")
    if status_of(batch, *QUEUES) is None:
        try:
            create(session, options)
        except BaseException:  # Ctrl-C too
            print("did not succeed: removing what was created", file=sys.stderr)
            down(session)
            raise
    wait("queue", lambda: valid(batch, *QUEUES))
    submit(batch)


def down(session: Any) -> None:
    ec2, batch = session.client("ec2"), session.client("batch")
    status_before = status_of(batch, *QUEUES) or status_of(batch, *COMPUTE)
    # Batch refuses to remove what is being changed: each waits until the change before it has come to rest.
    if status_of(batch, *QUEUES) not in ("DELETING", None):
        wait("the queue", lambda: status_of(batch, *QUEUES) in SETTLED)
        batch.update_job_queue(jobQueue=NAME, state="DISABLED")
        for status in ("SUBMITTED", "PENDING", "RUNNABLE", "STARTING", "RUNNING"):
            for page in batch.get_paginator("list_jobs").paginate(jobQueue=NAME, jobStatus=status):
                for job in page["jobSummaryList"]:
                    batch.terminate_job(jobId=job["jobId"], reason="ended by batch_job.py --down")
        wait("disabling the queue", lambda: status_of(batch, *QUEUES) in SETTLED)
        batch.delete_job_queue(jobQueue=NAME)
    wait("removing the queue", lambda: status_of(batch, *QUEUES) is None, 1800)
    if status_of(batch, *COMPUTE) not in ("DELETING", None):
        wait("the compute environment", lambda: status_of(batch, *COMPUTE) in SETTLED)
        batch.update_compute_environment(computeEnvironment=NAME, state="DISABLED")
        wait("disabling the compute environment", lambda: status_of(batch, *COMPUTE) in SETTLED)
        batch.delete_compute_environment(computeEnvironment=NAME)
    wait("removing the machines", lambda: status_of(batch, *COMPUTE) is None, 1800)
    print(f"removed queue and compute environment {NAME}" if status_before else "nothing of it was there")
    for job_definition in batch.describe_job_definitions(jobDefinitionName=NAME, status="ACTIVE")["jobDefinitions"]:
        batch.deregister_job_definition(jobDefinition=job_definition["jobDefinitionArn"])
    name = f"chipwise-{NAME}"
    removals: list[tuple[Callable[..., Any], dict[str, str]]] = [(ec2.delete_launch_template, {"LaunchTemplateName": name})]
    wanted = [{"Name": f"tag:{OWNER_TAG}", "Values": [NAME]}, {"Name": "group-name", "Values": [name]}]
    groups = ec2.describe_security_groups(Filters=wanted)["SecurityGroups"]
    removals += [(ec2.delete_security_group, {"GroupId": one["GroupId"]}) for one in groups]
    if NODES > 1:
        removals.append((ec2.delete_placement_group, {"GroupName": name}))
    for remove, arguments in removals:
        try:
            remove(**arguments)
        except ClientError as error:
            if not code_of(error).endswith(("NotFoundException", ".NotFound", ".Unknown")):
                raise


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    actions = parser.add_mutually_exclusive_group()
    actions.add_argument("--up", action="store_true", help="create what is missing, and submit the job")
    actions.add_argument("--down", action="store_true", help="end the job and remove everything")
    parser.add_argument("--image", default=IMAGE, help="container image, with its registry")
    parser.add_argument("--subnet", action="append", default=[], help="may be given several times, one for each zone")
    parser.add_argument("--instance-profile", default="ecsInstanceRole", help="of the machines")
    parser.add_argument("--service-role", metavar="ARN", help="of Batch; left out, the account's service-linked role")
    parser.add_argument("--job-role", metavar="ARN", help="what the program may do")
    parser.add_argument("--execution-role", metavar="ARN", help="may read the secrets")
    parser.add_argument("--efs", metavar="fs-ID", help="file system for data and checkpoints")
    parser.add_argument("--loses-work", action="store_true", help="start without --efs")
    options = parser.parse_args()
    session = boto3.Session(region_name=REGION)
    try:
        if options.down:
            down(session)
        else:
            up(session, options)
    except JobFailed as error:
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
