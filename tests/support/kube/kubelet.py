"""A stand-in for the kubelet: nothing runs, but what the API says about a pod changes as if something did.

Real are the server, the scheduler and every controller; only the last step, a container on a machine, is played here. Another
stand-in, `kube.process_kubelet`, runs the commands of pods as processes, on nodes of its own.
"""

from __future__ import annotations

import datetime
import threading
import time
from collections.abc import Mapping
from typing import Any

from kube.api import Answer, Api

PAUSE = 0.15
# An annotation of a pod's template: it ends with success so many seconds after it was started; without it, it runs on.
RUNS_SECONDS = "chipwise.dev/test-runs-seconds"
EXIT_CODE = "chipwise.dev/test-exit-code"  # with which it ends then, instead of 0
# With which it ends when it is asked to (SIGTERM); "none": it heeds nothing and is ended when its grace is over. Without it, it
# goes without a word.
ON_TERM = "chipwise.dev/test-on-term"
COMES_SECONDS = "chipwise.dev/test-comes-seconds"  # so long it takes from its node to its first answer; without it, no time
NO_IMAGE = "chipwise.dev/test-no-image"  # its image is not there
NOT_THERE = ":is-not-there"  # an image with this tag is not there either, for whoever cannot annotate a pod
NO_START = "chipwise.dev/test-no-start"  # its command is not there


class PlayedKubelet:
    """Starts, ends and removes the pods of every node that is not another's."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._thread = threading.Thread(target=self._tend_all, name="played kubelet", daemon=True)
        self._over = threading.Event()
        self._started: dict[str, float] = {}
        self._seen: dict[str, float] = {}
        self.others: frozenset[str] = frozenset()  # nodes whose pods somebody else tends
        self.problems: list[str] = []

    def start(self) -> None:
        self._thread.start()

    def _tend_all(self) -> None:
        while not self._over.wait(PAUSE):
            try:
                for pod in self._api.list("v1", "Pod", fields="spec.nodeName!="):
                    if pod["spec"]["nodeName"] not in self.others:
                        self._tend(pod)
            except (OSError, AssertionError) as problem:
                # The server may be going down, or busy: as a kubelet does, go on; a test that waits says what it missed.
                self.problems = [*self.problems[-20:], str(problem)]

    def stop(self) -> None:
        self._over.set()
        self._thread.join(10)
        self._api.close()

    def _tend(self, pod: Mapping[str, Any]) -> None:
        meta, phase = pod["metadata"], pod["status"].get("phase")
        told = meta.get("annotations", {})
        if meta.get("deletionTimestamp"):
            self._end(pod, told.get(ON_TERM))
        elif phase == "Pending" and (NO_IMAGE in told or pod["spec"]["containers"][0]["image"].endswith(NOT_THERE)):
            if not pod["status"].get("containerStatuses"):
                report(self._api, pod, "Pending")
        elif phase == "Pending" and NO_START in told:
            report(self._api, pod, "Failed", 128, "StartError")
        elif phase == "Pending" and self._age(meta["uid"]) < float(told.get(COMES_SECONDS, "0")):
            pass  # it fetches and loads
        elif phase == "Pending":
            self._started[meta["uid"]] = time.monotonic()
            report(self._api, pod, "Running")
        elif phase == "Running":
            seconds, code = told.get(RUNS_SECONDS), int(told.get(EXIT_CODE, "0"))
            if seconds is not None and time.monotonic() - self._started.get(meta["uid"], 0.0) >= float(seconds):
                report(self._api, pod, "Failed" if code else "Succeeded", code)

    def _age(self, uid: str) -> float:
        """Since the pod was first seen on its node."""
        return time.monotonic() - self._seen.setdefault(uid, time.monotonic())

    def _end(self, pod: Mapping[str, Any], heeds: str | None) -> None:
        """One that is to go: it ends as it does, and is removed when it has."""
        meta = pod["metadata"]
        if heeds is None or pod["status"].get("phase") != "Running":
            self._api.delete("v1", "Pod", meta["name"], meta["namespace"], at_once=True)
            return
        if heeds != "none":
            report(self._api, pod, "Failed" if int(heeds) else "Succeeded", int(heeds))
        elif time.time() > datetime.datetime.fromisoformat(meta["deletionTimestamp"]).timestamp():
            report(self._api, pod, "Failed", 137)


def end(api: Api, pod: Mapping[str, Any], *, failed: bool = False, code: int = 0) -> None:
    """Ends a pod's containers now, as a program that returns would."""
    report(api, pod, "Failed" if failed or code else "Succeeded", code or int(failed)).must()


def disrupt(api: Api, pod: Mapping[str, Any], why: str) -> None:
    """Ends it as a machine does that is shut down under it."""
    report(api, pod, "Failed", 137, target=why).must()


def report(
    api: Api,
    pod: Mapping[str, Any],
    phase: str,
    code: int = 0,
    reason: str = "Completed",
    target: str = "",
    message: str = "",
) -> Answer:
    """What a kubelet says of a pod. `target`: why its machine takes it along; `message`: its container's last words."""
    now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    runs = phase == "Running"
    former = [one.get("state", {}).get("running", {}) for one in pod["status"].get("containerStatuses", ())]
    if runs:
        state: dict[str, Any] = {"running": {"startedAt": now}}
    elif phase == "Pending":
        state = {"waiting": {"reason": "ErrImagePull", "message": f"{pod['spec']['containers'][0]['image']}: not found"}}
    else:
        began = former[0].get("startedAt", now) if former else now
        ended = {"exitCode": code, "reason": reason, "startedAt": began, "finishedAt": now}
        state = {"terminated": {**ended, **({"message": message} if message else {})}}
    conditions = [
        {"type": kind, "status": "True" if runs or kind == "Initialized" else "False", "lastTransitionTime": now}
        for kind in ("Initialized", "ContainersReady", "Ready")
    ]
    if target:
        lost = {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet", "message": target}
        conditions.append({**lost, "lastTransitionTime": now})
    own = {one["type"] for one in conditions}
    others = [one for one in pod["status"].get("conditions", ()) if one["type"] not in own]  # of the scheduler, of evictions
    containers = [
        {"name": one["name"], "image": one["image"], "imageID": "", "ready": runs, "restartCount": 0, "state": state}
        for one in pod["spec"]["containers"]
    ]
    status = {"phase": phase, "conditions": [*others, *conditions], "containerStatuses": containers}
    if runs:
        status["startTime"] = now
    meta = pod["metadata"]
    return api.merge("v1", "Pod", meta["name"], {"status": status}, meta["namespace"], status=True)
