"""`start.sh` of `--to ec2`: the settings by which a machine that `launch.py` starts runs its containers.

The launcher writes two lines before them: IMAGE, and KEEP, the place in S3 where data, checkpoints and logs outlive machines.
"""

from __future__ import annotations

import math
from dataclasses import replace

from chipwise.renderer.aws.parts import (
    chips,
    copies,
    counted,
    divided,
    is_torch,
    parts,
    settings,
    shell_words,
    together,
    torchrun,
    uses_efa,
    words,
)
from chipwise.renderer.cluster.pod import USER
from chipwise.renderer.deployment import Deployment, Form, Volume
from chipwise.renderer.heading import heading
from chipwise.renderer.launch.boot import boot_script
from chipwise.renderer.launch.program_notes import program_note
from chipwise.renderer.launch.shards import in_shards
from chipwise.renderer.launch.starting import RENDEZVOUS_PORT, apart, part_reason, run_machines
from chipwise.renderer.launch.timing import grace_seconds
from chipwise.renderer.limits import EC2_PACKED
from chipwise.renderer.program_files import ShellSetting
from chipwise.units import GIB

RESULTS = "results"  # the folder of a job that has no other
OWNER = f"{USER}:{USER}"  # of the containers and their directories, as in every other target


def start_script(deployment: Deployment) -> str:
    job, volumes, containers = deployment.form is Form.JOB, deployment.volumes, copies(deployment)
    command = _command(deployment)
    settings: dict[str, ShellSetting] = {
        "FORM": "job" if job else "service",
        "NAME": deployment.name,
        "SPOT": "yes" if job and deployment.spot else "",
        "MACHINES": deployment.machines if job else 1,
        "COPIES": containers,
        "PARTS": parts(deployment) if divided(deployment) else deployment.machines * containers,
        "COUNTED": counted(deployment) if divided(deployment) else "",
        "MEETS": "tag" if together(deployment) else "",
        "NODES": run_machines(deployment) if together(deployment) else 1,
        "MEETING_PORT": RENDEZVOUS_PORT,
        **_chips(deployment),
        "DEADLINE_S": math.ceil(deployment.deadline_s) if job and deployment.deadline_s is not None else "",
        **_moved_port(deployment, command),
        "OWNER": "" if _as_root(deployment) else OWNER,
        "VOLUMES": [one.name for one in volumes],
        "MOUNTS": [one.path for one in volumes],
        "FETCHES": [_fetched(deployment, one) for one in volumes],
        "SAVES": [_saved(deployment, one) for one in volumes],
        "SECRETS": [word for secret in deployment.software.secrets for word in secret],
        "DOCKER": _options(deployment),
        "COMMAND": command,
    }
    text = boot_script(heading(deployment, "Runs on each machine when it starts."), settings, "aws", _reasons(deployment))
    return EC2_PACKED.script(text)


def _as_root(deployment: Deployment) -> bool:
    """An FPGA is reached through its PCI device, which belongs to root."""
    return deployment.node.kind == "fpga"


def with_results(deployment: Deployment) -> Deployment:
    """A job that writes to no folder which is saved gets one: what it left in its container would end with the machine."""
    if deployment.form is not Form.JOB or any(_saved(deployment, one) for one in deployment.volumes):
        return deployment
    return replace(deployment, volumes=(*deployment.volumes, Volume(RESULTS, f"/{RESULTS}", 0.0)))


def _fetched(deployment: Deployment, volume: Volume) -> str:
    if volume.url is not None and volume.url.startswith("s3://"):
        return volume.url.rstrip("/")
    return "keep" if volume.name != "models" and deployment.form is Form.JOB else ""


def _saved(deployment: Deployment, volume: Volume) -> str:
    """What a job writes and somebody wants afterwards. Answers of a batch stand beside its requests."""
    names = ("checkpoints", "data") if in_shards(deployment) else ("checkpoints",)
    if deployment.form is not Form.JOB or volume.name == "models":
        return ""
    if volume.url is None:
        return "keep"
    return volume.url.rstrip("/") if volume.url.startswith("s3://") and volume.name in names else ""


def _chips(deployment: Deployment) -> dict[str, ShellSetting]:
    node, containers = deployment.node, copies(deployment)
    if not node.accelerated:
        return {}
    kind = "nvidia" if node.kind == "gpu" and node.vendor == "NVIDIA" else "neuron" if node.kind == "neuron" else ""
    return {"CHIPS": kind, "EACH": node.chips if containers == 1 else max(chips(deployment), 1)}


def _moved_port(deployment: Deployment, command: list[str]) -> dict[str, ShellSetting]:
    """Copies of a service listen on ports of their own, one after the other."""
    port = deployment.software.port
    if copies(deployment) == 1 or not deployment.software.engine or port is None:
        return {}
    flags = {f"--http-port={port}"}
    positions = [at for at, word in enumerate(command) if word in flags or (word == str(port) and command[at - 1] == "--port")]
    return {"MOVED_PORT": port, "MOVED_AT": positions[0]} if positions else {}


def _options(deployment: Deployment) -> list[str]:
    """Of docker, the same for all containers. An FPGA is reached through its PCI device, for which docker has no narrower
    right."""
    node = deployment.node
    share = (node.memory_bytes or 32 * GIB) / copies(deployment) / GIB / 8
    options = ["--init", "--network", "host", "--shm-size", f"{max(int(share), 1)}g"]
    if not _as_root(deployment):
        options += ["--user", OWNER, "--security-opt", "no-new-privileges", "--env", "HOME=/tmp"]
    if node.kind == "fpga":
        options.append("--privileged")
    elif node.accelerated and node.kind == "gpu" and node.vendor != "NVIDIA":
        options += ["--device", "/dev/kfd", "--device", "/dev/dri", "--group-add", "video", "--group-add", "109"]
    if uses_efa(deployment):
        options += ["--device", "/dev/infiniband", "--ulimit", "memlock=-1"]
    for key, value in settings(deployment).items():
        options += ["--env", f"{key}={value}"]
    if deployment.form is Form.JOB:
        return [*options, "--rm"]
    return [*options, "--stop-timeout", str(grace_seconds(deployment)), "--restart", "unless-stopped", "--detach"]


def _reasons(deployment: Deployment) -> dict[str, str]:
    if in_shards(deployment) or (divided(deployment) and apart(deployment)):
        return {"COMMAND": "\n".join([*part_reason(deployment), *_results_reason(deployment)])}
    lines = [note] if (note := program_note(deployment)) else []
    lines += _results_reason(deployment)
    if divided(deployment):
        lines.append(f"RUN, from 0, tells it which of {parts(deployment)} runs is its own. One that fails stops no other.")
    return {"COMMAND": "\n".join(lines)}


def _results_reason(deployment: Deployment) -> list[str]:
    if deployment.volume(RESULTS) is None:
        return []
    return [f"What it writes to /{RESULTS} goes to KEEP, as its log does; what it writes elsewhere is lost."]


def _command(deployment: Deployment) -> list[str]:
    """Engines' images start themselves; the plan's command names the program, so theirs is put aside. Where machines meet,
    torchrun finds rank and place of the first in its settings."""
    if is_torch(deployment) and together(deployment):
        return [word for word in torchrun(deployment, "HEAD") if not word.startswith("--rdzv-endpoint=")]
    own = deployment.software.is_custom or in_shards(deployment) or is_torch(deployment)
    if divided(deployment) and apart(deployment) and not own:
        return ["sh", "-c", f"exec {' '.join(shell_words(deployment))}"]  # the container finds the number of its part
    return list(words(deployment))
