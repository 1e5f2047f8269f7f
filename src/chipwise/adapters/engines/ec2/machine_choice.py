"""Which machines are asked of EC2 for one attempt: the launch template and the fleet, over the places of the job. Pure.

A plan gave the job its places (`runner/submission/machines_of_plan.py`), or a type that was named (`machines_by_name.py`).

The attempt's own place comes first; the other places of the same purchase are named behind it, so that EC2 takes the first that
it has. Machines that work together come all or none, in one zone and of one type. Names and tokens follow from job, attempt and
purchase, so that the same request, sent again, gives the same machines.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Any

from chipwise.catalog.offer import Purchase
from chipwise.errors import BadInput, NotAllowed
from chipwise.renderer.aws.machine import disk, shared_request, tag_specifications
from chipwise.renderer.quoting import tag_value
from chipwise.runner.job import Job, MachinePlace, Move
from chipwise.text import price, spent

from .cloud import (
    ATTEMPT,
    CPU_IMAGE,
    GPU_IMAGE,
    JOB,
    NEURON_IMAGE,
    PLACE,
    Image,
    InstanceData,
    Key,
)
from .config import Config

BOOT_MINUTES = 10  # that do not count as part of the longest attempt
LEAST_MINUTES = 2.0  # beside the time to leave, that a start must be able to pay for
MOST_OVERRIDES = 300  # that a fleet takes
_TAGS = 40  # of 50 that a machine may have
_ARM = re.compile(r"(a1|[a-z]+\d+g[a-z]*|[a-z]+\d+[a-z]*-gb\d+)[.-]")  # as AWS names them: c8g, m7gd, is4gen, p6e-gb200
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


def template_name(config: Config, key: Key) -> str:
    """With a part of the place's digest: names of templates are the account's, and a job of another place may have the id."""
    return f"chipwise-{hashlib.sha256(config.place.encode()).hexdigest()[:8]}-{key[0]}-{key[1]}"


def token(config: Config, key: Key, what: str) -> str:
    """At most 64 signs; the place is part of it, because names of jobs are another record's too."""
    return hashlib.sha256(f"{config.place}\n{key[0]}\n{key[1]}\n{what}".encode()).hexdigest()[:60]


def architecture(machine: str) -> str:
    """By the name of its type: `g` after the generation is Graviton, `-gb` Grace."""
    return "arm64" if _ARM.match(machine) else "x86_64"


def neuron(machine: str) -> bool:
    """Trainium or Inferentia, which are no GPUs to drivers and containers."""
    return machine.startswith(("trn", "inf"))


def image_parameter(job: Job, machine: str) -> str:
    """Of AWS's own image with the drivers that a machine type needs."""
    if neuron(machine):
        return NEURON_IMAGE
    return (GPU_IMAGE if job.spec.needs.gpus > 0 else CPU_IMAGE).format(architecture(machine))


def places(job: Job, config: Config, spot: bool) -> list[MachinePlace]:
    """Of this region and purchase, the attempt's own first; all of one kind, since a fleet has one machine image."""
    local = _local_places(job, config)
    return [one for one in local if (one.purchase is Purchase.SPOT) == spot and _same_image(job, one, local)]


def skipped_machines(job: Job, config: Config) -> list[str]:
    """Which types of the job's places are not asked for with those, and why; none where all are."""
    local = _local_places(job, config)
    machines = sorted({one.machine for one in local if not _same_image(job, one, local)})
    own = local[0].machine if local else ""
    return [f"{', '.join(machines)} not requested together with {own}, which {_kind(own)}"] if machines else []


def _kind(machine: str) -> str:
    return "has Neuron chips" if neuron(machine) else f"is {architecture(machine)}"


def _local_places(job: Job, config: Config) -> list[MachinePlace]:
    """Places of this region; first those of the attempt's purchase, before all its own."""
    own = job.attempts[-1].where
    candidates = sorted(
        (own, *job.spec.places), key=lambda one: (one.purchase is Purchase.SPOT) != (own.purchase is Purchase.SPOT)
    )
    return list(
        dict.fromkeys(
            one for one in candidates if one.region in ("", config.region) and one.provider in ("", "aws") and one.machine
        )
    )


def _same_image(job: Job, place: MachinePlace, local: Sequence[MachinePlace]) -> bool:
    return image_parameter(job, place.machine) == image_parameter(job, local[0].machine)


def untried(job: Job, regions: Collection[str], purchases: Collection[Purchase] = tuple(Purchase)) -> list[str]:
    """Regions of its places, beside that of its attempt, in which it did not look for a machine since it last had one."""
    if Move.REGION not in job.spec.recover:
        return []
    regions_tried = {job.attempts[-1].where.region}
    for attempt in reversed(job.attempts[:-1]):
        if attempt.begun is not None:
            break
        regions_tried.add(attempt.where.region)
    left = [one.region for one in job.spec.places if one.purchase in purchases and one.region in regions]
    return [one for one in dict.fromkeys(left) if one not in regions_tried]


def check(job: Job, configs: Collection[Config]) -> None:
    """`configs`: of each region of the engine."""
    if not _ID.fullmatch(job.id):
        raise BadInput(f"{job.id[:60]!r} cannot name objects in S3.", remedy="Use letters, digits, -, _ and .")
    if not any(places(job, config, spot) for config in configs for spot in (True, False)):
        requested = ", ".join(
            sorted({f"{one.machine or 'no machine'} in {one.region or 'any region'}" for one in job.spec.places})
        )
        own = " or ".join(one.region for one in configs)
        raise BadInput(
            f"{job.id} names no machine type in {own} (it names {requested or 'none'}).",
            remedy=f"Plan it for AWS in {own}, or set the engine's region.",
        )


def hard_minutes(job: Job, config: Config, now: float) -> int:
    """After which a machine must end itself, whoever leads it, counted from when it came; 0: never.

    By the budget at the highest price of its places, and by the longest attempt. The price of a spot machine changes with the
    hour: the limit holds as far as the plan's prices do.
    """
    spec = job.spec
    limits = []
    if spec.budget_usd is not None:
        limits.append(_paid_minutes(job, config, now, spec.budget_usd))
    if spec.longest_s is not None:
        limits.append((spec.longest_s + spec.grace_s) / 60.0 + BOOT_MINUTES)
    return max(int(min(limits)), 1) if limits else 0


def check_budget(job: Job, config: Config, now: float) -> None:
    """What `hard_minutes` would refuse when the first attempt starts."""
    budget = job.spec.budget_usd
    if budget is None:
        return
    minutes, dearest = _minutes(job, config, now, budget)
    if minutes < _minimum_minutes(job):
        count = f"{job.machines} machines" if job.machines > 1 else "a machine"
        raise BadInput(
            f"{price(budget)} pays for {minutes:.1f} minutes of {count} at {price(dearest)} an hour, "
            f"and a start needs {_minimum_minutes(job):.1f}.",
            remedy="Give a higher --budget, or name a cheaper machine.",
        )


def _minimum_minutes(job: Job) -> float:
    return job.spec.grace_s / 60.0 + LEAST_MINUTES


def _minutes(job: Job, config: Config, now: float, budget: float) -> tuple[float, float]:
    """That the rest pays for, and at which price of one machine: of the dearest that may come."""
    unknown = sorted({one.machine for one in _local_places(job, config) if not one.usd_per_hour})
    if unknown:
        raise BadInput(
            f"Without a price of {', '.join(unknown)} the budget of {job.id} cannot be kept.",
            remedy="Plan it, so that its places have prices, or take the budget away.",
        )
    candidates = [*places(job, config, spot=True), *places(job, config, spot=False)]
    dearest = max(one.usd_per_hour or 0.0 for one in candidates)
    return (budget - job.usd(now)) / (dearest * max(job.machines, 1)) * 60.0, dearest


def _paid_minutes(job: Job, config: Config, now: float, budget: float) -> float:
    minutes, _ = _minutes(job, config, now, budget)
    if minutes < _minimum_minutes(job):
        raise NotAllowed(
            f"{spent(job.usd(now))} of {spent(budget)} are spent, "
            f"and the rest pays for {max(minutes, 0.0):.1f} minutes of machines.",
            remedy="Start it again with a higher budget: it continues from its checkpoint.",
        )
    return minutes


def tags(job: Job, config: Config, minutes: int, now: float) -> list[dict[str, str]]:
    spec = job.spec
    until = datetime.fromtimestamp(now + minutes * 60, UTC).isoformat(timespec="minutes") if minutes else "none"
    values = {"Name": f"chipwise {spec.name} {job.id}", JOB: job.id, ATTEMPT: str(len(job.attempts)), PLACE: config.place}
    values |= {"chipwise:expiry": until, "owner": spec.owner, "team": spec.team, "project": spec.project}
    for key, value in spec.labels.items():
        name = re.sub(r"[^A-Za-z0-9_.+=@:-]+", "-", key)[:120].strip("-.")
        if name and name not in values and not name.lower().startswith("aws") and len(values) < _TAGS:
            values[name] = value
    return [{"Key": key, "Value": tag_value(value)} for key, value in values.items() if tag_value(value)]


def template(config: Config, image: Image, text: bytes, marked: Sequence[InstanceData]) -> dict[str, Any]:
    card: dict[str, Any] = {"DeviceIndex": 0, "AssociatePublicIpAddress": config.public_address, "DeleteOnTermination": True}
    if config.security_groups:
        card["Groups"] = list(config.security_groups)
    data: dict[str, Any] = {
        **shared_request(),  # jobs share the network of the machine, and with it the rights of its profile
        "ImageId": image.id,
        "BlockDeviceMappings": [{"DeviceName": image.root, "Ebs": disk(image.gib)}],
        "NetworkInterfaces": [card],
        "UserData": base64.b64encode(text).decode(),
        "TagSpecifications": tag_specifications(marked),
    }
    if config.instance_profile:
        kind = "Arn" if config.instance_profile.startswith("arn:") else "Name"
        data["IamInstanceProfile"] = {kind: config.instance_profile}
    return data


def fleet(
    job: Job, config: Config, wanted: Sequence[MachinePlace], subnets: Sequence[tuple[str, str]]
) -> dict[str, Any] | None:
    """None: no subnet is in a zone of these places."""
    spot = wanted[0].purchase is Purchase.SPOT
    pairs = [(one.machine, subnet) for one in wanted for zone, subnet in subnets if one.zone in ("", zone)]
    overrides = [
        {"InstanceType": machine, "SubnetId": subnet, "Priority": float(priority)}
        for priority, (machine, subnet) in enumerate(dict.fromkeys(pairs))
    ][:MOST_OVERRIDES]
    if not overrides:
        return None
    key, count = (job.id, len(job.attempts)), job.machines
    kind = "spot" if spot else "on-demand"
    options: dict[str, Any] = {"AllocationStrategy": "capacity-optimized-prioritized" if spot else "prioritized"}
    if count > 1:
        options |= {"SingleInstanceType": True, "SingleAvailabilityZone": True, "MinTargetCapacity": count}
    return {
        "Type": "instant",
        "ClientToken": token(config, key, f"fleet {kind}"),
        "LaunchTemplateConfigs": [
            {
                "LaunchTemplateSpecification": {"LaunchTemplateName": template_name(config, key), "Version": "$Default"},
                "Overrides": overrides,
            }
        ],
        "TargetCapacitySpecification": {"TotalTargetCapacity": count, "DefaultTargetCapacityType": kind},
        "SpotOptions" if spot else "OnDemandOptions": options,
    }
