"""A SageMaker endpoint: real-time with scaling, asynchronous or serverless, with the image that it starts."""

from __future__ import annotations

import json
from collections.abc import Mapping

from chipwise.renderer.aws.fitting import unpullable
from chipwise.renderer.aws.parts import copies
from chipwise.renderer.aws.schedules import aws_cron
from chipwise.renderer.aws.tags import OWNER_TAG, tags
from chipwise.renderer.cluster.pod import USER
from chipwise.renderer.deployment import BUSY, Deployment
from chipwise.renderer.file import CannotRender, File
from chipwise.renderer.heading import heading
from chipwise.renderer.launch.health import start_seconds
from chipwise.renderer.left_out import without_hours
from chipwise.renderer.limits import SAGEMAKER_MODEL
from chipwise.renderer.program_files import Setting, python_files
from chipwise.renderer.quoting import shell
from chipwise.renderer.sold import sold_as

LONGEST_START_S = 3600  # that SageMaker waits for the first answer
PORT = 8080  # where SageMaker asks /ping and /invocations
PRICE = "The plan counts EC2's price; SageMaker asks more for the same machine."


def machine(deployment: Deployment, use: str) -> str:
    offered = deployment.platforms.get("SageMaker", {}).get(use)
    if offered is None:
        names = [one.machine for one in deployment.alternatives]
        raise CannotRender(
            f"SageMaker offers no ml.{deployment.node.machine} for {use}.",
            remedy=f"Use --to ec2, ecs or batch, or another of the plan with --choice ({', '.join(names) or 'none alike'}).",
        )
    return offered


def common_settings(deployment: Deployment) -> list[Setting]:
    software = deployment.software
    image = None if unpullable(deployment) or ".dkr.ecr." not in software.image else software.image
    reason = "" if image else "SageMaker pulls from ECR only: push the image there and give its name with --image."
    return [
        Setting("NAME", deployment.name),
        Setting("MINE", OWNER_TAG),
        Setting("REGION", deployment.node.region),
        Setting("IMAGE", image, reason),
        Setting("TAGS", tags(deployment)),
    ]


def mode_of(deployment: Deployment) -> tuple[str, str]:
    """(mode, why)."""
    offered = deployment.platforms.get("SageMaker", {})
    longest = float(offered.get("most seconds of a call", "60"))
    answer = max((seconds for goal, seconds in deployment.predicted.latency.items() if goal.startswith("latency")), default=0.0)
    if deployment.trigger is not None:
        return "asynchronous", "Objects that arrive are worked on one after the other; with none, no machine runs."
    if answer > longest:
        return "asynchronous", f"An answer takes up to {answer:.0f} s; other endpoints give up after {longest:.0f} s."
    if not deployment.node.accelerated and memory_mb(deployment) is not None:
        return "serverless", "No accelerator is needed and the model is small: nothing is paid while nobody asks."
    return "real-time", f"Answers within {longest:.0f} s, on machines that are always there."


def memory_mb(deployment: Deployment) -> int | None:
    """The smallest serverless size that holds the model and its program; None: no size does."""
    sizes = [int(one) for one in deployment.platforms.get("SageMaker Serverless", {}).get("memory MB", "").split()]
    weights = deployment.model.weight_bytes if deployment.model is not None and deployment.model.weight_bytes else 0.0
    needed = 1.5 * weights / 2**20 + 1024  # activations and copies while loading, and the interpreter with its libraries
    return next((size for size in sizes if size >= needed), None)


def endpoint(deployment: Deployment, mode: str, reason: str) -> list[File]:
    scaling = deployment.scaling
    assert scaling is not None
    if deployment.kind != "serve":
        raise CannotRender(
            f"An endpoint answers requests; {deployment.title} ({deployment.kind}) works on streams.",
            remedy="Use --to kubernetes or terraform.",
        )
    if mode == "serverless":
        size = f"CPU, {memory_mb(deployment)} MB"
        deployment = sold_as(deployment, "SageMaker Serverless Inference", size, size)
        _refuse_long(deployment)
    if start_seconds(deployment) > LONGEST_START_S:
        raise CannotRender(
            f"SageMaker waits {LONGEST_START_S:,} s for the first answer; weights that come from a hub and load take about"
            f" {start_seconds(deployment):,} s.",
            remedy="Use --to kubernetes or ecs, which wait as long as it takes.",
        )
    containers = copies(deployment)
    if containers > 1:
        raise CannotRender(
            f"An endpoint runs one container on a machine; the plan puts {containers} on a {deployment.node.machine}.",
            remedy=f"Plan with machines of {deployment.chips_each} chip(s) (--limit chip_count=...), or take --to ecs.",
        )
    minimum = 0 if mode == "asynchronous" else max(scaling.minimum, 1)
    if mode == "real-time" and deployment.stops:
        asleep = bool(_schedule(deployment, minimum, scaling.maximum))
        deployment = without_hours(deployment, 1 if asleep else None)
    constants = [*common_settings(deployment), Setting("MODE", mode, reason)]
    concurrency = int(deployment.platforms.get("SageMaker Serverless", {}).get("most concurrency", "200"))
    maximum = min(scaling.maximum, concurrency) if mode == "serverless" else scaling.maximum
    if mode == "serverless":
        constants += [Setting("MEMORY_MB", memory_mb(deployment)), Setting("MACHINE", None)]
    else:
        constants += [Setting("MEMORY_MB", None), Setting("MACHINE", machine(deployment, "hosting"))]
    constants += [
        Setting("START", max(scaling.usual, 1)),
        Setting("LEAST", minimum),
        Setting("MOST", maximum),
        Setting("SLOTS", scaling.slots),
        Setting("STARTUP_SECONDS", start_seconds(deployment)),
        Setting("METRIC", _metric(deployment, mode), f"One more machine above {BUSY:.0%} of what is planned for one."),
        Setting("SCHEDULE", _schedule(deployment, minimum, maximum)),
        Setting("ENVIRONMENT", SAGEMAKER_MODEL.settings(with_room(dict(deployment.software.env)))),
    ]
    title = heading(deployment, PRICE if mode != "serverless" else "")
    return [
        *python_files("sagemaker_endpoint.py", "sagemaker_endpoint.py", title, constants),
        File("Dockerfile", _dockerfile(deployment)),
        File("serve.sh", _serve(deployment), True),
    ]


def with_room(settings: Mapping[str, str]) -> dict[str, str]:
    """SageMaker's volume is at /tmp and /opt/ml; what is fetched to another place fills the small disk of the image."""
    home = settings.get("HF_HOME", "")
    return {**settings, "HF_HOME": "/tmp/hub"} if home.startswith("/models/") else dict(settings)


def _refuse_long(deployment: Deployment) -> None:
    longest = float(deployment.platforms.get("SageMaker", {}).get("most seconds of a call", "60"))
    answer = max((seconds for goal, seconds in deployment.predicted.latency.items() if goal.startswith("latency")), default=0.0)
    if answer > longest:
        raise CannotRender(
            f"A serverless endpoint gives a call {longest:.0f} s; an answer takes up to {answer:.0f} s.",
            remedy="Use --to sagemaker, whose asynchronous endpoints wait longer, or ecs.",
        )


def _metric(deployment: Deployment, mode: str) -> dict[str, object]:
    scaling = deployment.scaling
    assert scaling is not None
    if mode == "asynchronous":
        return {
            "TargetValue": 5.0,
            "CustomizedMetricSpecification": {
                "MetricName": "ApproximateBacklogSizePerInstance",
                "Namespace": "AWS/SageMaker",
                "Dimensions": [{"Name": "EndpointName", "Value": deployment.name}],
                "Statistic": "Average",
            },
        }
    if scaling.busy is not None:
        kind, value = "SageMakerVariantConcurrentRequestsPerModelHighResolution", scaling.busy
    else:
        kind, value = "SageMakerVariantInvocationsPerInstance", max(int(scaling.busy_per_minute or 60 * BUSY), 1)
    return {"TargetValue": float(value), "PredefinedMetricSpecification": {"PredefinedMetricType": kind}}


def _schedule(deployment: Deployment, minimum: int, maximum: int) -> dict[str, tuple[str, str, int, int]]:
    """A real-time endpoint cannot sleep: out of hours one machine stays."""
    starts, stops = aws_cron(deployment.starts), aws_cron(deployment.stops)
    if starts is None or stops is None:
        return {}
    zone, rest = deployment.time_zone, min(minimum, 1)
    return {"open": (starts, zone, minimum, maximum), "close": (stops, zone, rest, max(rest, 1))}


def _dockerfile(deployment: Deployment) -> str:
    software = deployment.software
    base = software.image if not software.built else software.base
    note = "# Start from the image of `chipwise render --to dockerfile`, once it is built.\n" if software.built else ""
    return (
        "".join(f"# {line}\n" for line in heading(deployment).splitlines())
        + "# SageMaker starts a container with the word `serve` and takes no command: this image has it inside.\n"
        + f"{note}FROM {base}\n"
        + ("# Some images start as another user, who may not make directories.\nUSER 0\n" if deployment.volumes else "")
        + "COPY --chmod=0755 serve.sh /usr/local/bin/serve.sh\n"
        + _folders(deployment)
        + f"EXPOSE {PORT}\n"
        + "# The program's home is the one place that any user may write to.\nENV HOME=/tmp\n"
        + f"USER {USER}\n"
        + f"ENTRYPOINT {json.dumps(['/usr/local/bin/serve.sh'])}\n"
    )


def _folders(deployment: Deployment) -> str:
    """SageMaker mounts none of them: what the program fetches lies inside the container, and its user must own the place."""
    paths = shell([one.path for one in deployment.volumes])
    return f"RUN install -d -o {USER} -g {USER} {paths}\n" if paths else ""


def _serve(deployment: Deployment) -> str:
    software = deployment.software
    words = list(software.command)
    if software.engine and software.port is not None:
        words = [str(PORT) if word == str(software.port) else word for word in words]
        words = [word.replace(f"--http-port={software.port}", f"--http-port={PORT}") for word in words]
    if software.engine == "triton":
        words += ["--allow-sagemaker=true", "--allow-http=false", f"--sagemaker-port={PORT}"]
    note = f"# SageMaker asks GET /ping and POST /invocations on port {PORT}" + (
        f"; {software.engine} answers both.\n" if software.engine else ": the program must answer them.\n"
    )
    return f"#!/bin/sh\n{note}exec {shell(words)}\n"
