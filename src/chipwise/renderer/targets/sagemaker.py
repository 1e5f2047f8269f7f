"""SageMaker: a training job with managed spot and checkpoints, or an endpoint of the kind that fits the service."""

from __future__ import annotations

import math

from chipwise.renderer.aws.endpoint import PRICE, common_settings, endpoint, machine, mode_of, with_room
from chipwise.renderer.aws.fitting import check, refuse_fpga, refuse_ranks
from chipwise.renderer.aws.parts import is_torch, parts, settings, together, torchrun, words
from chipwise.renderer.deployment import Deployment, Form
from chipwise.renderer.file import CannotRender, File
from chipwise.renderer.heading import heading
from chipwise.renderer.launch import nodes
from chipwise.renderer.launch.program_notes import program_note
from chipwise.renderer.launch.shards import PROGRAM, in_shards, shard_arguments
from chipwise.renderer.launch.starting import apart, part_reason
from chipwise.renderer.left_out import without_hours
from chipwise.renderer.limits import SAGEMAKER_JOB
from chipwise.renderer.program_files import Setting, python_files
from chipwise.text import duration, long_age
from chipwise.units import DAY, GIB

EXPRESSES = frozenset({"hours"})  # of endpoints, as far as they can sleep
FITS = "one training job over several machines, or an endpoint: real-time, asynchronous or serverless"
STARTS_MACHINES = True
LONGEST_WORD, MOST_WORDS = 256, 100  # of a container's entrypoint and arguments
# The rank of the machine from what SageMaker writes down for every container.
_RANK = (
    "r=$(python3 -c \"import json;c=json.load(open('/opt/ml/input/config/resourceconfig.json'));"
    "print(sorted(c['hosts']).index(c['current_host']))\"); "
)
# Its children, not the directory itself: the image may have a /data of its own, and a link would land inside it.
_LINK = "mkdir -p /data && ln -sfn /opt/ml/input/data/data/* /data/; "


def render(deployment: Deployment) -> list[File]:
    check(deployment, "sagemaker", Form.JOB, Form.SERVICE)
    refuse_fpga(deployment, "SageMaker")
    if deployment.software.secrets:
        names = ", ".join(setting for setting, _, _ in deployment.software.secrets)
        raise CannotRender(
            f"SageMaker hands no secrets to containers ({names}).",
            remedy="Let the program read them from Secrets Manager with its role, or take --to ecs, batch or ec2.",
        )
    return _job(without_hours(deployment)) if deployment.form is Form.JOB else endpoint(deployment, *mode_of(deployment))


def _job(deployment: Deployment) -> list[File]:
    refuse_ranks(deployment, "SageMaker")
    if parts(deployment) > 1:
        description = "programs that never speak to each other" if apart(deployment) else "runs of one program"
        raise CannotRender(
            f"{deployment.title} is {parts(deployment):,} {description}; a training job is one.",
            remedy="Use --to batch (an array job) or ec2.",
        )
    entrypoint, arguments = _start(deployment)
    limit = int(deployment.platforms.get("SageMaker", {}).get("most seconds of a training job", "2419200"))
    wanted = math.ceil(deployment.deadline_s or 2 * deployment.predicted.high_s)
    if deployment.predicted.seconds > limit:
        raise CannotRender(
            f"A training job ends after {long_age(limit / DAY)}; this one takes {deployment.predicted.seconds / 86400:.0f}.",
            remedy="Plan with more chips (--limit chip_count=...), or take --to ec2 or kubernetes.",
        )
    data, saved = deployment.volume("data"), deployment.volume("checkpoints")
    run = min(wanted, limit)
    constants = [
        *common_settings(deployment),
        Setting("MACHINE", machine(deployment, "training")),
        Setting("MACHINES", deployment.machines),
        Setting(
            "SPOT",
            deployment.spot,
            "Managed spot: SageMaker waits for machines, and starts again from the checkpoints." if deployment.spot else "",
        ),
        Setting("MOST_SECONDS", run, "The workload's deadline." if deployment.deadline_s else "Twice the plan's latest end."),
        Setting("MOST_WAIT", run, "Running and waiting for spot machines together."),
        Setting("DISK_GIB", _disk(deployment), "For the image and what the program writes."),
        Setting(
            "ENTRYPOINT",
            entrypoint,
            "SageMaker mounts the data under a path of its own; the program looks in /data." if data else "",
        ),
        Setting("ARGUMENTS", arguments, _why_arguments(deployment)),
        Setting("ENVIRONMENT", SAGEMAKER_JOB.settings(with_room(settings(deployment)) | _place(deployment))),
        Setting(
            "DATA",
            None if data is None else (data.url or ""),
            "Empty: data/ in the bucket that --bucket names." if data is not None and not data.url else "",
        ),
        Setting("CHECKPOINTS", None if saved is None else (saved.url or ""), _often(deployment)),
    ]
    return python_files("sagemaker_job.py", "sagemaker_job.py", heading(deployment, PRICE), constants)


def _why_arguments(deployment: Deployment) -> str:
    if in_shards(deployment):
        place = (
            "the checkpoints, which SageMaker sends to S3 as they come" if deployment.volume("checkpoints") else "the output"
        )
        lines = [*part_reason(deployment), f"Answers go to {place}.", "First the program that does so, a word for each line."]
        return "\n".join(lines)
    return program_note(deployment)


def _often(deployment: Deployment) -> str:
    every = deployment.checkpoint_s
    return f"The program saves to /checkpoints, every {duration(every)} by the plan." if every else ""


def _disk(deployment: Deployment) -> int:
    return min(100 + math.ceil(sum(one.size_bytes for one in deployment.volumes if one.name == "models") / GIB), 16_384)


def _place(deployment: Deployment) -> dict[str, str]:
    """What is the same on every machine of those that find each other; NODE_RANK each finds by itself."""
    if not nodes.counts(deployment):
        return {}
    return {name: value for name, value in nodes.variables(deployment, "", "algo-1").items() if value}


def _start(deployment: Deployment) -> tuple[list[str], list[str]]:
    """(entrypoint, arguments): a shell line that ends in `"$@"`, and the words of the command."""
    link = _LINK if deployment.volume("data") else ""
    if is_torch(deployment):
        arguments = list(torchrun(deployment, "algo-1")[1:])
        line = f'{link}{_RANK}exec torchrun --node-rank=$r "$@"' if together(deployment) else f'{link}exec torchrun "$@"'
    elif in_shards(deployment):
        lines = PROGRAM.splitlines()
        folder = "/checkpoints" if deployment.volume("checkpoints") else "/opt/ml/output/data"
        arguments = [*lines, *shard_arguments(deployment, f"{folder}/answers")]
        line = f'{link}p=$(printf \'%s\\n\' "$@" | head -n {len(lines)}); shift {len(lines)}; exec sh -c "$p" batch "$@"'
    elif nodes.counts(deployment):
        arguments = list(deployment.software.command)
        line = f'{link}{_RANK}export NODE_RANK=$r; exec "$@"'
    else:
        arguments, line = list(words(deployment)), f'{link}exec "$@"'
    longest = max(map(len, [line, *arguments]))
    if longest > LONGEST_WORD or len(arguments) > MOST_WORDS:
        raise CannotRender(
            f"SageMaker takes commands of at most {MOST_WORDS} words of {LONGEST_WORD} characters; this one has "
            f"{len(arguments)}, the longest with {longest:,}.",
            remedy="Put it into a script inside the image, or take --to batch or ec2.",
        )
    return ["/bin/sh", "-c", line, "start"], arguments
