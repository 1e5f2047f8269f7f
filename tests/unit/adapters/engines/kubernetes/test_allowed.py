"""What reaches beyond the namespace is in no object that a job applies, whoever wrote it into the record."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest
import yaml

from chipwise.adapters.engines.kubernetes.objects import attempt_objects
from chipwise.adapters.engines.kubernetes.plain import command_objects
from chipwise.errors import BadInput, CannotRender
from chipwise.renderer.cluster.work import work
from chipwise.renderer.targets import kubernetes as target
from chipwise.runner.events import Placed, Submitted, after, first
from chipwise.runner.job import Job, MachinePlace, Needs, Spec
from deployments import NAMES
from deployments import on_few_offers as deployment
from engines.kubernetes import job_object
from kube.led import service_objects


def _job(*objects: Any) -> Job:
    spec = Spec(("python", "train.py"), "train", "kubernetes", objects=objects)
    return after(first("train-k3x9q", Submitted(spec), 0.0), Placed(1, MachinePlace()), 0.0)


def _set(body: dict[str, Any], path: str, value: object) -> dict[str, Any]:
    changed = copy.deepcopy(body)
    *names, last = path.split(".")
    node: Any = changed
    for name in names:
        node = node[int(name)] if name.isdecimal() else node.setdefault(name, {})
    node[last] = value
    return changed


def _of(kind: str) -> dict[str, Any]:
    return next(one for one in (job_object({}), *service_objects()) if one["kind"] == kind)


POD = "spec.template.spec"
BEYOND: list[tuple[str, str, object]] = [
    ("Service", "spec.externalIPs", ["10.0.0.5"]),
    ("Service", "spec.type", "LoadBalancer"),
    ("Service", "spec.type", "NodePort"),
    ("Service", "spec.type", "ExternalName"),
    ("Service", "spec.externalName", "other.example.com"),
    ("Service", "spec.clusterIP", "10.96.0.10"),
    ("Service", "metadata.finalizers", ["a/b"]),
    ("Service", "metadata.annotations", {"external-dns.alpha.kubernetes.io/hostname": "www.example.com"}),
    ("Job", "metadata.finalizers", ["a/b"]),
    ("Job", "metadata.ownerReferences", [{"kind": "Pod", "name": "p"}]),
    ("Job", "metadata.labels", {"kueue.x-k8s.io/priority-class": "highest"}),
    ("Job", "metadata.labels", {"kueue.x-k8s.io/managed": "x"}),
    ("Job", "spec.managedBy", "other.example.com/x"),
    ("Job", "spec.template.metadata.finalizers", ["a/b"]),
    ("Job", f"{POD}.priorityClassName", "system-cluster-critical"),
    ("Job", f"{POD}.priorityClassName", "chipwise-service"),
    ("Job", f"{POD}.hostNetwork", True),
    ("Job", f"{POD}.hostPID", True),
    ("Job", f"{POD}.nodeName", "n1"),
    ("Job", f"{POD}.schedulerName", "mine"),
    ("Job", f"{POD}.runtimeClassName", "mine"),
    ("Job", f"{POD}.tolerations", [{"operator": "Exists"}]),
    ("Job", f"{POD}.tolerations", [{"key": "", "operator": "Exists", "effect": "NoSchedule"}]),
    ("Job", f"{POD}.tolerations", [{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}]),
    ("Job", f"{POD}.volumes", [{"name": "v", "hostPath": {"path": "/"}}]),
    ("Job", f"{POD}.volumes", [{"name": "v", "csi": {"driver": "d"}}]),
    ("Job", f"{POD}.securityContext", {"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}),
    ("Job", f"{POD}.securityContext", {"seccompProfile": {"type": "Unconfined"}}),
    ("Job", f"{POD}.containers.0.securityContext", {"privileged": True}),
    ("Job", f"{POD}.containers.0.securityContext", {"allowPrivilegeEscalation": True}),
    ("Job", f"{POD}.containers.0.securityContext", {"capabilities": {"add": ["SYS_ADMIN"]}}),
    ("Job", f"{POD}.containers.0.ports", [{"containerPort": 80, "hostPort": 80}]),
    ("Deployment", f"{POD}.priorityClassName", "system-node-critical"),
    ("Deployment", f"{POD}.containers.0.livenessProbe", {"httpGet": {"host": "169.254.169.254", "path": "/", "port": 80}}),
    ("PersistentVolumeClaim", "spec.volumeName", "pv-of-another"),
    ("PersistentVolumeClaim", "spec.storageClassName", ""),
    ("PersistentVolumeClaim", "spec.dataSourceRef", {"kind": "PersistentVolumeClaim", "name": "x", "namespace": "other"}),
    ("PersistentVolumeClaim", "metadata.finalizers", ["a/b"]),
    ("ServiceAccount", "metadata.annotations", {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/Admin"}),
    ("ServiceAccount", "automountServiceAccountToken", True),
    ("ServiceAccount", "secrets", [{"name": "token"}]),
    ("PodDisruptionBudget", "spec.maxUnavailable", 0),
    ("PodDisruptionBudget", "spec.maxUnavailable", "0%"),
    ("PodDisruptionBudget", "spec.minAvailable", "100%"),
    ("HorizontalPodAutoscaler", "spec.metrics", [{"type": "External", "external": {"metric": {"name": "x"}}}]),
]


@pytest.mark.parametrize(
    ("kind", "path", "value"), BEYOND, ids=[f"{kind} {path} {value!s:.40}" for kind, path, value in BEYOND]
)
def test_what_reaches_beyond_the_namespace_is_refused_by_name(kind: str, path: str, value: object) -> None:
    changed = _set(_of(kind), path, value)
    main = () if kind in ("Job", "Deployment") else (job_object({}),)
    with pytest.raises(BadInput, match=f"The {kind} of train has .*which a job may not have") as refused:
        attempt_objects(_job(changed, *main), "here", "r")
    assert path.rpartition(".")[2] in str(refused.value)


@pytest.mark.parametrize("example", NAMES)
def test_what_chipwise_renders_is_allowed(example: str) -> None:
    """What `run` gives to a cluster, and what `--to kubernetes` writes for the same work."""
    try:
        one = deployment(example)
        objects = work(one, queue="team", image="team/program:1")
    except (CannotRender, LookupError, FileNotFoundError) as error:
        pytest.skip(str(error))
    attempt_objects(_job(*objects), "here", "r")
    private = work(replace(one, software=replace(one.software, pull_secret="registry")), image="team/program:1")
    attempt_objects(_job(*private), "here", "r")
    files = [file.text for file in target.render(one) if file.path.endswith(".yaml")]
    written = [body for text in files for body in yaml.safe_load_all(text) if body]
    if any(body["kind"] in ("CronJob", "StatefulSet", "ConfigMap") for body in written):
        return
    attempt_objects(_job(*written), "here", "r")


@pytest.mark.parametrize("machines", [1, 3])
@pytest.mark.parametrize("queue", ["", "team"])
def test_a_plain_command_is_allowed(machines: int, queue: str) -> None:
    spec = Spec(("python", "train.py"), "train", folder="/work", needs=Needs(gpus=2, machines=machines))
    attempt_objects(_job(*command_objects(spec, "team/program:1", queue)), "here", "r")
