"""Karpenter on EKS: a NodePool for the plan's machines and the EC2NodeClass that they are started from."""

from __future__ import annotations

import math

from chipwise.renderer.cluster.accelerators import MACHINE, resource_of
from chipwise.renderer.cluster.pod import Object
from chipwise.renderer.deployment import Deployment, Form
from chipwise.renderer.file import File
from chipwise.renderer.heading import heading
from chipwise.renderer.launch.timing import grace_seconds, ready_seconds
from chipwise.renderer.layout import bought, candidates, meets, most_machines, uses_efa
from chipwise.renderer.nodes import locked_memory, machines
from chipwise.renderer.quoting import label_value
from chipwise.renderer.yaml_text import Noted, Yaml, document

FITS = "machines of AWS that come with pending pods and go when they are empty: NodePool and EC2NodeClass"
EXPRESSES = frozenset({"layers", "regions", "streams", "no run", "groups", "reservations"})
WRITES = ("nodes.yaml",)
MANIFESTS = True


_SPOT = (
    "Several, so that a shortage of one stops nothing; of those available, Karpenter takes the one that is cheapest and\n"
    "least likely to be taken back."
)
_TOGETHER = "The plan's choice first, which the pods prefer; all of them on one of the others, for when it is short."
_SAME_CHIP = "The plan's choice first, which the pods prefer; the others have the same chip, for when it is short."


def render(deployment: Deployment) -> list[File]:
    files = []
    deployments = machines.stages(deployment)
    for stage in deployments:
        machines.check(stage, "Karpenter")
        resource_of(stage.node)  # raises for what Kubernetes cannot hand out
        name = "nodes.yaml" if len(deployments) == 1 else f"{stage.name}.yaml"
        about = "Machines for it; what runs on them is in the files of --to kubernetes or kueue."
        pools = [node_pool(part, stage.name, rank) for rank, part in enumerate(bought(stage))]
        files.append(File(name, document(*pools, node_class(stage), *_overlays(stage), title=heading(stage, about))))
    return files


def node_pool(deployment: Deployment, node_class_name: str = "", rank: int = 0) -> Object:
    """Of a load in layers, of the one that comes `rank` after the base."""
    template: Object = {}
    if own := machines.labels(deployment):
        template["metadata"] = {"labels": Noted(own, machines.label_reason(own))}
    spec: Object = {
        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": node_class_name or deployment.name},
        "requirements": _requirements(deployment),
    }
    if taints := machines.taints(deployment):
        entries: list[Yaml] = [{"key": one.key, "value": one.value, "effect": one.effect} for one in taints]
        spec["taints"] = Noted(entries, "Pods that need no accelerator stay on cheaper machines.")
    spec |= _lifetime(deployment)
    template["spec"] = spec
    pool: Object = {"template": template, "disruption": _disruption(deployment), "limits": _limits(deployment)}
    if deployment.layers:
        pool = {"weight": Noted(100 - 10 * rank, _order(deployment, rank))} | pool
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": deployment.name}, "spec": pool}


def _overlays(deployment: Deployment) -> list[Object]:
    """EC2 counts no chip on machines that have a part of one, and no slices of chips that will be cut, so that Karpenter would
    never start them for a pod that asks."""
    node, resource = deployment.node, resource_of(deployment.node)
    if resource is None:
        return []
    capacities: dict[int, list[Yaml]] = {}
    for machine in candidates(deployment):
        if node.profile or machine.share < 1:
            count = machine.chips * node.users_per_chip if node.profile else 1
            capacities.setdefault(count, []).append(label_value(machine.machine))
    hidden = "slices of chips that will be cut" if node.profile else "chip on machines with a part of one"
    reason = (
        f"EC2 counts no {hidden}: without this no machine comes for a pod that asks for it.\n"
        "Needs Karpenter's feature gate NodeOverlay."
    )
    overlays: list[Object] = []
    for count, types in capacities.items():
        wanted: Object = {"key": MACHINE, "operator": "In", "values": types}
        overlays.append(
            {
                "apiVersion": "karpenter.sh/v1alpha1",
                "kind": Noted("NodeOverlay", reason),
                "metadata": {"name": deployment.name if len(capacities) == 1 else f"{deployment.name}-{count}"},
                "spec": {"requirements": [wanted], "capacity": {resource: str(count)}},
            }
        )
    return overlays


def _order(deployment: Deployment, rank: int) -> str:
    """Why a layer comes before or after others."""
    layer = deployment.layers[0]
    if layer.committed:
        return "Filled first, up to its limits: these are paid for whether they run or not."
    after = "" if not rank else " when the pools of more weight are full"
    price = (
        "spot costs the least, and may be taken away"
        if deployment.spot
        else "paid by the hour, for as long as the load needs them"
    )
    return f"Comes{after or ' first'}: {price}."


def _requirements(deployment: Deployment) -> list[Yaml]:
    node, types = deployment.node, candidates(deployment)
    names: Object = {"key": MACHINE, "operator": "In", "values": [label_value(one.machine) for one in types]}
    values: Yaml = names
    if len(types) > 1:
        reason = _SAME_CHIP if not deployment.spot else _TOGETHER if meets(deployment) else _SPOT
        values = Noted(names, reason)
    paid: Yaml = {
        "key": "karpenter.sh/capacity-type",
        "operator": "In",
        "values": ["spot"] if deployment.spot else ["on-demand"],
    }
    if deployment.reservation is not None:
        gate = "Karpenter's feature gate ReservedCapacity must be on."
        paid = Noted(
            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["reserved"]},
            f"Only {deployment.reservation.title}. When it is full: add on-demand here and in the pods' nodeAffinity.\n{gate}",
        )
    elif deployment.purchase not in ("spot", "on-demand"):
        paid = Noted(paid, f"A commitment ({label_value(deployment.purchase)}) lowers the bill of on-demand machines.")
    elif not deployment.spot and deployment.form is Form.JOB:
        paid = Noted(paid, "The plan pays by the hour: an interruption would cost more than spot saves.")
    regions = list(deployment.regions or (node.region,))
    region: Object = {"key": "topology.kubernetes.io/region", "operator": "In", "values": regions}
    place = "The plan's region" if len(regions) == 1 else "The plan's regions, with a cluster in each"
    return [
        values,
        paid,
        {"key": "kubernetes.io/arch", "operator": "In", "values": [node.arch]},
        Noted(region, f"{place}: elsewhere this pool brings nothing. Zones: those of the subnets below."),
    ]


def _lifetime(deployment: Deployment) -> Object:
    if deployment.form is Form.JOB:
        return {"expireAfter": Noted("Never", "A job is not cut off by its machine's age; the machine goes when it is empty.")}
    if deployment.form is Form.SERVICE:
        reason = "Expiry asks no budget. A new node image (see the alias below) replaces machines by drift, which does."
        drained = f"{_drain_minutes(deployment)}m"
        pace = "Its pods leave one by one, each when its replacement answers. After it, what is left is ended."
        return {"expireAfter": Noted("Never", reason), "terminationGracePeriod": Noted(drained, pace)}
    return {
        "expireAfter": Noted("336h", "Two weeks: what machines gather over time goes with them."),
        "terminationGracePeriod": Noted("1h", "After it, a pod that does not end is ended."),
    }


def _drain_minutes(deployment: Deployment) -> int:
    """Of one machine: the disruption budget lets the next pod go when the one before has been replaced."""
    pod_seconds = grace_seconds(deployment) + ready_seconds(deployment)
    return max(math.ceil(deployment.per_machine * pod_seconds / 300) * 5, 15)


def _disruption(deployment: Deployment) -> Object:
    """What Karpenter may do to machines that work: nothing to those of jobs, one at a time to those of services."""
    if deployment.form is Form.SERVICE and deployment.layers and deployment.layers[0].committed:
        reason = "They stay, for nothing is saved without them. Karpenter does not know commitments: by list prices it would\n"
        return {
            "consolidationPolicy": "WhenEmpty",
            "consolidateAfter": Noted("Never", f"{reason}move their pods to machines that are paid for beside them."),
            "budgets": [Noted({"nodes": "1"}, "One machine at a time; the PodDisruptionBudget holds as well.")],
        }
    if deployment.form is Form.SERVICE:
        return {
            "consolidationPolicy": "WhenEmptyOrUnderutilized",
            "consolidateAfter": Noted("5m", "A machine takes minutes to come and weights take as long to load."),
            "budgets": [Noted({"nodes": "1"}, "One machine at a time; the PodDisruptionBudget holds as well.")],
        }
    calm = "5m" if deployment.form is Form.SESSIONS else "1m"
    budgets: list[Yaml] = [
        Noted({"nodes": "100%", "reasons": ["Empty"]}, "All that are empty may go at once."),
        Noted({"nodes": "0", "reasons": ["Underutilized", "Drifted"]}, "No running work is moved."),
    ]
    return {"consolidationPolicy": "WhenEmpty", "consolidateAfter": calm, "budgets": budgets}


def _limits(deployment: Deployment) -> Object:
    """The most that this pool may ever hold: a mistake in a manifest cannot rent more."""
    count, types = most_machines(deployment), candidates(deployment)
    limits: Object = {}
    resource = resource_of(deployment.node)
    if resource is not None:
        key = "nvidia.com/gpu" if resource.startswith("nvidia.com/") else resource
        machine = "machine" if count == 1 else "machines"
        limits[key] = Noted(str(count * deployment.node.chips), f"{count} {machine}: {_limit_reason(deployment)}.")
    cpus = [one.vcpus for one in types if one.vcpus is not None]
    if cpus:
        limits["cpu"] = str(count * max(cpus))
    return limits


def _limit_reason(deployment: Deployment) -> str:
    if deployment.layers and deployment.layers[0].committed:
        return f"commitments ({label_value(deployment.purchase)})"
    return "the most that the plan ever uses" + (" beside the pools of more weight" if deployment.layers else "")


def node_class(deployment: Deployment) -> Object:
    spec: Object = {"amiSelectorTerms": [_image(deployment)]}
    spec["role"] = Noted(
        f"KarpenterNodeRole-{machines.CLUSTER}",
        f"This role and the discovery tags below carry the cluster's name. It is {machines.CLUSTER} in these files: put yours.",
    )
    selector: Object = {"tags": {"karpenter.sh/discovery": machines.CLUSTER}}
    spec |= {
        "subnetSelectorTerms": [Noted(selector, "Private subnets: tag no others.")],
        "securityGroupSelectorTerms": [selector],
    }
    if deployment.reservation is not None:
        reason = "Of the plan's machine type, in a zone of the subnets above."
        if deployment.reservation.block:
            reason += " A block needs Karpenter 1.6 or newer, which drains its\nmachines before EC2 ends them."
        terms: list[Yaml] = [{"id": deployment.reservation.id}]
        spec["capacityReservationSelectorTerms"] = Noted(terms, reason)
    if uses_efa(deployment):
        spec["securityGroupSelectorTerms"] = Noted(
            [selector],
            "EFA needs a group that lets all traffic through from and to itself. Karpenter attaches the interfaces that pods\n"
            f"ask for (vpc.amazonaws.com/efa: {deployment.node.interfaces}).",
        )
        spec["userData"] = Noted(locked_memory.node_config(), f"{locked_memory.REASON}\nKarpenter adds its own part.")
    spec["associatePublicIPAddress"] = False
    if machines.placed_together(deployment):
        spec["placementGroupSelector"] = Noted({"name": deployment.name}, machines.placement_words(deployment))
    disk: Object = {
        "volumeSize": f"{machines.volume_gib(deployment)}Gi",
        "volumeType": "gp3",
        "encrypted": True,
        "throughput": Noted(500, "Images of tens of GiB are unpacked before anything starts."),
        "iops": 4000,
        "deleteOnTermination": True,
    }
    spec["blockDeviceMappings"] = [{"deviceName": "/dev/xvda", "rootVolume": True, "ebs": disk}]
    if machines.has_disk(deployment):
        spec["instanceStorePolicy"] = Noted("RAID0", "Images and scratch space on the machine's own NVMe disks; lost with it.")
    spec["metadataOptions"] = {
        "httpEndpoint": "enabled",
        "httpTokens": Noted("required", "IMDSv2 only."),
        "httpPutResponseHopLimit": Noted(1, "Pods do not reach the machine's credentials."),
    }
    spec["detailedMonitoring"] = False
    spec["tags"] = dict(machines.tags(deployment))
    return {
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": {"name": deployment.name},
        "spec": spec,
    }


def _image(deployment: Deployment) -> Yaml:
    """An alias names a release of the node image; Karpenter takes its variant for each machine type."""
    eks = deployment.platforms.get("EKS", {})
    driver = f" with driver {eks['driver']}" if "driver" in eks else ""
    variant = eks.get("variant", "the right one")
    lines = [
        f"EKS's node image; of its variants Karpenter takes {variant}{driver}.",
        "Pinned to a release: a new node image is a change like any other.",
    ]
    if deployment.software.driver and deployment.software.cuda:
        lines.append(f"The container's CUDA {deployment.software.cuda} needs driver {deployment.software.driver} or newer.")
    if eks.get("tested") == "no":
        family = deployment.node.machine.partition(".")[0]
        lines.append(f"AWS does not list {family} among the machines it tests this image on: try one before relying on it.")
    return Noted({"alias": f"al2023@{eks.get('release', 'latest')}"}, "\n".join(lines))
