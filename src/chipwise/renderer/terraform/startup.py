"""`start.sh`: the settings by which a machine that Terraform makes runs its containers, on any of three clouds.

Terraform writes what only it knows (IMAGE, NAME, KEEP, ...) before them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from chipwise.renderer.cluster.pod import USER
from chipwise.renderer.deployment import Deployment, Form, Volume
from chipwise.renderer.heading import heading
from chipwise.renderer.launch.boot import boot_script
from chipwise.renderer.launch.program_notes import program_note
from chipwise.renderer.launch.shards import in_shards, shard_words
from chipwise.renderer.launch.starting import (
    RENDEZVOUS_PORT,
    apart,
    by_torchrun,
    on_one_machine,
    part_command,
    part_reason,
    parts,
    processes,
)
from chipwise.renderer.launch.timing import grace_seconds
from chipwise.renderer.program_files import ShellSetting
from chipwise.renderer.terraform.shape import bucket_volumes, copied, grouped, saved, together
from chipwise.units import GIB

TRIES = 3
LOSSES = 20  # tries of machines that work together on spot: each loss of one costs all of them a try


@dataclass(frozen=True, slots=True)
class ObjectStore:
    """The object store of a cloud, and the program that speaks with it."""

    cloud: str  # aws, azure or google
    scheme: str
    host: str = ""  # that its addresses end in

    def has(self, url: str | None) -> bool:
        """Whether the address is of this store."""
        head, _, rest = (url or "").partition("://")
        return head == self.scheme and rest.partition("/")[0].endswith(self.host)


def script(deployment: Deployment, store: ObjectStore) -> str:
    job, volumes, meets = deployment.form is Form.JOB, deployment.volumes, together(deployment)
    containers = deployment.per_machine if not job or apart(deployment) else 1
    port = None if job or meets else deployment.software.port
    settings: dict[str, ShellSetting] = {
        "FORM": "job" if job else "service",
        "GROUPED": "yes" if grouped(deployment) else "",
        "SPOT": "yes" if job and deployment.spot else "",
        "TAKEN_WAIT": "infinity",  # a group starts another machine in its place, unless this one ends by itself
        "TRIES": LOSSES if deployment.spot and meets else TRIES,
        "MACHINES": deployment.machines if job else 1,
        "COPIES": containers,
        "PARTS": (deployment.machines if job else 1) * containers,
        "COUNTED": "PART" if job and apart(deployment) else "",
        "MEETS": "name" if meets else "",
        "NODES": deployment.machines if meets else 1,
        "MEETING_PORT": RENDEZVOUS_PORT,
        **_chips(deployment, containers),
        "OWNER": f"{USER}:{USER}",
        "PUBLISH": "" if port is None else port,
        "DEADLINE_S": math.ceil(deployment.deadline_s) if job and deployment.deadline_s is not None else "",
        "VOLUMES": [one.name for one in volumes],
        "MOUNTS": [one.path for one in volumes],
        "FETCHES": [_fetched(deployment, store, one) for one in volumes],
        "SAVES": [_saved(deployment, store, one) if job else "" for one in volumes],
        "SECRETS": [word for secret in deployment.software.secrets for word in secret],
        "DOCKER": _options(deployment, containers),
        "COMMAND": _words(deployment),
    }
    about = "Runs on each machine when it starts.\nTerraform writes IMAGE and the other settings in capitals before this."
    return boot_script(heading(deployment, about), settings, store.cloud, {"COMMAND": _why_command(deployment)})


def _fetched(deployment: Deployment, store: ObjectStore, volume: Volume) -> str:
    if volume in bucket_volumes(deployment):
        return "keep"
    return volume.url or "" if volume in copied(deployment) and store.has(volume.url) else ""


def _saved(deployment: Deployment, store: ObjectStore, volume: Volume) -> str:
    if volume not in saved(deployment):
        return ""
    return "keep" if volume.url is None else volume.url if store.has(volume.url) else ""


def _chips(deployment: Deployment, containers: int) -> dict[str, ShellSetting]:
    node = deployment.node
    if not node.accelerated:
        return {}
    kind = "nvidia" if node.kind == "gpu" and node.vendor == "NVIDIA" else "neuron" if node.kind == "neuron" else ""
    return {"CHIPS": kind, "EACH": node.chips if containers == 1 else max(deployment.chips_each, 1)}


def _options(deployment: Deployment, containers: int) -> list[str]:
    """Of docker, the same for all containers."""
    node, meets = deployment.node, together(deployment)
    memory = (node.memory_bytes or 32 * GIB) / containers / GIB / 8
    user = f"{USER}:{USER}" if node.kind != "tpu" else "0:0"  # a TPU's devices belong to root
    options = ["--init", "--user", user, "--cap-drop", "ALL", "--security-opt", "no-new-privileges"]
    options += ["--shm-size", f"{max(int(memory), 1)}g"]
    if node.accelerated and node.kind == "gpu" and node.vendor != "NVIDIA":
        options += ["--device", "/dev/kfd", "--device", "/dev/dri", "--group-add", "video", "--group-add", "109"]
    elif node.accelerated and node.kind not in ("gpu", "neuron"):
        options.append("--privileged")
    if meets and node.accelerated and node.fabric in ("efa", "infiniband"):
        options += ["--device", "/dev/infiniband"]
    if meets:
        options += ["--network", "host", "--ulimit", "memlock=-1"]
    for key, value in (("HOME", "/tmp"), *deployment.software.env):
        options += ["--env", f"{key}={value}"]
    if deployment.form is Form.JOB:
        return [*options, "--rm"]
    return [*options, "--stop-timeout", str(grace_seconds(deployment)), "--detach", "--restart", "unless-stopped"]


def _words(deployment: Deployment) -> list[str]:
    """Where machines meet, torchrun finds rank and place of the first in its settings."""
    if in_shards(deployment):
        return list(shard_words(deployment))
    if deployment.form is Form.JOB and apart(deployment) and not deployment.software.is_custom:
        return ["sh", "-c", f"exec {' '.join(part_command(deployment))}"]  # the container finds the number of its part
    if together(deployment) and by_torchrun(deployment):
        head = ["torchrun", f"--nnodes={deployment.machines}", f"--nproc-per-node={processes(deployment)}"]
        return [*head, "--rdzv-backend=c10d", f"--rdzv-id={deployment.name}", *deployment.software.command[1:]]
    return list(on_one_machine(deployment))


def _why_command(deployment: Deployment) -> str:
    lines = []
    if in_shards(deployment) or (deployment.form is Form.JOB and apart(deployment) and parts(deployment) > 1):
        lines += part_reason(deployment)
    elif note := program_note(deployment):
        lines.append(note)
    if deployment.software.framework == "mpi" and together(deployment):
        lines.append("The program starts on every machine with NODE_RANK, NODES and HEAD_ADDRESS. If mpirun must start it from")
        lines.append("the first one, take `--to slurm` or parallelcluster: they bring the launcher that reaches the others.")
    return "\n".join(lines)
