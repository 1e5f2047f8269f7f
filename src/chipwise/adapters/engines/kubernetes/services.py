"""Services that live in a cluster by themselves: made, followed, scaled, replaced and removed by the cluster's own objects.

Nothing is written over that is not ours: objects are created, which fails where there is one, and changed only by the uid and
version that were read with our labels on them.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from chipwise.errors import BadInput, NoResult, NotAllowed, NotFound, OutsideFailed, TryLater
from chipwise.serving.cluster import ChangeVerdict, ClusterChange, ClusterSight, Say, progress_words, remedy
from chipwise.serving.service import ServiceVersion
from chipwise.text import duration, plural

from . import trying
from .connection import Connection, Exists, Expired
from .kinds import AUTOSCALER, CLAIM, DEPLOYMENT, EVENT, POD, POOL, Object, ObjectKind
from .served_objects import HOLDERS, KINDS, SHARED, begun_with, changed, own_labels, selector, served_objects, templates
from .served_sight import pool_of, service_sight
from .story import next_message

LOOKS_S = 1.0
TRIES = 10  # at an object that its controller changes at the same time
END_GRACE_S = 1  # the shortest that still waits for the kubelet
SPARE_S = 30.0  # over the grace of pods that end
Own = dict[ObjectKind, list[Object]]


class _Failed(OutsideFailed):
    """What was followed will not be ready."""


@dataclass(frozen=True, slots=True)
class Services:
    connection: Connection
    record: str
    place: str

    @property
    def namespace(self) -> str:
        return self.connection.namespace

    def queue_for(self, team: str, asked: str) -> str:
        return trying.queue_for(self.connection, team, asked)

    # What is there

    def _own(self, name: str) -> Own:
        """All that was made for it, by its labels."""
        labels = selector(own_labels(name, self.record))
        own: Own = {}
        for kind in KINDS:
            try:
                own[kind] = self.connection.list(kind, labels)[0]
            except NotFound:  # this cluster has no such kind
                own[kind] = []
        return own

    def _pods(self, name: str) -> list[Object]:
        return self.connection.list(POD, selector(own_labels(name, self.record)))[0]

    def look(self, name: str) -> ClusterSight:
        own, pods = self._own(name), self._pods(name)
        kind, main = _holder(own)
        events: Sequence[Object] = ()
        with suppress(NotAllowed):  # without them less is said
            events = self.connection.list(EVENT)[0] if any(not _is_ready(pod) for pod in pods) else ()
        pools: Sequence[Object] = ()
        with suppress(NotAllowed, NotFound):
            pools = self.connection.list(POOL)[0]
        return service_sight(kind, main, next(iter(own[AUTOSCALER]), None), pods, events, pool_of(pools, pods))

    # Beforehand

    def check(self, name: str, version: ServiceVersion) -> None:
        """Raises what the cluster would refuse, and makes nothing."""
        own = self._own(name)
        for kind, body in served_objects(name, version, self.namespace, self.record):
            former = _by_name(own[kind], body)
            try:
                if former is None:
                    self.connection.create(kind, body, dry_run=True)
                elif kind is not CLAIM:
                    self.connection.replace(kind, changed(kind, former, body), dry_run=True)
            except Exists:
                if former is None and kind not in SHARED:
                    raise self._taken_name(kind, body) from None

    def _taken_name(self, kind: ObjectKind, body: Object) -> BadInput:
        return BadInput(
            f"Namespace {self.namespace} has a {kind.name} {body['metadata']['name']} that this `chipwise serve` did not make.",
            remedy="It is left as it is; serve under another --name, or in another --namespace.",
        )

    # Doing

    def start(self, name: str, version: ServiceVersion, within_s: float | None, say: Say) -> None:
        within_s = within_s or _starts_s(version)
        for kind, body in begun_with(served_objects(name, version, self.namespace, self.record)):
            try:
                self.connection.create(kind, body)
            except Exists:  # somebody was faster than the look before
                if kind not in SHARED and _by_name(self._own(name)[kind], body) is None:
                    raise self._taken_name(kind, body) from None
        say(f"applied to namespace {self.namespace}; a replica may take {duration(within_s)} with its machine and weights")
        self._follow(name, version.number, within_s, say)

    def scale(self, name: str, version: ServiceVersion, fewest: int, most_replicas: int | None, say: Say) -> None:
        own = self._own(name)
        kind, main = self._must_hold(name, own)
        scaler = next(iter(own[AUTOSCALER]), None)
        if scaler is not None:
            if fewest < 1:
                raise BadInput(
                    f"The autoscaler of {name} keeps one replica at least.", remedy=f"`chipwise serve stop {name}` ends it."
                )
            limits = {"minReplicas": fewest, "maxReplicas": most_replicas or max(fewest, int(scaler["spec"]["maxReplicas"]))}
            self.connection.merge(AUTOSCALER, scaler["metadata"]["name"], _only(scaler, {"spec": limits}))
            say(f"its autoscaler keeps {limits['minReplicas']} to {limits['maxReplicas']} replicas")
        elif most_replicas is not None:
            raise BadInput(
                f"{name} has a fixed number of replicas and no autoscaler.",
                remedy="Give one number; or replicas: {min: 1, max: 4} in the workload, and `chipwise serve rollout`.",
            )
        else:
            path = f"{main['metadata']['name']}/scale"
            self.connection.merge(kind, path, _only(main, {"spec": {"replicas": fewest}}))
        self._follow(name, version.number, _starts_s(version), say)

    def replace(self, name: str, before: ServiceVersion, fresh: ServiceVersion, within_s: float | None, say: Say) -> None:
        """Replica by replica, as its Deployment does it; the version before comes back where the fresh one does not come up."""
        try:
            self._put(name, fresh)
            self._follow(name, fresh.number, within_s or _starts_s(fresh) + _grace_s(fresh), say)
        except _Failed as failure:
            self.undo(name, before, say)
            raise NoResult(f"Version {fresh.number} was taken back: {failure.message}", remedy=failure.remedy) from None
        except KeyboardInterrupt:
            self.undo(name, before, say)
            raise

    def undo(self, name: str, before: ServiceVersion, say: Say) -> None:
        say(f"version {before.number} comes back")
        self._put(name, before)
        try:
            self._follow(name, before.number, _starts_s(before) + _grace_s(before), say)
        except _Failed as failure:  # it was no better, and is back nonetheless
            say(f"version {before.number} is back and not ready: {failure.message}")

    def _put(self, name: str, version: ServiceVersion) -> None:
        """All objects as this version has them, and none besides."""
        objects = served_objects(name, version, self.namespace, self.record)
        own = self._own(name)
        kind, _ = self._must_hold(name, own)
        if not any(kind is other for other, _ in objects):
            raise BadInput(
                f"{name} runs as a {kind.name}, and version {version.number} is something else.",
                remedy=f"Serve it under another --name, and then `chipwise serve stop {name}`.",
            )
        for object_kind, body in objects:
            self._put_one(name, object_kind, body)
        for object_kind in KINDS:
            names = {body["metadata"]["name"] for kind, body in objects if kind is object_kind}
            if object_kind not in SHARED:
                self._delete(object_kind, [item for item in own[object_kind] if item["metadata"]["name"] not in names])

    def _put_one(self, name: str, kind: ObjectKind, body: Object) -> None:
        for _ in range(TRIES):
            former = _by_name(self.connection.list(kind, selector(own_labels(name, self.record)))[0], body)
            try:
                if former is None:
                    self.connection.create(kind, body)
                elif kind is not CLAIM:  # which never changes
                    self.connection.replace(kind, changed(kind, former, body))
                return
            except Exists:
                if former is None:
                    if kind in SHARED:
                        return
                    raise self._taken_name(kind, body) from None
        raise TryLater(f"The {kind.name} of {name} is changed again and again by others.", remedy="Try again.")

    def stop(self, name: str, say: Say, *, now: bool) -> None:
        """What it made and nothing else. The address goes last, so that requests under way are answered."""
        own = self._own(name)
        for kind in (AUTOSCALER, *HOLDERS):
            self._delete(kind, own[kind])
        count = self._until_ended(name, say, now=now)
        for kind in reversed(KINDS):
            if kind not in (AUTOSCALER, *HOLDERS):
                self._delete(kind, own[kind])
        say(f"{name} ended, with {plural(count, 'replica')}" if any(own.values()) else f"nothing of {name} was left there")

    def _delete(self, kind: ObjectKind, items: Sequence[Object]) -> None:
        for item in items:
            self.connection.delete(kind, item["metadata"]["name"], uid=item["metadata"]["uid"])

    def _until_ended(self, name: str, say: Say, *, now: bool) -> int:
        """How many pods there were."""
        pods = self._pods(name)
        count = len(pods)
        grace_s = max((float((pod.get("spec") or {}).get("terminationGracePeriodSeconds") or 0) for pod in pods), default=0.0)
        until = time.monotonic() + (END_GRACE_S if now else grace_s) + SPARE_S
        while pods and time.monotonic() < until:
            for pod in pods if now else ():
                self.connection.delete(POD, pod["metadata"]["name"], uid=pod["metadata"]["uid"], grace_s=END_GRACE_S)
            time.sleep(LOOKS_S / 2)
            pods = self._pods(name)
        if pods:
            say(f"{', '.join(str(pod['metadata']['name']) for pod in pods)} did not end yet; the cluster goes on with it")
        return count

    def _must_hold(self, name: str, own: Own) -> tuple[ObjectKind, Object]:
        kind, main = _holder(own)
        if main is None:
            raise NotFound(
                f"{name} is not in namespace {self.namespace} any more: it was deleted there.",
                remedy=f"`chipwise serve stop {name}` removes the rest.",
            )
        return kind, main

    def _follow(self, name: str, number: int, deadline_s: float, say: Say) -> None:
        change, last_message, silent = ClusterChange(number, deadline_s, time.monotonic()), None, False
        while True:
            now = time.monotonic()
            try:
                sight = self.look(name)
            except (TryLater, Expired) as error:
                if now - change.progressed >= deadline_s:
                    raise TryLater(
                        f"{self.connection.server} did not answer for {duration(now - change.progressed)}: {error}",
                        remedy=f"What was applied stays; `chipwise serve status {name}` looks again.",
                    ) from None
                if not silent:
                    say(f"the cluster does not answer, and is asked again: {error}")
                silent = True
                time.sleep(LOOKS_S)
                continue
            if silent:
                say("the cluster answers again")
            silent, change = False, change.after(sight, now)
            if change.verdict is ChangeVerdict.READY:
                say(progress_words(sight))
                return
            if change.verdict is ChangeVerdict.FAILED:
                raise _Failed(f"{name}: {change.reason}.", remedy=remedy(sight.trouble, self.namespace))
            message = next_message(last_message, progress_words(sight), now)
            if last_message is None or message.text != last_message.text:
                say(message.text)
            last_message = message
            time.sleep(LOOKS_S)


def _holder(own: Own) -> tuple[ObjectKind, Object | None]:
    return next(((kind, own[kind][0]) for kind in HOLDERS if own[kind]), (DEPLOYMENT, None))


def _by_name(items: Sequence[Object], body: Object) -> Object | None:
    return next((item for item in items if item["metadata"]["name"] == body["metadata"]["name"]), None)


def _only(item: Object, change: Mapping[str, Any]) -> dict[str, Any]:
    """A change of this object, and not of another of its name."""
    return {"metadata": {"uid": item["metadata"]["uid"]}, **change}


def _is_ready(pod: Object) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(entry.get("type") == "Ready" and entry.get("status") == "True" for entry in conditions)


def _starts_s(version: ServiceVersion) -> float:
    assert version.in_cluster is not None
    return version.in_cluster.starts_s


def _grace_s(version: ServiceVersion) -> float:
    """In which a replica of it ends, where another comes in its place only then."""
    assert version.in_cluster is not None
    pods = [
        template["spec"]
        for item in version.in_cluster.objects
        for kind in HOLDERS
        if item.get("kind") == kind.name
        for template in templates(kind, item)
    ]
    return max((float(pod.get("terminationGracePeriodSeconds") or 30) for pod in pods), default=0.0)
