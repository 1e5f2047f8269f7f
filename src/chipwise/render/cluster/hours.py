"""A service that is not wanted around the clock: clocks that scale it up and down, and the one right that they need.

The autoscaler leaves a Deployment of no replicas alone, and whatever brings machines takes them away when they are empty.
"""

from __future__ import annotations

from collections.abc import Sequence

from chipwise.render.cluster.pod import USER, Object, meta, namespace_of
from chipwise.render.deployment import Deployment
from chipwise.render.yaml_text import Noted, Yaml

IMAGE = "registry.k8s.io/kubectl:v1.36.0"


def clocks(deployment: Deployment) -> Sequence[Object]:
    scaling = deployment.scaling
    if scaling is None or not (deployment.starts and deployment.stops):
        return ()
    name, namespace = f"{deployment.name}-hours", namespace_of(deployment)
    account: Object = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta(deployment, name)}
    role: Object = {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": meta(deployment, name),
        "rules": [
            {"apiGroups": ["apps"], "resources": ["deployments", "deployments/scale"], "resourceNames": [deployment.name],
             "verbs": ["get", "patch", "update"]},
        ],
    }  # fmt: skip
    binding: Object = {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": meta(deployment, name),
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
    }  # fmt: skip
    return (
        account, role, binding,
        _clock(deployment, f"{deployment.name}-open", deployment.starts, scaling.least, "The plan pays for these hours only."),
        _clock(deployment, f"{deployment.name}-close", deployment.stops, 0, "Empty machines go by themselves."),
    )  # fmt: skip


def _clock(deployment: Deployment, name: str, when: str, replicas: int, why: str) -> Object:
    words = [
        "kubectl",
        "scale",
        "deployment",
        deployment.name,
        f"--namespace={namespace_of(deployment)}",
        f"--replicas={replicas}",
    ]
    container: Object = {
        "name": "main", "image": IMAGE, "command": words,
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}},
        "securityContext": {
            "readOnlyRootFilesystem": True, "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]},
        },
    }  # fmt: skip
    pod: Object = {
        "serviceAccountName": f"{deployment.name}-hours", "restartPolicy": "OnFailure",
        "securityContext": {"runAsNonRoot": True, "runAsUser": USER, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
    }  # fmt: skip
    schedule: Yaml = Noted(when, why)
    return {
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": meta(deployment, name),
        "spec": {
            "schedule": schedule, "timeZone": deployment.time_zone, "concurrencyPolicy": "Replace",
            "startingDeadlineSeconds": Noted(3600, "A control plane that was away does it late rather than never."),
            "successfulJobsHistoryLimit": 1, "failedJobsHistoryLimit": 3,
            "jobTemplate": {"spec": {"backoffLimit": 5, "ttlSecondsAfterFinished": 86400, "template": {"spec": pod}}},
        },
    }  # fmt: skip
