"""etcd, kube-apiserver, kube-scheduler and kube-controller-manager, real, on free ports of the loopback.

There are no machines: nodes are made by hand (`fake_node`) or by Karpenter, and `PlayedKubelet` stands in for what would run
there.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from kube import programs
from kube.api import Answer, Api, Manifest
from kube.credentials import Authority, kubeconfig, signing_keys
from kube.kubelet import PlayedKubelet
from kube.process import Running, free_ports, wait_for

ADMIN = "admin"
# name -> user, groups; the two programs get the rights that RBAC gives them by these names, `stranger` gets none
USERS = {
    ADMIN: ("admin", "system:masters"),
    "scheduler": ("system:kube-scheduler", ""),
    "controllers": ("system:kube-controller-manager", ""),
    "stranger": ("stranger", ""),
}
READY_SECONDS = 60.0
SETTLE_SECONDS = 60.0
MAKERS = (("batch/v1", "Job"), ("apps/v1", "Deployment"), ("apps/v1", "StatefulSet"), ("apps/v1", "ReplicaSet"))
NOT_READY = "node.kubernetes.io/not-ready"


class Cluster:
    """A running control plane. Made by `started`, which also stops it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.started_in_seconds = 0.0
        self._running: list[Running] = []
        self._tokens = {name: secrets.token_hex(16) for name in USERS}
        self._authority = folder / "authority.crt"
        etcd, peers, api = free_ports(3)
        self._etcd, self._peers, self._port = etcd, peers, api
        self.server = f"https://127.0.0.1:{api}"
        self._kubelet: PlayedKubelet | None = None
        self._api: Api | None = None
        self._installed: set[str] = set()

    @property
    def api(self) -> Api:
        assert self._api is not None, "the cluster is not running"
        return self._api

    def api_as(self, user: str) -> Api:
        """The API as another user sees it; close it when done."""
        return Api(self.server, self._authority, self._tokens[user])

    def kubeconfig(self, user: str = ADMIN) -> Path:
        path = self.folder / f"{user}.kubeconfig"
        return path if path.exists() else kubeconfig(path, self.server, self._authority, self._tokens[user])

    def leave_to_another(self, node: str) -> None:
        """Nobody but the caller says anything of this node's pods; to be called before there is such a node."""
        assert self._kubelet is not None
        self._kubelet.others |= {node}

    def run(self, name: str, arguments: Iterable[str], environ: Mapping[str, str] | None = None) -> Running:
        """Starts one of the cluster's programs; it is stopped with the cluster, if not before."""
        log = self.folder / f"{name}.log"
        one = Running(name, [programs.program(name), *arguments], log, {"HOME": str(self.folder), **(environ or {})})
        self._running.append(one)
        return one

    def halt(self, one: Running) -> None:
        one.stop()
        self._running.remove(one)

    def restart_server(self, away: float = 0.0, *, killed: bool = False) -> None:
        """Ends the kube-apiserver and starts it again after so many seconds, on the same port and the same data."""
        at, old = next((at, one) for at, one in enumerate(self._running) if one.name == "kube-apiserver")
        old.kill() if killed else old.stop()
        time.sleep(away)

        def again() -> bool:
            if self._running[at] is old or not self._running[at].runs:  # its port may be taken for a moment
                self._running[at] = old.again()
            return self.api.call("GET", "/readyz").accepted

        wait_for("the kube-apiserver to be back", again, 2 * READY_SECONDS, every=0.5)

    def logs(self) -> dict[str, str]:
        return {one.name: one.tail() for one in self._running}

    def resident_bytes(self) -> dict[str, int]:
        return {one.name: one.resident_bytes() for one in self._running}

    def start(self) -> None:
        began = time.monotonic()
        self._start_server()
        self._start_controllers()
        self._kubelet = PlayedKubelet(self.api_as(ADMIN))
        self._kubelet.start()
        wait_for("the default service account", lambda: self.api.get("v1", "ServiceAccount", "default"), READY_SECONDS)
        self.started_in_seconds = time.monotonic() - began

    def stop(self) -> None:
        with contextlib.ExitStack() as rest:  # run from the last to the first, each of them whatever happens to the others
            for one in self._running:  # so the store goes last: the others write until they end
                rest.callback(one.stop)
            if self._api is not None:
                rest.callback(self._api.close)
            if self._kubelet is not None:
                rest.callback(self._kubelet.stop)
        self._running = []

    def _start_server(self) -> None:
        folder, authority = self.folder, Authority("chipwise-test")
        self._authority.write_bytes(authority.pair.certificate)
        pair = authority.issue(["localhost", "kubernetes.default.svc"], ["127.0.0.1"])
        (folder / "server.crt").write_bytes(pair.certificate)
        (folder / "server.key").write_bytes(pair.key)
        private, public = signing_keys(folder)
        lines = [f'{self._tokens[name]},{user},{user},"{groups}"' for name, (user, groups) in USERS.items()]
        (folder / "tokens.csv").write_text("\n".join(lines) + "\n", encoding="ascii")
        store, peers = f"http://127.0.0.1:{self._etcd}", f"http://127.0.0.1:{self._peers}"
        self.run(
            "etcd",
            [
                f"--data-dir={folder / 'etcd'}",
                f"--listen-client-urls={store}",
                f"--advertise-client-urls={store}",
                f"--listen-peer-urls={peers}",
                f"--initial-advertise-peer-urls={peers}",
                f"--initial-cluster=default={peers}",
                "--logger=zap",
                "--log-level=warn",
            ],
        )
        self.run(
            "kube-apiserver",
            [
                f"--etcd-servers={store}",
                "--bind-address=127.0.0.1",
                "--advertise-address=127.0.0.1",
                f"--secure-port={self._port}",
                f"--cert-dir={folder}",
                f"--tls-cert-file={folder / 'server.crt'}",
                f"--tls-private-key-file={folder / 'server.key'}",
                f"--token-auth-file={folder / 'tokens.csv'}",
                "--authorization-mode=RBAC",
                "--service-cluster-ip-range=10.96.0.0/16",
                "--service-account-issuer=https://kubernetes.default.svc",
                f"--service-account-key-file={public}",
                f"--service-account-signing-key-file={private}",
                "--endpoint-reconciler-type=none",  # a loopback address cannot be an endpoint
                "--allow-privileged=true",  # device plugins ask for it
                "--profiling=false",
            ],
        )
        self._api = self.api_as(ADMIN)
        wait_for("a ready kube-apiserver", self._ready, READY_SECONDS)

    def _ready(self) -> bool:
        for one in self._running:
            one.must_run()
        return self.api.call("GET", "/readyz").accepted

    def _start_controllers(self) -> None:
        scheduling = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": {"kubeconfig": str(self.kubeconfig("scheduler")), "qps": 200, "burst": 400},
            "leaderElection": {"leaderElect": False},
            "podInitialBackoffSeconds": 1,
            "podMaxBackoffSeconds": 2,  # a new node is tried soon, not after ten seconds
        }
        path = self.folder / "scheduler.yaml"
        path.write_text(json.dumps(scheduling), encoding="utf-8")
        self.run("kube-scheduler", [f"--config={path}", "--secure-port=0"])
        self.run(
            "kube-controller-manager",
            [
                f"--kubeconfig={self.kubeconfig('controllers')}",
                "--leader-elect=false",
                "--secure-port=0",
                "--use-service-account-credentials=true",
                f"--service-account-private-key-file={self.folder / 'accounts.key'}",
                f"--root-ca-file={self._authority}",
                "--node-monitor-grace-period=87600h",  # nobody sends heartbeats for nodes made by hand
                "--kube-api-qps=200",
                "--kube-api-burst=400",
                "--profiling=false",
            ],
        )

    def apply(self, manifests: str | Iterable[Manifest], namespace: str = "default") -> list[Answer]:
        """Server-side apply with strict field validation, in order; the server's answer to each."""
        answers = self.api.apply(manifests, namespace)
        for answer in answers:
            if answer.accepted:
                self._settle(answer.body)
        return answers

    def must_apply(self, manifests: str | Iterable[Manifest], namespace: str = "default") -> list[Mapping[str, Any]]:
        return [answer.must() for answer in self.apply(manifests, namespace)]

    def _settle(self, made: Mapping[str, Any]) -> None:
        """Waits for what a later manifest relies on: a namespace's account, and a definition that is served."""
        name = made["metadata"]["name"]
        if made["kind"] == "Namespace":
            wait_for(f"an account in {name}", lambda: self.api.get("v1", "ServiceAccount", "default", name), SETTLE_SECONDS)
        elif made["kind"] == "CustomResourceDefinition":
            wait_for(f"{name} to be served", lambda: self._established(made), SETTLE_SECONDS)

    def _established(self, made: Mapping[str, Any]) -> bool:
        seen = self.api.get(made["apiVersion"], made["kind"], made["metadata"]["name"])
        conditions = (seen or {}).get("status", {}).get("conditions") or ()  # null at first
        return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)

    def install(self, component: str, definitions: Iterable[Manifest] | None = None) -> None:
        """The component's resource definitions as published, once; or those given, in their place."""
        if component not in self._installed or definitions is not None:
            given = programs.manifests(component, "definitions") if definitions is None else list(definitions)
            for made in [self._define(one) for one in given]:  # all of them first, then wait: each takes a moment
                self._settle(made)
            self._installed.add(component)

    def _define(self, definition: Manifest) -> Mapping[str, Any]:
        """Plain creation where there is none yet: the server applies a long definition several times more slowly."""
        path = self.api.path(definition["apiVersion"], definition["kind"])
        answer = self.api.call("POST", path, definition, {"fieldValidation": "Strict"})
        if answer.status == 409:
            [answer] = self.api.apply([definition])
        return answer.must()

    def fake_node(
        self,
        name: str,
        capacity: Mapping[str, str],
        labels: Mapping[str, str] | None = None,
        taints: Iterable[Mapping[str, str]] = (),
    ) -> str:
        """A node that is ready and has what it is said to have; pods are really bound to it, and nobody runs them."""
        full = {"cpu": "192", "memory": "2Ti", "ephemeral-storage": "1Ti", "pods": "110", **capacity}
        own = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", **(labels or {})}
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": own},
            "spec": {"taints": list(taints)},
        }
        self.api.call("POST", "/api/v1/nodes", node, {"fieldValidation": "Strict"}).must()
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "played"}
        status = {"capacity": full, "allocatable": full, "conditions": [ready]}
        self.api.merge("v1", "Node", name, {"status": status}, status=True).must()
        wait_for(f"node {name} without the taint of one that is not ready", lambda: self._untainted(name), SETTLE_SECONDS)
        return name

    def _untainted(self, name: str) -> bool:
        node = self.api.get("v1", "Node", name)
        return node is not None and all(one["key"] != NOT_READY for one in node["spec"].get("taints", ()))

    @contextlib.contextmanager
    def namespace(self) -> Iterator[str]:
        """A fresh namespace; at the end its pods are gone, and the nodes that were made in the meantime too.

        The namespace itself goes a few seconds later: nothing can be made in it any more, so nobody has to wait for that.
        """
        before = {one["metadata"]["name"] for one in self.api.list("v1", "Node")}
        name = f"test-{secrets.token_hex(4)}"
        self.must_apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}])
        try:
            yield name
        finally:
            self.api.delete("v1", "Namespace", name)
            for version, kind in MAKERS:  # the server itself would begin to empty the namespace only after five seconds
                self.api.empty(version, kind, name)
            wait_for(f"the pods of {name} to go", lambda: self._without_pods(name), SETTLE_SECONDS)
            for node in self.api.list("v1", "Node"):
                if node["metadata"]["name"] not in before:
                    self.api.delete("v1", "Node", node["metadata"]["name"])

    def _without_pods(self, namespace: str) -> bool:
        self.api.empty("v1", "Pod", namespace)
        return not self.pods(namespace)

    def pods(self, namespace: str, labels: str = "") -> list[Mapping[str, Any]]:
        return self.api.list("v1", "Pod", namespace, labels)

    def bound(self, namespace: str, labels: str = "") -> dict[str, str]:
        """Pods that have a node, with its name."""
        found = self.pods(namespace, labels)
        return {one["metadata"]["name"]: one["spec"]["nodeName"] for one in found if one["spec"].get("nodeName")}

    def why_pending(self, pod: Mapping[str, Any]) -> str:
        """The scheduler's reason why a pod has no node; empty while it has not said one."""
        conditions = pod.get("status", {}).get("conditions", ())
        return next(
            (one.get("message", "") for one in conditions if one["type"] == "PodScheduled" and one["status"] == "False"), ""
        )


@contextlib.contextmanager
def started(folder: Path | None = None) -> Iterator[Cluster]:
    """A control plane for the time of the block; whatever happens inside, nothing of it is left running."""
    for name in ("kube-apiserver", "kube-scheduler", "kube-controller-manager", "etcd"):
        programs.program(name)  # says what is missing before anything is started
    with contextlib.ExitStack() as stack:
        where = folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="chipwise-cluster-")))
        cluster = Cluster(where)
        stack.callback(cluster.stop)
        cluster.start()
        yield cluster
