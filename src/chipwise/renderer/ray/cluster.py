"""A Ray cluster of a plan, as KubeRay takes it: a head that only directs, and workers on the plan's machines."""

from __future__ import annotations

from dataclasses import replace

from chipwise.renderer.cluster import guards
from chipwise.renderer.cluster.accelerators import capacity_labels, pod_chips, resource_of
from chipwise.renderer.cluster.pod import Object, labels, priority_of, resources, selector, template
from chipwise.renderer.deployment import Deployment, Form
from chipwise.renderer.layout import pods
from chipwise.renderer.yaml_text import Noted, Yaml, plain

HEAD_PORT, DASHBOARD, CLIENT, SERVE = 6379, 8265, 10001, 8000
RAY_USER = 1000  # `ray` in the images of the Ray project
IDLE_S = 300
HEAD_MEMORY = "8Gi"
WORKER = {"ray.io/node-type": "worker"}  # KubeRay sets it


def image_of(deployment: Deployment) -> Yaml:
    """Ray must be in the image. Text models take the one that has Serve and vLLM with it."""
    software, known = deployment.software, deployment.platforms.get("Images", {})
    if deployment.form is Form.SERVICE and "ray-llm" in known and not software.built:
        return Noted(known["ray-llm"], "Ray with Serve and vLLM, one release for head and workers.")
    if deployment.form is Form.SESSIONS and "ray" in known:
        return Noted(known["ray"], "Clients must use the same release of Ray and of Python.")
    note = "Ray must be in it: `ray[default]` in its requirements, the same release on head and workers."
    if software.built:
        note = f"From the Dockerfile of `chipwise render --to dockerfile`, pushed, under its full name here.\n{note}"
    return Noted(software.image, note)


def version_of(deployment: Deployment) -> str | None:
    """Of the image; None where the image is the user's own."""
    image = plain(image_of(deployment))
    name, _, tag = str(image).partition(":")
    return tag.partition("-")[0] if name.startswith("rayproject/") else None


def cluster(deployment: Deployment, minimum: int, maximum: int, extra: tuple[Yaml, ...] = ()) -> Object:
    """`minimum` and `maximum`: workers. `extra`: files for the head, as pairs of a mount and its volume."""
    fields: Object = {}
    version = version_of(deployment)
    if version is not None:
        fields["rayVersion"] = version
    if minimum != maximum:
        fields["enableInTreeAutoscaling"] = Noted(True, "Workers come and go with what the program asks for.")
        idle = int(deployment.idle_s or IDLE_S)
        reason = (
            "As the workload says." if deployment.idle_s else "A machine takes minutes to come: do not let it go for a lull."
        )
        fields["autoscalerOptions"] = {
            "idleTimeoutSeconds": Noted(idle, reason),
            "upscalingMode": Noted("Default", "At most doubles at a time."),
            "resources": {"requests": {"cpu": "500m", "memory": "512Mi"}, "limits": {"memory": "1Gi"}},
        }
    fields["headGroupSpec"] = _head(deployment, minimum != maximum, extra)
    fields["workerGroupSpecs"] = [_workers(deployment, minimum, maximum)]
    return fields


def _head(deployment: Deployment, scales: bool, extra: tuple[Yaml, ...]) -> Object:
    terms = _steady_nodes(deployment) if deployment.spot else []
    mounts: list[Yaml] = [{"name": "tmp", "mountPath": "/tmp"}, {"name": "shm", "mountPath": "/dev/shm"}]
    volumes: list[Yaml] = [
        {"name": "tmp", "emptyDir": {"sizeLimit": "20Gi"}},
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "2Gi"}},
    ]
    if extra:
        mounts.append(extra[0])
        volumes.append(extra[1])
    container: Object = {
        "name": "ray-head",
        "image": image_of(deployment),
        "ports": [
            {"name": "gcs-server", "containerPort": HEAD_PORT},
            {"name": "dashboard", "containerPort": DASHBOARD},
            {"name": "client", "containerPort": CLIENT},
        ]
        + ([{"name": "serve", "containerPort": SERVE}] if deployment.form is Form.SERVICE else []),
        "resources": {"requests": {"cpu": "2", "memory": HEAD_MEMORY}, "limits": {"memory": HEAD_MEMORY}},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": mounts,
    }
    spec: Object = {}
    if not scales:
        spec["automountServiceAccountToken"] = Noted(False, "Nothing here talks to the API server.")
    spec["priorityClassName"] = priority_of(deployment)
    spec["nodeSelector"] = Noted({"kubernetes.io/arch": deployment.node.arch}, "The image is built for this processor.")
    if terms:
        needed = Noted({"nodeSelectorTerms": terms}, "The cluster ends with its head, so the head is not on a spot machine.")
        spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": needed}}
    spec["securityContext"] = _user(deployment)
    spec |= {"containers": [container], "volumes": volumes}
    return {
        "serviceType": Noted("ClusterIP", "The dashboard runs any code that it is given: it is not open to the world."),
        "rayStartParams": {
            "num-cpus": Noted("0", "The head directs; work goes to the workers."),
            "dashboard-host": Noted("0.0.0.0", "For the operator, which asks it for the state of the job."),
        },
        "template": {"metadata": {"labels": labels(deployment)}, "spec": spec},
    }


def _steady_nodes(deployment: Deployment) -> list[Yaml]:
    """Nodes that nobody takes away, by the labels of the provider; nothing where it has none."""
    labels = capacity_labels(replace(deployment, purchase="on-demand"))
    if labels:
        return [{"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]} for key, value in labels]
    return [
        {"matchExpressions": [{"key": key, "operator": "NotIn", "values": [value]}]}
        for key, value in capacity_labels(deployment)
    ]


def _user(deployment: Deployment) -> Yaml:
    user = RAY_USER if version_of(deployment) is not None else 10001
    return {
        "runAsNonRoot": True,
        "runAsUser": user,
        "runAsGroup": user,
        "fsGroup": user,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def _workers(deployment: Deployment, minimum: int, maximum: int) -> Object:
    """The pod of the plan, without its command: KubeRay starts Ray in it."""
    pod_template = template(deployment, ())
    spec = pod_template["spec"]
    assert isinstance(spec, dict)
    [pod] = spec["containers"]
    fields = {key: value for key, value in pod.items() if key in ("env", "volumeMounts", "securityContext")}
    if deployment.form is Form.JOB:  # settings go with the job (runtimeEnvYAML); secrets and those of the machine stay here
        own = job_settings(deployment)
        fields["env"] = [one for one in fields["env"] if not (isinstance(one, dict) and one["name"] in own)]
    fields["securityContext"] = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    if deployment.node.kind == "tpu":
        reason = "KubeRay writes the command, so that it cannot raise the limit of locked memory by itself."
        fields["securityContext"] = {"privileged": Noted(True, reason)}
    container = {"name": "ray-worker", "image": image_of(deployment), "resources": resources(deployment)} | fields
    own = spec["securityContext"]
    assert isinstance(own, dict)
    groups = {key: value for key, value in own.items() if key == "supplementalGroups"}
    user = _user(deployment) if deployment.node.kind != "tpu" else own
    assert isinstance(user, dict)
    spec = spec | {"containers": [container], "securityContext": user | groups}
    spec["automountServiceAccountToken"] = False
    if isinstance(affinity := spec.get("affinity"), dict):  # a slice of TPUs is found by its labels alone
        spec["affinity"] = _among_workers(affinity)
    name, hosts = "chips" if deployment.node.accelerated else "workers", deployment.node.hosts
    return {
        "groupName": name,
        **_sliced(deployment),
        "replicas": minimum // hosts,
        "minReplicas": minimum // hosts,
        "maxReplicas": Noted(maximum // hosts, _maximum_reason(deployment)) if minimum != maximum else maximum // hosts,
        "rayStartParams": _start(deployment),
        "template": {"metadata": pod_template["metadata"], "spec": spec},
    }


def job_settings(deployment: Deployment) -> dict[str, str]:
    """Settings that go with a job. Ray puts values of its own for $X and ${X} in them and has no sign against it, so those stay
    with the pods, which take them as text."""
    return {name: value for name, value in deployment.software.env if "$" not in value}


def _among_workers(affinity: Object) -> Object:
    """Workers go together; the head, which carries the same labels, may stand elsewhere."""
    noted = affinity.get("podAffinity")
    if not isinstance(noted, Noted) or not isinstance(noted.value, dict):
        return affinity
    [(condition, rules)] = noted.value.items()
    terms = [rule | {"labelSelector": {"matchLabels": rule["labelSelector"]["matchLabels"] | WORKER}} for rule in rules]
    return affinity | {"podAffinity": Noted({condition: terms}, noted.comment)}


def _sliced(deployment: Deployment) -> Object:
    hosts = deployment.node.hosts
    if hosts == 1:
        return {}
    return {
        "numOfHosts": Noted(hosts, "Hosts of one TPU slice: they come and go together. Needs KubeRay's TPU webhook of GKE.")
    }


def _maximum_reason(deployment: Deployment) -> str:
    return (
        "The most that the plan ever has at once." if deployment.form is Form.SERVICE else "The plan's machines, and no more."
    )


def _start(deployment: Deployment) -> Object:
    """Ray counts GPUs by themselves; slices and other chips it must be told."""
    node = deployment.node
    resource = resource_of(node)
    if resource is None:
        return {}
    chips, reason = pod_chips(deployment), f"KubeRay does not count {resource} by itself."
    if resource == "aws.amazon.com/neuron":
        cores = chips * (node.cores or 1)
        return {"resources": Noted(f'"{{\\"neuron_cores\\": {cores}}}"', reason)}
    if resource in ("nvidia.com/gpu", "google.com/tpu"):
        return {}
    return {"num-gpus": Noted(str(chips), reason)}


def workers(deployment: Deployment) -> int:
    return pods(deployment)


def quota(deployment: Deployment, workers: int) -> Object:
    """An upgrade of a service stands a second cluster beside the first until it answers: twice of all."""
    scaling = deployment.scaling
    if scaling is None:
        return guards.quota(deployment)
    base = guards.quota(replace(deployment, scaling=replace(scaling, maximum=workers)))
    hard: Object = {"pods": Noted(str(2 * (workers + 1) + 4), "Two clusters with a head each, and some to look with.")}
    resource = resource_of(deployment.node)
    if resource is not None:
        chips = 2 * workers * pod_chips(deployment)
        reason = "Twice what the plan ever uses: KubeRay upgrades by a second cluster (NewCluster). Machines must allow it too."
        hard[f"requests.{resource}"] = Noted(str(chips), reason)
    spec = base["spec"]
    assert isinstance(spec, dict)
    return base | {"spec": {"hard": spec["hard"] | hard}}


def network_policy(deployment: Deployment) -> Object:
    """Among themselves everything: Ray takes ports as it goes. The operator reaches the dashboard, users the service."""
    peers: Object = {"podSelector": {"matchLabels": selector(deployment)}}
    operator: Object = {
        "from": [
            {"namespaceSelector": {}, "podSelector": {"matchLabels": {"app.kubernetes.io/component": "kuberay-operator"}}}
        ],
        "ports": [{"protocol": "TCP", "port": DASHBOARD}]
        + ([{"protocol": "TCP", "port": SERVE}] if _serves(deployment) else []),
    }
    ingress: list[Yaml] = [
        Noted({"from": [peers]}, "Ray's own traffic takes ports as it goes."),
        Noted(operator, "The operator asks for the state of the job."),
    ]
    if _serves(deployment):
        ingress.append({"ports": [{"protocol": "TCP", "port": SERVE}]})
    api = {"ports": [{"protocol": "TCP", "port": 443}, {"protocol": "TCP", "port": 6443}]}
    egress: list[Yaml] = [
        {"to": [peers]},
        Noted({"ports": [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}]}, "Names."),
        Noted(api, "Weights, data and checkpoints; the autoscaler asks the API server for pods."),
        *guards.credentials(deployment),
    ]
    return guards.policy_of(deployment, ingress, egress)


def _serves(deployment: Deployment) -> bool:
    return deployment.form is Form.SERVICE
