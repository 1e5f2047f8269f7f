"""The endpoint picker of the Inference Extension: which replica answers a request, by what its cache holds and how busy it is.

Arguments, ports and plugins are those of release 1.5.0 (cmd/epp, config/charts/epplib). One picker at a time: it remembers
which replica saw which beginning of a prompt, and two would each know half.
"""

from __future__ import annotations

from chipwise.renderer.cluster.pod import USER, Object, meta, namespace_of
from chipwise.renderer.deployment import Deployment
from chipwise.renderer.launch.timing import grace_seconds, ready_seconds
from chipwise.renderer.yaml_text import Noted, Yaml, document

IMAGE = "registry.k8s.io/gateway-api-inference-extension/epp:v1.5.0"  # as the release's own chart has it
ENGINES = ("vllm", "sglang")  # whose metrics it reads and whose requests it understands
PICKS, HEALTH, METRICS = 9002, 9003, 9090
QUEUE_LIMIT = 1000
QUEUE_METRIC = "inference_extension_flow_control_queue_size"  # requests that wait here
_FILE = "plugins.yaml"
_SUBSETS = "Else a request that came while there was no copy would be kept for none of those that come."
_CONFIG_API = "inference.networking.x-k8s.io/v1alpha1"


def name_of(deployment: Deployment) -> str:
    return f"{deployment.name}-epp"


def labels(deployment: Deployment) -> Object:
    """Other labels than the replicas have: the pool and the guards of those must not take it for one."""
    return {"app.kubernetes.io/name": name_of(deployment)}


def plugins(deployment: Deployment) -> Object:
    engine = deployment.software.engine
    reader: Object = {"type": "core-metrics-extractor"}
    if engine != "vllm":
        reader["parameters"] = {"defaultEngine": engine}
    scores: list[Yaml] = [
        {"pluginRef": "queue-scorer", "weight": 2},
        {"pluginRef": "kv-cache-utilization-scorer", "weight": 2},
        Noted({"pluginRef": "prefix-cache-scorer", "weight": 3}, "What a replica has read already it need not read again."),
    ]
    source: Object = {"type": "metrics-data-source", "parameters": {"scheme": "http", "path": "/metrics"}}
    kinds: list[Yaml] = [{"type": "queue-scorer"}, {"type": "kv-cache-utilization-scorer"}, {"type": "prefix-cache-scorer"}]
    config: Object = {
        "apiVersion": _CONFIG_API,
        "kind": "EndpointPickerConfig",
        "plugins": [*kinds, source, reader],
        "schedulingProfiles": [{"name": "default", "plugins": scores}],
    }
    if deployment.idle_s is None:
        return config
    queue: Object = {
        "maxRequests": Noted(str(QUEUE_LIMIT), "More than these are refused at once."),
        "maxBytes": "1Gi",
        "defaultRequestTTL": Noted(f"{ready_seconds(deployment)}s", "A machine, its image and the weights must come first."),
    }
    return config | {
        "featureGates": Noted(["flowControl"], "It holds requests while there is no copy, and while all are full."),
        "flowControl": queue,
    }


def objects(deployment: Deployment) -> list[Yaml]:
    """All that the picker is made of."""
    name = name_of(deployment)
    rights = "rbac.authorization.k8s.io"
    rules: list[Yaml] = [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": ["inference.networking.k8s.io"], "resources": ["inferencepools"], "verbs": ["get", "list", "watch"]},
        {
            "apiGroups": ["inference.networking.x-k8s.io"],
            "resources": ["inferenceobjectives", "inferencemodelrewrites"],
            "verbs": ["get", "list", "watch"],
        },
    ]
    subject: Object = {"kind": "ServiceAccount", "name": name, "namespace": namespace_of(deployment)}
    return [
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": meta(deployment, name),
            "automountServiceAccountToken": False,
        },
        {"apiVersion": f"{rights}/v1", "kind": "Role", "metadata": meta(deployment, name), "rules": rules},
        {
            "apiVersion": f"{rights}/v1",
            "kind": "RoleBinding",
            "metadata": meta(deployment, name),
            "roleRef": {"apiGroup": rights, "kind": "Role", "name": name},
            "subjects": [subject],
        },
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": meta(deployment, name),
            "data": {_FILE: document(plugins(deployment))},
        },
        _deployment(deployment),
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": meta(deployment, name),
            "spec": {
                "selector": labels(deployment),
                "ports": [
                    {"name": "picks", "port": PICKS, "targetPort": "picks", "appProtocol": "http2"},
                    {"name": "metrics", "port": METRICS, "targetPort": "metrics"},
                ],
            },
        },
        _network(deployment),
    ]


def _deployment(deployment: Deployment) -> Object:
    name = name_of(deployment)
    words: list[Yaml] = ["--pool-name", deployment.name, "--pool-namespace", namespace_of(deployment)]
    words += ["--pool-group", "inference.networking.k8s.io", "--config-file", f"/config/{_FILE}", "--zap-encoder", "json"]
    words += [
        "--tracing=false",
        *([] if deployment.idle_s is None else [Noted("--disable-endpoint-subset-filter=true", _SUBSETS)]),
        Noted("--metrics-endpoint-auth=false", "Counts, and no text of requests; the policy below says who reads."),
    ]
    check: Object = {"grpc": {"port": HEALTH, "service": "inference-extension"}}
    container: Object = {
        "name": "epp",
        "image": IMAGE,
        "args": words,
        "env": [
            {"name": "NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        ],
        "ports": [
            {"name": "picks", "containerPort": PICKS},
            {"name": "health", "containerPort": HEALTH},
            {"name": "metrics", "containerPort": METRICS},
        ],
        "readinessProbe": check | {"periodSeconds": 2},
        "livenessProbe": check | {"initialDelaySeconds": 5, "periodSeconds": 10},
        "resources": {
            "requests": Noted(
                {"cpu": "1", "memory": "2Gi"}, "The project's chart asks for 4 and 8Gi, for thousands of requests a second."
            ),
            "limits": {"memory": "8Gi"},
        },
        "securityContext": {
            "readOnlyRootFilesystem": True,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "config", "mountPath": "/config", "readOnly": True}],
    }
    spec: Object = {
        "serviceAccountName": name,
        "automountServiceAccountToken": Noted(True, "It watches the pool and its pods."),
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "terminationGracePeriodSeconds": Noted(grace_seconds(deployment), "As a replica: answers that it passes on end first."),
        "containers": [container],
        "volumes": [{"name": "config", "configMap": {"name": name}}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": meta(deployment, name),
        "spec": {
            "replicas": Noted(1, "It remembers which replica saw which prompt: two would each know half."),
            "strategy": {
                "type": Noted("Recreate", "So the old one goes before the new one comes; see failureMode of the pool.")
            },
            "selector": {"matchLabels": labels(deployment)},
            "template": {"metadata": {"labels": labels(deployment)}, "spec": spec},
        },
    }


def _network(deployment: Deployment) -> Object:
    port = deployment.software.port
    ingress = [{"ports": [{"protocol": "TCP", "port": one} for one in (PICKS, HEALTH, METRICS)]}]
    replicas: Object = {"ports": [{"protocol": "TCP", "port": port}]}
    server: Object = {"ports": [{"protocol": "TCP", "port": 443}, {"protocol": "TCP", "port": 6443}]}
    egress: list[Yaml] = [
        Noted({"ports": [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}]}, "Names."),
        Noted(server, "The API server."),
        Noted(replicas, "Metrics of the replicas."),
    ]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": meta(deployment, name_of(deployment)),
        "spec": {
            "podSelector": {"matchLabels": labels(deployment)},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": ingress,
            "egress": egress,
        },
    }
