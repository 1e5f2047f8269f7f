"""What surrounds a workflow: the namespace with its guards, the accounts of its steps, and what services need beside pods."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from chipwise.renderer.cluster import guards, jobs, services, storage
from chipwise.renderer.cluster.accelerators import pod_chips, resource_of
from chipwise.renderer.cluster.pod import Object, namespace_of
from chipwise.renderer.deployment import Deployment, Form
from chipwise.renderer.layout import meets
from chipwise.renderer.workflow.hand_offs import Place
from chipwise.renderer.workflow.stages import applied
from chipwise.renderer.yaml_text import Noted, Yaml

RIGHTS = "rbac.authorization.k8s.io"
_API = {"ports": [{"protocol": "TCP", "port": 6443}]}


def rules(name: str, place: Place) -> Iterator[Object]:
    first = place.stages[0]
    space = namespace_of(first)
    yield guards.namespace(replace(first, stages=place.stages))
    for stage in {stage.form is Form.SERVICE: stage for stage in place.stages}.values():
        yield guards.priority_class(stage)
    yield _quota(name, space, place)
    yield guards.limit_range(first) | {"metadata": {"name": name, "namespace": space}}
    yield from _account(f"{name}-steps", space, [_report()])
    if any(applied(stage) for stage in place.stages):
        yield from _account(f"{name}-apply", space, [_report(), *_objects()])
    yield from storage.classes(place.stages)
    for stage in place.stages:
        yield guards.service_account(stage)
        yield _network(stage)
        yield from guards.claims(stage)
        if meets(stage):
            yield jobs.rendezvous(stage)
        if stage.form is Form.SERVICE:
            yield services.service(stage)
            yield services.disruption_budget(stage)
            scaler = services.autoscaler(stage)
            if scaler is not None:
                yield scaler


def _quota(name: str, space: str, place: Place) -> Object:
    """Chips by their resource, over all stages: a mistake in a workflow cannot rent more."""
    chips: dict[str, int] = {}
    for stage in place.stages:
        resource = resource_of(stage.node)
        if resource is not None:
            room = guards.most_pods(stage) + (stage.form is Form.SERVICE)
            chips[resource] = chips.get(resource, 0) + pod_chips(stage) * room
    hard: Object = {
        f"requests.{resource}": Noted(str(count), "All stages at once, and one more replica in a rollout.")
        for resource, count in sorted(chips.items())
    }
    hard["count/jobs.batch"] = Noted("50", "What is done stays a while; this many runs are not forgotten by mistake.")
    metadata: Object = {"name": name, "namespace": space}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard}}


def _network(stage: Deployment) -> Object:
    """As everywhere, and the API server: what runs beside the program reports there."""
    policy = guards.network_policy(stage)
    spec = policy["spec"]
    assert isinstance(spec, dict)
    egress: list[Yaml] = [
        *spec["egress"],
        Noted(_API, "The API server, where it is not on 443: Argo's part of the pod reports."),
    ]
    return policy | {"spec": spec | {"egress": egress}}


def _report() -> Object:
    return {"apiGroups": ["argoproj.io"], "resources": ["workflowtaskresults"], "verbs": ["create", "patch"]}


def _objects() -> list[Yaml]:
    changes = ["get", "list", "watch", "create", "patch"]
    return [
        {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": [*changes, "delete"]},
        {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": changes},
    ]


def _account(name: str, space: str, allowed: list[Yaml]) -> Iterator[Object]:
    metadata: Object = {"name": name, "namespace": space}
    yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
    yield {"apiVersion": f"{RIGHTS}/v1", "kind": "Role", "metadata": metadata, "rules": allowed}
    yield {
        "apiVersion": f"{RIGHTS}/v1",
        "kind": "RoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": RIGHTS, "kind": "Role", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": space}],
    }
