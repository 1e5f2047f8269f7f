"""Argo Rollouts: a new version of a service on one replica first, measured against the plan's goals, and rolled back.

Without a router of traffic the share of requests is that of the replicas: the Service sends to all of them. What is measured
is of the new ones alone, whose pods carry the hash of their template in their names.
"""

from __future__ import annotations

from chipwise.renderer.cluster import devices, guards, monitors, services
from chipwise.renderer.cluster.accelerators import resource_of
from chipwise.renderer.cluster.pod import Object, meta
from chipwise.renderer.deployment import Deployment, Form
from chipwise.renderer.file import CannotRender, File
from chipwise.renderer.heading import heading
from chipwise.renderer.launch import streams
from chipwise.renderer.launch.timing import progress_seconds
from chipwise.renderer.layout import grouped
from chipwise.renderer.monitoring import measures
from chipwise.renderer.refusals import one_stage
from chipwise.renderer.yaml_text import Noted, Yaml, document

FITS = "services: a new version on one replica first, measured against the plan's goals, and rolled back automatically"
EXPRESSES = frozenset({"pulls"})
WRITES = ("rollout.yaml", "analysis.yaml")
API = "argoproj.io/v1alpha1"
HASH = "canary-hash"  # argument of the analysis
HALF = 50  # per cent of the replicas, after the first
WARM_S = 300  # after the new replicas are ready: their first requests compile kernels and fill caches
WINDOW_S = 300  # over which measures are taken: that of `measures.WINDOW`
MEASUREMENTS = 3  # one after the other: windows that overlap would judge a request twice
BAD = 1  # measurements over a goal that are borne: one more, and it is rolled back
ERRORS = 0.01  # of the requests may fail
BEYOND, FEWEST = 2, 20  # requests that a window has beyond its percentile, and in all: with fewer it says nothing
_REFUSED = {
    Form.JOB: ("a job is not replaced while it runs", "kubernetes, kueue or jobset"),
    Form.SESSIONS: ("notebooks run until their users stop them", "jupyterhub"),
    Form.DEVICES: ("a device at the edge is in no cluster", "compose"),
}


def render(deployment: Deployment) -> list[File]:
    _check(deployment)
    resource_of(deployment.node)  # raises for what Kubernetes cannot hand out
    scaler = services.autoscaler(deployment, (API, "Rollout"))
    work = [*guards.claims(deployment), rollout(deployment), services.disruption_budget(deployment)]
    work += [services.service(deployment)] if deployment.software.port is not None else []
    work += [scaler] if scaler is not None else []
    first = "What surrounds it: apply this first."
    runs = (
        "What runs, in place of workload.yaml of --to kubernetes. Needs Argo Rollouts (tried: 1.10). Apply analysis.yaml\n"
        "before it. A change of the template goes to one replica first; `kubectl argo rollouts get rollout` shows how far it\n"
        "is, and `kubectl argo rollouts retry rollout` tries again what was rolled back."
    )
    return [
        File("namespace.yaml", document(*guards.surroundings(deployment), title=heading(deployment, first))),
        File("analysis.yaml", document(analysis(deployment), title=heading(deployment, _about(deployment)))),
        File("rollout.yaml", document(*work, title=heading(deployment, runs))),
        *devices.device_files(deployment),
    ]


def _check(deployment: Deployment) -> None:
    if deployment.form is Form.PIPELINE:
        raise CannotRender("Argo Rollouts replaces one service.", remedy=f"Take {one_stage(deployment)}.")
    if deployment.form is not Form.SERVICE:
        reason, remedy_target = _REFUSED[deployment.form]
        raise CannotRender(f"Argo Rollouts replaces services step by step, and {reason}.", remedy=f"Take --to {remedy_target}.")
    if grouped(deployment) or streams.live(deployment):
        holder = "a LeaderWorkerSet" if grouped(deployment) else "a StatefulSet, one pod for each group of streams"
        raise CannotRender(
            f"Argo Rollouts replaces pods that are alike, and these are {holder}.", remedy="Take --to kubernetes."
        )


def _about(deployment: Deployment) -> str:
    lines = [
        "What a new version is measured against, on its own pods. Needs Prometheus with the PodMonitor of --to monitoring or",
        "keda, and kube-state-metrics. A measurement with too few requests says nothing (each query has its least); where all",
        "say nothing the rollout waits for you (`kubectl argo rollouts promote` or `abort`).",
    ]
    if not _goals(deployment):
        lines.append("No goal of the workload is measured: the program publishes nothing that we know.")
    return "\n".join(lines)


def rollout(deployment: Deployment) -> Object:
    strategy, reason = services.replacing(deployment)
    canary: Object = {key: Noted(value, reason) if key == "maxSurge" else value for key, value in strategy.items()}
    canary["steps"] = steps(deployment)
    spec = services.replicas_spec(deployment, {"strategy": {"canary": canary}})
    deadline = "One replica ends; then a machine comes, fetches the weights and loads them."
    spec["progressDeadlineSeconds"] = Noted(progress_seconds(deployment), deadline)
    spec["progressDeadlineAbort"] = Noted(True, "A version that is not up by then is rolled back.")
    order = ("replicas", "selector", "strategy", "minReadySeconds", "progressDeadlineSeconds", "progressDeadlineAbort")
    listed = {key: spec[key] for key in (*order, "revisionHistoryLimit", "template") if key in spec}
    return {"apiVersion": API, "kind": "Rollout", "metadata": meta(deployment), "spec": listed}


def steps(deployment: Deployment) -> list[Yaml]:
    """One replica, then half of them, each judged; then all."""
    scaling = deployment.scaling
    assert scaling is not None
    argument: Object = {"name": HASH, "valueFrom": {"podTemplateHashValue": "Latest"}}
    judged: Object = {"analysis": {"templates": [{"templateName": deployment.name}], "args": [argument]}}
    wait: Object = {"pause": {"duration": f"{WARM_S}s"}}
    reason = f"Warm: of {WARM_S // 60} minutes nothing is measured."
    first: list[Yaml] = [Noted({"setWeight": 1}, "One replica: the controller never takes less."), Noted(wait, reason), judged]
    if scaling.maximum < 3:  # of two, one is half already
        return first
    return [*first, {"setWeight": HALF}, wait, judged]


def analysis(deployment: Deployment) -> Object:
    metrics: list[Yaml] = [*_goals(deployment), *_errors(deployment), _restarts(deployment)]
    return {
        "apiVersion": API,
        "kind": "AnalysisTemplate",
        "metadata": meta(deployment),
        "spec": {"args": [{"name": HASH}], "metrics": metrics},
    }


def _pods(deployment: Deployment) -> str:
    """A further label of a query: the pods of the new version. Braces of an argument, not of a format."""
    return f',pod=~"{deployment.name}-{{{{args.{HASH}}}}}-.*"'


def _goals(deployment: Deployment) -> list[Yaml]:
    metrics: list[Yaml] = []
    for goal, seconds in deployment.goals.items():
        query = measures.time_query(deployment, goal, _pods(deployment))
        seen = measures.seen_query(deployment, goal, _pods(deployment))
        if query is None or seen is None:
            continue
        query = _enough(query, seen, 1 - measures.percentile(goal)[1])
        planned = deployment.predicted.latency.get(goal)
        expected = f"; the plan expects {planned:g} s" if planned is not None else ""
        name = goal.replace(" ", "-").replace(".", "-")
        metrics.append(Noted(_metric(name, query, f"{seconds:g}"), f"The workload's goal for {goal}{expected}."))
    return metrics


def _errors(deployment: Deployment) -> list[Yaml]:
    """vLLM counts answers by the first digit of their status."""
    if deployment.software.engine != "vllm" or deployment.software.port is None:
        return []
    chosen = f"{measures.namespace_label(deployment)}{_pods(deployment)}"
    failed = f'sum(rate(http_requests_total{{{chosen},status="5xx"}}[{measures.WINDOW}]))'
    answers = f"sum(rate(http_requests_total{{{chosen}}}[{measures.WINDOW}]))"
    seen = f"sum(increase(http_requests_total{{{chosen}}}[{measures.WINDOW}]))"
    query = _enough(f"({failed} or vector(0)) / {answers}", seen, ERRORS)
    return [Noted(_metric("errors", query, f"{ERRORS:g}"), "Answers with a status of 500 and up.")]


def _enough(query: str, seen: str, part: float) -> str:
    """Without a result where so few requests came that one of them decides whether `part` of them is too late."""
    fewest = max(round(BEYOND / part), FEWEST) if part > 0 else FEWEST
    return f"{query} and on () ({seen} >= {fewest})"


def _restarts(deployment: Deployment) -> Yaml:
    chosen = f"{measures.namespace_label(deployment)}{_pods(deployment)}"
    query = f"sum(increase(kube_pod_container_status_restarts_total{{{chosen}}}[{measures.WINDOW}]))"
    return Noted(_metric("restarts", query, "0.5"), "Its container does not come down.")


def _metric(name: str, query: str, limit: str) -> Object:
    known = "len(result) > 0 && !isNaN(result[0])"
    return {
        "name": name,
        "initialDelay": f"{WINDOW_S}s",
        "interval": f"{WINDOW_S}s",
        "count": MEASUREMENTS,
        "successCondition": f"{known} && result[0] <= {limit}",
        "failureCondition": f"{known} && result[0] > {limit}",
        "failureLimit": BAD,
        "inconclusiveLimit": MEASUREMENTS - 1,
        "provider": {"prometheus": {"address": monitors.PROMETHEUS, "query": query}},
    }
