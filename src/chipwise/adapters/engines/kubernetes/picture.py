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

from . import hand_off
from .kinds import EVENT, MINE, NODE, POD, WORKLOAD, Kind, Object
from .telling import Told, told_by

ATTEMPT = "chipwise.dev/attempt"
T = TypeVar("T")
Key = tuple[str, int]
OVER = ("Succeeded", "Failed")  # phases of a pod of which nothing runs any more
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
class Gone:
    """How a pod that is no longer there had ended, as far as it was seen."""

    name: str
    index: str
    code: int | None
    lost: str = ""  # why, where its machine took it along
    removed: bool = False  # it ended because somebody deleted it: its Job, when another pod had failed
    since: float | None = None
    until: float | None = None
    told: Told | None = None  # how far it was, where its program says so
    lacks: str = ""  # of what it was to leave behind


@dataclass(slots=True)
class Picture:
    lock: threading.RLock = field(default_factory=threading.RLock)
    _objects: dict[Kind, dict[str, Object]] = field(default_factory=dict)  # by uid
    _names: dict[Kind, dict[str, str]] = field(default_factory=dict)
    _pods: dict[Key, dict[str, Object]] = field(default_factory=dict)
    _workloads: dict[str, Object] = field(default_factory=dict)  # by the uid of their Job
    _events: OrderedDict[tuple[str, str], Object] = field(default_factory=OrderedDict)
    _ends: OrderedDict[Key, dict[str, Gone]] = field(default_factory=OrderedDict)
    _deleted: OrderedDict[str, None] = field(default_factory=OrderedDict)
    changes: int = 0
    _found: dict[str, Any] = field(default_factory=dict)
    _found_at: int = -1

    # Reading, while `reading` is held

    @contextmanager
    def reading(self) -> Iterator[None]:
        with self.lock:
            yield

    def named(self, kind: Kind, name: str) -> Object | None:
        uid = self._names.get(kind, {}).get(name)
        return None if uid is None else self._objects[kind].get(uid)

    def all(self, kind: Kind) -> Iterable[Object]:
        return self._objects.get(kind, {}).values()

    def pods(self, key: Key) -> list[Object]:
        return list(self._pods.get(key, {}).values())

    def attempts_with_pods(self) -> Iterable[Key]:
        return [key for key, pods in self._pods.items() if pods]

    def ends(self, key: Key) -> list[Gone]:
        return list(self._ends.get(key, {}).values())

    def workload(self, job_uid: str) -> Object | None:
        return self._workloads.get(job_uid)

    def event(self, kind: str, name: str) -> Object | None:
        return self._events.get((kind, name))

    def once(self, name: str, find: Callable[[], T]) -> T:
        """What is found by going through all of it: once, however many ask, until something changes."""
        if self._found_at != self.changes:
            self._found, self._found_at = {}, self.changes
        if name not in self._found:
            self._found[name] = find()
        found: T = self._found[name]
        return found

    # Writing

    def listed(self, kind: Kind, objects: Iterable[Object]) -> None:
        """All there is: what is not among them is gone."""
        with self.lock:
            there = {_uid(one): one for one in objects}
            for uid, old in list(self._objects.get(kind, {}).items()):
                if uid not in there:
                    self.gone(kind, old)
            for one in there.values():
                self.put(kind, one)

    def put(self, kind: Kind, one: Object) -> None:
        with self.lock:
            uid = _uid(one)
            if uid in self._deleted:
                return
            self.changes += 1
            if kind is EVENT:
                self._put_event(one)
                return
            former = self._objects.get(kind, {}).get(uid)
            if former is not None and _version(one) < _version(former):
                return  # the answer to a request of ours, overtaken by what the watch has told since
            kept = cut(kind, one)
            self._objects.setdefault(kind, {})[uid] = kept
            self._names.setdefault(kind, {})[kept["metadata"]["name"]] = uid
            if kind is POD and (key := key_of(kept)) is not None:
                self._pods.setdefault(key, {})[uid] = kept
            elif kind is WORKLOAD:
                for owner in kept["metadata"].get("ownerReferences") or ():
                    self._workloads[owner["uid"]] = kept

    def gone(self, kind: Kind, one: Object) -> None:
        with self.lock:
            self.changes += 1
            if kind is EVENT:  # what it said stays true until something else is said
                return
            uid = _uid(one)
            self._objects.get(kind, {}).pop(uid, None)
            names = self._names.get(kind, {})
            if names.get(one["metadata"]["name"]) == uid:
                del names[one["metadata"]["name"]]
            _remember(self._deleted, uid, None)
            if kind is POD and (key := key_of(one)) is not None:
                self._pods.get(key, {}).pop(uid, None)
                if not self._pods.get(key):
                    self._pods.pop(key, None)
                ends = self._ends.get(key) or {}
                ends[uid] = ended(one)
                _remember(self._ends, key, ends)
            elif kind is WORKLOAD:
                for owner in one["metadata"].get("ownerReferences") or ():
                    if _uid(self._workloads.get(owner["uid"]) or {"metadata": {}}) == uid:
                        del self._workloads[owner["uid"]]

    def forget(self, key: Key) -> None:
        """An attempt that is over and cleared."""
        with self.lock:
            self._ends.pop(key, None)

    def _put_event(self, one: Object) -> None:
        if one.get("reason") not in TELLING:
            return
        about = one.get("involvedObject") or {}
        key = (str(about.get("kind")), str(about.get("name")))
        kept = {"reason": one.get("reason"), "message": str(one.get("message", ""))[:600], "at": _event_time(one)}
        former = self._events.get(key)
        if former is None or former["at"] <= kept["at"]:
            self._events[key] = kept
            self._events.move_to_end(key)
        while len(self._events) > EVENTS_KEPT:
            self._events.popitem(last=False)


def key_of(one: Object) -> Key | None:
    labels = one["metadata"].get("labels") or {}
    number = str(labels.get(ATTEMPT, ""))
    return (str(labels[MINE]), int(number)) if MINE in labels and number.isascii() and number.isdigit() else None


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


def condition(one: Object | None, kind: str, status: str = "True") -> Mapping[str, Any] | None:
    for found in ((one or {}).get("status") or {}).get("conditions") or ():
        if found.get("type") == kind and found.get("status") == status:
            return dict(found)
    return None


def terminated(pod: Object) -> list[Mapping[str, Any]]:
    """Of its containers that ended, the first that failed first."""
    states = [one.get("state") or {} for one in (pod.get("status") or {}).get("containerStatuses") or ()]
    found = [dict(state["terminated"]) for state in states if state.get("terminated")]
    return sorted(found, key=lambda one: (one.get("exitCode") == 0, str(one.get("finishedAt", ""))))


def lost_words(pod: Object) -> str:
    """Why its machine took it along; empty where it did not."""
    status = pod.get("status") or {}
    if (found := condition(pod, "DisruptionTarget")) is not None:
        return f"{pod['metadata']['name']}: {found.get('message') or found.get('reason') or 'its machine is taken away'}"
    if status.get("phase") == "Failed" and status.get("reason") in (
        "Evicted",
        "NodeLost",
        "NodeShutdown",
        "Shutdown",
        "Preempting",
    ):
        return f"{pod['metadata']['name']}: {status.get('message') or status['reason']}"
    return ""


def ended(pod: Object) -> Gone:
    done = terminated(pod)
    until = max((at for one in done if (at := seconds(one.get("finishedAt"))) is not None), default=None)
    key, code = key_of(pod), code_of(done)
    return Gone(
        pod["metadata"]["name"],
        index_of(pod),
        code,
        lost_words(pod),
        _removed(pod, until),
        started(pod),
        until,
        told_by(pod, key[1]) if key is not None else None,
        hand_off.missing(code, done[0].get("message")) if done else "",
    )


def _removed(pod: Object, until: float | None) -> bool:
    """Whether it was deleted before it ended. What says when it must be gone is as much later as its grace."""
    by = seconds(pod["metadata"].get("deletionTimestamp"))
    return by is not None and until is not None and until >= by - float(pod["metadata"].get("deletionGracePeriodSeconds") or 0)


def code_of(done: list[Mapping[str, Any]]) -> int | None:
    """A program that could not be started has no code of its own; 127 is what a shell says then."""
    if not done:
        return None
    if done[0].get("reason") in ("StartError", "ContainerCannotRun") and done[0].get("exitCode") in (126, 127, 128):
        return 127
    code = done[0].get("exitCode")
    return code if isinstance(code, int) else None


def started(pod: Object) -> float | None:
    """When the first of its containers began."""
    found: list[float | None] = []
    for one in (pod.get("status") or {}).get("containerStatuses") or ():
        for state in (one.get("state") or {}, one.get("lastState") or {}):
            found += [seconds((state.get(how) or {}).get("startedAt")) for how in ("running", "terminated")]
    return min((at for at in found if at is not None), default=None)


def cut(kind: Kind, one: Object) -> Object:
    """The same without what nobody reads."""
    meta = {key: value for key, value in one["metadata"].items() if key not in ("managedFields", "selfLink")}
    if kind is NODE:
        status = {"conditions": [c for c in (one.get("status") or {}).get("conditions") or () if c.get("type") == "Ready"]}
        meta.pop("annotations", None)
        return {"metadata": meta, "spec": dict(one.get("spec") or {}), "status": status}
    if kind is POD:
        spec = {"nodeName": (one.get("spec") or {}).get("nodeName", "")}
        return {"metadata": meta, "spec": spec, "status": one.get("status") or {}}
    spec = {key: value for key, value in (one.get("spec") or {}).items() if key not in ("template", "podSets", "selector")}
    kept = {"metadata": meta, "spec": spec, "status": one.get("status") or {}}
    return kept | {"data": one["data"]} if "data" in one else kept


def _uid(one: Object) -> str:
    return str(one["metadata"].get("uid", ""))


def _version(one: Object) -> int:
    """Of one object they are numbers that grow; 0 where a server has others, and then whatever comes last is taken."""
    text = str(one["metadata"].get("resourceVersion", ""))
    return int(text) if text.isascii() and text.isdigit() else 0


def _event_time(one: Object) -> str:
    series = one.get("series") or {}
    told = (
        series.get("lastObservedTime"),
        one.get("lastTimestamp"),
        one.get("eventTime"),
        one["metadata"].get("creationTimestamp"),
    )
    return str(next((at for at in told if at), ""))


def _remember(kept: OrderedDict[Any, Any], key: Any, value: Any) -> None:
    kept[key] = value
    kept.move_to_end(key)
    while len(kept) > ENDS_KEPT:
        kept.popitem(last=False)
