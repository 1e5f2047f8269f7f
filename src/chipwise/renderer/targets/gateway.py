"""Gateway API with the Inference Extension: TLS at the door, and each request to the replica whose cache knows its beginning.

Who may ask is not said by any of these kinds: authentication is an extension of each gateway, and left to who runs it.
"""

from __future__ import annotations

from chipwise.renderer.cluster import groups, picker
from chipwise.renderer.cluster.accelerators import resource_of
from chipwise.renderer.cluster.pod import Object, meta, namespace_of, selector
from chipwise.renderer.deployment import Deployment, Form
from chipwise.renderer.file import CannotRender, File
from chipwise.renderer.heading import heading
from chipwise.renderer.launch.timing import drain_seconds, ready_seconds
from chipwise.renderer.layout import grouped
from chipwise.renderer.refusals import one_stage
from chipwise.renderer.yaml_text import Noted, Yaml, document

FITS = "services that generate text: a gateway with TLS, and routing by prefix cache and queue (InferencePool)"
EXPRESSES = frozenset({"layers", "groups", "no run"})  # it leads to what --to kubernetes wrote
WRITES = ("gateway.yaml", "pool.yaml")
MANIFESTS = True
API = "gateway.networking.k8s.io/v1"
POOLS = "inference.networking.k8s.io"
# What of an engine's address is let through: not its metrics, nor what changes it while it runs.
PATHS = ("/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/models")
WAIT_S = 60  # in the queue of a replica: whoever waits longer is better refused than kept
_GKE = "gke-l7-rilb"  # of those with InferencePool, the one that is not open to the world
_FORMS = {
    Form.JOB: "a job that nobody calls",
    Form.SESSIONS: "a set of notebooks",
    Form.DEVICES: "a device at the edge",
    Form.SERVICE: "one without a port",
}
_TARGETS = {Form.SESSIONS: "jupyterhub", Form.DEVICES: "compose"}
_INSIDE = {
    "aws": {
        "service.beta.kubernetes.io/aws-load-balancer-type": "external",
        "service.beta.kubernetes.io/aws-load-balancer-nlb-target-type": "ip",
        "service.beta.kubernetes.io/aws-load-balancer-scheme": "internal",
    },
    "azure": {"service.beta.kubernetes.io/azure-load-balancer-internal": "true"},
}


def render(deployment: Deployment) -> list[File]:
    _check(deployment)
    resource_of(deployment.node)  # raises for what Kubernetes cannot hand out
    door = (
        "The door: TLS, and the paths that are let through. Needs Gateway API 1.4 or newer and a gateway with InferencePool:\n"
        "istiod takes part with ENABLE_GATEWAY_API_INFERENCE_EXTENSION=true only.\n"
        "IT ASKS NOBODY WHO THEY ARE. Before users come, add what your gateway has for it: an AuthorizationPolicy with a\n"
        "RequestAuthentication (Istio), a SecurityPolicy (Envoy Gateway), an IAM policy in front (GKE). Pods are also reached\n"
        "inside the cluster past this door: an --api-key of the engine, from a Secret, closes that."
    )
    behind = (
        "The replicas of --to kubernetes or kueue as a pool, and who picks among them. Apply it after those files.\n"
        "Needs the kinds of the Inference Extension, 1.5 (manifests.yaml of its release)."
    )
    files = [
        File("gateway.yaml", document(gateway(deployment), route(deployment), title=heading(deployment, door))),
        File("pool.yaml", document(pool(deployment), *picker.objects(deployment), title=heading(deployment, behind))),
    ]
    if deployment.node.provider != "gcp":
        only = "With Istio only: how it reaches the picker, and how its own pods are admitted."
        files.append(
            File("istio.yaml", document(_trust(deployment), _pods_of_the_door(deployment), title=heading(deployment, only)))
        )
    return files


def _check(deployment: Deployment) -> None:
    model, software = deployment.model, deployment.software
    if deployment.form is Form.PIPELINE:
        raise CannotRender("A gateway leads to one service.", remedy=f"Take {one_stage(deployment)}.")
    if deployment.form is not Form.SERVICE or software.port is None:
        raise CannotRender(
            f"A gateway leads to a service of a cluster, and this is {_FORMS[deployment.form]}.",
            remedy=f"Take --to {_TARGETS.get(deployment.form, 'kubernetes or kueue')}.",
        )
    if model is None or not model.generates:
        raise CannotRender(
            "The Inference Extension reads requests for generated text, and this service answers others.",
            remedy="Take --to kubernetes, and an HTTPRoute to its Service.",
        )
    if software.is_custom or software.engine not in picker.ENGINES:
        known = " or ".join(picker.ENGINES)
        engine = "a program of your own" if software.is_custom else software.engine or "the usual program of its kind"
        raise CannotRender(
            f"The endpoint picker reads metrics of {known}, and this is {engine}.",
            remedy=f"Give program.engine: {known}; or take --to kubernetes, and an HTTPRoute to its Service.",
        )
    if grouped(deployment):
        groups.check(deployment)


def door_name(deployment: Deployment) -> str:
    """Of the gateway's own pods, which are no replicas."""
    return f"{deployment.name}-gateway"


def _pods_of_the_door(deployment: Deployment) -> Object:
    """How Istio makes the gateway's pods: the namespace admits none without a seccomp profile."""
    secure: Object = {"spec": {"template": {"spec": {"securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}}}}}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": meta(deployment) | {"name": door_name(deployment)},
        "data": {"deployment": document(secure)},
    }


def _host(deployment: Deployment) -> str:
    return f"{deployment.name}.example.com"


def gateway(deployment: Deployment) -> Object:
    provider = deployment.node.provider
    kind = Noted(_GKE, "Inside its network. gke-l7-regional-external-managed is open to the world: sign-in first.")
    if provider != "gcp":
        kind = Noted("istio", "Or another that knows InferencePool: kgateway, Envoy AI Gateway, NGINX Gateway Fabric.")
    listener: Object = {
        "name": "https",
        "protocol": "HTTPS",
        "port": 443,
        "hostname": Noted(_host(deployment), "Put yours."),
        "tls": {
            "mode": "Terminate",
            "certificateRefs": [
                Noted(
                    {"kind": "Secret", "name": f"{deployment.name}-tls"},
                    "Of type kubernetes.io/tls, for that name: from cert-manager, or kubectl create secret tls.",
                )
            ],
        },
        "allowedRoutes": {"namespaces": {"from": Noted("Same", "No other namespace hangs a route on this door.")}},
    }
    spec: Object = {"gatewayClassName": kind}
    if provider != "gcp":  # Google's has no pods
        own: Object = {"app.kubernetes.io/name": door_name(deployment)}
        infrastructure: Object = {"labels": Noted(own, "Else its pods get those of the replicas, and their network policy.")}
        if provider in _INSIDE:
            inside: Object = dict(_INSIDE[provider])
            infrastructure["annotations"] = Noted(inside, "A balancer inside the network, not open to the world.")
        reference: Object = {"group": "", "kind": "ConfigMap", "name": door_name(deployment)}
        infrastructure["parametersRef"] = Noted(reference, "Of Istio, in istio.yaml; leave it out with another gateway.")
        spec["infrastructure"] = infrastructure
    return {
        "apiVersion": API,
        "kind": "Gateway",
        "metadata": meta(deployment),
        "spec": spec | {"listeners": [Noted(listener, "TLS alone: nothing listens without it.")]},
    }


def route(deployment: Deployment) -> Object:
    matches: list[Yaml] = [{"path": {"type": "Exact", "value": path}} for path in PATHS]
    rule: Object = {
        "matches": Noted(matches, "Not /metrics, nor paths that change the engine while it runs."),
        "backendRefs": [{"group": POOLS, "kind": "InferencePool", "name": deployment.name}],
    }
    if deployment.node.provider != "gcp":  # whose routes to pools have none
        seconds = drain_seconds(deployment.predicted.longest_s) + WAIT_S
        reason = "The longest answer and a quarter more, after a minute in the queue."
        if deployment.idle_s is not None:
            seconds += ready_seconds(deployment)
            reason = "A start from nothing, a minute in the queue, the longest answer and a quarter more. Clients wait too."
        rule["timeouts"] = {"request": Noted(f"{seconds}s", reason)}
    return {
        "apiVersion": API,
        "kind": "HTTPRoute",
        "metadata": meta(deployment),
        "spec": {
            "parentRefs": [{"name": deployment.name, "sectionName": "https"}],
            "hostnames": [_host(deployment)],
            "rules": [rule],
        },
    }


def pool(deployment: Deployment) -> Object:
    labels: Yaml = dict(groups.leaders(deployment)) if grouped(deployment) else selector(deployment)
    return {
        "apiVersion": f"{POOLS}/v1",
        "kind": "InferencePool",
        "metadata": meta(deployment),
        "spec": {
            "selector": {"matchLabels": Noted(labels, "Leaders answer.") if grouped(deployment) else labels},
            "targetPorts": [{"number": deployment.software.port}],
            "endpointPickerRef": {
                "name": picker.name_of(deployment),
                "port": {"number": picker.PICKS},
                "failureMode": Noted("FailOpen", "Without the picker any replica answers: slower is better than not at all."),
            },
        },
    }


def _trust(deployment: Deployment) -> Object:
    """The picker signs its own certificate at each start, which nobody can know."""
    host = f"{picker.name_of(deployment)}.{namespace_of(deployment)}.svc.cluster.local"
    policy: Object = {
        "tls": {"mode": "SIMPLE", "insecureSkipVerify": Noted(True, "It signs its own certificate at each start.")}
    }
    return {
        "apiVersion": "networking.istio.io/v1",
        "kind": "DestinationRule",
        "metadata": meta(deployment, picker.name_of(deployment)),
        "spec": {"host": host, "trafficPolicy": policy},
    }
