"""What the objects of a job may contain: what chipwise renders for `run`, and nothing else.

Anybody who may submit can write other objects into the record, and a controller applies them with its own rights. Most fields
of Kubernetes that nobody renders reach beyond the namespace: addresses and balancers of the cluster, priorities over others'
pods, volumes of others, host directories, rights of a cloud, finalizers that keep objects for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from chipwise.renderer.cluster.pod import JOB_PRIORITY, PRIORITY_LABEL, QUEUE_LABEL, SERVICE_PRIORITY

from .kinds import ACCOUNT, AUTOSCALER, CLAIM, DEPLOYMENT, DISRUPTION_BUDGET, JOB, NETWORK_POLICY, SERVICE, Object, ObjectKind

RENDERED_PRIORITIES = (JOB_PRIORITY, SERVICE_PRIORITY)  # with any other a job could put itself before those of others

Rule = Callable[[Any], bool]  # of a value


def _any(value: Any) -> bool:
    return True


def _one_of(*values: object) -> Rule:
    return lambda value: any(value is one or (type(value) is type(one) and value == one) for one in values)


def _names(*prefixes: str) -> Rule:
    """A mapping whose names begin so."""
    return lambda value: isinstance(value, Mapping) and all(str(name).startswith(prefixes) for name in value)


def _labels(value: Any) -> bool:
    known = _names("app.kubernetes.io/", "chipwise.dev/", QUEUE_LABEL, PRIORITY_LABEL)
    return known(value) and value.get(PRIORITY_LABEL, RENDERED_PRIORITIES[0]) in RENDERED_PRIORITIES


def _text(value: Any) -> bool:
    """An empty class is none: such a claim would take any free volume of the cluster."""
    return isinstance(value, str) and value != ""


def _counts(value: Any) -> bool:
    """At least one: with none no machine could be drained."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _toleration(value: Any) -> bool:
    """Of chips and of how machines are bought, by name. Taints of the system keep pods off its own machines."""
    if not isinstance(value, Mapping) or not value.keys() <= {"key", "operator", "effect"}:
        return False
    key = value.get("key")
    named = isinstance(key, str) and key != "" and not key.partition("/")[0].endswith("kubernetes.io")
    return named and value.get("effect") == "NoSchedule"


# A field is followed by a rule for its value, or by the fields in it; a list holds what its field may hold, each by itself.
Fields = Mapping[str, "Fields | Rule"]

_META: Fields = {
    "name": _any,
    "namespace": _any,
    "labels": _labels,
    "annotations": _names("karpenter.sh/do-not-disrupt", "chipwise.dev/"),
}
_PROBE: Fields = {
    "httpGet": {"path": _any, "port": _any},
    "periodSeconds": _any,
    "timeoutSeconds": _any,
    "failureThreshold": _any,
}
_CONTAINER: Fields = {
    "name": _any,
    "image": _any,
    "command": _any,
    "args": _any,
    "workingDir": _any,
    "terminationMessagePath": _any,
    "env": {
        "name": _any,
        "value": _any,
        "valueFrom": {"secretKeyRef": {"name": _any, "key": _any}, "fieldRef": {"fieldPath": _any}},
    },
    "ports": {"name": _any, "containerPort": _any},
    "startupProbe": _PROBE,
    "readinessProbe": _PROBE,
    "livenessProbe": _PROBE,
    "lifecycle": {"preStop": {"sleep": {"seconds": _any}}},
    "resources": {"requests": _any, "limits": _any, "claims": {"name": _any}},
    "securityContext": {
        "allowPrivilegeEscalation": _one_of(False),
        "readOnlyRootFilesystem": _any,
        "capabilities": {"drop": _any, "add": _one_of("SYS_RESOURCE")},
    },
    "volumeMounts": {"name": _any, "mountPath": _any, "readOnly": _any},
}
_POD: Fields = {
    "serviceAccountName": _any,
    "automountServiceAccountToken": _any,
    "nodeSelector": _any,
    "affinity": _any,
    "tolerations": _toleration,
    "topologySpreadConstraints": _any,
    "securityContext": {
        "runAsNonRoot": _any,
        "runAsUser": _any,
        "runAsGroup": _any,
        "supplementalGroups": _any,
        "fsGroup": _any,
        "fsGroupChangePolicy": _any,
        "seccompProfile": {"type": _one_of("RuntimeDefault")},
    },
    "terminationGracePeriodSeconds": _any,
    "restartPolicy": _any,
    "subdomain": _any,
    "containers": _CONTAINER,
    "resourceClaims": {"name": _any, "resourceClaimTemplateName": _any},
    "volumes": {
        "name": _any,
        "emptyDir": {"medium": _any, "sizeLimit": _any},
        "persistentVolumeClaim": {"claimName": _any, "readOnly": _any},
    },
}


def _template(priority: str) -> Fields:
    """With the class of its kind, as whoever runs the cluster made it; another would go before the pods of others."""
    return {"metadata": _META, "spec": {**_POD, "priorityClassName": _one_of(priority)}}


_SPECS: Mapping[ObjectKind, Fields] = {
    JOB: {
        "suspend": _any,
        "completions": _any,
        "parallelism": _any,
        "completionMode": _any,
        "backoffLimit": _any,
        "backoffLimitPerIndex": _any,
        "maxFailedIndexes": _any,
        "podFailurePolicy": _any,
        "activeDeadlineSeconds": _any,
        "ttlSecondsAfterFinished": _any,
        "template": _template(JOB_PRIORITY),
    },
    DEPLOYMENT: {
        "replicas": _any,
        "selector": _any,
        "strategy": _any,
        "minReadySeconds": _any,
        "progressDeadlineSeconds": _any,
        "revisionHistoryLimit": _any,
        "template": _template(SERVICE_PRIORITY),
    },
    SERVICE: {
        "type": _one_of("ClusterIP"),
        "clusterIP": _one_of("None"),
        "publishNotReadyAddresses": _any,
        "selector": _any,
        "ports": {"name": _any, "port": _any, "targetPort": _any, "protocol": _any, "appProtocol": _any},
    },
    NETWORK_POLICY: {"podSelector": _any, "policyTypes": _any, "ingress": _any, "egress": _any},
    DISRUPTION_BUDGET: {"maxUnavailable": _counts, "selector": _any},
    AUTOSCALER: {
        "scaleTargetRef": _any,
        "minReplicas": _any,
        "maxReplicas": _any,
        "behavior": _any,
        "metrics": {
            "type": _one_of("Pods", "Resource"),
            "pods": {"metric": {"name": _any}, "target": _any},
            "resource": {"name": _any, "target": _any},
        },
    },
    CLAIM: {"storageClassName": _text, "accessModes": _any, "resources": {"requests": _any}},
    ACCOUNT: {},
}


def fault(kind: ObjectKind, body: Object) -> str:
    """The first field that a job may not have, with its value; empty: none."""
    own: dict[str, Fields | Rule] = {"apiVersion": _any, "kind": _any, "metadata": _META, "spec": _SPECS[kind]}
    if kind is ACCOUNT:
        own = {"apiVersion": _any, "kind": _any, "metadata": _META}
        own |= {"automountServiceAccountToken": _one_of(False), "imagePullSecrets": {"name": _any}}  # by permission
    return next(_faults(body, own, ""), "")


def _faults(value: Any, rule: Fields | Rule, path: str) -> Iterator[str]:
    if value is None:  # as if it were not there
        return
    if isinstance(value, list | tuple):
        if callable(rule) and rule is _any:
            return
        for number, element in enumerate(value):
            yield from _faults(element, rule, f"{path}[{number}]")
    elif callable(rule):
        if not rule(value):
            yield f"{path}: {str(value)[:80]}"
    elif not isinstance(value, Mapping):
        yield f"{path}: {str(value)[:80]}"
    else:
        for name, inner in value.items():
            place = f"{path}.{str(name)[:60]}" if path else str(name)[:60]
            if name not in rule:
                yield place
            else:
                yield from _faults(inner, rule[name], place)
