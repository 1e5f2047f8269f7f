"""What is not wanted around the clock: clocks that scale a service up and down, or suspend and resume a job, and the one right
that they need.

The autoscaler leaves a Deployment of no replicas alone, and whatever brings machines takes them away when they are empty. A
Job that is suspended ends its pods, which save as for any other stop, and keeps what is done.
"""

from __future__ import annotations

from collections.abc import Sequence

from chipwise.renderer.cluster.pod import USER, Object, meta, namespace_of
from chipwise.renderer.cluster.services import scaled_kind
from chipwise.renderer.deployment import Deployment
from chipwise.renderer.yaml_text import Noted, Yaml

IMAGE = "registry.k8s.io/kubectl:v1.36.0"


def clocks(deployment: Deployment) -> Sequence[Object]:
    scaling = deployment.scaling
    if scaling is None or not (deployment.starts and deployment.stops):
        return ()
    api, name = scaled_kind(deployment)
    kind = name.lower()
    rule: Object = {
        "apiGroups": [api.partition("/")[0]],
        "resources": [f"{kind}s", f"{kind}s/scale"],
        "resourceNames": [deployment.name],
        "verbs": ["get", "patch", "update"],
    }
    scale = ["kubectl", "scale", kind, deployment.name, f"--namespace={namespace_of(deployment)}"]
    return (
        *_rights(deployment, rule),
        _clock(
            deployment,
            "open",
            deployment.starts,
            [*scale, f"--replicas={scaling.minimum}"],
            "The plan pays for these hours only.",
        ),
        _clock(deployment, "close", deployment.stops, [*scale, "--replicas=0"], "Empty machines are removed automatically."),
    )


def pauses(deployment: Deployment) -> Sequence[Object]:
    """For a job that may run in some hours only: it goes on where it was, and does not begin again each time."""
    hours = deployment.hours
    if hours is None:
        return ()
    rule: Object = {
        "apiGroups": ["batch"],
        "resources": ["jobs"],
        "resourceNames": [deployment.name],
        "verbs": ["get", "patch"],
    }
    patch = ["kubectl", "patch", "job", deployment.name, f"--namespace={namespace_of(deployment)}", "--type=merge"]
    return (
        *_rights(deployment, rule),
        _clock(
            deployment,
            "open",
            hours.opens.cron,
            [*patch, '--patch={"spec": {"suspend": false}}'],
            "It goes on. Delete both clocks with the Job, when it is done.",
        ),
        _clock(
            deployment,
            "close",
            hours.closes.cron,
            [*patch, '--patch={"spec": {"suspend": true}}'],
            "It saves and waits; its machines go.",
        ),
    )


def _rights(deployment: Deployment, rule: Object) -> tuple[Object, ...]:
    name, rights = f"{deployment.name}-hours", "rbac.authorization.k8s.io"
    subject: Object = {"kind": "ServiceAccount", "name": name, "namespace": namespace_of(deployment)}
    return (
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta(deployment, name)},
        {"apiVersion": f"{rights}/v1", "kind": "Role", "metadata": meta(deployment, name), "rules": [rule]},
        {
            "apiVersion": f"{rights}/v1",
            "kind": "RoleBinding",
            "metadata": meta(deployment, name),
            "roleRef": {"apiGroup": rights, "kind": "Role", "name": name},
            "subjects": [subject],
        },
    )


def _clock(deployment: Deployment, action: str, cron: str, words: list[str], reason: str) -> Object:
    container: Object = {
        "name": "main",
        "image": IMAGE,
        "command": list(words),
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}},
        "securityContext": {
            "readOnlyRootFilesystem": True,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    pod: Object = {
        "serviceAccountName": f"{deployment.name}-hours",
        "restartPolicy": "OnFailure",
        "securityContext": {"runAsNonRoot": True, "runAsUser": USER, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
    }
    schedule: Yaml = Noted(cron, reason)
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": meta(deployment, f"{deployment.name}-{action}"),
        "spec": {
            "schedule": schedule,
            "timeZone": deployment.time_zone,
            "concurrencyPolicy": "Replace",
            "startingDeadlineSeconds": Noted(3600, "A control plane that was away does it late rather than never."),
            "successfulJobsHistoryLimit": 1,
            "failedJobsHistoryLimit": 3,
            "jobTemplate": {"spec": {"backoffLimit": 5, "ttlSecondsAfterFinished": 86400, "template": {"spec": pod}}},
        },
    }
