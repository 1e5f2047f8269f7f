"""Live streams in a cluster: a pod for each chip, which knows by its number which streams are its own."""

from __future__ import annotations

from chipwise.renderer.cluster.pod import Object, container, meta, queued, selector, template
from chipwise.renderer.deployment import Deployment
from chipwise.renderer.heading import heading
from chipwise.renderer.launch.streams import FOLDER, LIST, PORT, groups, list_reason, stream_list, stream_reason, stream_words
from chipwise.renderer.launch.timing import STEADY_S
from chipwise.renderer.limits import countable
from chipwise.renderer.quoting import kubernetes
from chipwise.renderer.yaml_text import Noted, Yaml, document

FILE = "streams.yaml"
NUMBER = "metadata.labels['apps.kubernetes.io/pod-index']"
GRACE_S = 30
_REASON = """\
A StatefulSet, for its pods have numbers that stay: each finds its streams by them, and no two ever have the same, so that no
stream is sent twice. A Deployment has no numbers, and an Indexed Job ends. One pod for each chip, not for each stream: what
brings machines counts whole chips, and a chip cut into turns needs settings that differ from cluster to cluster."""


def stateful_set(deployment: Deployment, queue: str | None = None) -> Object:
    """`queue`: of Kueue, which holds it back until the quota has room."""
    words = [kubernetes(word) for word in stream_words(deployment)]
    command = Noted(words, "\n".join(stream_reason(deployment)))
    main = container(deployment, command)
    number: Object = {"name": "GROUP", "valueFrom": {"fieldRef": {"fieldPath": NUMBER}}}
    env, mounts = main["env"], main["volumeMounts"]
    assert isinstance(env, list)
    assert isinstance(mounts, list)
    main["env"] = [*env, Noted(number, "Which group of streams is its own, from 0.")]
    main["volumeMounts"] = [*mounts, {"name": "streams", "mountPath": FOLDER, "readOnly": True}]
    extra: Object = {
        "terminationGracePeriodSeconds": Noted(GRACE_S, "Encoders end what they are writing."),
        "topologySpreadConstraints": _spread(deployment),
        "containers": [main],
    }
    pod = template(deployment, command, extra, queued=queue is not None)
    spec = pod["spec"]
    assert isinstance(spec, dict)
    listed: Object = {"name": "streams", "configMap": {"name": config_name(deployment)}}
    pod = pod | {"spec": spec | {"volumes": [*spec["volumes"], listed]}}
    metadata = meta(deployment) if queue is None else queued(meta(deployment), queue, deployment)
    return {
        "apiVersion": "apps/v1",
        "kind": Noted("StatefulSet", _REASON),
        "metadata": metadata,
        "spec": {
            "replicas": countable(groups(deployment)),
            "serviceName": Noted(deployment.name, "Older clusters ask for it; nobody calls an encoder, so it names none."),
            "podManagementPolicy": Noted("Parallel", "Groups know nothing of each other: all start at once."),
            "updateStrategy": {"type": "RollingUpdate"},
            "selector": {"matchLabels": selector(deployment)},
            "minReadySeconds": STEADY_S,
            "revisionHistoryLimit": 5,
            "template": pod,
        },
    }


def _spread(deployment: Deployment) -> list[Yaml]:
    """Over zones only: the chip that a pod asks for spreads it over machines."""
    rule: Object = {
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": selector(deployment)},
    }
    return [rule]


def config_name(deployment: Deployment) -> str:
    return f"{deployment.name}-streams"


def stream_file(deployment: Deployment) -> str:
    """The list in a file of its own: it is the user's, and the rest is not."""
    config_map: Object = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": meta(deployment, config_name(deployment)),
        "data": {LIST: Noted(stream_list(deployment), "A changed line holds from the next start of its stream on.")},
    }
    return document(config_map, title=heading(deployment, f"Apply it before workload.yaml. {list_reason(deployment)}"))


def egress() -> Yaml:
    """Where streams come from and go to."""
    return Noted(
        {"ports": [{"protocol": "UDP", "port": PORT}]}, "Sources and packagers of the streams: put the ports of yours."
    )
