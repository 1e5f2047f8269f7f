"""KServe: a runtime with the flags of the plan, and an InferenceService that says how many replicas and by what they scale.

KServe makes the Deployment, its Service and its route (deployment mode Standard, without Knative). Weights come from the hub
into a volume that all replicas share, as everywhere here: a storageUri would fetch them again for each pod.
"""

from __future__ import annotations

from collections.abc import Mapping

from chipwise.renderer.cluster import devices, guards, monitors, services
from chipwise.renderer.cluster.accelerators import resource_of
from chipwise.renderer.cluster.pod import Object, labels, meta, template
from chipwise.renderer.deployment import Deployment, Form
from chipwise.renderer.file import CannotRender, File
from chipwise.renderer.heading import heading
from chipwise.renderer.launch import streams
from chipwise.renderer.launch.timing import drain_seconds, progress_seconds
from chipwise.renderer.layout import grouped
from chipwise.renderer.monitoring import measures
from chipwise.renderer.quoting import kubernetes
from chipwise.renderer.refusals import one_stage
from chipwise.renderer.yaml_text import Noted, Yaml, document

FITS = "services of models by KServe: a ServingRuntime with the plan's flags, an InferenceService that scales"
EXPRESSES = frozenset({"pulls"})
WRITES = ("inference.yaml",)
API = "serving.kserve.io"
MAIN = "kserve-container"  # by which KServe finds the container that answers
WAIT_S = 60  # of a request in the queue of a replica, beside its answer
FORMAT = "huggingface"  # the one whose weights KServe leaves to the program
KSERVE_S = 600  # that it gives its Deployment to make progress
# What a ServingRuntime has of a pod; the rest is the InferenceService's.
_RUNTIME = ("nodeSelector", "affinity", "tolerations", "containers", "volumes")
_SHARED = "\nKServe takes no other type with `value`, and KEDA divides what it finds by the replicas anyway."
_REFUSED = {
    Form.JOB: ("a job that nobody calls", "kubernetes or kueue"),
    Form.SESSIONS: ("a set of notebooks", "jupyterhub"),
    Form.DEVICES: ("a device at the edge", "compose"),
    Form.SERVICE: ("one without a port", "kubernetes"),
}


def render(deployment: Deployment) -> list[File]:
    _check(deployment)
    resource_of(deployment.node)  # raises for what Kubernetes cannot hand out
    objects = [*guards.claims(deployment), runtime(deployment), inference_service(deployment)]
    objects.append(services.disruption_budget(deployment))
    return [
        File(
            "namespace.yaml",
            document(*guards.surroundings(deployment), title=heading(deployment, "What surrounds it: apply this first.")),
        ),
        File("inference.yaml", document(*objects, title=heading(deployment, _about(deployment)))),
        *devices.device_files(deployment),
    ]


def _check(deployment: Deployment) -> None:
    if deployment.form is Form.PIPELINE:
        raise CannotRender("KServe serves one model, not stages in order.", remedy=f"Take {one_stage(deployment)}.")
    if deployment.form is not Form.SERVICE or deployment.software.port is None:
        reason, remedy_target = _REFUSED[deployment.form]
        raise CannotRender(f"KServe answers requests, and this is {reason}.", remedy=f"Take --to {remedy_target}.")
    if grouped(deployment) or streams.live(deployment):
        raise CannotRender(
            "This runtime of KServe is one pod for each replica, and the plan has groups of them.",
            remedy="Take --to kubernetes or kueue.",
        )


def _about(deployment: Deployment) -> str:
    lines = ["What runs. Needs KServe 0.16 or newer" + (", KEDA and Prometheus." if _counted(deployment) else ".")]
    needed = progress_seconds(deployment)
    if needed > KSERVE_S:
        lines += [
            f"KServe gives its Deployment {KSERVE_S} s, and a replica may take {needed} s to come: until then conditions call",
            "it failed, and it comes up anyway.",
        ]
    return "\n".join(lines)


def runtime(deployment: Deployment) -> Object:
    pod = _pod(deployment)
    containers = pod["containers"]
    assert isinstance(containers, list)
    [main] = containers
    title: Object = {"name": Noted(MAIN, "KServe looks for this name.")}
    fields = {key: pod[key] for key in _RUNTIME if key in pod}
    main = main | {"securityContext": _rights(pod, main)}
    fields["containers"] = [title | {key: _literal(value) for key, value in main.items() if key != "name"}]
    formats: list[Yaml] = [{"name": FORMAT, "version": "1", "autoSelect": False}]
    return {
        "apiVersion": f"{API}/v1alpha1",
        "kind": "ServingRuntime",
        "metadata": meta(deployment),
        "spec": {"supportedModelFormats": Noted(formats, "Only for services that name this runtime."), **fields},
    }


def _rights(pod: Object, main: Mapping[str, Yaml]) -> Object:
    """Of the container, with the user of the pod: a service that names this runtime without it runs no root either."""
    user, own = pod["securityContext"], main["securityContext"]
    assert isinstance(user, dict)
    assert isinstance(own, dict)
    return {key: user[key] for key in ("runAsNonRoot", "runAsUser", "runAsGroup") if key in user} | own


def _literal(value: Yaml) -> Yaml:
    """KServe fills in the container as a template of Go: what looks like a place for a value is written as text."""
    match value:
        case Noted():
            return Noted(_literal(value.value), value.comment)
        case str():
            return value.replace("{{", "{{`{{`}}")
        case list() | tuple():
            return [_literal(one) for one in value]
        case dict():
            return {key: _literal(one) for key, one in value.items()}
    return value


def _pod(deployment: Deployment) -> Object:
    spread: list[Yaml] = services.spread(deployment)
    extra: Object = {"topologySpreadConstraints": spread} if spread else {}
    spec = template(deployment, [*map(kubernetes, deployment.software.command)], extra)["spec"]
    assert isinstance(spec, dict)
    return dict(spec)


def inference_service(deployment: Deployment) -> Object:
    scaling = deployment.scaling
    assert scaling is not None
    strategy, reason = services.replacing(deployment)
    pod = {key: value for key, value in _pod(deployment).items() if key not in _RUNTIME}
    seconds = drain_seconds(deployment.predicted.longest_s) + WAIT_S
    predictor: Object = {
        "minReplicas": Noted(scaling.minimum, scaling.minimum_reason),
        "maxReplicas": scaling.maximum,
        **_scaled(deployment),
        "timeout": Noted(seconds, "Of the route: the longest answer and a quarter more, after a minute in the queue. Else 60."),
        "deploymentStrategy": {"type": "RollingUpdate", "rollingUpdate": Noted(strategy, reason)},
        "labels": labels(deployment),
        **pod,
        "model": {
            "modelFormat": {"name": Noted(FORMAT, "With another, and no storage, KServe adds an agent for several models.")},
            "runtime": deployment.name,
        },
    }
    annotations: Object = {
        f"{API}/deploymentMode": Noted("Standard", "A Deployment: Knative would need leave for volumes and affinity."),
        f"{API}/autoscalerClass": _class(deployment),
    }
    metadata = meta(deployment) | {"annotations": annotations}
    return {
        "apiVersion": f"{API}/v1beta1",
        "kind": "InferenceService",
        "metadata": metadata,
        "spec": {"predictor": predictor},
    }


def _counted(deployment: Deployment) -> bool:
    """The engine counts the requests in work, and the number of replicas is not fixed."""
    return _class(deployment) == "keda"


def _class(deployment: Deployment) -> str:
    scaling = deployment.scaling
    assert scaling is not None
    if scaling.minimum == scaling.maximum:
        return "none"
    return "keda" if services.counted(deployment) is not None else "hpa"


def _scaled(deployment: Deployment) -> Object:
    if _class(deployment) == "none":
        return {}
    load = services.counted(deployment)
    if load is None:
        return {"scaleMetric": "cpu", "scaleTarget": 70}
    name, target, reason = load
    metric: Object = {
        "type": "External",
        "external": {
            "metric": {
                "backend": "prometheus",
                "serverAddress": Noted(monitors.PROMETHEUS, "Of the Prometheus operator; put yours."),
                "query": measures.total(deployment, name),
            },
            "target": {"type": "Value", "value": Noted(str(target), f"{reason}{_SHARED}")},
        },
    }
    return {"autoScaling": {"metrics": [Noted(metric, "As the PodMonitor of --to monitoring reads it.")]}}
