"""Jobs on the test cluster, led by the real controller over a real record, or by nobody: what proofs of the engine share."""

from __future__ import annotations

import contextlib
import copy
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chipwise.adapters.engines.kubernetes.engine import Config, Kubernetes, connect
from chipwise.adapters.stores.record import connect as open_record
from chipwise.runner.engine import Sight
from chipwise.runner.events import Placed, Submitted, Waiting, Wished, after, first
from chipwise.runner.job import Job, MachinePlace, Retry, Spec, Wish
from chipwise.runner.loop import Controller
from chipwise.runner.record import Change, Record
from kube import kubelet
from kube.control_plane import Cluster
from kube.process import wait_for

QUICK = Retry(wait_s=0.2)


@dataclass
class Led:
    """A controller that turns by itself, as the process of `chipwise control` does."""

    record: Record
    engine: Kubernetes
    trouble: list[str] = field(default_factory=list)
    _over: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._thread = threading.Thread(target=self._turn, name="controller", daemon=True)
        self._thread.start()

    def _turn(self) -> None:
        controller = Controller(self.record, self.engine, "test:1")
        while not self._over.wait(0.1):
            self.trouble += controller.turn(time.time()).trouble
        controller.resign()

    def submit(self, id: str, **asked: Any) -> None:
        spec = Spec(("program",), id, "kubernetes", self.engine.place, **{"retry": QUICK, **asked})
        self.record.submit([(id, spec)], time.time())

    def job(self, id: str) -> Job:
        found = self.record.job(id)
        assert found is not None
        return found

    def stop(self, id: str) -> None:
        self.record.write([Change(self.job(id), (Wished(Wish.STOP, "test"),))], time.time())

    def until(self, what: str, id: str, wanted: Callable[[Job], bool], seconds: float = 60) -> Job:
        def probe() -> Job | None:
            job = self.job(id)
            assert wanted(job), f"{job.phase} {job.waiting!r} {job.reason!r} {job.attempts} {self.trouble[-3:]}"
            return job

        return wait_for(what, probe, seconds)

    def waited(self, id: str) -> list[str]:
        return [one.event.reason for one in self.record.events(id) if isinstance(one.event, Waiting)]

    def close(self) -> None:
        self._over.set()
        self._thread.join(20)
        self.record.close()
        self.engine.close()


@contextlib.contextmanager
def led_on(kubeconfig: Path, namespace: str, folder: Path, **asked: Any) -> Iterator[Led]:
    config = Config(kubeconfig, namespace=namespace, record="test", stray_after_s=2.0, **asked)
    made = Led(open_record(f"sqlite:///{folder / 'record.db'}"), connect(config))
    try:
        yield made
    finally:
        made.close()


def running(cluster: Cluster, namespace: str, id: str = "") -> list[Mapping[str, Any]]:
    pods = cluster.pods(namespace, f"chipwise.dev/job={id}" if id else "chipwise.dev/job")
    return [one for one in pods if one["status"].get("phase") == "Running" and not one["metadata"].get("deletionTimestamp")]


def worked(made: Sequence[Mapping[str, Any]], seconds: float | None = None) -> tuple[Mapping[str, Any], ...]:
    """Objects as a job holds them, whose pods save and exit when they are asked."""
    objects = copy.deepcopy(list(made))
    for one in objects:
        if one["kind"] == "Job":
            notes = one["spec"]["template"]["metadata"].setdefault("annotations", {})
            notes[kubelet.ON_TERM] = "75"
            if seconds is not None:
                notes[kubelet.RUNS_SECONDS] = str(seconds)
    return tuple(objects)


# Without a controller: what is seen, and what is asked of whom.


def placed(id: str, *objects: Mapping[str, Any], **asked: Any) -> Job:
    job = first(id, Submitted(Spec(("program",), id, "kubernetes", objects=objects, **asked)), time.time())
    return after(job, Placed(1, MachinePlace()), time.time())


def seen(engine: Kubernetes, job: Job) -> Sight:
    return engine.look([job], time.time()).attempts[(job.id, len(job.attempts))]


def until(engine: Kubernetes, job: Job, wanted: Callable[[Sight], bool], seconds: float = 40) -> Sight:
    def probe() -> Sight | None:
        found = seen(engine, job)
        assert wanted(found), found
        return found

    return wait_for("the engine to see it", probe, seconds)


def service_objects(replicas: int = 1) -> tuple[dict[str, Any], ...]:
    """A service with all that the engine applies beside one."""
    labels = {"app.kubernetes.io/name": "web"}
    meta: dict[str, Any] = {"name": "web", "labels": labels}
    budget = {"maxUnavailable": 1, "selector": {"matchLabels": labels}}
    container = {"name": "main", "image": "example.com/none:1", "ports": [{"name": "http", "containerPort": 8000}]}
    pod = {"metadata": {"labels": labels}, "spec": {"serviceAccountName": "web", "containers": [container]}}
    selector = {"matchLabels": labels}
    spec = {"replicas": replicas, "selector": selector, "template": pod}
    port = {"name": "http", "port": 80, "targetPort": "http"}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    return (
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "web"}},
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "web-cache"}, "spec": claim},
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec},
        {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": {"selector": labels, "ports": [port]}},
        {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": meta, "spec": budget},
        {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": meta, "spec": {"podSelector": selector}},
        {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": meta,
            "spec": {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 3},
        },
    )


def counts(cluster: Cluster, namespace: str) -> dict[str, int]:
    """What of an attempt of a service is there."""
    kinds = (
        ("apps/v1", "Deployment"),
        ("v1", "Service"),
        ("policy/v1", "PodDisruptionBudget"),
        ("networking.k8s.io/v1", "NetworkPolicy"),
        ("autoscaling/v2", "HorizontalPodAutoscaler"),
    )
    return {kind: len(cluster.api.list(version, kind, namespace, "chipwise.dev/job")) for version, kind in kinds}
