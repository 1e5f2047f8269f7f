#!/usr/bin/env python3
# tag-api: serve on c7i.large (aws eu-central-1, on-demand). Written by chipwise from the plan.
# Machines stay until --down. Nothing balances or scales them: take --to ecs or kubernetes for that.
# Expected: $62.00 and 4 kg CO2e a month.
"""Starts the machines of the plan on EC2, and ends them again.

    python launch.py             checks permissions and images by a dry run; starts nothing
    python launch.py --up        starts, and waits until all run; ends what it started if anything goes wrong
    python launch.py --watch     replaces machines that are lost, until a job is done; --up goes on with it for spot machines
    python launch.py --down      ends everything that carries this deployment's tag

Needs boto3 (pip install boto3) and AWS credentials in one of the places where boto3 looks for them.
"""

from __future__ import annotations

import argparse
import gzip
import json
import shlex
import signal
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import boto3
from botocore.exceptions import BotoCoreError, ClientError

Attempt = tuple[str, str, int, int]

SETTINGS: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
NAME: str = SETTINGS["NAME"]
OWNER_TAG: str = SETTINGS["MINE"]  # the tag by which it is found again
REGION: str = SETTINGS["REGION"]
MACHINES: int = SETTINGS["MACHINES"]
JOB: bool = SETTINGS["JOB"]
FOLLOWS: bool = SETTINGS["FOLLOWS"]  # spot machines may be taken at any time, so --up stays and replaces them
TOGETHER: bool = SETTINGS["TOGETHER"]  # one program over all machines: they come at once and stand close together
# Machine, how it is bought, EFA interfaces, first network card with EFA; tried in this order.
ATTEMPTS: list[Attempt] = [(machine, purchase, cards, first) for machine, purchase, cards, first in SETTINGS["ATTEMPTS"]]
IMAGE_PARAMETER: str | None = SETTINGS["IMAGE_PARAMETER"]  # where AWS keeps the id of the newest image with the right drivers
IMAGE: str | None = SETTINGS["IMAGE"]  # without one, --image names it
PORT: int | None = SETTINGS["PORT"]
LAST_PORT: int | None = SETTINGS["LAST_PORT"]
KEEPS: str = SETTINGS["KEEPS"]  # what would be lost with a machine
NEEDS_ROLE: bool = SETTINGS["NEEDS_ROLE"]
TAGS: dict[str, str] = SETTINGS["TAGS"]  # by the first two it is found again; the others say who pays
MACHINE: dict[str, Any] = SETTINGS["MACHINE"]  # what every machine is, whatever its type
DISK: dict[str, Any] = SETTINGS["DISK"]  # of the system; an image may want a larger one
NO_CAPACITY: set[str] = set(SETTINGS["NO_CAPACITY"])  # answers that mean "not here, not now": the next attempt may do better

ALIVE = ["pending", "running", "stopping", "stopped"]
RANK, HEAD, ENDED = "chipwise-first-rank", "chipwise-head", "chipwise-ended"  # tags: see start.sh, and `down`


class LaunchFailed(Exception):
    """Told to the user without a traceback."""


class NoMachines(LaunchFailed):
    """Not now; later there may be some."""


class LaunchedMachine(NamedTuple):
    """One that was started, as EC2 tells of it."""

    id: str
    rank: int  # its place among the others, which a replacement takes over
    type: str
    purchase: str
    subnet: str
    launched: datetime
    fate: str  # alive, finished (it shut itself down), lost, or ended (by --down)


def machine(instance: dict[str, Any]) -> LaunchedMachine:
    tags = {tag["Key"]: tag["Value"] for tag in instance.get("Tags", [])}
    rank = int(tags.get(RANK, "0")) + instance.get("AmiLaunchIndex", 0)
    purchase = "spot" if instance.get("InstanceLifecycle") == "spot" else "on-demand"
    fate = "alive"
    if instance["State"]["Name"] == "terminated":
        by_itself = JOB and instance.get("StateReason", {}).get("Code") == "Client.InstanceInitiatedShutdown"
        fate = "ended" if ENDED in tags else "finished" if by_itself else "lost"
    subnet = instance.get("SubnetId", "")
    return LaunchedMachine(
        id=instance["InstanceId"],
        rank=rank,
        type=instance["InstanceType"],
        purchase=purchase,
        subnet=subnet,
        launched=instance["LaunchTime"],
        fate=fate,
    )


def code_of(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def tag_list(**extra: str) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in {**TAGS, **extra}.items()]


def find_image(session: Any, ec2: Any, image_id: str | None) -> tuple[str, str, int]:
    """The image, the name of its root disk and the least size of it in GiB."""
    ami = image_id
    if ami is None:
        if IMAGE_PARAMETER is None:
            raise LaunchFailed("No public image with drivers for this chip is known: give one with --ami.")
        ami = session.client("ssm").get_parameter(Name=IMAGE_PARAMETER)["Parameter"]["Value"]
    images = ec2.describe_images(ImageIds=[ami])["Images"]
    if not images:
        raise LaunchFailed(f"There is no image {ami} in {REGION}.")
    root = images[0].get("RootDeviceName") or "/dev/xvda"
    sizes = [one["Ebs"].get("VolumeSize", 0) for one in images[0].get("BlockDeviceMappings", []) if "Ebs" in one]
    return ami, root, max([DISK["VolumeSize"], *sizes])


def find_subnets(ec2: Any, subnet_ids: list[str]) -> list[dict[str, Any]]:
    if subnet_ids:
        return list(ec2.describe_subnets(SubnetIds=subnet_ids)["Subnets"])
    if any(interfaces for _, _, interfaces, _ in ATTEMPTS):
        raise LaunchFailed(
            "Machines with several network interfaces get no public address: give a private subnet with --subnet."
        )
    subnets = ec2.describe_subnets(Filters=[{"Name": "default-for-az", "Values": ["true"]}])["Subnets"]
    if not subnets:
        raise LaunchFailed(f"There is no default VPC in {REGION}: give --subnet.")
    return list(subnets)


def security_group(ec2: Any, vpc: str, open_to: str | None) -> str:
    """Nothing comes in but what the plan needs. It is made once and found again by its name."""
    name = f"chipwise-{NAME}"
    wanted = [{"Name": "group-name", "Values": [name]}, {"Name": "vpc-id", "Values": [vpc]}]
    groups = ec2.describe_security_groups(Filters=wanted)["SecurityGroups"]
    if groups:
        return str(groups[0]["GroupId"])
    specification = [{"ResourceType": "security-group", "Tags": tag_list()}]
    response = ec2.create_security_group(
        GroupName=name, Description="Machines of one chipwise deployment", VpcId=vpc, TagSpecifications=specification
    )
    group = str(response["GroupId"])
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
    first = {**card, "NetworkCardIndex": 0, "DeviceIndex": 0, "InterfaceType": "interface"}
    efa_interfaces = [  # beside the ordinary interface on card 0, alone on the others
        {**card, "NetworkCardIndex": card_index, "DeviceIndex": 1 if card_index == 0 else 0, "InterfaceType": "efa-only"}
        for card_index in range(first_card, first_card + interfaces)
    ]
    return {"NetworkInterfaces": [first, *efa_interfaces]}


def user_data(options: argparse.Namespace) -> bytes:
    """Packed: EC2 takes 16 KiB, and unpacks it."""
    body = Path(__file__).with_name("start.sh").read_text()
    first, _, rest = body.partition("\n")
    lines = [first, f"IMAGE={shlex.quote(options.image)}", f"KEEP={shlex.quote((options.keep or '').rstrip('/'))}"]
    return gzip.compress(("\n".join(lines) + "\n" + rest).encode(), mtime=0)


def request(options: argparse.Namespace, place: dict[str, Any], attempt: Attempt) -> dict[str, Any]:
    machine, purchase, interfaces, first_card = attempt
    wanted: dict[str, Any] = {
        **MACHINE,
        "ImageId": place["ami"],
        "InstanceType": machine,
        "BlockDeviceMappings": [{"DeviceName": place["root"], "Ebs": {**DISK, "VolumeSize": place["gib"]}}],
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


def attempts(options: argparse.Namespace) -> list[Attempt]:
    """A plan that counts on spot pays the full price only if somebody said so."""
    first = ATTEMPTS[0][1]
    return [one for one in ATTEMPTS if one[1] == first or options.or_on_demand]


def order(options: argparse.Namespace, subnets: list[str], losses: list[LaunchedMachine]) -> list[tuple[Attempt, str]]:
    """Attempts and subnets as they are tried. Where a machine was just taken there is little capacity: that comes last."""
    recent = {(one.type, one.purchase, one.subnet): at for at, one in enumerate(losses)}
    first = "spot" if len(losses) < LOSSES else "on-demand"
    candidates = [(attempt, subnet) for attempt in attempts(options) for subnet in subnets]
    return sorted(candidates, key=lambda one: (one[0][1] != first, recent.get((*one[0][:2], one[1]), -1)))


def start(
    ec2: Any,
    options: argparse.Namespace,
    place: dict[str, Any],
    losses: list[LaunchedMachine],
    ranks: list[int],
    started: list[LaunchedMachine],
) -> None:
    """A machine for each rank. Fills `started` as they come, so that the caller can end them whatever happens."""
    missing = list(ranks)
    for attempt, subnet in order(options, place["subnets"], losses):
        while missing:
            row = [rank for at, rank in enumerate(missing) if rank == missing[0] + at]  # EC2 counts within one request
            wanted = request(options, {**place, "subnet": subnet}, attempt)
            tagged = tag_list(**{RANK: str(row[0])})
            wanted["TagSpecifications"] = [{"ResourceType": one, "Tags": tagged} for one in ("instance", "volume")]
            try:  # one program over all machines needs them all at once; independent ones take what there is
                response = ec2.run_instances(**wanted, MinCount=len(row) if TOGETHER else 1, MaxCount=len(row))
            except ClientError as error:
                if code_of(error) not in NO_CAPACITY:
                    raise
                print(f"no: {attempt[0]} ({attempt[1]}) in {subnet}: {code_of(error)}")
                break
            machines = [machine(one)._replace(rank=row[0] + one["AmiLaunchIndex"]) for one in response["Instances"]]
            started += machines
            missing = missing[len(machines) :]
            print(f"started {len(machines)} x {attempt[0]} ({attempt[1]}) in {subnet}")
            if TOGETHER:
                head = next(one["PrivateIpAddress"] for one in response["Instances"] if one["AmiLaunchIndex"] == 0)
                ec2.create_tags(Resources=[one.id for one in machines], Tags=[{"Key": HEAD, "Value": head}])
    if missing:
        attempt_list = ", ".join(f"{kind} ({purchase})" for kind, purchase, _, _ in attempts(options))
        hint = "" if attempts(options) == ATTEMPTS else " With --or-on-demand it takes them at the full price."
        raise NoMachines(
            f"Only {len(ranks) - len(missing)} of {len(ranks)} machines were available. Tried: {attempt_list}.{hint}"
        )


def listed(ec2: Any, **wanted: list[str]) -> list[dict[str, Any]]:
    filters = [{"Name": name.replace("_", "-"), "Values": values} for name, values in wanted.items()]
    pages = ec2.get_paginator("describe_instances").paginate(Filters=filters)
    return [one for page in pages for group in page["Reservations"] for one in group["Instances"]]


def running(ec2: Any) -> list[str]:
    instances = listed(ec2, **{f"tag:{OWNER_TAG}": [NAME], "instance_state_name": ALIVE})
    return [one["InstanceId"] for one in instances]


def end(ec2: Any, ids: list[str]) -> None:
    if ids:
        ec2.terminate_instances(InstanceIds=ids)
        ec2.get_waiter("instance_terminated").wait(InstanceIds=ids)
        print(f"ended {len(ids)} machines")


def find_place(session: Any, ec2: Any, options: argparse.Namespace) -> tuple[dict[str, Any], str]:
    """Where machines may start and from what; the network of it."""
    ami, root, gib = find_image(session, ec2, options.ami)
    subnet_entries = find_subnets(ec2, options.subnet)
    subnets = [one["SubnetId"] for one in subnet_entries]
    place: dict[str, Any] = {"ami": ami, "root": root, "gib": gib, "subnets": subnets, "subnet": subnets[0]}
    return {**place, "group": None, "placement": None}, subnet_entries[0]["VpcId"]


def up(session: Any, options: argparse.Namespace) -> None:
    ec2 = session.client("ec2")
    if running_ids := running(ec2):
        raise LaunchFailed(
            f"It runs already: {', '.join(running_ids)}. Look after it with --watch, or end it first with --down."
        )
    place, vpc = find_place(session, ec2, options)
    print(f"{MACHINES} x {ATTEMPTS[0][0]} ({ATTEMPTS[0][1]}) in {REGION}, image {place['ami']}")
    if not options.up:
        wanted = request(options, {**place, "group": "sg-0"}, ATTEMPTS[0])
        wanted.pop("SecurityGroupIds", None)  # it is made when machines are
        for interface in wanted.get("NetworkInterfaces", []):
            interface.pop("Groups")
        dry_run(ec2, wanted)
        print("dry run: fine. Start it with --up.")
        return
    started: list[LaunchedMachine] = []
    try:
        place["group"] = security_group(ec2, vpc, options.open_to)
        place["placement"] = placement_group(ec2)
        dry_run(ec2, request(options, place, ATTEMPTS[0]))
        start(ec2, options, place, [], list(range(MACHINES)), started)
        ec2.get_waiter("instance_running").wait(InstanceIds=[one.id for one in started])
    except BaseException:  # Ctrl-C too: no machine is left running by a launch that did not succeed
        print("did not succeed: ending what was started", file=sys.stderr)
        end(ec2, sorted({*(one.id for one in started), *running(ec2)}))
        remove_groups(ec2)
        raise
    print("running: " + " ".join(one.id for one in started), flush=True)
    if options.watch:
        look_after(session, options, place, {one.rank: one for one in started})


def remove_groups(ec2: Any) -> None:
    wanted = [{"Name": f"tag:{OWNER_TAG}", "Values": [NAME]}]
    for group in ec2.describe_security_groups(Filters=wanted)["SecurityGroups"]:
        ec2.delete_security_group(GroupId=group["GroupId"])
    if TOGETHER:
        try:
            ec2.delete_placement_group(GroupName=f"chipwise-{NAME}")
        except ClientError as error:
            if code_of(error) != "InvalidPlacementGroup.Unknown":
                raise


def down(session: Any) -> None:
    ec2 = session.client("ec2")
    ids = running(ec2)
    if ids:
        try:  # a --watch at another desk must not take it for a loss
            ec2.create_tags(Resources=ids, Tags=[{"Key": ENDED, "Value": "by --down"}])
        except ClientError as error:
            print(f"a --watch elsewhere may replace them: {error}", file=sys.stderr)
    end(ec2, ids)
    remove_groups(ec2)
    if not ids:
        print("nothing was running")


def check(options: argparse.Namespace) -> None:
    """What no plan can know and a run needs."""
    if options.image is None:
        raise LaunchFailed(
            "Push the image of `chipwise render --to dockerfile` to a registry, and give its full name with --image."
        )
    if KEEPS and not options.keep and not options.loses_work:
        raise LaunchFailed(
            f"{KEEPS} would be lost with the machine: give --keep s3://bucket/prefix, or accept it with --loses-work."
        )
    if (NEEDS_ROLE or options.keep) and not options.instance_profile:
        raise LaunchFailed("Machines read S3 or secrets: give --instance-profile with the right to do it.")


LOSSES = 3  # of one machine: from then on it is bought at the full price first, if --or-on-demand allows it
LONGEST = 8  # times --every: how long it waits between two looks while nothing happens
FAILURES = 5  # answers of AWS in a row that are errors
PATIENCE_S = 12 * 3600  # without a machine in place of a lost one
KNOWN_S = 600  # after this EC2 knows of a machine for certain; ended ones it forgets after an hour or so


def status(session: Any, options: argparse.Namespace, rank: int, machine_id: str) -> str | None:
    """With what the program of a machine ended, as start.sh kept it in --keep. None: nothing was kept, or of another machine;
    an empty id is that of one which EC2 has forgotten."""
    if not options.keep:
        return None
    bucket, _, prefix = options.keep.removeprefix("s3://").rstrip("/").partition("/")
    try:
        key = "/".join(part for part in (prefix, f"logs/machine-{rank}/status") if part)
        writer_id, _, exit_status = (
            session.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read().decode().strip().partition(" ")
        )
    except ClientError:
        return None
    return exit_status if machine_id in ("", writer_id) else None


def look(ec2: Any, session: Any, options: argparse.Namespace, machines: dict[int, LaunchedMachine]) -> bool:
    """Brings what is known of the machines up to date: whether anything changed.

    It asks for those by their ids: tags and subnets of a machine may be gone soon after its end."""
    alive = {one.id: one for one in machines.values() if one.fate == "alive"}
    known_machines: dict[str, LaunchedMachine] = {}
    for offset in range(0, len(alive), 200):  # as many as one filter takes
        known_machines |= {
            one["InstanceId"]: machine(one) for one in listed(ec2, instance_id=list(alive)[offset : offset + 200])
        }
    changed = False
    for old_machine in alive.values():
        if old_machine.id in known_machines:
            fate = known_machines[old_machine.id].fate
        elif time.time() - old_machine.launched.timestamp() < KNOWN_S:
            continue
        else:  # it ended while nobody looked
            fate = "finished" if JOB and status(session, options, old_machine.rank, old_machine.id) is not None else "lost"
        if fate != "alive":
            machines[old_machine.rank], changed = old_machine._replace(fate=fate), True
            print(
                f"{fate}: machine {old_machine.rank}, {old_machine.id} ({old_machine.type}, {old_machine.purchase})", flush=True
            )
    return changed


def replace(
    ec2: Any,
    options: argparse.Namespace,
    place: dict[str, Any],
    machines: dict[int, LaunchedMachine],
    losses: list[LaunchedMachine],
) -> None:
    """Starts a machine in place of each lost one, with its rank. One program over several machines begins again on all of them.

    Its processes met once, at the first machine's address, and torchrun ends them all when one is gone: a machine that came
    later would find nobody. A new group meets at an address of its own, and goes on from the last checkpoint in --keep."""
    lost = [one for one in machines.values() if one.fate == "lost"]
    if TOGETHER:
        end(ec2, [one.id for one in machines.values() if one.fate == "alive"])
        machines |= {rank: one._replace(fate="lost") for rank, one in machines.items() if one.fate == "alive"}
        groups = [(sorted(machines), losses)]
    else:
        groups = [([one.rank], [before for before in losses if before.rank == one.rank]) for one in lost]
    for ranks, before in groups:
        started: list[LaunchedMachine] = []
        try:
            start(ec2, options, place, before, ranks, started)
        except BaseException:  # half a launch is of no use
            end(ec2, [one.id for one in started])
            raise
        machines |= {one.rank: one for one in started}


def follow(session: Any, options: argparse.Namespace, place: dict[str, Any], machines: dict[int, LaunchedMachine]) -> None:
    """Until all machines of a job have finished; those of a service are kept at their number until this program is stopped."""
    ec2 = session.client("ec2")
    losses: list[LaunchedMachine] = []
    interval = max(options.every, 1.0)
    wait, failures, short_since = interval, 0, 0.0
    while True:
        changed = False
        try:
            changed = look(ec2, session, options, machines)
            fates = {one.fate for one in machines.values()}
            if "ended" in fates:
                print("ended by --down")
                return
            lost = [one for one in machines.values() if one.fate == "lost"]
            fresh = [one for one in lost if one not in losses]
            if not TOGETHER:
                losses += fresh
            elif len(fresh) == len(lost):  # machines of one group that are lost together are one loss
                losses += fresh[:1]
            if lost:
                replace(ec2, options, place, machines, losses)
                changed = True
            elif fates == {"finished"}:
                remove_groups(ec2)
                return
            failures, short_since = 0, 0.0
        except NoMachines as error:
            print(error, file=sys.stderr, flush=True)
            short_since = short_since or time.time()
            if time.time() - short_since > PATIENCE_S:
                raise
        except (ClientError, BotoCoreError) as error:  # a network that was away, a limit of requests
            failures += 1
            if failures == FAILURES:
                raise
            print(f"AWS: {error}; looking again", file=sys.stderr, flush=True)
        wait = interval if changed else min(2 * wait, LONGEST * interval)
        time.sleep(wait)


def look_after(session: Any, options: argparse.Namespace, place: dict[str, Any], machines: dict[int, LaunchedMachine]) -> None:
    try:
        follow(session, options, place, machines)
    except BaseException as error:
        if options.down_on_stop and isinstance(error, KeyboardInterrupt):
            print("stopped: ending the machines", file=sys.stderr)
            down(session)
        else:
            left = [one.id for one in machines.values() if one.fate == "alive"]
            message = f"{len(left)} machines run on and nobody replaces a lost one"
            print(f"{message}: --watch looks after them again, --down ends them.", file=sys.stderr)
        raise
    if {one.fate for one in machines.values()} == {"finished"}:
        tell(session, options, machines)


def tell(session: Any, options: argparse.Namespace, machines: dict[int, LaunchedMachine]) -> None:
    """How a job ended, as far as anybody knows."""
    exit_statuses = {rank: status(session, options, rank, one.id) for rank, one in sorted(machines.items())}
    print(f"finished: all {len(machines)} machines ended by themselves")
    if all(one == "0" for one in exit_statuses.values()):
        return
    if not options.keep:
        print("Whether the program did well is known only with --keep, where its log goes.")
        return
    bad = ", ".join(f"machine {rank}: status {one or 'unknown'}" for rank, one in exit_statuses.items() if one != "0")
    raise LaunchFailed(f"The program did not end well ({bad}). Its logs: {options.keep.rstrip('/')}/logs/")


def resume(session: Any, options: argparse.Namespace) -> None:
    """Takes up what an earlier launch started, from this desk or another. The newest machine of each rank counts."""
    ec2 = session.client("ec2")
    known_machines = sorted(
        map(machine, listed(ec2, **{f"tag:{OWNER_TAG}": [NAME]})), key=lambda one: (one.launched, one.fate == "alive")
    )
    machines = {one.rank: one for one in known_machines}
    if not machines or all(one.fate == "ended" for one in machines.values()):
        raise LaunchFailed("Nothing of it runs or was lost just now. Start it with --up.")
    place, vpc = find_place(session, ec2, options)
    place["group"] = security_group(ec2, vpc, options.open_to)
    place["placement"] = placement_group(ec2)
    for rank in range(MACHINES):
        if rank not in machines:  # EC2 has forgotten it
            fate = "finished" if JOB and status(session, options, rank, "") is not None else "lost"
            machines[rank] = known_machines[-1]._replace(id="", rank=rank, fate=fate)
    print(f"watching {sum(one.fate == 'alive' for one in machines.values())} of {MACHINES} machines", flush=True)
    look_after(session, options, place, machines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    actions = parser.add_mutually_exclusive_group()
    actions.add_argument("--up", action="store_true", help="start the machines")
    actions.add_argument("--down", action="store_true", help="end the machines, and remove their groups")
    watch_help = "replace lost machines; without --up, those of a launch before" + (" (--up does it)" if FOLLOWS else "")
    parser.add_argument("--watch", action=argparse.BooleanOptionalAction, help=watch_help)
    parser.add_argument("--every", type=float, default=15, metavar="SECONDS", help="between two looks, at first")
    parser.add_argument("--down-on-stop", action="store_true", help="Ctrl-C while watching ends the machines; else they stay")
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
    for signal_number in (signal.SIGINT, signal.SIGTERM):  # a shell's background jobs ignore Ctrl-C unless told otherwise
        signal.signal(signal_number, signal.default_int_handler)
    session = boto3.Session(region_name=REGION)
    try:
        if options.down:
            down(session)
        else:
            check(options)
            resumes, options.watch = options.watch and not options.up, FOLLOWS if options.watch is None else options.watch
            resume(session, options) if resumes else up(session, options)
    except LaunchFailed as error:
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
