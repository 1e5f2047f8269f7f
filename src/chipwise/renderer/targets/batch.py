"""AWS Batch: compute environment, queue and job definition; one job, an array of them, or one over several machines."""

from __future__ import annotations

import math

from chipwise.renderer.aws.containers import command, devices, environment, gpus, keeps, memory_mib, shared_mib, vcpus
from chipwise.renderer.aws.fitting import check, machines, refuse_fpga, refuse_ranks, unpullable
from chipwise.renderer.aws.hours import by_crontab, crontab
from chipwise.renderer.aws.machine import disk
from chipwise.renderer.aws.parts import counted, divided, parts, together, uses_efa
from chipwise.renderer.aws.tags import OWNER_TAG, tags
from chipwise.renderer.cluster.pod import USER
from chipwise.renderer.deployment import Deployment, Form
from chipwise.renderer.file import CannotRender, File
from chipwise.renderer.heading import heading
from chipwise.renderer.launch.mounted import mounted_volumes, to_be_filled
from chipwise.renderer.launch.program_notes import program_note
from chipwise.renderer.launch.starting import apart, part_reason, run_machines
from chipwise.renderer.limits import BATCH
from chipwise.renderer.program_files import Setting, python_files
from chipwise.units import GIB

FITS = "jobs in a queue on AWS: single, array, or multi-node on machines at the full price"
EXPRESSES = frozenset({"hours"})
WRITES = ("batch_job.py",)
STARTS_MACHINES = True
MOST_PARTS = 10_000  # of an array job
# The main machine has no address of a main machine: it is itself.
_HEAD = "${AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS:-127.0.0.1}"


def render(deployment: Deployment) -> list[File]:
    check(deployment, "batch", Form.JOB)
    refuse_fpga(deployment, "AWS Batch")
    refuse_ranks(deployment, "AWS Batch")
    deployment = by_crontab(deployment)
    meets, part_count = together(deployment), parts(deployment)
    if meets and deployment.spot:
        raise CannotRender(
            f"AWS Batch runs a job over {deployment.machines} machines at the full price only; the plan counts on spot.",
            remedy="Plan with --limit interruptible=false, or take --to ec2, sagemaker or kubernetes.",
        )
    if part_count > MOST_PARTS:
        raise CannotRender(
            f"An array job has at most {MOST_PARTS:,} parts; the plan has {part_count:,}.",
            remedy="Use --to kubernetes or ec2.",
        )
    nodes = machines(deployment)
    software = deployment.software
    constants = [
        Setting("NAME", deployment.name),
        Setting("MINE", OWNER_TAG),
        Setting("REGION", deployment.node.region),
        Setting(
            "MACHINES", [one.machine for one in nodes] if not meets else [deployment.node.machine], _command_reason(deployment)
        ),
        Setting("SPOT", deployment.spot),
        Setting("STRATEGY", "SPOT_PRICE_CAPACITY_OPTIMIZED" if deployment.spot else "BEST_FIT_PROGRESSIVE"),
        Setting("MOST_VCPUS", deployment.machines * max(one.vcpus or 4 for one in nodes)),
        Setting("NODES", run_machines(deployment) if meets else 1),
        Setting("PARTS", part_count),
        *_image(deployment),
        _image_name(deployment),
        Setting("DISK", disk(100 + math.ceil(sum(one.size_bytes for one in mounted_volumes(deployment)) / GIB))),
        Setting("EFA_INTERFACES", deployment.node.interfaces if uses_efa(deployment) else 0),
        Setting("FIRST_CARD", deployment.node.first_card),
        Setting("CONTAINER", BATCH.document(_container(deployment)), _why_command(deployment)),
        Setting("SECRETS", [list(one) for one in software.secrets]),
        Setting("VOLUMES", [(one.name, one.path) for one in mounted_volumes(deployment)]),
        Setting("USER", USER),
        Setting("KEEPS", keeps(deployment), to_be_filled(deployment)),
        Setting("RETRIES", _retries(deployment)),
        Setting("SECONDS", math.ceil(deployment.deadline_s) if deployment.deadline_s else None),
        Setting("TAGS", tags(deployment)),
    ]
    title = heading(deployment, "\n".join(filter(None, (_about(deployment), *crontab(deployment, "batch_job.py")))))
    return [*_wrapper(deployment), *python_files("batch_job.py", "batch_job.py", title, constants)]


def _foreign(deployment: Deployment) -> bool:
    """An image of others, which starts its own program: Batch has no word to put that aside."""
    return not deployment.software.built and deployment.software.image == deployment.software.base


def _image_name(deployment: Deployment) -> Setting:
    if _foreign(deployment):
        return Setting("IMAGE", None, "Build the Dockerfile beside this file, push it, and give its name with --image.")
    if unpullable(deployment):
        return Setting("IMAGE", None, "Built by the Dockerfile of `--to dockerfile`: --image names it.")
    return Setting("IMAGE", deployment.software.image)


def _wrapper(deployment: Deployment) -> list[File]:
    if not _foreign(deployment):
        return []
    text = "".join(f"# {line}\n" for line in heading(deployment).splitlines())
    text += "# AWS Batch hands over a command and cannot put an image's own entry point aside: this one has none.\n"
    return [File("Dockerfile", f"{text}FROM {deployment.software.image}\nENV HOME=/tmp\nUSER {USER}\nENTRYPOINT []\n")]


def _about(deployment: Deployment) -> str:
    schedule = (
        f" Start it at `{deployment.starts}` ({deployment.time_zone}) by a schedule of EventBridge."
        if deployment.starts
        else ""
    )
    if divided(deployment):
        return f"An array of {parts(deployment):,} jobs: each finds its number in {counted(deployment)}, from 0.{schedule}"
    return schedule.strip()


def _command_reason(deployment: Deployment) -> str:
    if together(deployment):
        return "One kind of machine: all nodes of a job are alike."
    return "The plan's machine, then others that look the same to the program." if deployment.alternatives else ""


def _why_command(deployment: Deployment) -> str:
    if apart(deployment) and divided(deployment):
        return "\n".join(part_reason(deployment))
    return program_note(deployment)


def _image(deployment: Deployment) -> list[Setting]:
    if deployment.node.kind == "neuron":
        parameter = deployment.platforms.get("AMI", {}).get("ecs")
        return [
            Setting("IMAGE_TYPE", "ECS_AL2023"),
            Setting("IMAGE_PARAMETER", parameter, "Batch does not find Neuron drivers by itself."),
        ]
    kind = "ECS_AL2023_NVIDIA" if deployment.node.accelerated else "ECS_AL2023"
    return [Setting("IMAGE_TYPE", kind), Setting("IMAGE_PARAMETER", None)]


def _container(deployment: Deployment) -> dict[str, object]:
    needs = [
        {"type": "VCPU", "value": str(vcpus(deployment))},
        {"type": "MEMORY", "value": str(memory_mib(deployment))},
    ]
    if gpus(deployment):
        needs.append({"type": "GPU", "value": str(gpus(deployment))})
    linux: dict[str, object] = {"sharedMemorySize": shared_mib(deployment), "initProcessEnabled": True}
    if devices(deployment):
        linux["devices"] = devices(deployment)
    extra = {"PARTS": str(parts(deployment))} if apart(deployment) and divided(deployment) else {}
    number = "$AWS_BATCH_JOB_NODE_INDEX" if together(deployment) else "$AWS_BATCH_JOB_ARRAY_INDEX"
    fields: dict[str, object] = {
        "command": command(deployment, number, _HEAD),
        "resourceRequirements": needs,
        "environment": environment(deployment, extra),
        "linuxParameters": linux,
    }
    if uses_efa(deployment):
        fields["ulimits"] = [{"name": "memlock", "softLimit": -1, "hardLimit": -1}]
    return fields


def _retries(deployment: Deployment) -> dict[str, object]:
    return {
        "attempts": 6 if deployment.spot else 3,
        "evaluateOnExit": [{"onStatusReason": "Host EC2*", "action": "RETRY"}, {"onReason": "*", "action": "EXIT"}],
    }
