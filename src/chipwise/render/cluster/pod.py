"""A pod of a deployment: one container, what it may do, where it may run, and the directories it sees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from chipwise.render.cluster.accelerators import (
    MACHINE,
    capacity_labels,
    chip_taint,
    cpu_request,
    hosts,
    memory_request,
    pod_chips,
    pod_share,
    resource_of,
    spot_taints,
    tpu_selector,
)
from chipwise.render.deployment import Deployment, Form, Volume
from chipwise.render.quoting import kubernetes, label_value
from chipwise.render.yaml_text import Noted, Yaml
from chipwise.units import GIB

USER = 10001  # of the container: nobody on the machine
SPOT_NOTICE_S = {"aws": 120, "gcp": 30, "azure": 30}
RENDEZVOUS_PORT = 29500
Object = dict[str, Yaml]


def namespace_of(deployment: Deployment) -> str:
    """One per workload: a quota holds for a whole namespace, and this one is made for one plan."""
    return deployment.namespace or deployment.name


def selector(deployment: Deployment) -> Object:
    return {"app.kubernetes.io/name": deployment.name}


def labels(deployment: Deployment) -> Object:
    """Recommended labels, then who pays. Values that a label cannot have are cut to what it can."""
    made: Object = {"app.kubernetes.io/name": deployment.name, "app.kubernetes.io/managed-by": "chipwise"}
    for key, value in deployment.labels.items():
        name, text = label_value(key), label_value(value)
        if name and text:
            made[f"chipwise.dev/{name}"] = text
    return made


def meta(deployment: Deployment, name: str | None = None, namespaced: bool = True) -> Object:
    made: Object = {"name": name or deployment.name}
    if namespaced:
        made["namespace"] = namespace_of(deployment)
    return made | {"labels": labels(deployment)}


def template(deployment: Deployment, command: Sequence[str], extra: Mapping[str, Yaml] | None = None) -> Object:
    """The `template` of a Job, a Deployment or a StatefulSet. `command` is ready for Kubernetes (`quoting.kubernetes`);
    `extra` goes over the pod's own fields."""
    annotations: Object = {}
    if deployment.spot and deployment.form is Form.JOB:
        annotations["karpenter.sh/do-not-disrupt"] = Noted(
            "true", "Consolidation may wait: a restart costs work since the last checkpoint."
        )
    metadata: Object = {"labels": labels(deployment)}
    if annotations:
        metadata["annotations"] = annotations
    return {"metadata": metadata, "spec": _spec(deployment, command) | dict(extra or {})}


def _spec(deployment: Deployment, command: Sequence[str]) -> Object:
    spec: Object = {
        "serviceAccountName": deployment.name,
        "automountServiceAccountToken": Noted(False, "The program talks to no API server."),
        "priorityClassName": priority_of(deployment),
    }
    if deployment.node.kind == "tpu":
        spec["nodeSelector"] = tpu_selector(deployment.node)
    spec |= {"affinity": _affinity(deployment), "tolerations": _tolerations(deployment)}
    spec["securityContext"] = {
        "runAsNonRoot": True, "runAsUser": USER, "runAsGroup": USER,
        "fsGroup": Noted(USER, "Volumes are writable for the program's user."),
        "fsGroupChangePolicy": "OnRootMismatch", "seccompProfile": {"type": "RuntimeDefault"},
    }  # fmt: skip
    spec["terminationGracePeriodSeconds"] = _grace(deployment)
    spec["containers"] = [container(deployment, command)]
    spec["volumes"] = _volumes(deployment)
    return spec


def priority_of(deployment: Deployment) -> str:
    return "chipwise-service" if deployment.form is Form.SERVICE else "chipwise-job"


def container(deployment: Deployment, command: Sequence[str]) -> Object:
    software = deployment.software
    image: Yaml = software.image
    if software.built:
        image = Noted(
            software.image,
            "Built from the Dockerfile of `chipwise render --to dockerfile`; push it and put its full name here.",
        )
    elif software.image.endswith(":latest"):
        image = Noted(software.image, "No release of it is known to us: pin it by digest after the first pull.")
    what = "The usual program of its kind: put your own into program.command of the workload."
    made: Object = {"name": "main", "image": image}
    made["command"] = list(command) if software.given or software.engine else Noted(list(command), what)
    env: list[Yaml] = [{"name": "HOME", "value": "/tmp"}]
    env += [{"name": key, "value": kubernetes(value)} for key, value in software.env]
    env += [_secret(*one) for one in software.secrets]
    made["env"] = env
    if software.port is not None:
        made["ports"] = [{"name": "http", "containerPort": software.port}]
        made |= _probes(deployment)
    made["resources"] = resources(deployment)
    made["securityContext"] = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    if software.engine:
        made["securityContext"] = {
            "readOnlyRootFilesystem": True,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        }
    made["volumeMounts"] = [
        *({"name": one.name, "mountPath": one.path} for one in kept(deployment)),
        {"name": "tmp", "mountPath": "/tmp"},
        {"name": "shm", "mountPath": "/dev/shm"},
    ]  # fmt: skip
    return made


def _secret(setting: str, name: str, key: str) -> Object:
    return {"name": setting, "valueFrom": {"secretKeyRef": {"name": name, "key": key}}}


def resources(deployment: Deployment) -> Object:
    requests: Object = {"cpu": Noted(cpu_request(deployment), _why_cpu(deployment)), "memory": memory_request(deployment)}
    limits: Object = {"memory": memory_request(deployment)}
    resource = resource_of(deployment.node)
    if resource is not None:
        requests[resource] = limits[resource] = pod_chips(deployment)
    if uses_efa(deployment):
        requests["vpc.amazonaws.com/efa"] = limits["vpc.amazonaws.com/efa"] = deployment.node.interfaces
        requests["hugepages-2Mi"] = Noted("5120Mi", "EFA pins these pages.")
        limits["hugepages-2Mi"] = "5120Mi"
    return {"requests": requests, "limits": limits}


def _why_cpu(deployment: Deployment) -> str:
    share = pod_share(deployment)
    part = "The machine" if share >= 1 else f"{share:.0%} of the machine"
    return f"{part} without a tenth for the system. No limit: a throttled reader would starve the chips."


def uses_efa(deployment: Deployment) -> bool:
    """Jobs over several machines; a service talks to its users, not to itself."""
    node = deployment.node
    return node.provider == "aws" and node.interfaces > 0 and deployment.form is Form.JOB and deployment.machines > 1


def _probes(deployment: Deployment) -> Object:
    software = deployment.software
    if software.health is None:
        return {}
    check: Object = {"httpGet": {"path": software.health, "port": "http"}}
    size = deployment.model.weight_bytes if deployment.model is not None and deployment.model.weight_bytes else 2 * GIB
    wait = max(int(size / (150e6) / 10), 12)  # a slow first fetch at 150 MB/s, every 10 s
    return {
        "startupProbe": check | {
            "periodSeconds": 10, "failureThreshold": Noted(wait, "Weights may come at 150 MB/s the first time."),
        },
        "readinessProbe": check | {"periodSeconds": 5, "failureThreshold": 2},
        "livenessProbe": check | {"periodSeconds": 15, "timeoutSeconds": 5, "failureThreshold": 4},
        "lifecycle": {
            "preStop": {"sleep": {"seconds": Noted(15, "The balancer forgets this pod first; then it ends what it began.")}},
        },
    }  # fmt: skip


def _grace(deployment: Deployment) -> Yaml:
    if deployment.form is Form.SERVICE:
        longest = max(
            (seconds for goal, seconds in deployment.predicted.latency.items() if goal.startswith("latency")), default=15.0
        )
        return Noted(int(45 + 2 * longest), "Twice the longest answer, after the balancer let go.")
    notice = SPOT_NOTICE_S.get(deployment.node.provider, 30) if deployment.spot else 300
    why = "What a spot machine is told beforehand: time to save." if deployment.spot else "Time to save what was done."
    return Noted(notice, why)


def _affinity(deployment: Deployment) -> Object:
    wanted: list[Yaml] = []
    node = deployment.node
    if node.kind != "tpu":
        names = [node.machine, *(other.machine for other in deployment.others)] if deployment.spot else [node.machine]
        machine: Object = {"key": MACHINE, "operator": "In", "values": [label_value(name) for name in names]}
        terms: list[Yaml] = [
            {"matchExpressions": [machine, {"key": key, "operator": "In", "values": [value]}]}
            for key, value in capacity_labels(deployment)
        ] or [{"matchExpressions": [machine]}]
        if node.provider == "aws" and len(terms) > 1:
            terms[0] = Noted(terms[0], "Either label will do: Karpenter sets the first, managed node groups the second.")
        wanted = terms
    made: Object = {}
    if wanted:
        made["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": wanted}}
    if deployment.form is Form.JOB and deployment.machines * hosts(node) > 1:
        rule = {"labelSelector": {"matchLabels": selector(deployment)}, "topologyKey": "topology.kubernetes.io/zone"}
        made["podAffinity"] = Noted(
            {"requiredDuringSchedulingIgnoredDuringExecution": [rule]}, "One zone: between zones, traffic is slow and paid for."
        )
    return made


def _tolerations(deployment: Deployment) -> list[Yaml]:
    taints = [one for one in (chip_taint(deployment.node),) if one is not None]
    if deployment.spot:
        taints += spot_taints(deployment.node)
    return [{"key": one.key, "operator": "Exists", "effect": one.effect} for one in taints]


def kept(deployment: Deployment) -> tuple[Volume, ...]:
    """Directories that are volumes. What lies in an object store is read by the program itself."""
    return tuple(one for one in deployment.volumes if one.url is None)


def claim_name(deployment: Deployment, volume: Volume) -> str:
    return f"{deployment.name}-{volume.name}"


def _volumes(deployment: Deployment) -> list[Yaml]:
    made: list[Yaml] = [
        {"name": one.name, "persistentVolumeClaim": {"claimName": claim_name(deployment, one)}} for one in kept(deployment)
    ]
    size = deployment.node.memory_bytes
    shared = max(int((size or 32 * GIB) * pod_share(deployment) / hosts(deployment.node) / GIB / 8), 1)
    made.append({"name": "tmp", "emptyDir": {"sizeLimit": "20Gi"}})
    made.append(
        {
            "name": "shm",
            "emptyDir": {
                "medium": "Memory",
                "sizeLimit": Noted(f"{shared}Gi", "Readers and NCCL share memory; 64 MiB is the default."),
            },
        }
    )
    return made
