"""ECS: a task definition with its chips, a capacity provider over an auto scaling group, and a service or tasks."""

from __future__ import annotations

import json

from chipwise.renderer.aws.containers import command, devices, environment, gpus, keeps, memory_mib, shared_mib, vcpus
from chipwise.renderer.aws.fitting import check, machines, refuse_fpga, refuse_ranks, unpullable
from chipwise.renderer.aws.parts import counted, divided, parts, together
from chipwise.renderer.aws.schedules import aws_cron
from chipwise.renderer.aws.tags import OWNER_TAG, tags
from chipwise.renderer.cluster.pod import USER
from chipwise.renderer.deployment import Deployment, Form
from chipwise.renderer.file import CannotRender, File
from chipwise.renderer.heading import heading
from chipwise.renderer.launch.health import start_seconds
from chipwise.renderer.launch.mounted import mounted_volumes, to_be_filled
from chipwise.renderer.launch.program_notes import program_note
from chipwise.renderer.launch.starting import apart, run_machines
from chipwise.renderer.launch.streams import refuse_streams
from chipwise.renderer.launch.timing import grace_seconds
from chipwise.renderer.left_out import without_hours
from chipwise.renderer.limits import ECS
from chipwise.renderer.program_files import Setting, python_files
from chipwise.renderer.quoting import shell

FITS = "services and jobs of single machines on ECS, with GPUs or Neuron chips"
EXPRESSES = frozenset({"hours"})
WRITES = ("task-definition.json",)
STARTS_MACHINES = True

FOLDERS_MIB = 64  # of the container that gives folders to that user
FOLDERS_IMAGE = "public.ecr.aws/docker/library/busybox:1.37.0"
JOB_STOP_S = 120  # as long as a spot machine is warned
MOST_TASKS = 100  # of a job, started one by one


def render(deployment: Deployment) -> list[File]:
    check(deployment, "ecs", Form.JOB, Form.SERVICE)
    refuse_fpga(deployment, "ECS")
    refuse_ranks(deployment, "ECS")
    refuse_streams(deployment, "ECS")
    if together(deployment):
        raise CannotRender(
            f"ECS starts tasks one by one; {deployment.title} is one program over {run_machines(deployment)} machines.",
            remedy="Use --to batch (multi-node, at the full price), sagemaker, ec2 or kubernetes.",
        )
    if deployment.form is Form.JOB and parts(deployment) > MOST_TASKS:
        raise CannotRender(
            f"ECS has no arrays: {parts(deployment):,} tasks would be started one by one.",
            remedy="Use --to batch or kubernetes.",
        )
    if deployment.form is Form.JOB or (deployment.stops and not _schedule(deployment, 0, 0)):
        deployment = without_hours(deployment)
    service, software, scaling = deployment.form is Form.SERVICE, deployment.software, deployment.scaling
    copies = scaling.usual if scaling is not None else parts(deployment)
    minimum, maximum = (scaling.minimum, scaling.maximum) if scaling is not None else (copies, copies)
    provider = f"cw-{deployment.name}"  # names that begin with aws, ecs or fargate are not allowed
    spare = minimum < 2
    constants = [
        Setting("NAME", deployment.name),
        Setting("MINE", OWNER_TAG),
        Setting("REGION", deployment.node.region),
        Setting(
            "MACHINES",
            [one.machine for one in machines(deployment)],
            f"What the auto scaling group has, {deployment.purchase}.",
        ),
        Setting("IMAGE_PARAMETER", deployment.platforms.get("AMI", {}).get("ecs")),
        Setting(
            "IMAGE",
            None if unpullable(deployment) else software.image,
            "Built by the Dockerfile of `--to dockerfile`: --image names it." if unpullable(deployment) else "",
        ),
        Setting("PROVIDER", provider),
        Setting("LOGS", f"/chipwise/{deployment.name}"),
        Setting("STRATEGY", [{"capacityProvider": provider, "weight": 1, "base": 0}]),
        Setting("SERVICE", service),
        Setting("COUNTED", counted(deployment) if divided(deployment) else None),
        Setting("COPIES", copies),
        Setting("LEAST", minimum),
        Setting("MOST", maximum),
        Setting(
            "ROLLOUT",
            _rollout(spare),
            "One more machine for the time of a rollout: there is no second task to lean on."
            if spare
            else "In place: a rollout needs no chip that is not there.",
        ),
        Setting(
            "PLACEMENT",
            [{"type": "spread", "field": "attribute:ecs.availability-zone"}, {"type": "binpack", "field": "memory"}],
        ),
        Setting("PORT", software.port),
        Setting("STARTUP_SECONDS", start_seconds(deployment)),
        Setting("LOAD", _load(deployment), "What it is scaled by; an accelerator's load does not show in the processor."),
        Setting("SCHEDULE", _schedule(deployment, minimum, maximum)),
        Setting("SECRETS", [list(one) for one in software.secrets]),
        Setting("USER", USER),
        Setting("KEEPS", keeps(deployment), to_be_filled(deployment)),
        Setting("TAGS", tags(deployment)),
    ]
    title = heading(deployment, program_note(deployment))
    return [
        File("task-definition.json", json.dumps(ECS.document(_task(deployment)), indent=2) + "\n"),
        *python_files("ecs_deploy.py", "ecs_deploy.py", title, constants),
    ]


def _load(deployment: Deployment) -> dict[str, object] | None:
    """Requests a minute and task where the plan says how many one answers, else the processor's share on machines that have
    nothing else; None: nothing tells the load."""
    scaling = deployment.scaling
    if scaling is not None and scaling.busy_per_minute is not None:
        return {"metric": "ALBRequestCountPerTarget", "target": float(f"{scaling.busy_per_minute:.3g}")}
    return None if deployment.node.accelerated else {"metric": "ECSServiceAverageCPUUtilization", "target": 60.0}


def _rollout(spare: bool) -> dict[str, object]:
    percent = (
        {"minimumHealthyPercent": 100, "maximumPercent": 200} if spare else {"minimumHealthyPercent": 50, "maximumPercent": 100}
    )
    return {**percent, "deploymentCircuitBreaker": {"enable": True, "rollback": True}}


def _schedule(deployment: Deployment, minimum: int, maximum: int) -> dict[str, tuple[str, str, int, int]]:
    starts, stops = aws_cron(deployment.starts), aws_cron(deployment.stops)
    if starts is None or stops is None or deployment.form is not Form.SERVICE:
        return {}
    return {"open": (starts, deployment.time_zone, minimum, maximum), "close": (stops, deployment.time_zone, 0, 0)}


def _task(deployment: Deployment) -> dict[str, object]:
    software = deployment.software
    linux: dict[str, object] = {"sharedMemorySize": shared_mib(deployment), "initProcessEnabled": True}
    if devices(deployment):
        linux["devices"] = [
            {**device, "permissions": [str(right).lower() for right in list(device["permissions"])]}  # type: ignore[call-overload]
            for device in devices(deployment)
        ]
    extra = {"PARTS": str(parts(deployment))} if apart(deployment) and divided(deployment) else {}
    words = command(deployment, "", "localhost")
    mounts = [{"sourceVolume": one.name, "containerPath": one.path} for one in mounted_volumes(deployment)]
    inside: dict[str, object] = {
        "name": "main",
        "image": software.image,
        "essential": True,
        "entryPoint": words[:1],
        "command": words[1:],
        "cpu": vcpus(deployment) * 1024,
        "memory": memory_mib(deployment) - (FOLDERS_MIB if mounts else 0),
        "environment": environment(deployment, extra),
        "linuxParameters": linux,
        "user": f"{USER}:{USER}",
        "stopTimeout": grace_seconds(deployment) if deployment.form is Form.SERVICE else JOB_STOP_S,
        "readonlyRootFilesystem": False,
        "privileged": False,
        "mountPoints": mounts,
        "logConfiguration": {
            "logDriver": "awslogs",
            "options": {
                "awslogs-group": f"/chipwise/{deployment.name}",
                "awslogs-region": deployment.node.region,
                "awslogs-stream-prefix": "main",
            },
        },
    }
    if gpus(deployment):
        inside["resourceRequirements"] = [{"type": "GPU", "value": str(gpus(deployment))}]
    if software.port is not None:
        # Port 0: the host chooses one, so that several tasks share a machine; the load balancer is told which.
        inside["portMappings"] = [{"containerPort": software.port, "hostPort": 0, "protocol": "tcp"}]
    containers = [inside]
    if mounts:
        inside["dependsOn"] = [{"containerName": "folders", "condition": "SUCCESS"}]
        containers.append(_folders(mounts))
    return {
        "family": deployment.name,
        "networkMode": "bridge",
        "requiresCompatibilities": ["EC2"],
        "runtimePlatform": {
            "cpuArchitecture": "ARM64" if deployment.node.arch == "arm64" else "X86_64",
            "operatingSystemFamily": "LINUX",
        },
        "containerDefinitions": containers,
        "volumes": [
            {"name": volume.name, "host": {"sourcePath": f"/var/lib/chipwise/{volume.name}"}}
            for volume in mounted_volumes(deployment)
        ],
    }


def _folders(mounts: list[dict[str, str]]) -> dict[str, object]:
    """Folders of the host, and of a file system, belong to root when they are new: they are given away before the program."""
    paths = " ".join(shell([mount["containerPath"]]) for mount in mounts)
    return {
        "name": "folders",
        "image": FOLDERS_IMAGE,
        "essential": False,
        "user": "0:0",
        "entryPoint": ["/bin/sh", "-c"],
        "command": [f"chown {USER}:{USER} {paths}"],
        "memory": FOLDERS_MIB,
        "mountPoints": mounts,
    }
