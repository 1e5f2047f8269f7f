"""The kubernetes engine under contract: the real control plane, with nobody but the played kubelet on its nodes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from chipwise.adapters.engines.kubernetes.engine import Config, Kubernetes, connect
from chipwise.runner.engine import Engine
from chipwise.runner.job import Job, MachinePlace, Spec
from kube import kubelet
from kube.control_plane import Cluster

CAN = frozenset({"lose", "notice"})
PROVEN_IN = "tests/e2e/test_engine_kubernetes_contract.py"
BEHAVIOUR = {
    "steps": {kubelet.RUNS_SECONDS: "1.2"},
    "long": {kubelet.ON_TERM: "75"},
    "deaf": {kubelet.ON_TERM: "none"},
    "fails": {kubelet.RUNS_SECONDS: "0.3", kubelet.EXIT_CODE: "3"},
    "missing": {kubelet.NO_START: "yes"},
}


def job_object(
    annotations: Mapping[str, str],
    requests: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """A Job as small as one can be; `spec` goes over it."""
    devices = {key: value for key, value in (requests or {}).items() if "/" in key}
    resources = {"requests": dict(requests or {"cpu": "1m"}), "limits": devices}
    container = {"name": "main", "image": "example.com/none:1", "resources": resources}
    pod = {"restartPolicy": "Never", "containers": [container]}
    template = {"metadata": {"annotations": dict(annotations), "labels": {"app.kubernetes.io/name": "work"}}, "spec": pod}
    meta = {"name": "work", "namespace": "elsewhere", "labels": dict(labels or {})}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": meta,
        "spec": {"backoffLimit": 0, "completions": 1, "completionMode": "Indexed", "template": template, **spec},
    }


@dataclass
class Real:
    cluster: Cluster
    namespace: str
    patience_s: float = 40.0
    where: MachinePlace = field(default_factory=MachinePlace)
    opened: list[Kubernetes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.node = self.cluster.fake_node(f"{self.namespace}-node", {})
        self.engine: Engine = self.again()

    def again(self) -> Engine:
        made = connect(Config(self.cluster.kubeconfig(), namespace=self.namespace, record="contract"))
        self.opened.append(made)
        return made

    def spec(self, behaviour: str) -> Spec:
        return Spec(("program",), behaviour, "kubernetes", objects=(job_object(BEHAVIOUR[behaviour]),))

    def ready(self, job: Job) -> bool:
        return True

    def now(self) -> float:
        return time.time()

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)

    def lose(self, job: Job) -> None:
        for pod in self._running(job):
            kubelet.disrupt(self.cluster.api, pod, "the node is shutting down")

    def notice(self, job: Job) -> None:
        taint = {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}
        self.cluster.api.merge("v1", "Node", self.node, {"spec": {"taints": [taint]}}).must()

    def lives(self, job: Job) -> int:
        return len(self._running(job))

    def _running(self, job: Job) -> list[Mapping[str, Any]]:
        labels = f"chipwise.dev/job={job.id},chipwise.dev/attempt={len(job.attempts)}"
        return [one for one in self.cluster.pods(self.namespace, labels) if one["status"].get("phase") == "Running"]

    def close(self) -> None:
        for one in self.opened:
            one.close()
