"""Device plugins: what tells Kubernetes of the chips and network devices of a node, so that pods can ask for them.

GKE brings its own; eksctl installs those of NVIDIA, Neuron and EFA; the GPU operator brings NVIDIA's. On other clusters, and
wherever a plan shares a GPU, they are written out here. One of each per cluster: two on one node would overwrite each other.
"""

from __future__ import annotations

from collections.abc import Sequence

from chipwise.renderer.cluster.accelerators import MACHINE, Taint, chip_taint
from chipwise.renderer.cluster.pod import Object
from chipwise.renderer.deployment import Deployment
from chipwise.renderer.file import File
from chipwise.renderer.heading import heading
from chipwise.renderer.layout import candidates, uses_efa
from chipwise.renderer.quoting import label_value
from chipwise.renderer.yaml_text import Noted, Yaml, document

SYSTEM = "kube-system"
KUBELET = "/var/lib/kubelet/device-plugins"
MOST_TOGETHER = 48  # processes of one chip under MPS
_CONFIG = "config.yaml"


def devices(deployment: Deployment) -> list[Object]:
    """Nothing where the cluster brings what the plan needs."""
    objects: list[Object] = []
    node = deployment.node
    if node.kind == "gpu" and node.vendor == "NVIDIA" and node.accelerated:
        shared = [_nvidia_config(deployment)] if shares(deployment) else []
        if node.provider != "gcp":
            objects += [*shared, _nvidia(deployment)]
    elif node.kind == "neuron":
        objects += _neuron(deployment)
    if uses_efa(deployment):
        objects.append(_efa(deployment))
    return objects


def shares(deployment: Deployment) -> bool:
    return bool(deployment.node.profile) or (bool(deployment.node.sharing) and deployment.node.users_per_chip > 1)


def device_files(deployment: Deployment) -> list[File]:
    """The file of the plugins, or none."""
    plugins = devices(deployment)
    return [File("devices.yaml", document(*plugins, title=heading(deployment, about(deployment))))] if plugins else []


def about(deployment: Deployment) -> str:
    """For the head of the file: who may leave it out, and where the driver comes from."""
    lines = [
        "Device plugins, one of each per cluster: leave out those that are installed (eksctl and the GPU operator do that)."
    ]
    image = node_image(deployment)
    return "\n".join([*lines, image] if image else lines)


def node_image(deployment: Deployment) -> str:
    """Which node image carries the driver, in a sentence; empty where nothing is known of it."""
    eks, images = deployment.platforms.get("EKS", {}), deployment.platforms.get("AMI", {})
    if deployment.node.provider == "gcp":
        return "GKE installs the driver: node pools with --accelerator type=...,gpu-driver-version=default."
    if deployment.node.provider == "azure":
        return "AKS installs the driver with the node pool, and leaves the device plugin to this file."
    if "variant" not in eks or "eks" not in images:
        return ""
    parameter = images["eks"].replace("<k8s-version>", eks.get("kubernetes", "<k8s-version>"))
    driver = f", driver {eks['driver']}" if "driver" in eks else ""
    return f"The node image with the driver is EKS's AL2023 {eks['variant']} one{driver}: SSM parameter\n{parameter}"


def _nvidia_config(deployment: Deployment) -> Object:
    node = deployment.node
    if node.profile:
        config: Object = {
            "version": "v1",
            "flags": {"migStrategy": Noted("mixed", f"Each slice under a name of its own: nvidia.com/mig-{node.profile}.")},
        }
    else:
        way = "mps" if node.sharing == "mps" else "timeSlicing"
        users = min(node.users_per_chip, MOST_TOGETHER) if way == "mps" else node.users_per_chip
        parts: Object = {
            "renameByDefault": Noted(True, "nvidia.com/gpu.shared: who asks for a whole GPU never gets a part of one."),
        }
        if way == "timeSlicing":
            parts["failRequestsGreaterThanOne"] = Noted(True, "Two turns on one chip are not twice the chip.")
        reason = "Users of one chip, as the plan has them. They share its memory, and one of them can take all of it."
        if way == "mps":
            reason = "Users of one chip, each with an equal part of its memory and threads; a fault of one ends them all."
        parts["resources"] = [{"name": "nvidia.com/gpu", "replicas": Noted(users, reason)}]
        config = {"version": "v1", "flags": {"migStrategy": "none"}, "sharing": {way: parts}}
    metadata: Yaml = {"name": "nvidia-device-plugin", "namespace": SYSTEM}
    if node.sharing == "mps" and not node.profile:
        metadata = Noted(
            metadata, "MPS needs its control daemon on each node, which NVIDIA's chart of the device plugin brings."
        )
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": {_CONFIG: document(config)},
    }


def _nvidia(deployment: Deployment) -> Object:
    node, shared = deployment.node, shares(deployment)
    security: Object = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    env: list[Yaml] = []
    if node.profile:
        security = {"capabilities": {"add": [Noted("SYS_ADMIN", "To watch slices come and go.")]}}
        env = [{"name": "NVIDIA_MIG_MONITOR_DEVICES", "value": "all"}]
    if shared:
        env.append({"name": "CONFIG_FILE", "value": f"/config/{_CONFIG}"})
    volumes: dict[str, Object] = {"plugins": {"hostPath": {"path": KUBELET}}}
    mounts: dict[str, str] = {"plugins": KUBELET}
    if shared:
        volumes["config"] = {"configMap": {"name": "nvidia-device-plugin"}}
        mounts["config"] = "/config"
    daemon = _daemon(deployment, "nvidia-device-plugin", "NVIDIA", Taint("nvidia.com/gpu"), env, security, volumes, mounts)
    if node.profile:
        return _cut(daemon, node.profile)
    return daemon


def _cut(daemon: Object, profile: str) -> Object:
    """The plugin hands out slices; somebody must have cut the chips before."""
    metadata = daemon["metadata"]
    assert isinstance(metadata, dict)
    reason = (
        "It hands out slices that are there. To cut them: the GPU operator's MIG manager, by the node label\n"
        f"nvidia.com/mig.config=all-{profile}; or the node's start script: nvidia-smi -mig 1, nvidia-smi mig -cgi {profile} -C."
    )
    return daemon | {"metadata": Noted(metadata, reason)}


def _neuron(deployment: Deployment) -> list[Object]:
    """It reads its node and tells the scheduler which chips are whole, so it has rights that the others do not need."""
    name = "neuron-device-plugin"
    rules: list[Yaml] = [
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": [""], "resources": ["nodes/status"], "verbs": ["patch", "update"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch", "patch", "update"]},
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]},
    ]
    env: list[Yaml] = [{"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}]
    daemon = _daemon(
        deployment,
        name,
        "Neuron",
        chip_taint(deployment.node),
        env,
        {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        {"plugins": {"hostPath": {"path": KUBELET}}, "run": {"hostPath": {"path": "/run"}}},
        {"plugins": KUBELET, "run": "/run"},
        account=name,
    )
    subject: Object = {"kind": "ServiceAccount", "name": name, "namespace": SYSTEM}
    role: Object = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    rights = "rbac.authorization.k8s.io/v1"
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": SYSTEM}},
        {"apiVersion": rights, "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules},
        {
            "apiVersion": rights,
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": role,
            "subjects": [subject],
        },
        daemon,
    ]


def _efa(deployment: Deployment) -> Object:
    return _daemon(
        deployment,
        "aws-efa-k8s-device-plugin",
        "EFA",
        chip_taint(deployment.node),
        [],
        {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        {"plugins": {"hostPath": {"path": KUBELET}}, "devices": {"hostPath": {"path": "/dev/infiniband"}}},
        {"plugins": KUBELET, "devices": "/dev/infiniband"},
        host_network=True,
    )


def _daemon(
    deployment: Deployment,
    name: str,
    plugin: str,
    taint: Taint | None,
    env: Sequence[Yaml],
    security: Object,
    volumes: dict[str, Object],
    mounts: dict[str, str],
    account: str | None = None,
    host_network: bool = False,
) -> Object:
    image = deployment.platforms.get("Device plugins", {}).get(plugin)
    assert image is not None, f"no image of the {plugin} device plugin in the catalog"
    container: Object = {"name": name, "image": image}
    if env:
        container["env"] = list(env)
    container["resources"] = {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}}
    container["securityContext"] = security
    container["volumeMounts"] = [{"name": key, "mountPath": path} for key, path in mounts.items()]
    machines = [label_value(one.machine) for one in candidates(deployment)]
    wanted: Object = {"matchExpressions": [{"key": MACHINE, "operator": "In", "values": machines}]}
    spec: Object = {"serviceAccountName": account} if account else {"automountServiceAccountToken": False}
    if host_network:
        spec["hostNetwork"] = Noted(True, "It counts the devices of the host.")
    tolerations: list[Yaml] = [{"key": "CriticalAddonsOnly", "operator": "Exists"}]
    if taint is not None:
        tolerations.append({"key": taint.key, "operator": "Exists", "effect": taint.effect})
    spec |= {
        "priorityClassName": Noted("system-node-critical", "Without it the node has chips that nobody can ask for."),
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [Noted(wanted, "Machines with the device; add those of other workloads.")]
                }
            }
        },
        "tolerations": tolerations,
        "containers": [container],
        "volumes": [{"name": key} | source for key, source in volumes.items()],
    }
    labels: Object = {"app.kubernetes.io/name": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": SYSTEM},
        "spec": {
            "selector": {"matchLabels": labels},
            "updateStrategy": {"type": "RollingUpdate"},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }
