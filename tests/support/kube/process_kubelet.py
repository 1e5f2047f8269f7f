"""A second stand-in for the kubelet, which really runs what pods say: each container is a process of this machine.

Real are the command, its settings, its signals, its exit code and its last words. There are no images, so commands are those of
this machine; and no mounts, so a setting that begins with a mounted path, or is that of the termination message, gets a path of
this machine instead. A claim is a folder that outlives pods. One container a pod, and no restarts in place: our Jobs ask for
none.
"""

from __future__ import annotations

import datetime
import os
import re
import shutil
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kube.control_plane import ADMIN, Cluster
from kube.kubelet import report
from kube.process import Running

PAUSE = 0.1
MOST = 4096  # bytes of a message that a kubelet reads: the last ones
PROGRAMS = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
_FIELD = re.compile(r"metadata\.(annotations|labels)\['(.+)'\]")
_REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_][\w.-]*)\)")


@dataclass(frozen=True)
class Container:
    process: Running
    message: Path  # what stands for its /dev/termination-log


class ProcessKubelet:
    """Runs the pods of its nodes, until it is stopped."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self._cluster, self._folder = cluster, folder
        self._api = cluster.api_as(ADMIN)
        self._thread = threading.Thread(target=self._tend_all, name="process kubelet", daemon=True)
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._nodes: set[str] = set()
        self._containers: dict[str, Container] = {}  # by the uid of their pods
        self._asked: set[str] = set()
        self.problems: list[str] = []

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join(20)
        for one in self._containers.values():
            one.process.kill()
        self._api.close()

    def node(
        self,
        name: str,
        capacity: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
        taints: Iterable[Mapping[str, str]] = (),
    ) -> str:
        self._cluster.leave_to_another(name)
        with self._lock:
            self._nodes.add(name)
        return self._cluster.fake_node(name, capacity or {}, labels, taints)

    def lose(self, node: str) -> None:
        """Its machine is gone, with all that ran there, and nobody reports anything. What the pod garbage collector does
        about it a minute later is done at once, in its words."""
        with self._lock:
            self._nodes.discard(node)
            pods = self._api.list("v1", "Pod", fields=f"spec.nodeName={node}")
            for pod in pods:
                if pod["metadata"]["uid"] in self._containers:
                    self._containers[pod["metadata"]["uid"]].process.kill()
            self._api.delete("v1", "Node", node)
            for pod in pods:
                self._collect(pod)

    def _collect(self, pod: Mapping[str, Any]) -> None:
        meta, status = pod["metadata"], pod["status"]
        lost = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC"}
        lost |= {"message": "PodGC: node no longer exists", "lastTransitionTime": _now()}
        failed = {"phase": "Failed", "conditions": [*status.get("conditions", ()), lost]}
        self._api.merge("v1", "Pod", meta["name"], {"status": failed}, meta["namespace"], status=True).must()
        self._api.delete("v1", "Pod", meta["name"], meta["namespace"], at_once=True)

    def _tend_all(self) -> None:
        while not self._over.wait(PAUSE):
            try:
                with self._lock:
                    for node in self._nodes:
                        for pod in self._api.list("v1", "Pod", fields=f"spec.nodeName={node}"):
                            self._tend(pod)
            except (OSError, AssertionError) as problem:  # the server may be busy, or the pod gone: the next look tells
                self.problems = [*self.problems[-20:], str(problem)]

    def _tend(self, pod: Mapping[str, Any]) -> None:
        meta, phase = pod["metadata"], pod["status"].get("phase")
        container, goes = self._containers.get(meta["uid"]), meta.get("deletionTimestamp")
        if phase in ("Succeeded", "Failed") or (goes and container is None):
            if goes:
                self._api.delete("v1", "Pod", meta["name"], meta["namespace"], at_once=True)
        elif container is None:
            self._begin(pod)
        elif (code := container.process.code) is not None:
            container.process.kill()  # with its first process a container ends, whatever else runs in it
            report(self._api, pod, "Failed" if code else "Succeeded", code, message=_last_words(container.message)).must()
        elif phase == "Pending":
            report(self._api, pod, "Running").must()
        elif goes and time.time() > datetime.datetime.fromisoformat(goes).timestamp():
            container.process.kill()
        elif goes and meta["uid"] not in self._asked:
            self._asked.add(meta["uid"])
            container.process.ask()

    def _begin(self, pod: Mapping[str, Any]) -> None:
        meta = pod["metadata"]
        [container] = pod["spec"]["containers"]
        here = self._folder / meta["uid"]
        here.mkdir(parents=True)
        message = here / "termination-log"
        message.touch()
        moved = {container["terminationMessagePath"]: str(message), **self._mounts(pod, container, here)}
        settings = dict(_settings(pod, container, moved))
        words = [_expanded(one, settings) for one in (*container.get("command", ()), *container.get("args", ()))]
        program = shutil.which(words[0], path=settings.get("PATH", PROGRAMS))
        if program is None:
            report(self._api, pod, "Failed", 128, "StartError", message=f"exec: {words[0]}: not found").must()
            return
        process = Running(meta["name"], [program, *words[1:]], here / "output", {"PATH": PROGRAMS, **settings})
        self._containers[meta["uid"]] = Container(process, message)
        report(self._api, pod, "Running").must()

    def _mounts(self, pod: Mapping[str, Any], container: Mapping[str, Any], here: Path) -> dict[str, str]:
        claims = {
            one["name"]: one["persistentVolumeClaim"]["claimName"]
            for one in pod["spec"].get("volumes", ())
            if "persistentVolumeClaim" in one
        }
        made = {}
        for mount in container.get("volumeMounts", ()):
            claim = claims.get(mount["name"])
            folder = here / mount["name"] if claim is None else self._folder / "claims" / pod["metadata"]["namespace"] / claim
            folder.mkdir(parents=True, exist_ok=True)
            made[str(mount["mountPath"])] = str(folder)
        return made

    def output(self) -> str:
        """What all of them wrote, for whoever looks for a reason."""
        return "".join(f"{one}:\n{one.read_text(errors='replace')}" for one in sorted(self._folder.glob("*/output")))


def _settings(pod: Mapping[str, Any], container: Mapping[str, Any], moved: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    known: dict[str, str] = {}
    for one in container.get("env", ()):
        field = _FIELD.fullmatch(one.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath", ""))
        if "valueFrom" in one and field is None:
            continue  # of Secrets and the like: not played
        value = pod["metadata"][field[1]][field[2]] if field is not None else _expanded(one.get("value", ""), known)
        known[one["name"]] = value
        yield one["name"], _moved(value, moved)


def _expanded(text: str, known: Mapping[str, str]) -> str:
    """$(NAME) as Kubernetes puts it in, and $$ for a $."""
    return _REFERENCE.sub(lambda found: known.get(found[1], found[0]) if found[1] else "$", text)


def _moved(text: str, moved: Mapping[str, str]) -> str:
    for path, here in moved.items():
        if text == path or text.startswith(f"{path.rstrip('/')}/"):
            return here + text[len(path.rstrip("/")) :]
    return text


def _last_words(path: Path) -> str:
    return path.read_bytes()[-MOST:].decode(errors="replace")


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@contextmanager
def process_kubelet(cluster: Cluster, folder: Path) -> Iterator[ProcessKubelet]:
    made = ProcessKubelet(cluster, folder)
    made.start()
    try:
        yield made
    finally:
        made.stop()
