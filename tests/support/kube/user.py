"""Somebody at the command line of chipwise, with a cluster: real processes, a home of their own, one namespace."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from command import ROOT, Chipwise, Done, plain
from kube import kubelet
from kube.control_plane import Cluster
from kube.process import wait_for
from kube.process_kubelet import ProcessKubelet

# All that an attempt may make, but for the gate of its job (a ConfigMap), claims and accounts, which stay on purpose.
GOES = (
    ("v1", "Pod"),
    ("v1", "Service"),
    ("batch/v1", "Job"),
    ("apps/v1", "Deployment"),
    ("apps/v1", "ReplicaSet"),
    ("networking.k8s.io/v1", "NetworkPolicy"),
    ("policy/v1", "PodDisruptionBudget"),
    ("autoscaling/v2", "HorizontalPodAutoscaler"),
)


class User:
    def __init__(self, cluster: Cluster, namespace: str, folder: Path) -> None:
        self.cluster, self.namespace = cluster, namespace
        self.chipwise = Chipwise(folder, {"CHIPWISE_GPUS": "", "CHIPWISE_CPUS": "0"})
        self.chipwise.config_dir.mkdir(parents=True)
        fields = {"kind": "kubernetes", "kubeconfig": str(cluster.kubeconfig()), "namespace": namespace}
        (self.chipwise.config_dir / "engines.yaml").write_text(json.dumps({"cluster": fields}))

    def run(self, *words: str, **more: Any) -> Done:
        return self.chipwise.process(*words, **more)

    def shown(self, *words: str) -> Done:
        """The same without a process of its own, for what is only looked at, and often."""
        return self.chipwise(*words)

    @contextmanager
    def shell(self, *words: str) -> Iterator[subprocess.Popen[bytes]]:
        """Another terminal, in which a command goes on meanwhile."""
        own = {"CHIPWISE_CONFIG_DIR": str(self.chipwise.config_dir), "CHIPWISE_DATA_DIR": str(self.chipwise.data_dir)}
        env = {**plain(self.chipwise.home), **own, **self.chipwise.environment}
        program = [str(Path(sys.executable).parent / "chipwise"), *words]
        with subprocess.Popen(program, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
            try:
                yield process
            finally:
                process.kill()

    def submit(self, *words: str) -> dict[str, Any]:
        done = self.run("run", "--json", "--engine", "cluster", *words)
        assert done.code == 0, done.err
        told: dict[str, Any] = done.json[0]
        return told

    def look(self, id: str) -> dict[str, Any]:
        found: dict[str, Any] = self.shown("describe", id, "--json").json
        return found

    def wait(self, id: str, phase: str) -> dict[str, Any]:
        def probe() -> dict[str, Any]:
            found = self.look(id)
            assert found["phase"] == phase, f"{found['phase']} {found['waiting']} {found['reason']} {self.controller_log()}"
            return found

        return wait_for(f"{id} to be {phase}", probe, 90)

    def story(self, id: str) -> str:
        return "\n".join(one["text"] for one in self.look(id)["story"])

    def told(self, id: str, text: str) -> str:
        """Its story, once it says so."""

        def probe() -> str:
            story = self.story(id)
            assert text in story, f"{story}\n{self.controller_log()}"
            return story

        return wait_for(f"{id} to be told {text!r}", probe, 60)

    def controller_log(self) -> str:
        return "".join(one.read_text() for one in self.chipwise.data_dir.glob("run/places/*/controller.log"))

    def pods(self) -> list[Mapping[str, Any]]:
        return self.cluster.pods(self.namespace)

    def end_pods(self, code: int = 0) -> None:
        told = {kubelet.RUNS_SECONDS: "0", kubelet.EXIT_CODE: str(code)}
        for pod in self.pods():
            self.cluster.api.merge(
                "v1", "Pod", pod["metadata"]["name"], {"metadata": {"annotations": told}}, self.namespace
            ).must()

    def controller(self) -> int:
        [lock] = self.chipwise.data_dir.glob("run/places/*/controller.lock")
        return int(lock.read_text())

    def kill_controller(self) -> None:
        os.kill(self.controller(), signal.SIGKILL)

    def left(self) -> list[str]:
        """What of its jobs is still in the namespace."""
        api = self.cluster.api
        found = [(kind, one) for version, kind in GOES for one in api.list(version, kind, self.namespace)]
        return [f"{kind}/{one['metadata']['name']}" for kind, one in found]

    def must_leave_nothing(self) -> None:
        def probe() -> bool:
            assert not self.left(), self.left()
            return True

        wait_for("its objects to go", probe, 30)

    def bring_what_it_waits_for(self, id: str, kubelet: ProcessKubelet | None = None) -> None:
        """A machine like the one of its plan, with room for one of its pods, and volumes for its claims. `kubelet`: who really
        runs what its pods say."""
        api, namespace = self.cluster.api, self.namespace
        self.bring_a_machine(id, "planned", kubelet)
        for claim in wait_for("its claims", lambda: api.list("v1", "PersistentVolumeClaim", namespace) or None, 30):
            name = claim["metadata"]["name"]
            spec = {
                "capacity": claim["spec"]["resources"]["requests"],
                "accessModes": claim["spec"]["accessModes"],
                "hostPath": {"path": "/nowhere"},
                "claimRef": {"namespace": namespace, "name": name},
                "persistentVolumeReclaimPolicy": "Retain",
            }
            meta = {"name": f"{namespace}-{name}"}
            self.cluster.must_apply([{"apiVersion": "v1", "kind": "PersistentVolume", "metadata": meta, "spec": spec}])

    def bring_a_machine(self, id: str, name: str, kubelet: ProcessKubelet | None = None) -> None:
        """Like the one of its plan, with room for one of its pods."""
        attempt = wait_for("its attempt", lambda: self.look(id)["attempts"] or None, 30)[-1]
        [pod, *_] = wait_for("its pods", lambda: self.pods() or None, 60)
        labels = {
            "node.kubernetes.io/instance-type": attempt["machine"],
            "karpenter.sh/capacity-type": attempt["purchase"],
            "topology.kubernetes.io/region": attempt["region"],
            "topology.kubernetes.io/zone": f"{attempt['region']}a",
        }
        chips = {key: value for key, value in pod["spec"]["containers"][0]["resources"]["limits"].items() if "/" in key}
        bring = self.cluster.fake_node if kubelet is None else kubelet.node
        bring(f"{self.namespace}-{name}", chips, labels)


@contextmanager
def user_of(cluster: Cluster, namespace: str, folder: Path) -> Iterator[User]:
    made = User(cluster, namespace, folder)
    try:
        yield made
    finally:
        for lock in made.chipwise.data_dir.glob("run/**/controller.lock"):
            with suppress(ProcessLookupError, ValueError):
                os.kill(int(lock.read_text()), signal.SIGTERM)
        for one in cluster.api.list("v1", "PersistentVolume"):
            if one["metadata"]["name"].startswith(f"{namespace}-"):
                cluster.api.delete("v1", "PersistentVolume", one["metadata"]["name"])
