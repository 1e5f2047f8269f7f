"""What the cluster holds of ours, kept in memory by watches: whoever looks reads here, and asks the server nothing.

Objects are cut down to what is read, so that thousands of jobs stay small. Keys of attempts are labels, (job, attempt).
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from chipwise.observe.health.nodes import READ as JUDGED

from . import hand_off
from .kinds import EVENT, JOB_LABEL, NODE, POD, WORKLOAD, Object, ObjectKind
from .progress_reports import ProgressReport, latest_report
from .sampled import summary_told

ATTEMPT = "chipwise.dev/attempt"
T = TypeVar("T")
Key = tuple[str, int]
FINAL_PHASES = ("Succeeded", "Failed")  # phases of a pod of which nothing runs any more
ENDS_KEPT = 20_000  # exit codes of pods that are gone, and uids of what was deleted
EVENTS_KEPT = 20_000
TELLING = frozenset(  # events that say why something waits
    {
        "FailedScheduling",
        "Pulling",
        "Failed",
        "BackOff",
        "FailedMount",
        "FailedAttachVolume",
        "FailedCreate",
        "Nominated",
        "TriggeredScaleUp",
        "NotTriggerScaleUp",
        "FailedCreatePodSandBox",
        "Pending",
        "Unschedulable",
    }
)


@dataclass(frozen=True, slots=True)
class PodEnd:
    """How a pod that is no longer there had ended, as far as it was seen."""

    name: str
    index: str
    code: int | None
    lost: str = ""  # why, where its machine took it along
    removed: bool = False  # it ended because somebody deleted it: its Job, when another pod had failed
    since: float | None = None
    until: float | None = None
    report: ProgressReport | None = None  # how far it was, where its program says so
    lacks: str = ""  # of what it was to leave behind
    watched: Mapping[str, Any] = field(default_factory=dict)  # what its devices did, as it told


@dataclass(slots=True)
class Picture:
    lock: threading.RLock = field(default_factory=threading.RLock)
    _objects: dict[ObjectKind, dict[str, Object]] = field(default_factory=dict)  # by uid
    _names: dict[ObjectKind, dict[str, str]] = field(default_factory=dict)
    _pods: dict[Key, dict[str, Object]] = field(default_factory=dict)
    _workloads: dict[str, Object] = field(default_factory=dict)  # by the uid of their Job
    _events: OrderedDict[tuple[str, str], Object] = field(default_factory=OrderedDict)
    _ends: OrderedDict[Key, dict[str, PodEnd]] = field(default_factory=OrderedDict)
    _deleted: OrderedDict[str, None] = field(default_factory=OrderedDict)
    changes: int = 0
    _cache: dict[str, Any] = field(default_factory=dict)
    _cache_version: int = -1

    # Reading, while `reading` is held

    @contextmanager
    def reading(self) -> Iterator[None]:
        with self.lock:
            yield

    def by_name(self, kind: ObjectKind, name: str) -> Object | None:
        uid = self._names.get(kind, {}).get(name)
        return None if uid is None else self._objects[kind].get(uid)

    def all(self, kind: ObjectKind) -> Iterable[Object]:
        return self._objects.get(kind, {}).values()

    def pods(self, key: Key) -> list[Object]:
        return list(self._pods.get(key, {}).values())

    def ends(self, key: Key) -> list[PodEnd]:
        return list(self._ends.get(key, {}).values())

    def workload(self, job_uid: str) -> Object | None:
        return self._workloads.get(job_uid)

    def event(self, kind: str, name: str) -> Object | None:
        return self._events.get((kind, name))

    def once(self, name: str, find: Callable[[], T]) -> T:
        """What is found by going through all of it: once, however many ask, until something changes."""
        if self._cache_version != self.changes:
            self._cache, self._cache_version = {}, self.changes
        if name not in self._cache:
            self._cache[name] = find()
        value: T = self._cache[name]
        return value

    # Writing

    def listed(self, kind: ObjectKind, objects: Iterable[Object]) -> None:
        """All there is: what is not among them is gone."""
        with self.lock:
            present = {_uid(one): one for one in objects}
            for uid, old in list(self._objects.get(kind, {}).items()):
                if uid not in present:
                    self.remove(kind, old)
            for item in present.values():
                self.put(kind, item)

    def put(self, kind: ObjectKind, item: Object) -> None:
        with self.lock:
            uid = _uid(item)
            if uid in self._deleted:
                return
            self.changes += 1
            if kind is EVENT:
                self._put_event(item)
                return
            former = self._objects.get(kind, {}).get(uid)
            if former is not None and _version(item) < _version(former):
                return  # the answer to a request of ours, overtaken by what the watch has told since
            trimmed = cut(kind, item)
            self._objects.setdefault(kind, {})[uid] = trimmed
            self._names.setdefault(kind, {})[trimmed["metadata"]["name"]] = uid
            if kind is POD and (key := key_of(trimmed)) is not None:
                self._pods.setdefault(key, {})[uid] = trimmed
            elif kind is WORKLOAD:
                for owner in trimmed["metadata"].get("ownerReferences") or ():
                    self._workloads[owner["uid"]] = trimmed

    def remove(self, kind: ObjectKind, item: Object) -> None:
        with self.lock:
            self.changes += 1
            if kind is EVENT:  # what it said stays true until something else is said
                return
            uid = _uid(item)
            self._objects.get(kind, {}).pop(uid, None)
            names = self._names.get(kind, {})
            if names.get(item["metadata"]["name"]) == uid:
                del names[item["metadata"]["name"]]
            _remember(self._deleted, uid, None)
            if kind is POD and (key := key_of(item)) is not None:
                self._pods.get(key, {}).pop(uid, None)
                if not self._pods.get(key):
                    self._pods.pop(key, None)
                ends = self._ends.get(key) or {}
                ends[uid] = ended(item)
                _remember(self._ends, key, ends)
            elif kind is WORKLOAD:
                for owner in item["metadata"].get("ownerReferences") or ():
                    if _uid(self._workloads.get(owner["uid"]) or {"metadata": {}}) == uid:
                        del self._workloads[owner["uid"]]

    def forget(self, key: Key) -> None:
        """An attempt that is over and cleared."""
        with self.lock:
            self._ends.pop(key, None)

    def _put_event(self, event: Object) -> None:
        if event.get("reason") not in TELLING:
            return
        about = event.get("involvedObject") or {}
        key = (str(about.get("kind")), str(about.get("name")))
        summary = {"reason": event.get("reason"), "message": str(event.get("message", ""))[:600], "at": _event_time(event)}
        former = self._events.get(key)
        if former is None or former["at"] <= summary["at"]:
            self._events[key] = summary
            self._events.move_to_end(key)
        while len(self._events) > EVENTS_KEPT:
            self._events.popitem(last=False)


def key_of(item: Object) -> Key | None:
    labels = item["metadata"].get("labels") or {}
    number = str(labels.get(ATTEMPT, ""))
    return (str(labels[JOB_LABEL]), int(number)) if JOB_LABEL in labels and number.isascii() and number.isdigit() else None


def index_of(pod: Object) -> str:
    meta = pod["metadata"]
    return str((meta.get("annotations") or {}).get("batch.kubernetes.io/job-completion-index", ""))


def seconds(text: object) -> float | None:
    """A time of the API as seconds since 1970."""
    if not isinstance(text, str) or not text:
        return None
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
    except ValueError:
        return None


def condition(item: Object | None, kind: str, status: str = "True") -> Mapping[str, Any] | None:
    for entry in ((item or {}).get("status") or {}).get("conditions") or ():
        if entry.get("type") == kind and entry.get("status") == status:
            return dict(entry)
    return None


def terminated(pod: Object) -> list[Mapping[str, Any]]:
    """Of its containers that ended, the first that failed first."""
    states = [one.get("state") or {} for one in (pod.get("status") or {}).get("containerStatuses") or ()]
    ends = [dict(state["terminated"]) for state in states if state.get("terminated")]
    return sorted(ends, key=lambda one: (one.get("exitCode") == 0, str(one.get("finishedAt", ""))))


def lost_words(pod: Object) -> str:
    """Why its machine took it along; empty where it did not."""
    status = pod.get("status") or {}
    if (target := condition(pod, "DisruptionTarget")) is not None:
        return f"{pod['metadata']['name']}: {target.get('message') or target.get('reason') or 'its machine is being removed'}"
    if status.get("phase") == "Failed" and status.get("reason") in (
        "Evicted",
        "NodeLost",
        "NodeShutdown",
        "Shutdown",
        "Preempting",
    ):
        return f"{pod['metadata']['name']}: {status.get('message') or status['reason']}"
    return ""


def ended(pod: Object) -> PodEnd:
    ends = terminated(pod)
    until = max((finish for one in ends if (finish := seconds(one.get("finishedAt"))) is not None), default=None)
    key, code = key_of(pod), code_of(ends)
    return PodEnd(
        name=pod["metadata"]["name"],
        index=index_of(pod),
        code=code,
        lost=lost_words(pod),
        removed=_removed(pod, until),
        since=started(pod),
        until=until,
        report=latest_report(pod, key[1]) if key is not None else None,
        lacks=hand_off.missing(code, ends[0].get("message")) if ends else "",
        watched=summary_told(ends[0].get("message")) if ends else {},
    )


def _removed(pod: Object, until: float | None) -> bool:
    """Whether it was deleted before it ended. What says when it must be gone is as much later as its grace."""
    deadline = seconds(pod["metadata"].get("deletionTimestamp"))
    return (
        deadline is not None
        and until is not None
        and until >= deadline - float(pod["metadata"].get("deletionGracePeriodSeconds") or 0)
    )


def code_of(ends: list[Mapping[str, Any]]) -> int | None:
    """A program that could not be started has no code of its own; 127 is what a shell says then."""
    if not ends:
        return None
    if ends[0].get("reason") in ("StartError", "ContainerCannotRun") and ends[0].get("exitCode") in (126, 127, 128):
        return 127
    code = ends[0].get("exitCode")
    return code if isinstance(code, int) else None


def started(pod: Object) -> float | None:
    """When the first of its containers began."""
    times: list[float | None] = []
    for status in (pod.get("status") or {}).get("containerStatuses") or ():
        for state in (status.get("state") or {}, status.get("lastState") or {}):
            times += [seconds((state.get(how) or {}).get("startedAt")) for how in ("running", "terminated")]
    return min((at for at in times if at is not None), default=None)


def cut(kind: ObjectKind, item: Object) -> Object:
    """The same without what nobody reads."""
    meta = {key: value for key, value in item["metadata"].items() if key not in ("managedFields", "selfLink")}
    if kind is NODE:
        node_status = item.get("status") or {}
        conditions = [condition for condition in node_status.get("conditions") or () if condition.get("type") in JUDGED]
        status = {
            "conditions": conditions,
            **{name: node_status[name] for name in ("capacity", "allocatable") if name in node_status},
        }
        meta.pop("annotations", None)
        return {"metadata": meta, "spec": dict(item.get("spec") or {}), "status": status}
    if kind is POD:
        spec = {"nodeName": (item.get("spec") or {}).get("nodeName", "")}
        return {"metadata": meta, "spec": spec, "status": item.get("status") or {}}
    spec = {key: value for key, value in (item.get("spec") or {}).items() if key not in ("template", "podSets", "selector")}
    trimmed = {"metadata": meta, "spec": spec, "status": item.get("status") or {}}
    return trimmed | {"data": item["data"]} if "data" in item else trimmed


def _uid(one: Object) -> str:
    return str(one["metadata"].get("uid", ""))


def _version(item: Object) -> int:
    """Of one object they are numbers that grow; 0 where a server has others, and then whatever comes last is taken."""
    text = str(item["metadata"].get("resourceVersion", ""))
    return int(text) if text.isascii() and text.isdigit() else 0


def _event_time(event: Object) -> str:
    series = event.get("series") or {}
    times = (
        series.get("lastObservedTime"),
        event.get("lastTimestamp"),
        event.get("eventTime"),
        event["metadata"].get("creationTimestamp"),
    )
    return str(next((at for at in times if at), ""))


def _remember(memory: OrderedDict[Any, Any], key: Any, value: Any) -> None:
    memory[key] = value
    memory.move_to_end(key)
    while len(memory) > ENDS_KEPT:
        memory.popitem(last=False)
