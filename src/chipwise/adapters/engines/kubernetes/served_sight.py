"""How a service stands, read from what holds its replicas, their pods and what the cluster says of those. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from chipwise.renderer.cluster.groups import LEADS
from chipwise.serving.cluster import Ailment, ClusterSight, ReplicaSight, Trouble

from .kinds import DEPLOYMENT, EVENT, GROUPS, POD, Object, ObjectKind
from .picture import FINAL_PHASES, Picture, condition
from .served_objects import VERSION_LABEL
from .story import NO_START, UNBOUND, ends_again, of_pod, short, stuck_image, why_waiting

EXCEEDED = "ProgressDeadlineExceeded"


def service_sight(
    kind: ObjectKind, main: Object | None, scaler: Object | None, pods: Sequence[Object], events: Sequence[Object], pool: str
) -> ClusterSight:
    """`pods`: all of the service."""
    living = [pod for pod in pods if (pod.get("status") or {}).get("phase") not in FINAL_PHASES]
    answering = living if kind is DEPLOYMENT else [pod for pod in living if LEADS.items() <= _labels(pod).items()]
    replicas = tuple(sorted((_replica(pod) for pod in answering), key=lambda replica: replica.name))
    if main is None:
        return ClusterSight(kind="", replicas=replicas, pool=pool)
    picture = Picture()
    picture.listed(POD, living)
    picture.listed(EVENT, events)
    picture.put(kind, main)
    version = _version(main)
    wanted = int((main.get("spec") or {}).get("replicas", 1))
    updated, available, total = _counts(kind, main, replicas, version)
    limits = (scaler or {}).get("spec") or {}
    if limits:
        wanted = max(wanted, int(limits.get("minReplicas") or 1))
    waiting = [pod for pod in living if condition(pod, "Ready") is None and not pod["metadata"].get("deletionTimestamp")]
    trouble = _trouble(picture, main, waiting)
    is_done = updated >= wanted and available >= wanted
    return ClusterSight(
        kind=kind.name,
        version=version,
        wanted=wanted,
        updated=updated,
        available=available,
        total=total,
        fewest_replicas=limits.get("minReplicas"),
        most_replicas=limits.get("maxReplicas"),
        waits="" if is_done or trouble is not None else _waits(picture, main, waiting),
        trouble=trouble,
        is_stuck=_is_seen(main) and (condition(main, "Progressing", "False") or {}).get("reason") == EXCEEDED,
        pool=pool,
        replicas=replicas,
    )


def _counts(kind: ObjectKind, main: Object, replicas: Sequence[ReplicaSight], version: int | None) -> tuple[int, int, int]:
    """Of the newest version, that serve, and all. A Deployment counts them itself, those alone that are ready for a while; of
    groups pods are counted, for not all of their controllers say which change they have seen."""
    status = main.get("status") or {}
    if kind is GROUPS:
        fresh = [replica for replica in replicas if replica.version == version]
        return len(fresh), sum(replica.ready for replica in replicas), len(replicas)
    updated = int(status.get("updatedReplicas") or 0) if _is_seen(main) else 0
    return updated, int(status.get("availableReplicas") or 0), int(status.get("replicas") or 0)


def _is_seen(main: Object) -> bool:
    """Whether its controller has taken up the last change."""
    seen = int((main.get("status") or {}).get("observedGeneration") or 0)
    return seen >= int(main["metadata"].get("generation") or 0)


def _waits(picture: Picture, main: Object, waiting: Sequence[Object]) -> str:
    starting = [pod for pod in waiting if (pod.get("status") or {}).get("phase") == "Running"]
    if not waiting:
        return "its pods are being created" if not list(picture.all(POD)) else "the cluster has not counted them yet"
    if len(starting) == len(waiting):
        return "started; it does not pass its health check yet"
    return why_waiting(picture, main, [pod for pod in waiting if pod not in starting])


def _trouble(picture: Picture, main: Object, waiting: Sequence[Object]) -> Trouble | None:
    """The worst of its pods of the version that it is to have: what ails those before is about to go."""
    pods = [pod for pod in waiting if _version(pod) == _version(main)]
    troubles = [trouble for pod in pods if (trouble := _of_pod(picture, pod)) is not None]
    order = list(Ailment)
    if troubles:
        return min(troubles, key=lambda trouble: (order.index(trouble.ailment), -trouble.crashes, trouble.pod))
    failure = condition(main, "ReplicaFailure")
    if failure is None:
        return None
    return Trouble(Ailment.REFUSED, f"its pods are refused: {short(failure.get('message', ''))}")


def _of_pod(picture: Picture, pod: Object) -> Trouble | None:
    name = str(pod["metadata"]["name"])
    if stuck_image(pod):
        return Trouble(Ailment.IMAGE, of_pod(picture, pod), name)
    if text := ends_again(pod):
        return Trouble(Ailment.CRASHES, text, name, _restarts(pod))
    states = [(one.get("state") or {}).get("waiting") or {} for one in (pod.get("status") or {}).get("containerStatuses") or ()]
    if any(state.get("reason") in NO_START for state in states):
        return Trouble(Ailment.NOT_CREATED, of_pod(picture, pod), name)
    unscheduled = condition(pod, "PodScheduled", "False")
    if unscheduled is not None and unscheduled.get("reason") != "SchedulingGated":
        lacks_volume = UNBOUND in str(unscheduled.get("message", ""))
        return Trouble(Ailment.NO_VOLUME if lacks_volume else Ailment.NO_NODE, of_pod(picture, pod), name)
    return None


def _replica(pod: Object) -> ReplicaSight:
    status, meta = pod.get("status") or {}, pod["metadata"]
    return ReplicaSight(
        name=str(meta["name"]),
        version=_version(pod),
        phase=str(status.get("phase") or "Pending").lower(),
        ready=condition(pod, "Ready") is not None,
        ending=bool(meta.get("deletionTimestamp")),
        node=str((pod.get("spec") or {}).get("nodeName", "")),
        restarts=_restarts(pod),
    )


def _restarts(pod: Object) -> int:
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return max((int(status.get("restartCount") or 0) for status in statuses), default=0)


def _labels(item: Object) -> dict[str, str]:
    return dict(item["metadata"].get("labels") or {})


def _version(item: Object) -> int | None:
    text = _labels(item).get(VERSION_LABEL, "")
    return int(text) if text.isascii() and text.isdigit() else None


def pool_of(pools: Sequence[Object], pods: Sequence[Object]) -> str:
    """The InferencePool that picks among these pods; empty: none does."""
    for item in pools:
        labels = ((item.get("spec") or {}).get("selector") or {}).get("matchLabels") or {}
        if labels and any(labels.items() <= _labels(pod).items() for pod in pods):
            return str(item["metadata"]["name"])
    return ""
