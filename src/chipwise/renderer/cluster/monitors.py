"""What Prometheus reads of the pods of a service, for the autoscaler (`--to keda`) and for alerts (`--to monitoring`)."""

from __future__ import annotations

from chipwise.renderer.cluster.pod import Object, meta, selector
from chipwise.renderer.cluster.services import WAITING
from chipwise.renderer.deployment import Deployment
from chipwise.renderer.yaml_text import Noted

PROMETHEUS = "http://prometheus-operated.monitoring.svc:9090"  # of the Prometheus operator, as its chart calls it
TRITON_METRICS = 8002  # a port beside that of the requests


def engine(deployment: Deployment) -> list[Object]:
    """The operator writes the namespace of a pod on what it reads there: the queries ask by it."""
    triton = deployment.software.engine == "triton"
    known = deployment.software.engine in WAITING
    reason = "Where the engine publishes its queue." if known else "Your program must publish requests_waiting there."
    endpoint: Object = {"port": "http", "path": "/metrics", "interval": Noted("15s", "As often as KEDA asks.")}
    if triton:
        endpoint = {"portNumber": TRITON_METRICS} | {key: value for key, value in endpoint.items() if key != "port"}
    chosen = "Where Prometheus takes monitors by label (kube-prometheus-stack: release), add that label here."
    monitor: Object = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PodMonitor",
        "metadata": Noted(meta(deployment), chosen),
        "spec": {"selector": {"matchLabels": selector(deployment)}, "podMetricsEndpoints": [Noted(endpoint, reason)]},
    }
    if not triton:
        return [monitor]
    opened: Object = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": meta(deployment, f"{deployment.name}-metrics"),
        "spec": {
            "podSelector": {"matchLabels": selector(deployment)},
            "policyTypes": ["Ingress"],
            "ingress": [Noted({"ports": [{"protocol": "TCP", "port": TRITON_METRICS}]}, "Metrics have a port of their own.")],
        },
    }
    return [monitor, opened]
