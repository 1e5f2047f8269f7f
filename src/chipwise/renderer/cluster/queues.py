"""Queues of Kueue for a plan: flavors of its machines by type and purchase, and a quota of what it uses that may borrow."""

from __future__ import annotations

import re

from chipwise.renderer.cluster.accelerators import MACHINE, Taint, chip_taint, spot_taints, tpu_selector
from chipwise.renderer.cluster.pod import Object, meta, namespace_of, priority_of, queue_of, resources
from chipwise.renderer.deployment import Deployment, Form, Node
from chipwise.renderer.layout import bought, candidates, pods, replica_machines, surge
from chipwise.renderer.quoting import dns_name, label_value
from chipwise.renderer.yaml_text import Noted, Yaml, plain

API = "kueue.x-k8s.io/v1beta2"
COHORT = "accelerators"  # queues of one cohort lend each other what they do not use
ABOUT = "Flavors and queues: for the administrator of the cluster."
_UNITS = ("", "m", "Mi", "Gi")
_OWN = "What the plan uses, and no more; as much again may be borrowed while others leave it unused."
_NONE = "Nothing of it: raise both to let the work go on at full price when no spot machine is available."


def queues(deployment: Deployment) -> list[Yaml]:
    return [*flavors(deployment), cluster_queue(deployment), local_queue(deployment), priority(deployment)]


def flavor_name(deployment: Deployment, purchase: str) -> str:
    return dns_name(f"{deployment.node.machine}-{purchase}", 60)


def _purchases(deployment: Deployment) -> tuple[str, ...]:
    """In the order in which work takes them."""
    if len(deployment.rented) > 1:
        return tuple(one.purchase for one in bought(deployment))
    return ("spot", "on-demand") if deployment.spot else (deployment.purchase,)


def flavors(deployment: Deployment) -> list[Yaml]:
    """One per way to buy the machine. Their names and contents depend on the machine alone, so workloads may share them."""
    objects: list[Yaml] = []
    for purchase in _purchases(deployment):
        labels = _machine(deployment.node) | _bought(deployment.node.provider, purchase)
        taints = [one for one in (chip_taint(deployment.node),) if one is not None]
        taints += spot_taints(deployment.node) if purchase == "spot" else ()
        spec: Object = {"nodeLabels": _explained(deployment, labels, purchase)}
        if taints:
            spec["nodeTaints"] = Noted(
                [_taint(one) for one in taints], "What the machines are tainted with; the pods tolerate it themselves."
            )
        objects.append(
            {"apiVersion": API, "kind": "ResourceFlavor", "metadata": {"name": flavor_name(deployment, purchase)}}
            | {"spec": spec}
        )
    if len(candidates(deployment)) > 1:
        rest = ", ".join(label_value(one.machine) for one in candidates(deployment)[1:])
        objects[0] = Noted(
            objects[0], f"Other machines that would do: {rest}. A flavor like this one for each that you have quota for."
        )
    return objects


def _machine(node: Node) -> Object:
    return dict(tpu_selector(node)) if node.kind == "tpu" else {MACHINE: label_value(node.machine)}


def _explained(deployment: Deployment, labels: Object, purchase: str) -> Yaml:
    if deployment.layers and purchase not in ("spot", "on-demand"):
        return Noted(labels, "A term is a price, not a machine: nodes are the same as on demand, and are counted here first.")
    if deployment.node.provider == "aws" and len(labels) > 1:
        return Noted(labels, "Of nodes that Karpenter brings; managed node groups have eks.amazonaws.com/capacityType instead.")
    return labels


def _bought(provider: str, purchase: str) -> Object:
    """The label by which nodes of one purchase are known, where the provider sets one."""
    match provider, purchase:
        case "aws", _:
            return {"karpenter.sh/capacity-type": "spot" if purchase == "spot" else "on-demand"}
        case "gcp", "spot":
            return {"cloud.google.com/gke-spot": "true"}
        case "azure", "spot":
            return {"kubernetes.azure.com/scalesetpriority": "spot"}
    return {}


def _taint(taint: Taint) -> Object:
    return {"key": taint.key, "value": taint.value, "effect": taint.effect}


def cluster_queue(deployment: Deployment) -> Object:
    wanted, listed = _wanted(deployment, surge(deployment)), _layered(deployment)
    for index, purchase in enumerate(_purchases(deployment) if not listed else ()):
        quotas: list[Yaml] = [_quota(key, amount if index == 0 else "0") for key, amount in wanted.items()]
        flavor: Object = {"name": flavor_name(deployment, purchase), "resources": quotas}
        own = (
            _OWN if not surge(deployment) else f"{_OWN}\nWith one copy more, which a rollout starts before it ends the old one."
        )
        reason = own if index == 0 else _NONE
        listed.append(Noted(flavor, reason))
    lasting = deployment.form is Form.SERVICE
    return {
        "apiVersion": API,
        "kind": "ClusterQueue",
        "metadata": {"name": deployment.name},
        "spec": {
            "cohortName": Noted(COHORT, "Queues of one cohort lend each other what they do not use."),
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace_of(deployment)}},
            "queueingStrategy": Noted("BestEffortFIFO", "A large job at the head does not hold up a small one that fits."),
            "preemption": {
                "reclaimWithinCohort": Noted("Any", "What was lent comes back when it is needed here."),
                "withinClusterQueue": "LowerPriority" if lasting else "Never",
            },
            "resourceGroups": [{"coveredResources": list(wanted), "flavors": listed}],
        },
    }


def _layered(deployment: Deployment) -> list[Yaml]:
    """A flavor for each layer, with the quota of its machines; empty where all are bought one way."""
    parts = bought(deployment)
    if len(parts) < 2:
        return []
    flavors_listed: list[Yaml] = []
    for index, part in enumerate(parts):
        last = index == len(parts) - 1
        part_wanted = _wanted(part, surge(deployment) if last else 0)
        quotas: list[Yaml] = [_quota(key, amount, None if last else "0") for key, amount in part_wanted.items()]
        layer, pod_limit = part.layers[0], part.scaling.maximum if part.scaling is not None else pods(part)
        copies = "replica" if pod_limit == 1 else "replicas"
        first = "Tried first: paid for whether used or not." if layer.committed else "Tried when those above are full."
        full = "As much again may be borrowed." if last else "Nothing is borrowed here: what does not fit goes on to the next."
        flavor: Object = {"name": flavor_name(deployment, part.purchase), "resources": quotas}
        flavors_listed.append(
            Noted(flavor, f"{pod_limit} {copies} of the plan's load on {part.purchase} machines. {first}\n{full}")
        )
    return flavors_listed


def _quota(name: str, amount: str, borrowed: str | None = None) -> Object:
    return {"name": name, "nominalQuota": amount, "borrowingLimit": amount if borrowed is None else borrowed}


def _wanted(deployment: Deployment, surging: int) -> dict[str, str]:
    """All that the pods of the plan ask for together: Kueue counts whatever they name, and copies that a rollout adds."""
    requests = plain(resources(deployment)["requests"])
    assert isinstance(requests, dict)
    scaling = deployment.scaling
    pod_count = (scaling.maximum + surging) * replica_machines(deployment) if scaling is not None else pods(deployment)
    return {key: _times(str(value), pod_count) for key, value in requests.items()}


def _times(quantity: str, factor: int) -> str:
    matched = re.fullmatch(r"(\d+)([A-Za-z]*)", quantity)
    assert matched is not None, quantity
    assert matched[2] in _UNITS, quantity
    number, unit = int(matched[1]) * factor, matched[2]
    if unit == "m" and number % 1000 == 0:
        return str(number // 1000)
    return f"{number}{unit}"


def local_queue(deployment: Deployment) -> Object:
    return {
        "apiVersion": API,
        "kind": "LocalQueue",
        "metadata": meta(deployment, queue_of(deployment)),
        "spec": {"clusterQueue": deployment.name},
    }


def priority(deployment: Deployment) -> Object:
    service = deployment.form is Form.SERVICE
    return {
        "apiVersion": API,
        "kind": "WorkloadPriorityClass",
        "metadata": {"name": priority_of(deployment)},
        "value": 100000 if service else 1000,
        "description": "Services go before jobs." if service else "Jobs wait until there is room.",
    }
