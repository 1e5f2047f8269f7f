"""A service that runs while somebody asks: no copy when nobody does, and a place where requests wait for the first.

The endpoint picker of the Inference Extension holds them: with flow control on it takes a request before there is a pod for it
(release 1.5), counts what it holds, and hands it on when a pod is ready. KEDA reads that number through Prometheus. The flag
against the filter of subsets is needed: a request that came while there was no pod would else be kept for none.
"""

from __future__ import annotations

from chipwise.renderer.cluster import picker
from chipwise.renderer.cluster.pod import Object, meta, namespace_of
from chipwise.renderer.cluster.services import QUEUES
from chipwise.renderer.deployment import Deployment, Form
from chipwise.renderer.file import CannotRender
from chipwise.renderer.yaml_text import Noted

ABOUT = (
    "On demand: with nothing to do there is no copy. --to gateway must be applied as well, and all requests must come through\n"
    "it: its endpoint picker holds them while the first copy starts. Pods called past it would never start."
)


def wanted(deployment: Deployment) -> bool:
    return deployment.form is Form.SERVICE and deployment.idle_s is not None


def check(deployment: Deployment) -> None:
    """Raises where nothing would hold the requests."""
    if not wanted(deployment):
        return
    software, model, scaling = deployment.software, deployment.model, deployment.scaling
    held_by_picker = software.engine in picker.ENGINES and not software.is_custom and model is not None and model.generates
    if not held_by_picker or software.engine not in QUEUES or scaling is None or scaling.busy is None:
        raise CannotRender(
            "With idle_after there is no copy while nobody asks, and nothing here would hold the next request: the endpoint"
            " picker of --to gateway does so for generated text by " + " or ".join(picker.ENGINES) + ".",
            remedy="Leave idle_after out, or take --to serverless.",
        )


def queue_query(deployment: Deployment) -> tuple[str, str, str]:
    """Query, threshold and reason."""
    label = f'namespace="{namespace_of(deployment)}"'
    reason = "Requests that the endpoint picker holds; nothing is held where it has counted none."
    return f"sum({picker.QUEUE_METRIC}{{{label}}}) or vector(0)", "1", reason


def monitor(deployment: Deployment) -> Object:
    endpoint: Object = {
        "port": "metrics",
        "path": "/metrics",
        "interval": Noted("5s", "The first request waits for this, for KEDA's 15 s, and then for a start."),
    }
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PodMonitor",
        "metadata": meta(deployment, picker.name_of(deployment)),
        "spec": {"selector": {"matchLabels": picker.labels(deployment)}, "podMetricsEndpoints": [endpoint]},
    }
