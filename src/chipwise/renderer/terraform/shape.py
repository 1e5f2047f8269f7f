"""How a plan becomes machines that Terraform makes: how many, which of them must meet, what they keep and where."""

from __future__ import annotations

import re
from dataclasses import dataclass

from chipwise.renderer.deployment import Deployment, Form, Node, Volume
from chipwise.renderer.launch.health import start_seconds
from chipwise.renderer.launch.mounted import large_copies, mounted_volumes
from chipwise.renderer.layout import candidates, machines_for, most_machines
from chipwise.renderer.layout import together as together
from chipwise.renderer.nodes.machines import IMAGES_GIB, SCRATCH_GIB
from chipwise.units import GB

SYSTEM_GB = 100  # of a root disk: the system, the image and its layers
LARGEST_GB = {"azure": 4_095}  # of a root disk
USUAL_LARGEST_GB = 16_000
MACHINE_S = 300  # until a machine has started and pulled an image of some ten GB


@dataclass(frozen=True, slots=True)
class Sizes:
    """Of a group of machines."""

    minimum: int
    usual: int
    maximum: int


def sizes(deployment: Deployment) -> Sizes:
    scaling = deployment.scaling
    if scaling is None:
        return Sizes(0, deployment.machines, deployment.machines)
    usual = max(machines_for(deployment, scaling.usual), deployment.machines)
    return Sizes(min(machines_for(deployment, scaling.minimum), usual), usual, max(most_machines(deployment), usual))


def ready_s(deployment: Deployment) -> int:
    """From the start of a machine until its service answers."""
    return MACHINE_S + start_seconds(deployment)


def grouped(deployment: Deployment) -> bool:
    """Whether machines stand in groups that replace a lost one, or start at a time: services, spot, and jobs by the clock."""
    return deployment.form is Form.SERVICE or deployment.spot or bool(deployment.starts)


def fabric(deployment: Deployment) -> bool:
    return together(deployment) and deployment.node.interfaces > 0


def machine_types(deployment: Deployment) -> list[str]:
    """The plan's first. Machines that work together are of one type: the slowest would hold up the others."""
    nodes: tuple[Node, ...] = (deployment.node,) if together(deployment) else candidates(deployment)
    return [one.machine for one in nodes]


def bucket_volumes(deployment: Deployment) -> list[Volume]:
    """Directories that must outlive a machine and have no place yet: they get a bucket. Weights come from their hub again."""
    return [one for one in deployment.volumes if one.url is None and one.name != "models" and deployment.form is Form.JOB]


def kept_words(deployment: Deployment) -> str:
    """What a bucket is for."""
    return "What the program keeps: " + ", ".join(f"{one.name} ({one.reason})" for one in bucket_volumes(deployment)) + "."


def saved(deployment: Deployment) -> list[Volume]:
    """Directories that a job sends to the object store: those of the bucket, checkpoints that have a place of their own, and
    data whose results stand beside what they were made of; a training only reads its data."""
    results = deployment.kind not in ("train", "finetune")
    sent = [one for one in copied(deployment) if one.name == "checkpoints" or (one.name == "data" and results)]
    return [*bucket_volumes(deployment), *sent]


def disk_gb(deployment: Deployment) -> int:
    """Everything that a plain machine holds at once, to the next 10 GB."""
    return -(-int(SYSTEM_GB + _held_bytes(deployment) / GB) // 10) * 10


def too_large(deployment: Deployment) -> str:
    """Why no plain machine holds it; empty: it does. A command of ours reads files, so that its data must be there."""
    data, size = deployment.volume("data"), _held_bytes(deployment)
    if data is not None and data.url is not None and not _copied(deployment) and data in mounted_volumes(deployment):
        size += data.size_bytes
    largest = LARGEST_GB.get(deployment.node.provider, USUAL_LARGEST_GB)
    return large_copies(deployment, size, (largest - SYSTEM_GB) * GB)


def pool_disk_gb(deployment: Deployment) -> int:
    """Of a node: images, what containers write, and what is on its own disk. Volumes are claimed apart from it."""
    own = sum(one.size_bytes for one in deployment.volumes if one.on_machine)
    scratch = SCRATCH_GIB if deployment.node.accelerated else 0
    return IMAGES_GIB + scratch + -(-int(own / GB) // 10) * 10


def _held_bytes(deployment: Deployment) -> float:
    return sum(one.size_bytes for one in deployment.volumes if one.name != "data" or one.url is None or _copied(deployment))


def _copied(deployment: Deployment) -> bool:
    """Data sets that are small beside their machine are copied to it; large ones are read where they lie."""
    data = deployment.volume("data")
    return data is not None and data.size_bytes <= 2_000 * GB


def copied(deployment: Deployment) -> list[Volume]:
    """What is fetched from its own place before the program starts."""
    return [one for one in deployment.volumes if one.url is not None and (one.name != "data" or _copied(deployment))]


@dataclass(frozen=True, slots=True)
class BucketPlace:
    """A bucket of an object store, and what in it is meant."""

    bucket: str
    prefix: str


def place(url: str | None, scheme: str) -> BucketPlace | None:
    """None: of another store than this cloud's own, or no name that a bucket can have."""
    matched = re.fullmatch(rf"{scheme}://([A-Za-z0-9][A-Za-z0-9._-]{{1,220}})(?:/(.*))?", url or "", flags=re.DOTALL)
    return BucketPlace(matched[1], (matched[2] or "").rstrip("/")) if matched else None


def ports(deployment: Deployment) -> tuple[int, int] | None:
    """First and last that a machine listens on: one for each replica that it holds."""
    port = deployment.software.port
    return None if port is None or deployment.form is not Form.SERVICE else (port, port + deployment.per_machine - 1)


def port_range(span: tuple[int, int]) -> str:
    return str(span[0]) if span[0] == span[1] else f"{span[0]}-{span[1]}"
