"""Why an attempt waits, in words: by Kueue's workload and queue, by what the scheduler says, by what the kubelet pulls.

Pure: it reads the picture. Where several things are true, the one that somebody can do something about is told.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from chipwise.renderer.cluster.pod import QUEUE_LABEL

from .kinds import CLUSTER_QUEUE, LOCAL_QUEUE, WORKLOAD, Object
from .picture import Picture, condition

NO_IMAGE = frozenset({"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError"})
NO_START = frozenset({"CreateContainerConfigError", "CreateContainerError", "RunContainerError"})
SAID_AGAIN_S, SAID_AGAIN_SHARE = 5.0, 0.1  # at the soonest, and of the time that it has waited
UNBOUND = "unbound immediate PersistentVolumeClaims"  # as the scheduler says that a claim has no volume
_NUMBERS = re.compile(r"[0-9]+")
_MISSING = re.compile(r"(?:insufficient (?:unused )?(?:quota|capacity)|quota) for (\S+)")
_UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


@dataclass(frozen=True, slots=True)
class WaitMessage:
    """What was last said of an attempt that waits."""

    text: str
    first: float  # when it was first said, whatever the numbers in it
    moment: float


def next_message(last: WaitMessage | None, text: str, now: float) -> WaitMessage:
    """The same words with other numbers are said again ever more rarely. Each time is an event in the record, and when one of a
    thousand is let in, the numbers change for all that wait."""
    if last is None or _NUMBERS.sub("0", text) != _NUMBERS.sub("0", last.text):
        return WaitMessage(text, now, now)
    if text == last.text or now - last.moment < max(SAID_AGAIN_S, SAID_AGAIN_SHARE * (now - last.first)):
        return last
    return WaitMessage(text, last.first, now)


def why_waiting(picture: Picture, main: Object, pods: Sequence[Object]) -> str:
    if (main.get("spec") or {}).get("suspend"):
        return suspended(picture, main)
    reasons = [text for pod in pods if (text := of_pod(picture, pod))]
    if reasons:
        first = max(set(reasons), key=lambda text: (reasons.count(text), text))
        rest = len(pods) - reasons.count(first)
        return first if not rest else f"{first} ({reasons.count(first)} of {len(pods)} pods)"
    event = picture.event("Job", main["metadata"]["name"])
    if not pods and event is not None and event["reason"] == "FailedCreate":
        return f"its pods are refused: {short(event['message'])}"
    return "its pods are being created" if not pods else "starting"


def of_pod(picture: Picture, pod: Object) -> str:
    """Empty where it runs, or has run."""
    status = pod.get("status") or {}
    if status.get("phase") not in (None, "", "Pending"):
        return ""
    event = picture.event("Pod", pod["metadata"]["name"])
    if not (pod.get("spec") or {}).get("nodeName"):
        scheduled = condition(pod, "PodScheduled", "False")
        if event is not None and event["reason"] in ("Nominated", "TriggeredScaleUp"):
            return f"a machine is being provisioned: {short(event['message'])}"
        if scheduled is None:
            return "waiting for the scheduler"
        if scheduled.get("reason") == "SchedulingGated":
            queue = str((pod["metadata"].get("labels") or {}).get(QUEUE_LABEL, ""))
            return _in_queue(picture, queue, pod["metadata"]["uid"]) if queue else "held back by a scheduling gate"
        message = str(scheduled.get("message", ""))
        if UNBOUND in message:
            return "its volume does not exist: nothing provides the claim (kubectl get pvc, storageclass)"
        return f"no node fits: {_fits(message)}"
    for container in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        waiting = (container.get("state") or {}).get("waiting") or {}
        if waiting.get("reason") in NO_IMAGE:
            return no_image(container, waiting, event)
        if waiting.get("reason") in NO_START:
            return f"its container cannot be created: {waiting['reason']}: {short(waiting.get('message', ''))}"
        if waiting.get("reason") == "CrashLoopBackOff":
            return f"it keeps crashing: {short(waiting.get('message', ''))}"
    if event is not None and event["reason"] == "Pulling":
        return f"pulling its image: {short(event['message'])}"
    if event is not None and event["reason"] in ("FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox"):
        return f"{event['reason']}: {short(event['message'])}"
    return "its containers are being created"


def troubled(picture: Picture, pod: Object) -> str:
    """Why one of several replicas does not serve, where waiting alone may not mend it; empty where it is only starting."""
    if reason := ends_again(pod):
        return reason
    states = [(one.get("state") or {}).get("waiting") or {} for one in (pod.get("status") or {}).get("containerStatuses") or ()]
    stuck = any(one.get("reason") in NO_IMAGE | NO_START for one in states)
    nowhere = not (pod.get("spec") or {}).get("nodeName") and condition(pod, "PodScheduled", "False") is not None
    return of_pod(picture, pod) if stuck or nowhere else ""


def ends_again(pod: Object) -> str:
    """A container that ends is started again in its pod, which says of itself that it runs."""
    for container in (pod.get("status") or {}).get("containerStatuses") or ():
        last, times = (container.get("lastState") or {}).get("terminated") or {}, int(container.get("restartCount") or 0)
        if times and last and not container.get("ready"):
            reason = (
                "it used more memory than its limit" if last.get("reason") == "OOMKilled" else f"code {last.get('exitCode')}"
            )
            return f"it keeps crashing: started {times + 1} times, last ended with {reason}"
    return ""


def commonest_reason(reasons: Sequence[str]) -> str:
    """What is said of most of them; empty where nothing is said of any."""
    texts = [text for text in reasons if text]
    return max(set(texts), key=lambda text: (texts.count(text), text)) if texts else ""


def no_image(container: Mapping[str, Any], waiting: Mapping[str, Any], event: Object | None) -> str:
    message = str(waiting.get("message", ""))
    if event is not None and event["reason"] == "Failed" and len(str(event["message"])) > len(message):
        message = event["message"]
    return f"its image {container.get('image', '')} cannot be pulled: {waiting['reason']}: {short(message)}"


def stuck_image(pod: Object) -> bool:
    """Whether its image is the trouble, which no waiting mends unless somebody pushes it."""
    status = pod.get("status") or {}
    states = [(one.get("state") or {}).get("waiting") or {} for one in status.get("containerStatuses") or ()]
    return any(one.get("reason") in NO_IMAGE for one in states)


def suspended(picture: Picture, main: Object) -> str:
    queue = (main["metadata"].get("labels") or {}).get(QUEUE_LABEL)
    if not queue:
        return "suspended by a person or by its schedule"
    return _in_queue(picture, queue, main["metadata"]["uid"])


def _in_queue(picture: Picture, queue: str, uid: str) -> str:
    """Of a Job, or of a pod of a service, which Kueue lets in one by one."""
    workload = picture.workload(uid)
    if workload is None:
        return f"waiting for Kueue to take it into queue {queue}"
    if condition(workload, "Admitted"):
        return f"admitted by queue {queue}; about to start"
    if (eviction := condition(workload, "Evicted")) is not None and condition(workload, "QuotaReserved") is None:
        return f"put back into queue {queue}: {short(eviction.get('message', ''))}"
    if condition(workload, "QuotaReserved"):
        return f"queue {queue} has room; waiting for its admission checks"
    reservation = condition(workload, "QuotaReserved", "False") or {}
    message = str(reservation.get("message", ""))
    used = _used(picture, queue, message)
    ahead = _ahead(picture, workload)
    behind = "" if not ahead else f"; {ahead} {'job' if ahead == 1 else 'jobs'} ahead"
    if used:
        return f"waiting: {used}{behind}"
    return f"waiting in queue {queue}{f': {short(message)}' if message else ''}{behind}"


def _used(picture: Picture, queue: str, message: str) -> str:
    """`team-a has 8 of 8 GPUs in use`, where the queue may be read and it is known what is short."""
    local = picture.by_name(LOCAL_QUEUE, queue)
    cluster = picture.by_name(CLUSTER_QUEUE, str(((local or {}).get("spec") or {}).get("clusterQueue", "")))
    if cluster is None:
        return ""
    groups = (cluster.get("spec") or {}).get("resourceGroups") or ()
    quota = _summed((flavor for group in groups for flavor in group.get("flavors") or ()), "nominalQuota")
    reserved = _summed((cluster.get("status") or {}).get("flavorsReservation") or (), "total")
    missing = [name.strip(",;.") for name in _MISSING.findall(message)]
    if not message:  # not tried yet, being behind others: then what is all taken
        missing = [name for name, most in quota.items() if reserved.get(name, Decimal(0)) >= most]
    if not missing:
        return ""
    resource = next((name for name in missing if "/" in name), missing[0])  # a device rather than what comes with it
    used, limit = reserved.get(resource, Decimal(0)), quota.get(resource, Decimal(0))
    # More than all of it: no other job has to end for that, and none will help.
    excess = re.search(rf"for {re.escape(resource)} in flavor [^;]*? request \((\S+?)\) > maximum capacity", message)
    beyond = f", and it asks for {excess[1]}" if excess is not None and amount(excess[1]) > limit else ""
    share = f"{quantity_text(used, resource)} of {quantity_text(limit, resource)} {resource_title(resource)}"
    return f"{queue} has {share} in use{beyond}"


def _summed(flavors: Iterable[Mapping[str, Any]], key: str) -> dict[str, Decimal]:
    """Of all flavors, by resource."""
    sums: dict[str, Decimal] = {}
    for flavor in flavors:
        for entry in flavor.get("resources") or ():
            sums[str(entry.get("name"))] = sums.get(str(entry.get("name")), Decimal(0)) + amount(entry.get(key))
    return sums


def resource_title(resource: str, number: Decimal = Decimal(2)) -> str:
    name = "GPU" if resource.endswith(".com/gpu") else "CPU" if resource == "cpu" else ""
    return f"{name}{'' if number == 1 else 's'}" if name else resource


def _ahead(picture: Picture, workload: Object) -> int:
    """Others that wait in the same queue and come before it: by priority, then by age."""
    waiting = picture.once("waiting", lambda: _waiting(picture))
    return bisect_left(waiting.get(str((workload.get("spec") or {}).get("queueName")), []), _order(workload))


def _waiting(picture: Picture) -> dict[str, list[tuple[int, str, str]]]:
    """Of each queue, in the order in which they come."""
    queues: dict[str, list[tuple[int, str, str]]] = {}
    for workload in picture.all(WORKLOAD):
        if condition(workload, "QuotaReserved") is None and condition(workload, "Finished") is None:
            queues.setdefault(str((workload.get("spec") or {}).get("queueName")), []).append(_order(workload))
    return {queue: sorted(orders) for queue, orders in queues.items()}


def _order(workload: Object) -> tuple[int, str, str]:
    """As Kueue sorts them."""
    meta, priority = workload["metadata"], int((workload.get("spec") or {}).get("priority") or 0)
    return (-priority, str(meta.get("creationTimestamp", "")), str(meta.get("uid", "")))


def _fits(message: str) -> str:
    """The scheduler's counts, without what it says about preemption: `of 2 nodes 2 Insufficient nvidia.com/gpu`."""
    text = re.split(r"[.,]? (?:no new claims|preemption:)", message)[0].rstrip(". ")
    return re.sub(r"^0/(\d+) nodes are available: ", lambda found: f"of {found[1]} nodes ", short(text)).replace(
        "of 1 nodes", "of 1 node"
    )


def amount(text: object) -> Decimal:
    """A quantity of the API as a number; 0 where it is none."""
    match = re.fullmatch(r"([0-9.]+)(m|[kMGT]i?|)", str(text))
    if match is None:
        return Decimal(0)
    try:
        number = Decimal(match[1])
    except InvalidOperation:
        return Decimal(0)
    return number / 1000 if match[2] == "m" else number * _UNITS.get(match[2], 1)


def quantity_text(number: Decimal, resource: str) -> str:
    if resource in ("memory", "ephemeral-storage"):
        return f"{float(number) / 2**30:.4g}Gi"
    return f"{number.normalize():f}"


def short(text: object, longest: int = 240) -> str:
    line = " ".join(str(text).split())
    return line if len(line) <= longest else f"{line[: longest - 3]}..."
