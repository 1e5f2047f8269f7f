"""A service: replicas behind one address, as many as the load needs, replaced one by one and never all at once."""

from __future__ import annotations

from chipwise.renderer.cluster import groups, live
from chipwise.renderer.cluster.pod import Object, meta, queued, selector, template
from chipwise.renderer.deployment import Deployment
from chipwise.renderer.launch import streams
from chipwise.renderer.launch.timing import STEADY_S, progress_seconds
from chipwise.renderer.layout import grouped, surge
from chipwise.renderer.quoting import kubernetes
from chipwise.renderer.yaml_text import Noted, Yaml

# What an engine publishes about requests that it works on, and waits for.
QUEUES = {"vllm": "vllm:num_requests_running", "tgi": "tgi_batch_current_size", "sglang": "sglang:num_running_reqs"}
QUEUED = 5  # requests that wait: above it, one more
# What engines publish about requests that wait.
WAITING = {
    "vllm": "vllm:num_requests_waiting",
    "tgi": "tgi_queue_size",
    "sglang": "sglang:num_queue_reqs",
    "triton": "nv_inference_pending_request_count",
    "tei": "te_queue_size",
}


def deployment_object(deployment: Deployment, queue: str | None = None) -> Object:
    """`queue`: of Kueue, which holds each pod back until the quota has room for it."""
    if streams.live(deployment):
        return live.stateful_set(deployment, queue)
    if grouped(deployment):
        return groups.leader_worker_set(deployment, queue)
    strategy, reason = replacing(deployment)
    spec: Object = {"strategy": {"type": "RollingUpdate", "rollingUpdate": Noted(strategy, reason)}}
    metadata = meta(deployment) if queue is None else queued(meta(deployment), queue, deployment)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": replicas_spec(deployment, spec, queue is not None),
    }


def replacing(deployment: Deployment) -> tuple[Object, str]:
    """Replicas that a rollout adds and takes away at a time, and why."""
    if surge(deployment) > 0:
        added = "One more chip for the time of a rollout: there is no second replica to lean on."
        return {"maxSurge": 1, "maxUnavailable": 0}, added
    return {"maxSurge": 0, "maxUnavailable": 1}, "In place: a rollout needs no chip that is not there."


def replicas_spec(deployment: Deployment, strategy: Object, waits: bool = False) -> Object:
    """Of what holds the replicas of a service. `waits`: in a queue, which says how the machine is bought."""
    scaling = deployment.scaling
    assert scaling is not None
    apart = spread(deployment)
    command = [*map(kubernetes, deployment.software.command)]
    extra: Object = {"topologySpreadConstraints": apart} if apart else {}
    pod = template(deployment, command, extra, queued=waits)
    spec: Object = {
        "selector": {"matchLabels": selector(deployment)},
        **strategy,
        "minReadySeconds": STEADY_S,
        "progressDeadlineSeconds": Noted(
            progress_seconds(deployment), "One replica ends; then a machine comes, fetches the weights and loads them."
        ),
        "revisionHistoryLimit": 5,
        "template": pod,
    }
    return {"replicas": scaling.minimum} | spec if scaling.minimum == scaling.maximum else spec


def spread(deployment: Deployment) -> list[Yaml]:
    """Replicas apart over zones and machines. Karpenter starts a machine for each copy that is to be apart: not where the
    plan's machine holds several."""
    keys = ("topology.kubernetes.io/zone", "kubernetes.io/hostname") if deployment.per_machine == 1 else ()
    return [
        {
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": selector(deployment)},
        }
        for key in keys
    ]


def service(deployment: Deployment) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": meta(deployment),
        "spec": {
            "type": Noted("ClusterIP", "Put a gateway with TLS and sign-in before it; it is not open to the world."),
            "selector": _answering(deployment),
            "ports": [{"name": "http", "port": 80, "targetPort": "http"}],
        },
    }


def _answering(deployment: Deployment) -> Yaml:
    return Noted(groups.leaders(deployment), "Leaders answer.") if grouped(deployment) else selector(deployment)


def scaled_kind(deployment: Deployment) -> tuple[str, str]:
    """The API and the kind of what holds the replicas of a service."""
    if grouped(deployment):
        return groups.API, groups.KIND
    return "apps/v1", "StatefulSet" if streams.live(deployment) else "Deployment"


def disruption_budget(deployment: Deployment) -> Object:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": meta(deployment),
        "spec": {
            "maxUnavailable": Noted(1, _drained(deployment)),
            "selector": {"matchLabels": selector(deployment)},
        },
    }


def _drained(deployment: Deployment) -> str:
    if grouped(deployment):
        return "Of all pods: a group that loses one is replaced as a whole, and the next waits until it is back."
    return "Drains take one replica at a time."


def autoscaler(deployment: Deployment, holder: tuple[str, str] = ("", "")) -> Object | None:
    """`holder`: the API and the kind of what holds the replicas, where it is not that of `scaled_kind`."""
    scaling = deployment.scaling
    api, kind = holder if any(holder) else scaled_kind(deployment)
    assert scaling is not None
    if scaling.minimum == scaling.maximum:
        return None
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": meta(deployment),
        "spec": {
            "scaleTargetRef": {"apiVersion": api, "kind": kind, "name": deployment.name},
            "minReplicas": Noted(scaling.minimum, scaling.minimum_reason),
            "maxReplicas": scaling.maximum,
            "metrics": [_metric(deployment)],
            "behavior": {
                "scaleUp": {
                    "stabilizationWindowSeconds": 0,
                    "policies": [{"type": "Percent", "value": 100, "periodSeconds": 60}],
                },
                "scaleDown": {
                    "stabilizationWindowSeconds": Noted(600, "A machine takes minutes to come: do not let it go for a lull."),
                    "policies": [{"type": "Pods", "value": 1, "periodSeconds": 120}],
                },
            },
        },
    }


def counted(deployment: Deployment) -> tuple[str, int, str] | None:
    """What an engine publishes about its load, how much of it one replica is to have, and why: requests in work, or those that
    wait where the engine or the plan does not count the former. None: a program whose metrics we do not know."""
    scaling, engine = deployment.scaling, deployment.software.engine
    assert scaling is not None
    if engine in QUEUES and scaling.busy is not None:
        return QUEUES[engine], scaling.busy, f"Requests in work per replica: {scaling.busy_reason}."
    return (WAITING[engine], QUEUED, "Requests that wait per replica: above it, one more.") if engine in WAITING else None


def _metric(deployment: Deployment) -> Yaml:
    """By requests where the engine counts them: the load of an accelerator does not show in its host's processor."""
    if (load := counted(deployment)) is not None:
        name, target, reason = load
        metric: Object = {
            "type": "Pods",
            "pods": {
                "metric": {"name": name.replace(":", "_")},
                "target": {"type": "AverageValue", "averageValue": str(target)},
            },
        }
        return Noted(
            metric, f"{reason}\nNeeds the Prometheus adapter (or KEDA: `--to keda`), which publishes it under this name."
        )
    resource: Object = {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}},
    }
    if deployment.node.accelerated:
        return Noted(resource, "The host's processor stands for the load. Better: a metric of your program, such as its queue.")
    return resource
