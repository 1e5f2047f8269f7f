"""Who publishes what chips do: the vendor's own installation, with what this plan's machines need of it.

Exporters read devices and the kubelet's list of them, which takes root; so their vendors' charts install them, for who runs the
cluster, and no manifest of ours does. Keys are those of `deployment/values.yaml` (DCGM exporter) and `helm-charts/values.yaml`
(AMD's device metrics exporter).
"""

from __future__ import annotations

from chipwise.renderer.cluster.accelerators import MACHINE, chip_taint, spot_taints
from chipwise.renderer.cluster.pod import Object
from chipwise.renderer.deployment import Deployment
from chipwise.renderer.layout import candidates
from chipwise.renderer.monitoring.alerts import CHOSEN, RULES
from chipwise.renderer.quoting import label_value
from chipwise.renderer.yaml_text import Noted, Yaml

SPACE = "monitoring"
NEURON, NEURON_PORT = "neuron-monitor", 8000  # namespace and name of AWS's own manifest, and where it answers
_GKE_DRIVER, _DRIVER = "/home/kubernetes/bin/nvidia", "/usr/local/nvidia"


def install(deployment: Deployment) -> str:
    """How the exporter comes into the cluster, for the head of a file; empty: there is none that we know."""
    node = deployment.node
    if node.accelerated and node.kind == "gpu" and node.vendor == "NVIDIA":
        return (
            "Values for the chart of the DCGM exporter, once per cluster; the GPU operator brings its own.\n"
            "It runs as root, for it reads the kubelet's list of which pod holds which chip.\n"
            "helm repo add gpu-helm-charts https://nvidia.github.io/dcgm-exporter/helm-charts\n"
            f"helm upgrade --install dcgm-exporter gpu-helm-charts/dcgm-exporter --namespace {SPACE} -f exporter.yaml"
        )
    if node.accelerated and node.kind == "gpu" and node.vendor == "AMD":
        return (
            "Values for the chart of AMD's device metrics exporter (helm-charts in ROCm/device-metrics-exporter),\n"
            "once per cluster; AMD's GPU operator brings its own.\n"
            f"helm upgrade --install metrics-exporter CHART --namespace {SPACE} -f exporter.yaml"
        )
    return ""


def values(deployment: Deployment) -> Object:
    """For the vendor's chart."""
    node = deployment.node
    taints = [one for one in (chip_taint(node),) if one is not None]
    taints += spot_taints(node) if deployment.losable else ()
    machines = [label_value(one.machine) for one in candidates(deployment)]
    terms: Object = {"matchExpressions": [{"key": MACHINE, "operator": "In", "values": machines}]}
    honor = Noted(False, "The pod that holds a chip is then exported_pod, and its namespace likewise, as the alerts ask.")
    monitor: Object = {"enabled": True, "interval": "15s", "honorLabels": honor}
    wanted: Object = {
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [Noted(terms, "Machines with the chips; add those of other workloads.")]
                }
            }
        },
        "tolerations": [{"key": one.key, "operator": "Exists", "effect": one.effect} for one in taints],
    }
    if node.vendor == "AMD":
        return {"platform": "k8s"} | wanted | {"serviceMonitor": monitor}
    wanted["serviceMonitor"] = Noted(
        monitor, "Where Prometheus takes monitors by label (kube-prometheus-stack: release), add it as additionalLabels."
    )
    if node.provider == "gcp":
        wanted |= _on_gke()
    return wanted


def _on_gke() -> Object:
    """GKE keeps the driver in a directory of the node, and hands devices only to privileged pods that ask for none."""
    reason = "GKE hands the devices of a node to no other pod that asks for none of them."
    return {
        "securityContext": {"privileged": Noted(True, reason), "runAsNonRoot": False, "runAsUser": 0},
        "extraHostVolumes": [{"name": "driver", "hostPath": _GKE_DRIVER}],
        "extraVolumeMounts": [{"name": "driver", "mountPath": _DRIVER, "readOnly": True}],
        "extraEnv": [{"name": "LD_LIBRARY_PATH", "value": f"{_DRIVER}/lib64"}],
    }


def neuron_monitor() -> Yaml:
    """Reads the monitor that AWS's manifest installs, and says of which node it speaks."""
    labels: Object = {"app.kubernetes.io/managed-by": "chipwise"}
    node: Object = {"sourceLabels": ["__meta_kubernetes_pod_node_name"], "targetLabel": "node"}
    endpoint: Object = {
        "portNumber": NEURON_PORT,
        "path": "/metrics",
        "interval": "15s",
        "relabelings": [Noted(node, "Its metrics name no pod: the alerts find the node's pods by this.")],
    }
    monitor: Object = {
        "apiVersion": RULES,
        "kind": "PodMonitor",
        "metadata": Noted({"name": NEURON, "namespace": NEURON, "labels": labels}, CHOSEN),
        "spec": {"selector": {"matchLabels": {"app": NEURON}}, "podMetricsEndpoints": [endpoint]},
    }
    reason = (
        "The Neuron monitor comes from AWS's k8s-neuron-monitor-daemonset.yml, once per cluster: into the namespace\n"
        f"{NEURON}, privileged. Add this plan's machines to its list of instance types, and tolerate their taints.\n"
        "It does not work with Neuron's DRA driver."
    )
    return Noted(monitor, reason)
