#!/usr/bin/env python3
# llama-8b-legal: train on 2 x p5.48xlarge (aws eu-north-1, spot). Written by chipwise from the plan.
# Machines end themselves when the program ends.
# Expected: 40.0 h (35.0 h to 2.2 days), $2,481.50, 210.0 kg CO2e.
"""Starts the machines of the plan on EC2, and ends them again.

    python launch.py             checks permissions and images by a dry run; starts nothing
    python launch.py --up        starts, and waits until all run; ends what it started if anything goes wrong
    python launch.py --down      ends everything that carries this deployment's tag

Needs boto3 (pip install boto3) and AWS credentials in one of the places where boto3 looks for them.
"""

from __future__ import annotations

import argparse
import shlex
import signal
import sys
from pathlib import Path
from typing import Any

import boto3
from botocore.exceptions import ClientError, WaiterError

NAME = "llama-8b-legal"
MINE = "chipwise-deployment"
REGION = "eu-north-1"
MACHINES = 2
# One program over all machines: they come at once and stand close together.
TOGETHER = True
# Machine, how it is bought, EFA interfaces, first network card with EFA; tried in this order.
# Other machines at the spot price first; the full price only with --or-on-demand.
ATTEMPTS = [
    ("p5.48xlarge", "spot", 32, 0),
    ("p5e.48xlarge", "spot", 32, 0),
    ("p5en.48xlarge", "spot", 16, 0),
    ("p5.48xlarge", "on-demand", 32, 0),
    ("p5e.48xlarge", "on-demand", 32, 0),
    ("p5en.48xlarge", "on-demand", 16, 0),
]
# Where AWS keeps the id of the newest image with the right drivers.
IMAGE_PARAMETER = "/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-amazon-linux-2023/latest/ami-id"
# Built by the Dockerfile of `--to dockerfile`: --image names it.
IMAGE = None
ROOT_GIB = 100
PORT = None
LAST_PORT = None
# What would be lost with a machine.
KEEPS = "/checkpoints"
NEEDS_ROLE = True
# By the first two it is found again; the others say who pays.
TAGS = {
    "Name": "llama-8b-legal",
    "chipwise-deployment": "llama-8b-legal",
    "owner": "mara.lindqvist",
    "team": "language",
    "project": "legal-assistant",
    "cost_center": "4711",
}


# Answers that mean "not here, not now": the next attempt may do better.
NO_CAPACITY = {
    "InsufficientInstanceCapacity",
    "InsufficientHostCapacity",
    "InsufficientCapacityOnHost",
    "InsufficientFreeAddressesInSubnet",
    "InstanceLimitExceeded",
    "MaxSpotInstanceCountExceeded",
    "SpotMaxPriceTooLow",
    "Unsupported",
    "UnfulfillableCapacity",
    "VcpuLimitExceeded",
}
ALIVE = ["pending", "running", "stopping", "stopped"]


class Failed(Exception):
    """Told to the user without a traceback."""


def code_of(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def tag_list(**more: str) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in {**TAGS, **more}.items()]


def find_image(session: Any, ec2: Any, given: str | None) -> tuple[str, str, int]:
    """The image, the name of its root disk and the least size of it in GiB."""
    ami = given
    if ami is None:
        if IMAGE_PARAMETER is None:
            raise Failed("No public image with drivers for this chip is known: give one with --ami.")
        ami = session.client("ssm").get_parameter(Name=IMAGE_PARAMETER)["Parameter"]["Value"]
    found = ec2.describe_images(ImageIds=[ami])["Images"]
    if not found:
        raise Failed(f"There is no image {ami} in {REGION}.")
    root = found[0].get("RootDeviceName") or "/dev/xvda"
    sizes = [one["Ebs"].get("VolumeSize", 0) for one in found[0].get("BlockDeviceMappings", []) if "Ebs" in one]
    return ami, root, max([ROOT_GIB, *sizes])


def find_subnets(ec2: Any, given: list[str]) -> list[dict[str, Any]]:
    if given:
        return list(ec2.describe_subnets(SubnetIds=given)["Subnets"])
    if any(interfaces for _, _, interfaces, _ in ATTEMPTS):
        raise Failed("Machines with several network interfaces get no public address: give a private subnet with --subnet.")
    found = ec2.describe_subnets(Filters=[{"Name": "default-for-az", "Values": ["true"]}])["Subnets"]
    if not found:
        raise Failed(f"There is no default VPC in {REGION}: give --subnet.")
    return list(found)


def security_group(ec2: Any, vpc: str, open_to: str | None) -> str:
    """Nothing comes in but what the plan needs. It is made once and found again by its name."""
    name = f"chipwise-{NAME}"
    wanted = [{"Name": "group-name", "Values": [name]}, {"Name": "vpc-id", "Values": [vpc]}]
    found = ec2.describe_security_groups(Filters=wanted)["SecurityGroups"]
    if found:
        return str(found[0]["GroupId"])
    specification = [{"ResourceType": "security-group", "Tags": tag_list()}]
    made = ec2.create_security_group(
        GroupName=name, Description="Machines of one chipwise deployment", VpcId=vpc, TagSpecifications=specification
    )
    group = str(made["GroupId"])
    if TOGETHER:  # EFA needs both directions by name, even where everything may go out
        among = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}]
        ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=among)
        ec2.authorize_security_group_egress(GroupId=group, IpPermissions=among)
    if PORT is not None and open_to is not None:
        rule = {"IpProtocol": "tcp", "FromPort": PORT, "ToPort": LAST_PORT, "IpRanges": [{"CidrIp": open_to}]}
        ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[rule])
    return group


def placement_group(ec2: Any) -> str | None:
    """Machines that talk to each other stand close together."""
    if not TOGETHER:
        return None
    name = f"chipwise-{NAME}"
    try:
        specification = [{"ResourceType": "placement-group", "Tags": tag_list()}]
        ec2.create_placement_group(GroupName=name, Strategy="cluster", TagSpecifications=specification)
    except ClientError as error:
        if code_of(error) != "InvalidPlacementGroup.Duplicate":
            raise
    return name


def network(subnet: str, group: str, interfaces: int, first_card: int) -> dict[str, Any]:
    if not interfaces:
        return {"SubnetId": subnet, "SecurityGroupIds": [group]}
    card: dict[str, Any] = {"SubnetId": subnet, "Groups": [group], "DeleteOnTermination": True}
    cards = [{**card, "NetworkCardIndex": 0, "DeviceIndex": 0, "InterfaceType": "interface"}]
    for at in range(first_card, first_card + interfaces):  # beside the ordinary interface on card 0, alone on the others
        cards.append({**card, "NetworkCardIndex": at, "DeviceIndex": 1 if at == 0 else 0, "InterfaceType": "efa-only"})
    return {"NetworkInterfaces": cards}


def user_data(options: argparse.Namespace) -> str:
    body = Path(__file__).with_name("start.sh").read_text()
    first, _, rest = body.partition("\n")
    lines = [first, f"IMAGE={shlex.quote(options.image)}", f"KEEP={shlex.quote((options.keep or '').rstrip('/'))}"]
    return "\n".join(lines) + "\n" + rest


def request(options: argparse.Namespace, place: dict[str, Any], attempt: tuple[str, str, int, int]) -> dict[str, Any]:
    machine, purchase, interfaces, first_card = attempt
    disk = {"VolumeType": "gp3", "VolumeSize": place["gib"], "Throughput": 500, "Encrypted": True, "DeleteOnTermination": True}
    wanted: dict[str, Any] = {
        "ImageId": place["ami"],
        "InstanceType": machine,
        "BlockDeviceMappings": [{"DeviceName": place["root"], "Ebs": disk}],
        # IMDSv2 only, for the host and not beyond; tags tell each machine its place among the others.
        "MetadataOptions": {"HttpTokens": "required", "HttpPutResponseHopLimit": 1, "InstanceMetadataTags": "enabled"},
        "InstanceInitiatedShutdownBehavior": "terminate",
        "UserData": user_data(options),
        **network(place["subnet"], place["group"], interfaces, first_card),
    }
    if place["placement"] is not None:
        wanted["Placement"] = {"GroupName": place["placement"]}
    if options.instance_profile:
        wanted["IamInstanceProfile"] = {"Name": options.instance_profile}
    if purchase == "spot":
        spot = {"SpotInstanceType": "one-time", "InstanceInterruptionBehavior": "terminate"}
        wanted["InstanceMarketOptions"] = {"MarketType": "spot", "SpotOptions": spot}
    return wanted


def dry_run(ec2: Any, wanted: dict[str, Any]) -> None:
    """AWS checks permissions and parameters, and starts nothing."""
    try:
        ec2.run_instances(**wanted, MinCount=1, MaxCount=1, DryRun=True)
    except ClientError as error:
        if code_of(error) not in {"DryRunOperation", *NO_CAPACITY}:
            raise


def attempts(options: argparse.Namespace) -> list[tuple[str, str, int, int]]:
    """A plan that counts on spot pays the full price only if somebody said so."""
    first = ATTEMPTS[0][1]
    return [one for one in ATTEMPTS if one[1] == first or options.or_on_demand]


def start(ec2: Any, options: argparse.Namespace, place: dict[str, Any], subnets: list[str], started: list[str]) -> None:
    """Fills `started` as machines come, so that the caller can end them whatever happens."""
    for attempt in attempts(options):
        for subnet in subnets:
            missing = MACHINES - len(started)
            if missing == 0:
                return
            wanted = request(options, {**place, "subnet": subnet}, attempt)
            tagged = tag_list(**{"chipwise-first-rank": str(len(started))})
            wanted["TagSpecifications"] = [{"ResourceType": one, "Tags": tagged} for one in ("instance", "volume")]
            try:  # one program over all machines needs them all at once; independent ones take what there is
                made = ec2.run_instances(**wanted, MinCount=MACHINES if TOGETHER else 1, MaxCount=missing)
            except ClientError as error:
                if code_of(error) not in NO_CAPACITY:
                    raise
                print(f"no: {attempt[0]} ({attempt[1]}) in {subnet}: {code_of(error)}")
                continue
            ids = [one["InstanceId"] for one in made["Instances"]]
            started += ids
            print(f"started {len(ids)} x {attempt[0]} ({attempt[1]}) in {subnet}")
            if TOGETHER:
                head = next(one["PrivateIpAddress"] for one in made["Instances"] if one.get("AmiLaunchIndex", 0) == 0)
                ec2.create_tags(Resources=ids, Tags=[{"Key": "chipwise-head", "Value": head}])
    if len(started) < MACHINES:
        tried = ", ".join(f"{machine} ({purchase})" for machine, purchase, _, _ in attempts(options))
        more = "" if attempts(options) == ATTEMPTS else " With --or-on-demand it takes them at the full price."
        raise Failed(f"Only {len(started)} of {MACHINES} machines were to be had. Tried: {tried}.{more}")


def running(ec2: Any) -> list[str]:
    wanted = [{"Name": f"tag:{MINE}", "Values": [NAME]}, {"Name": "instance-state-name", "Values": ALIVE}]
    pages = ec2.get_paginator("describe_instances").paginate(Filters=wanted)
    return [one["InstanceId"] for page in pages for group in page["Reservations"] for one in group["Instances"]]


def end(ec2: Any, ids: list[str]) -> None:
    if ids:
        ec2.terminate_instances(InstanceIds=ids)
        ec2.get_waiter("instance_terminated").wait(InstanceIds=ids)
        print(f"ended {len(ids)} machines")


def up(session: Any, options: argparse.Namespace) -> None:
    ec2 = session.client("ec2")
    if there := running(ec2):
        raise Failed(f"It runs already: {', '.join(there)}. End it first with --down.")
    ami, root, gib = find_image(session, ec2, options.ami)
    found = find_subnets(ec2, options.subnet)
    subnets = [one["SubnetId"] for one in found]
    print(f"{MACHINES} x {ATTEMPTS[0][0]} ({ATTEMPTS[0][1]}) in {REGION}, image {ami}")
    place: dict[str, Any] = {"ami": ami, "root": root, "gib": gib, "subnet": subnets[0], "group": None, "placement": None}
    if not options.up:
        wanted = request(options, {**place, "group": "sg-0"}, ATTEMPTS[0])
        wanted.pop("SecurityGroupIds", None)  # it is made when machines are
        for one in wanted.get("NetworkInterfaces", []):
            one.pop("Groups")
        dry_run(ec2, wanted)
        print("dry run: fine. Start it with --up.")
        return
    started: list[str] = []
    try:
        place["group"] = security_group(ec2, found[0]["VpcId"], options.open_to)
        place["placement"] = placement_group(ec2)
        dry_run(ec2, request(options, place, ATTEMPTS[0]))
        start(ec2, options, place, subnets, started)
        ec2.get_waiter("instance_running").wait(InstanceIds=started)
    except BaseException:  # Ctrl-C too: no machine is left running by a launch that did not succeed
        print("did not succeed: ending what was started", file=sys.stderr)
        end(ec2, sorted({*started, *running(ec2)}))
        remove_groups(ec2)
        raise
    print("running: " + " ".join(started))


def remove_groups(ec2: Any) -> None:
    wanted = [{"Name": f"tag:{MINE}", "Values": [NAME]}]
    for one in ec2.describe_security_groups(Filters=wanted)["SecurityGroups"]:
        ec2.delete_security_group(GroupId=one["GroupId"])
    if TOGETHER:
        try:
            ec2.delete_placement_group(GroupName=f"chipwise-{NAME}")
        except ClientError as error:
            if code_of(error) != "InvalidPlacementGroup.Unknown":
                raise


def down(session: Any) -> None:
    ec2 = session.client("ec2")
    ids = running(ec2)
    end(ec2, ids)
    remove_groups(ec2)
    if not ids:
        print("nothing was running")


def check(options: argparse.Namespace) -> None:
    """What no plan can know and a run needs."""
    if options.image is None:
        raise Failed("Push the image of `chipwise render --to dockerfile` to a registry, and give its full name with --image.")
    if KEEPS and not options.keep and not options.loses_work:
        raise Failed(f"{KEEPS} would be lost with the machine: give --keep s3://bucket/prefix, or accept it with --loses-work.")
    if (NEEDS_ROLE or options.keep) and not options.instance_profile:
        raise Failed("Machines read S3 or secrets: give --instance-profile with the right to do it.")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--up", action="store_true", help="start the machines")
    what.add_argument("--down", action="store_true", help="end the machines, and remove their groups")
    parser.add_argument("--image", default=IMAGE, help="container image, with its registry")
    parser.add_argument("--ami", help="machine image, instead of the one that SSM names")
    parser.add_argument("--subnet", action="append", default=[], help="may be given several times, one for each zone")
    parser.add_argument("--instance-profile", help="IAM instance profile of the machines")
    parser.add_argument("--keep", metavar="S3-URL", help="where data, checkpoints and logs outlive the machines")
    parser.add_argument("--loses-work", action="store_true", help="start without --keep")
    parser.add_argument("--open-to", metavar="CIDR", help="who may reach the service's port; left out, nobody")
    if ATTEMPTS[0][1] == "spot":
        parser.add_argument("--or-on-demand", action="store_true", help="at the full price where there is no spot machine")
    parser.set_defaults(or_on_demand=False)
    options = parser.parse_args()
    for one in (signal.SIGINT, signal.SIGTERM):  # a shell's background jobs ignore Ctrl-C unless told otherwise
        signal.signal(one, signal.default_int_handler)
    session = boto3.Session(region_name=REGION)
    try:
        if options.down:
            down(session)
        else:
            check(options)
            up(session, options)
    except Failed as error:
        print(error, file=sys.stderr)
        return 1
    except (ClientError, WaiterError) as error:
        print(f"AWS: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
