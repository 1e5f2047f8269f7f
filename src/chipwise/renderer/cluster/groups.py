"""A replica that is larger than one machine: a leader that answers and workers that compute with it, as a LeaderWorkerSet.

The pods of a group start together, find each other by the leader's name, and are replaced together: an engine whose one part
is gone answers nobody. The controller (sigs.k8s.io/lws) sets LWS_LEADER_ADDRESS and LWS_WORKER_INDEX in every container.
"""

from __future__ import annotations

from collections.abc import Mapping

from chipwise.planner.values.split import width
from chipwise.renderer.cluster.pod import RENDEZVOUS_PORT, Object, container, meta, queued, selector, template
from chipwise.renderer.deployment import Deployment
from chipwise.renderer.file import CannotRender
from chipwise.renderer.launch import nodes
from chipwise.renderer.launch.timing import SPARE_S, grace_seconds
from chipwise.renderer.layout import replica_machines, surge, uses_efa
from chipwise.renderer.quoting import kubernetes
from chipwise.renderer.yaml_text import Noted, Yaml

API = "leaderworkerset.x-k8s.io/v1"
KIND = "LeaderWorkerSet"
LEADER = "$(LWS_LEADER_ADDRESS)"  # Kubernetes itself puts the values in: no shell is needed
INDEX = "$(LWS_WORKER_INDEX)"
LEADS: Object = {"leaderworkerset.sigs.k8s.io/worker-index": "0"}  # a label that the controller sets
GROUP_LABEL = "leaderworkerset.sigs.k8s.io/group-index"
SPANNING = ("vllm", "sglang")  # engines that start over several machines without another system
_ANSWERING = ("ports", "startupProbe", "readinessProbe", "livenessProbe", "lifecycle")


def check(deployment: Deployment) -> None:
    """Raises where no group can run it."""
    node, software, chips = deployment.node, deployment.software, width(deployment.split)
    ways = "Use --to ray, or plan for a chip with more memory (--chip CHIP)."
    if node.kind != "gpu":
        raise CannotRender(
            f"One copy of the model takes {chips} {node.chip} of several machines, and serving engines span machines of this"
            " kind only by Ray, if at all.",
            remedy=ways,
        )
    if not software.is_custom and software.engine not in SPANNING:
        engine = software.engine or "the usual program of its kind"
        raise CannotRender(
            f"One copy of the model takes {chips} chips of {replica_machines(deployment)} machines, and {engine} does not span"
            " machines.",
            remedy=f"Give program.engine: {' or '.join(SPANNING)}. {ways}",
        )
    if chips % node.chips:
        raise CannotRender(
            f"One copy of the model takes {chips} chips, which is no whole number of {node.machine} with {node.chips}.",
            remedy=ways,
        )


def leader_worker_set(deployment: Deployment, queue: str | None = None) -> Object:
    """`queue`: of Kueue, which admits a group at a time."""
    check(deployment)
    scaling = deployment.scaling
    assert scaling is not None
    size = replica_machines(deployment)
    spare = surge(deployment) > 0
    strategy: Object = {"maxSurge": 1, "maxUnavailable": 0} if spare else {"maxSurge": 0, "maxUnavailable": 1}
    reason = (
        f"One more group of {size} machines for the time of a rollout: there is no second replica to lean on."
        if spare
        else "In place, group by group: a rollout needs no machine that is not there."
    )
    spec: Object = {
        "startupPolicy": Noted(
            "LeaderCreated", "Workers start at once: the leader is ready only when all of them have joined."
        ),
        "rolloutStrategy": {"type": "RollingUpdate", "rollingUpdateConfiguration": Noted(strategy, reason)},
        "networkConfig": {
            "subdomainPolicy": Noted("UniquePerReplica", "Names of pods by group: the name of the set is that of its Service.")
        },
        "leaderWorkerTemplate": {
            "size": Noted(size, f"Pods of one replica, each on a machine of its own: {_chips(deployment)}."),
            "restartPolicy": Noted("RecreateGroupOnPodRestart", "A group that lost one of its parts starts again as a whole."),
            "leaderTemplate": _pod(deployment, "0", queue is not None),
            "workerTemplate": _pod(deployment, INDEX, queue is not None),
        },
    }
    if scaling.minimum == scaling.maximum:
        spec = {"replicas": scaling.minimum} | spec
    metadata = meta(deployment) if queue is None else queued(meta(deployment), queue, deployment)
    needs = "Needs the LeaderWorkerSet controller (sigs.k8s.io/lws), 0.9 or newer."
    return {"apiVersion": API, "kind": Noted(KIND, needs), "metadata": metadata, "spec": spec}


def _chips(deployment: Deployment) -> str:
    return f"{width(deployment.split)} chips, {deployment.node.chips} on each"


def _pod(deployment: Deployment, rank: str, queued: bool) -> Object:
    leads = rank == "0"
    command = [*map(kubernetes, deployment.software.command), *_meeting(deployment, rank)]
    main = container(deployment, Noted(command, _role_reason(deployment, leads)))
    if not leads:
        main = {key: value for key, value in main.items() if key not in _ANSWERING}
        stays = Noted(grace_seconds(deployment) - SPARE_S // 3, "It stays while the leader ends what it began.")
        main["lifecycle"] = {"preStop": {"sleep": {"seconds": stays}}}
    if deployment.software.is_custom:
        env = main["env"]
        assert isinstance(env, list)
        main["env"] = [*env, *_variables(deployment, rank)]
    if uses_efa(deployment) and isinstance(main["image"], str) and not deployment.software.built:
        main["image"] = Noted(main["image"], _EFA)
    pod = template(deployment, command, {"containers": [main]}, queued=queued)
    spec = pod["spec"]
    assert isinstance(spec, dict)
    affinity = spec.get("affinity", {})
    assert isinstance(affinity, dict)
    return pod | {"spec": spec | {"affinity": affinity | {"podAffinity": _one_zone(deployment)}}}


_EFA = (
    "Needs NCCL's plugin for EFA (aws-ofi-nccl), which this image is not known to have: without it NCCL says NET/Socket\n"
    "in its log and is slower than planned. An image of your own with it goes into program.image."
)


def _meeting(deployment: Deployment, rank: str) -> list[Yaml]:
    """Words by which an engine finds its other parts; a command of the user's own reads settings instead."""
    size, engine = str(replica_machines(deployment)), deployment.software.engine
    if deployment.software.is_custom:
        return []
    if engine == "sglang":
        return ["--dist-init-addr", f"{LEADER}:{RENDEZVOUS_PORT}", "--nnodes", size, "--node-rank", rank]
    words: list[Yaml] = ["--nnodes", size, "--node-rank", rank, "--master-addr", LEADER]
    return words if rank == "0" else [*words, "--headless"]


def _role_reason(deployment: Deployment, leads: bool) -> str:
    if deployment.software.is_custom:
        return nodes.REASON
    return "The leader answers requests." if leads else "A worker computes with the leader and answers nobody."


def _variables(deployment: Deployment, rank: str) -> list[Yaml]:
    pairs = nodes.variables(deployment, rank, LEADER)
    return [{"name": name, "value": value} for name, value in pairs.items()]


def _one_zone(deployment: Deployment) -> Yaml:
    rule: Object = {
        "labelSelector": {"matchLabels": selector(deployment)},
        "matchLabelKeys": Noted([GROUP_LABEL], "Those of its own group; groups may be in different zones."),
        "topologyKey": "topology.kubernetes.io/zone",
    }
    reason = "A group in one zone: between zones, traffic is slow and paid for."
    return Noted({"requiredDuringSchedulingIgnoredDuringExecution": [rule]}, reason)


def leaders(deployment: Deployment) -> Mapping[str, Yaml]:
    """Labels of the pods that answer."""
    return selector(deployment) | LEADS
