"""eksctl: an EKS cluster with a group of machines for the plan, and a small one for what keeps the cluster running."""

from __future__ import annotations

from chipwise.render.cluster.accelerators import resource_of
from chipwise.render.cluster.pod import Object, kept
from chipwise.render.deployment import Deployment, Form
from chipwise.render.file import CannotRender, File
from chipwise.render.heading import heading
from chipwise.render.layout import candidates, machines_for, meets, most_machines, uses_efa
from chipwise.render.nodes import locked_memory, machines
from chipwise.render.quoting import shell
from chipwise.render.yaml_text import Noted, Yaml, document

FITS = "a cluster on AWS with managed groups of GPU, Trainium, Inferentia or CPU machines: EFA, placement, spot"
# Two of these carry DNS, metrics and controllers, and of larger ones also a hub of notebooks or the head of a Ray cluster
# (8 GiB). Of the processor that the workload's images are built for: what runs beside it has the same images.
SYSTEM_TYPES = {"amd64": ("m7i.large", "m6i.large"), "arm64": ("m7g.large", "m6g.large")}


def render(deployment: Deployment) -> list[File]:
    every = machines.stages(deployment)
    for one in every:
        machines.check(one, "eksctl")
        resource_of(one.node)  # raises for what Kubernetes cannot hand out
    regions = sorted({one.node.region for one in every})
    if len(regions) > 1:
        stages = ", ".join(one.title for one in every)
        raise CannotRender(
            f"A cluster stands in one region; the stages are in {', '.join(regions)}.",
            remedy=f"Plan with --limit regions=[...], or take one stage with --stage: {stages}.",
        )
    name = "cluster.yaml"
    about = f"A new cluster: eksctl create cluster -f {name}; in one of that name: eksctl create nodegroup -f {name}"
    return [File(name, document(cluster_config(deployment, every), title=heading(deployment, about)))]


def cluster_config(deployment: Deployment, every: tuple[Deployment, ...]) -> Object:
    eks = every[0].platforms.get("EKS", {})
    metadata: Object = {"name": Noted(machines.CLUSTER, "Put yours; Karpenter's files have the same name in role and tags.")}
    metadata["region"] = every[0].node.region
    if len(deployment.regions) > 1:
        rest = ", ".join(deployment.regions[1:])
        metadata["region"] = Noted(every[0].node.region, f"The plan stands in {rest} too: a cluster like this one there.")
    if "kubernetes" in eks:
        metadata["version"] = eks["kubernetes"]
    metadata["tags"] = Noted({"karpenter.sh/discovery": machines.CLUSTER} | dict(machines.tags(deployment)), "For the bill.")
    groups: list[Yaml] = [_system(every)]
    groups += [_group(one) for one in every]
    config: Object = {"apiVersion": "eksctl.io/v1alpha5", "kind": "ClusterConfig", "metadata": metadata}
    if any(_close(one) for one in every):
        zones = [_zone(every[0]), f"{every[0].node.region}b"]
        config["availabilityZones"] = Noted(zones, "Two are the least that EKS takes; the first is that of the group below.")
    return config | {
        "iam": {"withOIDC": Noted(True, "Rights go to service accounts, not to machines.")},
        "vpc": {
            "clusterEndpoints": {"privateAccess": True, "publicAccess": Noted(
                True, "For your kubectl. Narrow it with vpc.publicAccessCIDRs, or switch it off behind a VPN.")},
            "nat": {"gateway": Noted("HighlyAvailable", "One per zone: a failing zone does not cut off the others.")},
        },
        "addons": _addons(every),
        "cloudWatch": {"clusterLogging": {"enableTypes": ["audit", "authenticator"], "logRetentionInDays": 30}},
        "managedNodeGroups": groups,
    }  # fmt: skip


def _addons(every: tuple[Deployment, ...]) -> list[Yaml]:
    why = "Without it the NetworkPolicy of --to kubernetes says something and does nothing."
    network: Object = {"name": "vpc-cni", "configurationValues": Noted('{"enableNetworkPolicy": "true"}', why)}
    made: list[Yaml] = [network, {"name": "coredns"}, {"name": "kube-proxy"}, {"name": "eks-pod-identity-agent"}]
    volumes = [volume for one in every for volume in kept(one)]
    if any(not volume.shared for volume in volumes):
        made.append({"name": "aws-ebs-csi-driver", "useDefaultPodIdentityAssociations": True})
    if any(volume.shared for volume in volumes):
        shared: Object = {"name": "aws-efs-csi-driver", "useDefaultPodIdentityAssociations": True}
        made.append(Noted(shared, "For volumes that several machines use; the file system itself is made apart."))
    if any(one.form is Form.SERVICE for one in every):
        made.append(Noted({"name": "metrics-server"}, "The autoscaler reads from it."))
    return made


def _safe(gib: int) -> Object:
    """What every group has: private, encrypted, and closed to who asks the metadata service from a pod."""
    return {
        "privateNetworking": True,
        "volumeSize": gib, "volumeType": "gp3", "volumeEncrypted": True,
        "disableIMDSv1": True,
        "disablePodIMDS": True,
    }  # fmt: skip


def _system_types(every: tuple[Deployment, ...]) -> Yaml:
    arch = "arm64" if all(one.node.arch == "arm64" for one in every) else "amd64"
    types, larger = SYSTEM_TYPES[arch], [one.replace(".large", ".xlarge") for one in SYSTEM_TYPES[arch]]
    if any(one.form is Form.SESSIONS for one in every):
        return Noted([*larger], "Room for the hub of notebooks, or for the head of a Ray cluster, beside the rest.")
    return Noted([*types], f"The head of a Ray cluster (--to ray) takes 8 GiB: then {larger[0]}.")


def _system(every: tuple[Deployment, ...]) -> Object:
    spec: Object = {
        "name": Noted("system", "DNS, metrics and controllers: not on machines that cost many times as much."),
        "amiFamily": "AmazonLinux2023", "instanceTypes": _system_types(every), "minSize": 2, "desiredCapacity": 2, "maxSize": 4,
    }  # fmt: skip
    return spec | _safe(40) | {"updateConfig": {"maxUnavailable": 1}}


def _group(deployment: Deployment) -> Object:
    types = candidates(deployment)
    spec: Object = {"name": deployment.name, "amiFamily": _image(deployment)}
    names = [one.machine for one in types]
    if len(names) > 1:
        why = "any that is to be had" if deployment.spot else "in this order; they have the same chip"
        spec["instanceTypes"] = Noted(names, f"The plan's choice first; {why}.")
    else:
        spec["instanceTypes"] = names
    if deployment.spot:
        spec["spot"] = True
    spec |= _sizes(deployment)
    if _close(deployment):
        zone = Noted([_zone(deployment)], f"One zone, which must have the machine:\n{_offered(deployment)}")
        spec["availabilityZones"] = zone
        spec["placement"] = Noted({"groupName": deployment.name}, _placement(deployment))
    if uses_efa(deployment):
        spec["efaEnabled"] = Noted(True, "eksctl attaches the interfaces, opens the group to itself and installs the plugin.")
        told = f"{locked_memory.WHY}\nEKS adds what joins the node to the cluster. It needs eksctl of 2025 or newer."
        spec["overrideBootstrapCommand"] = Noted(locked_memory.node_config(), told)
    spec |= _safe(machines.IMAGES_GIB + machines.SCRATCH_GIB if deployment.node.accelerated else machines.IMAGES_GIB)
    if machines.has_disk(deployment):
        why = "Images and scratch space: managed groups leave the machine's own disks unused (Karpenter takes them)."
        spec["volumeSize"] = Noted(spec["volumeSize"], why)
    if own := machines.labels(deployment):
        spec["labels"] = own
    if taints := machines.taints(deployment):
        made: list[Yaml] = [{"key": one.key, "value": one.value, "effect": one.effect} for one in taints]
        spec["taints"] = Noted(made, "Pods that need no accelerator stay on cheaper machines.")
    spec["propagateASGTags"] = Noted(True, "An autoscaler sees labels and taints of a group with no machine in it.")
    spec["tags"] = dict(machines.tags(deployment))
    spec["updateConfig"] = {"maxUnavailable": 1}
    if deployment.node.accelerated:
        spec["nodeRepairConfig"] = {"enabled": Noted(True, "A machine whose chips or driver fail is replaced.")}
    return spec


def _close(deployment: Deployment) -> bool:
    """Machines that talk to each other all the time, so they stand in one zone."""
    return uses_efa(deployment) or (meets(deployment) and deployment.machines > 1)


def _zone(deployment: Deployment) -> str:
    return f"{deployment.node.region}a"


def _sizes(deployment: Deployment) -> Object:
    scaling = deployment.scaling
    if scaling is None:
        done = "When nobody is there" if deployment.form is Form.SESSIONS else "When it is done"
        why = f"{done}: eksctl scale nodegroup --cluster {machines.CLUSTER} --name {deployment.name} --nodes 0"
        return {"minSize": 0, "desiredCapacity": Noted(deployment.machines, why), "maxSize": deployment.machines}
    return {
        "minSize": Noted(0, "Outside its hours nobody pays: Karpenter or the Cluster Autoscaler takes empty machines away.")
        if deployment.stops
        else machines_for(deployment, scaling.least),
        "desiredCapacity": machines_for(deployment, scaling.usual),
        "maxSize": Noted(most_machines(deployment), "The most that the plan ever uses, and room for a rollout."),
    }


def _offered(deployment: Deployment) -> str:
    return shell([
        "aws", "ec2", "describe-instance-type-offerings", "--location-type", "availability-zone",
        "--region", deployment.node.region, "--filters", f"Name=instance-type,Values={deployment.node.machine}",
    ])  # fmt: skip


def _placement(deployment: Deployment) -> str:
    group = shell(["aws", "ec2", "create-placement-group", "--strategy", "cluster", "--region", deployment.node.region,
                   "--group-name", deployment.name])  # fmt: skip
    return f"Close together in one building. Make it once:\n{group}"


def _image(deployment: Deployment) -> Yaml:
    eks = deployment.platforms.get("EKS", {})
    variant = eks.get("variant", "standard")
    if variant == "standard":
        return "AmazonLinux2023"
    driver = f", driver {eks['driver']}," if "driver" in eks else ""
    lines = [f"For these machines eksctl takes the {variant} image of it{driver} and installs the device plugin."]
    if eks.get("tested") == "no":
        family = deployment.node.machine.partition(".")[0]
        lines.append(f"AWS does not list {family} among the machines it tests this image on: try one before relying on it.")
    return Noted("AmazonLinux2023", "\n".join(lines))
