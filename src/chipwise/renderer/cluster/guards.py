"""What surrounds the pods: the namespace with its rules, quota, network, rights and priorities, and the volumes."""

from __future__ import annotations

from collections.abc import Sequence

from chipwise.renderer.cluster import buckets, live, resource_claims, storage
from chipwise.renderer.cluster.accelerators import pod_chips, resource_of
from chipwise.renderer.cluster.pod import Object, claim_name, claimed_volumes, gib, meta, namespace_of, priority_of, selector
from chipwise.renderer.deployment import Deployment, Form
from chipwise.renderer.launch import streams
from chipwise.renderer.layout import grouped, meets, pods, replica_machines
from chipwise.renderer.yaml_text import Noted, Yaml


def surroundings(deployment: Deployment, *, quota_here: bool = True) -> list[Yaml]:
    """What a target writes before the work itself. Without `quota_here` another object limits what the namespace may use."""
    return [
        namespace(deployment),
        priority_class(deployment),
        service_account(deployment),
        *([quota(deployment)] if quota_here else []),
        limit_range(deployment),
        network_policy(deployment),
        *storage.classes([deployment]),
    ]


def namespace(deployment: Deployment) -> Object:
    name = namespace_of(deployment)
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": name,
            "labels": {
                "app.kubernetes.io/managed-by": "chipwise",
                "pod-security.kubernetes.io/enforce": _level(deployment),
            },
        },
    }


def _level(deployment: Deployment) -> Yaml:
    stages = deployment.stages or (deployment,)
    if any(one.node.kind == "tpu" for one in stages):
        return Noted("privileged", "A TPU's pods run as root with one right of root's; lower levels refuse both.")
    return Noted("restricted", "No root, no host access, no privileges.")


def service_account(deployment: Deployment) -> Object:
    rights, pulls = buckets.needed(deployment), deployment.software.pull_secret
    account: Object = {
        "apiVersion": "v1",
        "kind": Noted("ServiceAccount", rights) if rights else "ServiceAccount",
        "metadata": meta(deployment),
        "automountServiceAccountToken": False,
    }
    if pulls:
        reason = "Of the type kubernetes.io/dockerconfigjson; --to external-secrets keeps it in step with the cloud's store."
        account["imagePullSecrets"] = [Noted({"name": pulls}, reason)]
    return account


def priority_class(deployment: Deployment) -> Object:
    service = deployment.form is Form.SERVICE
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": priority_of(deployment)},
        "value": 100000 if service else 1000,
        "preemptionPolicy": "PreemptLowerPriority" if service else "Never",
        "description": "Services go before jobs." if service else "Jobs wait until there is room.",
    }


def most_pods(deployment: Deployment) -> int:
    scaling = deployment.scaling
    return scaling.maximum * replica_machines(deployment) if scaling is not None else pods(deployment)


def quota(deployment: Deployment) -> Object:
    """As many chips as the plan may ever use: a mistake in a manifest cannot rent more."""
    pod_limit = most_pods(deployment)
    hard: Object = {"pods": Noted(str(max(2 * pod_limit, pod_limit + 5)), "Twice what runs, so that old and new may overlap.")}
    resource = resource_of(deployment.node)
    if resource is not None:
        chips = pod_chips(deployment) * pod_limit
        if deployment.form is Form.SERVICE:
            chips += pod_chips(deployment) * replica_machines(deployment)
        counted = resource_claims.quota_key(deployment.node) if deployment.claims else f"requests.{resource}"
        hard[counted] = (
            Noted(str(chips), "The most that the plan ever uses, and one more during a rollout.")
            if deployment.form is Form.SERVICE
            else Noted(str(chips), "What the plan uses, and no more.")
        )
    stored = sum(one.size_bytes for one in claimed_volumes(deployment))
    if stored:
        hard["requests.storage"] = f"{gib(stored) + 10}Gi"
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta(deployment), "spec": {"hard": hard}}


def limit_range(deployment: Deployment) -> Object:
    usual: Object = {"type": "Container", "default": {"memory": "1Gi"}, "defaultRequest": {"cpu": "100m", "memory": "256Mi"}}
    return {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": meta(deployment),
        "spec": {"limits": [Noted(usual, "For containers that state no limits, such as a debug session.")]},
    }


def network_policy(deployment: Deployment) -> Object:
    """In: the service's port, or the job's own pods. Out: names, the job's own pods, and HTTPS for weights and data."""
    peers: Object = {"podSelector": {"matchLabels": selector(deployment)}}
    ingress: list[Yaml] = []
    if deployment.software.port is not None:
        ingress.append({"ports": [{"protocol": "TCP", "port": deployment.software.port}]})
    egress: list[Yaml] = [
        Noted({"ports": [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}]}, "Names."),
        Noted({"ports": [{"protocol": "TCP", "port": 443}]}, "Weights, data and checkpoints."),
        *credentials(deployment),
        *([live.egress()] if streams.live(deployment) else []),
    ]
    if meets(deployment) or grouped(deployment):
        subject = "a group" if grouped(deployment) else "the job"
        ingress.append(Noted({"from": [peers]}, f"The pods of {subject} among themselves."))
        egress.append({"to": [peers]})
    return policy_of(deployment, ingress, egress)


def policy_of(deployment: Deployment, ingress: list[Yaml], egress: list[Yaml]) -> Object:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": meta(deployment),
        "spec": {
            "podSelector": {"matchLabels": selector(deployment)},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": ingress,
            "egress": egress,
        },
    }


def credentials(deployment: Deployment) -> list[Yaml]:
    """Where a pod gets the credentials of its service account: an address of the node, over plain HTTP. On Azure it is a
    service of the cloud, on HTTPS."""
    match deployment.node.provider:
        case "aws":
            return [Noted(_rule_for(("169.254.170.23/32", 80)), "EKS Pod Identity: credentials for the object store.")]
        case "gcp":
            reason = (
                "Workload Identity: credentials for the object store, from GKE's metadata server; the second on Dataplane V2."
            )
            return [Noted(_rule_for(("169.254.169.252/32", 988)), reason), _rule_for(("169.254.169.254/32", 80))]
    return []


def _rule_for(where: tuple[str, int]) -> Object:
    return {"to": [{"ipBlock": {"cidr": where[0]}}], "ports": [{"protocol": "TCP", "port": where[1]}]}


def claims(deployment: Deployment) -> Sequence[Object]:
    objects: list[Object] = []
    for volume in claimed_volumes(deployment):
        mode = "ReadWriteMany" if volume.shared else "ReadWriteOnce"
        reason = f"{volume.reason.capitalize()}." if volume.reason else ""
        metadata: Yaml = meta(deployment, claim_name(deployment, volume))
        if volume.url is not None:
            metadata = Noted(metadata, f"Fill it from {volume.url} first: the program reads {volume.path}.")
        spec: Object = {"accessModes": [mode]}
        kind = storage.class_of(deployment, volume)
        if kind is not None:
            spec["storageClassName"] = kind
        elif volume.shared:
            spec["accessModes"] = Noted(
                [mode], "Several machines use it: give storageClassName a class that can, such as EFS, Filestore or FSx."
            )
        spec["resources"] = {
            "requests": {"storage": Noted(f"{gib(volume.size_bytes)}Gi", reason) if reason else f"{gib(volume.size_bytes)}Gi"}
        }
        objects.append(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": metadata,
                "spec": spec,
            }
        )
    return objects
