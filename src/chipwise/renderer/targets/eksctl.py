"""eksctl: an EKS cluster with a group of machines for the plan, and a small one for what keeps the cluster running."""

from __future__ import annotations

from chipwise.renderer.cluster import buckets
from chipwise.renderer.cluster.accelerators import resource_of
from chipwise.renderer.cluster.pod import Object, claimed_volumes
from chipwise.renderer.deployment import Deployment, Form, Node, Reservation
from chipwise.renderer.file import CannotRender, File
from chipwise.renderer.heading import heading
from chipwise.renderer.layout import bought, candidates, machines_for, meets, most_machines, uses_efa
from chipwise.renderer.nodes import locked_memory, machines
from chipwise.renderer.quoting import one_line, shell
from chipwise.renderer.yaml_text import Noted, Yaml, document

FITS = "a cluster on AWS with managed groups of GPU, Trainium, Inferentia or CPU machines: EFA, placement, spot"
EXPRESSES = frozenset({"layers", "regions", "streams", "no run", "groups", "reservations"})
WRITES = ("cluster.yaml",)
# Two of these carry DNS, metrics and controllers, and of larger ones also a hub of notebooks or the head of a Ray cluster
# (8 GiB). Of the processor that the workload's images are built for: what runs beside it has the same images.
SYSTEM_TYPES = {"amd64": ("m7i.large", "m6i.large"), "arm64": ("m7g.large", "m6g.large")}
QUOTA_GROUP = 450  # machines that EKS takes in one managed group, unless asked for more
# Where the zone "b" is closed to new accounts, or not to be had in all of them.
SECOND_ZONE = {"ap-northeast-1": "c", "us-west-1": "c"}

_GROWS = (
    "Nothing in this file adds machines when pods wait. Install the Cluster Autoscaler (helm install autoscaler\n"
    "autoscaler/cluster-autoscaler --namespace kube-system --set autoDiscovery.clusterName="
    f"{machines.CLUSTER}), or take --to karpenter."
)


def render(deployment: Deployment) -> list[File]:
    deployments = machines.stages(deployment)
    for stage in deployments:
        machines.check(stage, "eksctl")
        resource_of(stage.node)  # raises for what Kubernetes cannot hand out
        _check_cards(stage)
    regions = sorted({one.node.region for one in deployments})
    if len(regions) > 1:
        stages = ", ".join(one.title for one in deployments)
        raise CannotRender(
            f"A cluster is in one region; the stages are in {', '.join(regions)}.",
            remedy=f"Plan with --region REGION, or take one stage with --stage: {stages}.",
        )
    name = "cluster.yaml"
    about = f"A new cluster: eksctl create cluster -f {name}; in one of that name: eksctl create nodegroup -f {name}"
    if any(one.scaling is not None and one.scaling.minimum < one.scaling.maximum for one in deployments):
        about += f"\n{_GROWS}"
    return [File(name, document(cluster_config(deployment, deployments), title=heading(deployment, about)))]


def cluster_config(deployment: Deployment, deployments: tuple[Deployment, ...]) -> Object:
    eks = deployments[0].platforms.get("EKS", {})
    metadata: Object = {"name": Noted(machines.CLUSTER, "Put yours; Karpenter's files have the same name in role and tags.")}
    metadata["region"] = deployments[0].node.region
    if len(deployment.regions) > 1:
        rest = ", ".join(deployment.regions[1:])
        metadata["region"] = Noted(deployments[0].node.region, f"The plan is in {rest} too: a cluster like this one there.")
    if "kubernetes" in eks:
        metadata["version"] = eks["kubernetes"]
    metadata["tags"] = Noted({"karpenter.sh/discovery": machines.CLUSTER} | dict(machines.tags(deployment)), "For the bill.")
    groups: list[Yaml] = [_system(deployments)]
    groups += [_layer(one, part) for one in deployments for part in bought(one)]
    config: Object = {"apiVersion": "eksctl.io/v1alpha5", "kind": "ClusterConfig", "metadata": metadata}
    if any(_close(one) for one in deployments):
        zones = [_zone(deployments[0]), f"{deployments[0].node.region}{SECOND_ZONE.get(deployments[0].node.region, 'b')}"]
        config["availabilityZones"] = Noted(zones, "Two are the least that EKS takes; the first is that of the group below.")
    return config | {
        "iam": _iam(deployments),
        "vpc": {
            "clusterEndpoints": {
                "privateAccess": True,
                "publicAccess": Noted(
                    True, "For your kubectl. Narrow it with vpc.publicAccessCIDRs, or switch it off behind a VPN."
                ),
            },
            "nat": {"gateway": Noted("HighlyAvailable", "One per zone: a failing zone does not cut off the others.")},
        },
        "addons": _addons(deployments),
        "cloudWatch": {"clusterLogging": {"enableTypes": ["audit", "authenticator"], "logRetentionInDays": 30}},
        "managedNodeGroups": groups,
    }


def _iam(deployments: tuple[Deployment, ...]) -> Object:
    fields: Object = {"withOIDC": Noted(True, "Rights go to service accounts, not to machines.")}
    associations: list[Yaml] = [buckets.association(one) for one in deployments if buckets.buckets(one)]
    if associations:
        reason = "What the workload's service account may do with its buckets, and nobody else in the cluster."
        fields["podIdentityAssociations"] = Noted(associations, reason)
    return fields


def _addons(deployments: tuple[Deployment, ...]) -> list[Yaml]:
    reason = "Without it the NetworkPolicy of --to kubernetes says something and does nothing."
    network: Object = {"name": "vpc-cni", "configurationValues": Noted('{"enableNetworkPolicy": "true"}', reason)}
    addons: list[Yaml] = [network, {"name": "coredns"}, {"name": "kube-proxy"}, {"name": "eks-pod-identity-agent"}]
    volumes = [volume for one in deployments for volume in claimed_volumes(one) if not volume.storage_class]
    if any(not volume.shared for volume in volumes):
        addons.append({"name": "aws-ebs-csi-driver", "useDefaultPodIdentityAssociations": True})
    if any(volume.shared for volume in volumes):
        shared: Object = {"name": "aws-efs-csi-driver", "useDefaultPodIdentityAssociations": True}
        addons.append(Noted(shared, "For volumes that several machines use; the file system itself is made apart."))
    if any(one.form is Form.SERVICE for one in deployments):
        addons.append(Noted({"name": "metrics-server"}, "The autoscaler reads from it."))
    if any(one.node.accelerated for one in deployments):
        reason = "It sees chips and drivers fail; without it nodeRepairConfig replaces only machines that fall silent."
        addons.append(Noted({"name": "eks-node-monitoring-agent"}, reason))
    return addons


def _safe(gib: int) -> Object:
    """What every group has: private, encrypted, and closed to who asks the metadata service from a pod."""
    return {
        "privateNetworking": True,
        "volumeSize": gib,
        "volumeType": "gp3",
        "volumeEncrypted": True,
        "disableIMDSv1": True,
        "disablePodIMDS": True,
    }


def _system_types(deployments: tuple[Deployment, ...]) -> Yaml:
    arch = "arm64" if all(one.node.arch == "arm64" for one in deployments) else "amd64"
    types, larger = SYSTEM_TYPES[arch], [one.replace(".large", ".xlarge") for one in SYSTEM_TYPES[arch]]
    if any(one.form is Form.SESSIONS for one in deployments):
        return Noted([*larger], "Room for the hub of notebooks, or for the head of a Ray cluster, beside the rest.")
    return Noted([*types], f"The head of a Ray cluster (--to ray) takes 8 GiB: then {larger[0]}.")


def _system(deployments: tuple[Deployment, ...]) -> Object:
    name = (
        "system" if all(one.name != "system" for one in deployments) else "cluster-system"
    )  # two groups of a name are refused
    spec: Object = {
        "name": Noted(name, "DNS, metrics and controllers: not on machines that cost many times as much."),
        "amiFamily": "AmazonLinux2023",
        "instanceTypes": _system_types(deployments),
        "minSize": 2,
        "desiredCapacity": 2,
        "maxSize": 4,
    }
    return spec | _safe(40) | {"updateConfig": {"maxUnavailable": 1}}


def _layer(deployment: Deployment, part: Deployment) -> Object:
    """The group of one way to buy, where a load is bought in layers: eksctl does not say which grows first."""
    if part is deployment:
        return _group(deployment)
    layer, spec = part.layers[0], _group(part) | {"tags": dict(machines.tags(deployment))}
    if layer.committed:
        spec["maxSize"] = Noted(layer.machines, "What is committed; the commitment itself is bought separately.")
        reason = f"The base of the load: {layer.title}, paid for whether they run or not."
    else:
        reason = f"Above the base: {layer.purchase}. The Cluster Autoscaler grows it after the base with --expander=priority."
    return spec | {"name": Noted(part.name, reason)}


def _group(deployment: Deployment) -> Object:
    types = _types(deployment)
    spec: Object = {"name": deployment.name, "amiFamily": _image(deployment)}
    names = [one.machine for one in types]
    if len(names) > 1:
        reason = "any that is available" if deployment.spot else "in this order; they have the same chip"
        spec["instanceTypes"] = Noted(names, f"The plan's choice first; {reason}.")
    else:
        spec["instanceTypes"] = names
    if deployment.reservation is not None:
        spec |= _reserved(deployment.reservation)
        if deployment.reservation.block:  # EKS takes the type of a block from the launch template
            del spec["instanceTypes"]
            spec["instanceType"] = names[0]
    if deployment.spot:
        spec["spot"] = True
    spec |= _sizes(deployment)
    if deployment.reservation is not None:
        spec["availabilityZones"] = Noted([_zone(deployment)], "That of the reservation: put its own.")
    elif _close(deployment):
        zone = Noted([_zone(deployment)], f"One zone, which must have the machine:\n{_offered(deployment)}")
        spec["availabilityZones"] = zone
    if machines.placed_together(deployment) and not uses_efa(deployment):
        spec["placement"] = Noted({"groupName": deployment.name}, machines.placement_words(deployment))
    if uses_efa(deployment):
        reason = "eksctl attaches the interfaces, opens the group to itself and installs the plugin; its placement group\n"
        spec["efaEnabled"] = Noted(True, f"{reason}keeps the machines close together, and goes with them.")
        note = f"{locked_memory.REASON}\nEKS adds what joins the node to the cluster. It needs eksctl of 2025 or newer."
        spec["overrideBootstrapCommand"] = Noted(locked_memory.node_config(), note)
    spec |= _safe(machines.IMAGES_GIB + machines.SCRATCH_GIB if deployment.node.accelerated else machines.IMAGES_GIB)
    if machines.has_disk(deployment):
        reason = "Images and scratch space: managed groups leave the machine's own disks unused (Karpenter takes them)."
        spec["volumeSize"] = Noted(spec["volumeSize"], reason)
    if own := machines.labels(deployment):
        spec["labels"] = Noted(own, machines.label_reason(own)) if len(own) > 1 else own
    if taints := machines.taints(deployment):
        entries: list[Yaml] = [{"key": one.key, "value": one.value, "effect": one.effect} for one in taints]
        spec["taints"] = Noted(entries, "Pods that need no accelerator stay on cheaper machines.")
    spec["propagateASGTags"] = Noted(True, "An autoscaler sees labels and taints of a group with no machine in it.")
    spec["tags"] = dict(machines.tags(deployment))
    spec["updateConfig"] = {"maxUnavailable": 1}
    if deployment.node.accelerated:
        spec["nodeRepairConfig"] = {"enabled": Noted(True, "A machine whose chips or driver fail is replaced.")}
    return spec


def _reserved(reservation: Reservation) -> Object:
    """Its id is spelled with a large D: eksctl drops what it does not know, and the target would be empty."""
    target: Object = {"capacityReservationTarget": {"capacityReservationID": reservation.id}}
    fields: Object = {"capacityReservation": Noted(target, f"Machines start in {reservation.title} alone.")}
    if reservation.block:
        fields["instanceMarketOptions"] = {"marketType": "capacity-block"}
    return fields


def _close(deployment: Deployment) -> bool:
    """Machines that stand in one zone: they talk to each other all the time, or are held there."""
    held = deployment.reservation is not None  # in one zone
    return held or uses_efa(deployment) or (meets(deployment) and deployment.machines > 1)


def _zone(deployment: Deployment) -> str:
    return f"{deployment.node.region}a"


def _types(deployment: Deployment) -> tuple[Node, ...]:
    """With EFA, every type of a group must take it on its first network card: eksctl writes one template for all."""
    nodes = candidates(deployment)
    return tuple(one for one in nodes if not one.first_card) if uses_efa(deployment) else nodes


def _check_cards(deployment: Deployment) -> None:
    if uses_efa(deployment) and deployment.node.first_card:
        raise CannotRender(
            f"eksctl puts EFA on the first network card, and {one_line(deployment.node.machine)} has it from the next on.",
            remedy="Use --to terraform or ec2, which name each card, or plan for another chip with --chip CHIP.",
        )


def _sizes(deployment: Deployment) -> Object:
    scaling = deployment.scaling
    if scaling is None:
        moment = "When nobody is there" if deployment.form is Form.SESSIONS else "When it is done"
        reason = f"{moment}: eksctl scale nodegroup --cluster {machines.CLUSTER} --name {deployment.name} --nodes 0"
        return {"minSize": 0, "desiredCapacity": Noted(deployment.machines, reason), "maxSize": _maximum(deployment.machines)}
    return {
        "minSize": Noted(0, "Outside its hours nobody pays: Karpenter or the Cluster Autoscaler takes empty machines away.")
        if deployment.stops
        else machines_for(deployment, scaling.minimum),
        "desiredCapacity": machines_for(deployment, scaling.usual),
        "maxSize": _maximum(most_machines(deployment), "The most that the plan ever uses, and room for a rollout."),
    }


def _maximum(count: int, reason: str = "") -> Yaml:
    if count > QUOTA_GROUP:
        quota = f"EKS takes {QUOTA_GROUP} in a group: ask for more first (Service Quotas, EKS, nodes per managed node group)."
        reason = f"{reason}\n{quota}".strip()
    return Noted(count, reason) if reason else count


def _offered(deployment: Deployment) -> str:
    return shell(
        [
            "aws",
            "ec2",
            "describe-instance-type-offerings",
            "--location-type",
            "availability-zone",
            "--region",
            deployment.node.region,
            "--filters",
            f"Name=instance-type,Values={deployment.node.machine}",
        ]
    )


def _image(deployment: Deployment) -> Yaml:
    eks = deployment.platforms.get("EKS", {})
    variant = eks.get("variant", "standard")
    if variant == "standard":
        return "AmazonLinux2023"
    driver = f", driver {eks['driver']}," if "driver" in eks else ""
    lines = [
        f"For these machines eksctl takes the {variant} image of it{driver} and installs the device plugin.",
        "It tells them by a built-in table: an eksctl older than the machine takes the plain image, without a driver.",
    ]
    if eks.get("tested") == "no":
        family = deployment.node.machine.partition(".")[0]
        lines.append(f"AWS does not list {family} among the machines it tests this image on: try one before relying on it.")
    return Noted("AmazonLinux2023", "\n".join(lines))
