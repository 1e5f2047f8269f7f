"""Azure Container Apps: an app that scales to nothing, or a job; a job that a queue starts where objects arrive."""

from __future__ import annotations

import math

from chipwise.renderer.aws.parts import parts
from chipwise.renderer.aws.tags import tags
from chipwise.renderer.deployment import Deployment, Form
from chipwise.renderer.file import CannotRender, File
from chipwise.renderer.functions.needs import memory_bytes, refuse_memory, refuse_time, run_seconds, settings, trigger_of
from chipwise.renderer.heading import heading
from chipwise.renderer.program_files import shell_file
from chipwise.renderer.quoting import dns_name
from chipwise.renderer.sold import most_instances, sold_as
from chipwise.renderer.yaml_text import Noted, Yaml, document
from chipwise.units import GIB

Object = dict[str, Yaml]
LONGEST_JOB_S = 86_400


def container_app_files(deployment: Deployment) -> list[File]:
    node, offered = deployment.node, deployment.platforms.get("Container Apps", {})
    if node.accelerated and "profile" not in offered:
        raise CannotRender(
            f"Container Apps have T4 and A100 (80 GB) GPUs; the plan uses {node.chip}.",
            remedy="Plan with --chip T4,A100-80, or take --to kubernetes or terraform.",
        )
    if node.accelerated and max(deployment.chips_each, 1) > 1:
        raise CannotRender(
            f"A replica of Container Apps has one GPU; the plan needs {deployment.chips_each} for one.",
            remedy="Plan a smaller model or number format, or take --to kubernetes.",
        )
    if node.accelerated:
        deployment = sold_as(deployment, "Container Apps serverless GPU")
    else:
        deployment = sold_as(deployment, "Container Apps", "consumption profile")
    refuse_memory(deployment, "Container Apps", float(offered.get("most memory GiB", "8")) * 1024)
    trigger, title = trigger_of(deployment), heading(deployment)
    if deployment.form is Form.JOB or trigger is not None:
        if deployment.form is Form.JOB:
            refuse_time(deployment, "Container Apps", deployment.predicted.high_s, LONGEST_JOB_S, "a job")
        body, kind = _job(deployment, trigger is not None), "job"
    else:
        longest = float(offered.get("most seconds of a call", "240"))
        refuse_time(deployment, "Container Apps", run_seconds(deployment), longest, "a call")
        body, kind = _app(deployment), "app"
    return [File(f"{kind}.yaml", document(body, title=title)), _deploy(deployment, kind, trigger)]


def _container(deployment: Deployment) -> Object:
    software, offered = deployment.software, deployment.platforms.get("Container Apps", {})
    image: Yaml = software.image
    if software.built:
        image = Noted(software.image, "Built from the Dockerfile of `--to dockerfile`; push it and put its full name here.")
    cpu, memory = float(offered.get("most vcpus", "4")), float(offered.get("most memory GiB", "8"))
    if not deployment.node.accelerated:
        cpu = min(max(math.ceil(memory_bytes(deployment) / GIB / 2), min(deployment.node.vcpus or 1, 4)), 4)
        memory = 2 * cpu
    env: list[Yaml] = [{"name": key, "value": value} for key, value in settings(deployment).items()]
    env += [{"name": setting, "secretRef": f"{name}-{key}".lower()} for setting, name, key in software.secrets]
    fields: Object = {
        "name": "main",
        "image": image,
        "command": list(software.command[:1]),
        "args": list(software.command[1:]),
        "env": env,
        "resources": {"cpu": cpu, "memory": f"{memory:g}Gi"},
    }
    if deployment.node.accelerated:
        fields["resources"] = Noted(fields["resources"], "The whole of the GPU profile: what is left over is not used.")
    return fields


def _common(deployment: Deployment, key: str) -> Object:
    fields: Object = {key: Noted("ENVIRONMENT_ID", "deploy.sh fills it in.")}
    profile = deployment.platforms.get("Container Apps", {}).get("profile")
    return fields | {"workloadProfileName": Noted("gpu", f"{profile}, which deploy.sh adds.") if profile else "Consumption"}


def _secrets(deployment: Deployment) -> list[Yaml]:
    return [
        {
            "name": f"{name}-{key}".lower(),
            "keyVaultUrl": f"https://VAULT.vault.azure.net/secrets/{name}-{key}",
            "identity": "system",
        }
        for _, name, key in deployment.software.secrets
    ]


def _app(deployment: Deployment) -> Object:
    scaling, software = deployment.scaling, deployment.software
    assert scaling is not None
    inside = _container(deployment)
    if software.health is not None:
        check: Object = {"httpGet": {"path": software.health, "port": software.port or 8000}}
        inside["probes"] = [
            {"type": "Startup", **check, "periodSeconds": 10, "failureThreshold": 60},
            {"type": "Readiness", **check, "periodSeconds": 5},
        ]
    rule: Object = {
        "name": "requests",
        "http": {
            "metadata": {
                "concurrentRequests": str(
                    (deployment.host_service.at_once if deployment.host_service is not None else None) or scaling.slots or 10
                )
            }
        },
    }
    settings: Object = {
        "activeRevisionsMode": "Single",
        "ingress": {
            "external": Noted(False, "Only from within the environment; put a gateway before it."),
            "targetPort": software.port or 8000,
            "transport": "auto",
        },
    }
    if software.secrets:
        settings["secrets"] = _secrets(deployment)
    scale: Object = {
        "minReplicas": _warm(deployment),
        "maxReplicas": most_instances(deployment, 10),
        "rules": [rule],
    }
    return {
        "type": "Microsoft.App/containerApps",
        "location": deployment.node.region,
        "tags": dict(tags(deployment)),
        "identity": {"type": "SystemAssigned"},
        "properties": {
            **_common(deployment, "managedEnvironmentId"),
            "configuration": settings,
            "template": {"containers": [inside], "scale": scale},
        },
    }


def _warm(deployment: Deployment) -> Yaml:
    count = deployment.host_service.warm if deployment.host_service is not None else 0
    if count:
        return Noted(
            count, "Kept warm, and paid for, as the plan computes: without them too many requests would wait for a start."
        )
    return Noted(0, "Nothing runs, and nothing is paid, while nobody asks.")


def _job(deployment: Deployment, triggered: bool) -> Object:
    seconds = min(math.ceil(max(2 * run_seconds(deployment), 600)), LONGEST_JOB_S)
    part_count = parts(deployment) if deployment.form is Form.JOB else 1
    settings: Object = {"replicaTimeout": seconds, "replicaRetryLimit": 3}
    if triggered:
        rule: Object = {
            "name": "objects",
            "type": "azure-queue",
            "identity": "system",
            "metadata": {"accountName": "STORAGE_ACCOUNT", "queueName": _name(deployment), "queueLength": "1"},
        }
        settings |= {
            "triggerType": Noted("Event", "A run for each message: the program takes one, works, deletes it."),
            "eventTriggerConfig": {
                "parallelism": 1,
                "replicaCompletionCount": 1,
                "scale": {"minExecutions": 0, "maxExecutions": 50, "pollingInterval": 30, "rules": [rule]},
            },
        }
    elif deployment.starts:
        settings |= {
            "triggerType": "Schedule",
            "scheduleTriggerConfig": {
                "cronExpression": _cron(deployment),
                "parallelism": part_count,
                "replicaCompletionCount": part_count,
            },
        }
    else:
        settings |= {
            "triggerType": "Manual",
            "manualTriggerConfig": {"parallelism": part_count, "replicaCompletionCount": part_count},
        }
    if deployment.software.secrets:
        settings["secrets"] = _secrets(deployment)
    return {
        "type": "Microsoft.App/jobs",
        "location": deployment.node.region,
        "tags": dict(tags(deployment)),
        "identity": {"type": "SystemAssigned"},
        "properties": {
            **_common(deployment, "environmentId"),
            "configuration": settings,
            "template": {"containers": [_container(deployment)]},
        },
    }


def _name(deployment: Deployment) -> str:
    """Apps and jobs have names of 32 characters."""
    return dns_name(deployment.name, 32)


def _cron(deployment: Deployment) -> Yaml:
    return Noted(deployment.starts, f"Container Apps read it in UTC; the workload means {deployment.time_zone}.")


def _deploy(deployment: Deployment, kind: str, trigger: tuple[str, str] | None) -> File:
    container, prefix = trigger or ("", "")
    settings = {
        "NAME": _name(deployment),
        "REGION": deployment.node.region,
        "KIND": kind,
        "PROFILE": deployment.platforms.get("Container Apps", {}).get("profile", ""),
        "SECRETS": "yes" if deployment.software.secrets else "",
        "STARTS": "yes" if deployment.starts else "",
        "CONTAINER": container,
        "PREFIX": prefix,
    }
    return shell_file("deploy.sh", "container_apps_deploy.sh", heading(deployment), settings)
