"""What pods wrote, asked of the real server, which asks a kubelet's port that is played."""

from __future__ import annotations

import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from chipwise.adapters.engines.kubernetes.engine import Config, Kubernetes, connect
from chipwise.errors import NotFound
from chipwise.runner.engine import Clear, Leave, Start, State
from engines.kubernetes import job_object
from kube import kubelet
from kube.control_plane import Cluster
from kube.led import placed, seen, until
from kube.process import wait_for
from kube.written import kubelet_port

pytestmark = pytest.mark.e2e


class _Written(BaseHTTPRequestHandler):
    """The port of a kubelet at which the server asks for what containers wrote."""

    def do_GET(self) -> None:
        pod = self.path.split("/")[3]
        self.send_response(200)
        self.end_headers()  # without a length: until the connection is closed
        self.wfile.write(f"step 1 of {pod}\n".encode())
        self.wfile.flush()
        time.sleep(0.5 if "follow=true" in self.path else 0.0)
        self.wfile.write(b"step 2\n")

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def written(tmp_path: Path) -> Iterator[int]:
    with kubelet_port(tmp_path, _Written) as port:
        yield port


@pytest.fixture
def engine(cluster: Cluster, namespace: str, tmp_path: Path, written: int) -> Iterator[Kubernetes]:
    node = cluster.fake_node(f"{namespace}-a", {})
    reached = {"addresses": [{"type": "InternalIP", "address": "127.0.0.1"}]}
    cluster.api.merge(
        "v1", "Node", node, {"status": {**reached, "daemonEndpoints": {"kubeletEndpoint": {"Port": written}}}}, status=True
    ).must()
    made = connect(Config(cluster.kubeconfig(), namespace=namespace, logs=tmp_path / "logs"))
    yield made
    made.close()


def test_what_pods_wrote_is_told_and_kept_when_they_go(cluster: Cluster, namespace: str, engine: Kubernetes) -> None:
    job = placed("two", job_object({kubelet.RUNS_SECONDS: "0.5"}, completions=2, parallelism=2))
    engine.do(Start(job))
    until(engine, job, lambda one: one.state is State.RUNNING)
    ended = until(engine, job, lambda one: one.state is State.EXITED)
    whole = b"".join(engine.logs(job, 1))
    assert (whole.count(b"step 1 of two-a1-0-"), whole.count(b"step 1 of two-a1-1-")) == (1, 1)
    second = b"".join(engine.logs(job, 1, rank=1))
    assert second.startswith(b"step 1 of two-a1-1-")
    engine.do(Clear(ended.handle))
    wait_for("its pods to go", lambda: not cluster.pods(namespace), 20)
    assert b"".join(engine.logs(job, 1)) == whole
    assert b"".join(engine.logs(job, 1, rank=1)) == second
    with pytest.raises(NotFound, match="nothing that they wrote was kept"):
        list(engine.logs(job, 2))


def test_who_follows_sees_each_line_as_it_comes_and_is_let_go_when_the_attempt_is_over(engine: Kubernetes) -> None:
    job = placed("one", job_object({kubelet.RUNS_SECONDS: "2"}))
    engine.do(Start(job))
    heard = engine.logs(job, 1, follow=True)  # its pod has not begun
    assert next(piece for piece in heard if piece).startswith(b"step 1 of one-a1-0-")
    assert seen(engine, job).state is State.RUNNING
    assert b"".join(heard) == b"step 2\n"
    assert until(engine, job, lambda one: one.state is State.EXITED).code == 0


def test_what_a_stopped_job_wrote_is_kept_though_its_pods_are_removed_at_once(
    cluster: Cluster, namespace: str, engine: Kubernetes
) -> None:
    job = placed("one", job_object({kubelet.ON_TERM: "75"}))
    engine.do(Start(job))
    until(engine, job, lambda one: one.state is State.RUNNING)
    engine.do(Leave(job, time.time() + 20, "requested by its owner"))
    until(engine, job, lambda one: one.state is State.EXITED)
    wait_for("its pod to go", lambda: not cluster.pods(namespace), 20)
    assert b"".join(engine.logs(job, 1)).startswith(b"step 1 of one-a1-0-")
    assert b"".join(engine.logs(job, 1, follow=True)).endswith(b"step 2\n")
