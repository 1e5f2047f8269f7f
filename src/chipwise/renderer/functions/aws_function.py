"""A Lambda function on processors, with its image and what starts it."""

from __future__ import annotations

import json
import math

from chipwise.renderer.aws.tags import OWNER_TAG, tags
from chipwise.renderer.deployment import Deployment
from chipwise.renderer.file import CannotRender, File
from chipwise.renderer.functions.needs import (
    memory_bytes,
    refuse_memory,
    refuse_time,
    run_seconds,
    settings,
    trigger_of,
    weights,
)
from chipwise.renderer.heading import heading
from chipwise.renderer.launch.program_notes import program_note
from chipwise.renderer.limits import LAMBDA
from chipwise.renderer.program_files import Setting, python_files
from chipwise.renderer.sold import sold_as
from chipwise.units import MIB

MB_PER_VCPU = 1769  # a function gets processors in proportion to its memory
CONCURRENCY = 50  # runs at a time, so that a bucket filled at once does not take the account's whole allowance


def function_files(deployment: Deployment) -> list[File]:
    deployment = sold_as(deployment, "Lambda", "", "arm64" if deployment.node.arch == "arm64" else "x86")
    offered = deployment.platforms.get("Lambda", {})
    most_mb, most_s = float(offered.get("most memory MB", "10240")), float(offered.get("most seconds", "900"))
    refuse_memory(deployment, "Lambda", most_mb)
    if deployment.software.secrets:
        raise CannotRender(
            "Lambda hands no secrets to containers.", remedy="Let the program read them with its role, or take --to ecs."
        )
    memory = min(max(math.ceil(memory_bytes(deployment) / MIB), _for_processors(deployment), 512), int(most_mb))
    share = min(memory / MB_PER_VCPU / max(deployment.node.vcpus or 1, 1), 1.0)
    seconds = run_seconds(deployment) / share
    refuse_time(deployment, f"Lambda with {memory / MB_PER_VCPU:.1f} vCPUs", seconds, most_s)
    trigger = trigger_of(deployment)
    disk = min(max(math.ceil(2 * weights(deployment) / MIB), 512), int(float(offered.get("most disk MB", "10240"))))
    constants = [
        Setting("NAME", deployment.name),
        Setting("MINE", OWNER_TAG),
        Setting("REGION", deployment.node.region),
        Setting("ARCHITECTURE", "arm64" if deployment.node.arch == "arm64" else "x86_64"),
        Setting("MEMORY_MB", memory, f"Memory buys processors: {MB_PER_VCPU:,} MB for each."),
        Setting("DISK_MB", disk, "/tmp."),
        Setting("SECONDS", min(math.ceil(max(2 * seconds, 60)), int(most_s)), "Twice the latest end, if Lambda allows."),
        Setting("ENVIRONMENT", LAMBDA.settings(settings(deployment))),
        Setting("BUCKET", trigger[0] if trigger else None),
        Setting("PREFIX", trigger[1] if trigger else ""),
        Setting("MOST", CONCURRENCY, "Runs at a time."),
        Setting("TAGS", tags(deployment)),
    ]
    title = heading(deployment)
    command = Setting("COMMAND", list(deployment.software.command), _usual(deployment))
    return [
        *python_files("lambda_deploy.py", "lambda_deploy.py", title, constants),
        *python_files("handler.py", "lambda_handler.py", title, [command], executable=False),
        File("Dockerfile", _dockerfile(deployment)),
    ]


def _usual(deployment: Deployment) -> str:
    hint = "It finds the object's address in OBJECT_URL."
    return "\n".join(line for line in (program_note(deployment), hint) if line)


def _for_processors(deployment: Deployment) -> int:
    return math.ceil(MB_PER_VCPU * (deployment.node.vcpus or 1))


def _dockerfile(deployment: Deployment) -> str:
    software = deployment.software
    base = software.base if software.built else software.image
    note = "# Start from the image of `chipwise render --to dockerfile`, once it is built.\n" if software.built else ""
    return (
        "".join(f"# {line}\n" for line in heading(deployment).splitlines())
        + f"{note}FROM {base}\n"
        + "# The client by which a custom image talks to Lambda.\n"
        + "RUN pip install --no-cache-dir awslambdaric==3.1.1\n"
        + "WORKDIR /app\nCOPY . .\nUSER 10001\n"
        + f"ENTRYPOINT {json.dumps(['python', '-m', 'awslambdaric'])}\nCMD {json.dumps(['handler.handle'])}\n"
    )
