"""The kubernetes engine while the API server is away, comes back, or cuts the line: nothing is lost or started twice."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from chipwise.adapters.engines.kubernetes.engine import Config, Kubernetes, connect
from chipwise.adapters.engines.kubernetes.kinds import JOB, POD
from chipwise.errors import TryLater
from chipwise.runner.engine import Start, State
from chipwise.runner.job import Job, Phase
from cutting_proxy import Proxy, cutting
from engines.kubernetes import job_object
from kube import control_plane, kubelet
from kube.control_plane import Cluster
from kube.led import led_on, placed, running, seen, until
from kube.process import wait_for

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize("how", ["stopped", "killed"])
def test_jobs_that_run_are_neither_lost_nor_started_twice_when_the_server_is_restarted(tmp_path: Path, how: str) -> None:
    """A control plane of its own, for others would miss it."""
    folder = tmp_path / "cluster"
    folder.mkdir()
    with control_plane.started(folder) as cluster, cluster.namespace() as namespace:
        cluster.fake_node(f"{namespace}-node", {})
        with led_on(cluster.kubeconfig(), namespace, tmp_path) as led:
            for number in range(3):
                led.submit(f"job-{number}", objects=(job_object({kubelet.ON_TERM: "75"}),))
            for number in range(3):
                led.until("it to run", f"job-{number}", lambda job: job.phase is Phase.RUNNING)
            pods = {one["metadata"]["uid"] for one in cluster.pods(namespace)}
            led.trouble.clear()
            cluster.restart_server(away=2.0, killed=how == "killed")
            assert any("cannot be reached" in one for one in led.trouble)
            led.submit("late", objects=(job_object({kubelet.RUNS_SECONDS: "0.5"}),))
            done = led.until("a new one to be done", "late", lambda job: job.phase is Phase.DONE)
            assert len(done.attempts) == 1
            assert pods <= {one["metadata"]["uid"] for one in cluster.pods(namespace)}
            for pod in running(cluster, namespace, "job-0"):
                kubelet.end(cluster.api, pod)
            led.until("one that ran on to be done", "job-0", lambda job: job.phase is Phase.DONE)
            assert {len(led.job(f"job-{number}").attempts) for number in range(3)} == {1}


def _patiently(act: Callable[[], bool]) -> None:
    """As a controller does: what cannot be done now is tried again."""

    def probe() -> bool:
        try:
            return act()
        except TryLater:
            return False

    wait_for("the line to be back", probe, 40)


def _started(engine: Kubernetes, job: Job) -> bool:
    engine.do(Start(job))
    return True


def _is(engine: Kubernetes, job: Job, state: State) -> bool:
    return seen(engine, job).state is state


@pytest.fixture
def wire(cluster: Cluster) -> Iterator[Proxy]:
    with cutting(int(cluster.server.rpartition(":")[2]), b"never said") as proxy:
        yield proxy


def test_a_watch_that_is_cut_goes_on_where_it_was_and_misses_nothing(
    cluster: Cluster, namespace: str, wire: Proxy, tmp_path: Path
) -> None:
    cluster.fake_node(f"{namespace}-node", {})
    text = cluster.kubeconfig().read_text().replace(cluster.server, f"https://127.0.0.1:{wire.port}")
    (tmp_path / "config").write_text(text)
    engine = connect(Config(tmp_path / "config", namespace=namespace))
    try:
        job = placed("cut", job_object({}))
        engine.do(Start(job))
        until(engine, job, lambda one: one.state is State.RUNNING)
        watches = {one.watched.kind: one for one in engine.watches}
        before = {kind: one.streams for kind, one in watches.items()}
        for number in range(3):
            wire.cut_all()
            other = placed(f"meanwhile-{number}", job_object({}))
            _patiently(partial(_started, engine, other))
            _patiently(partial(_is, engine, other, State.RUNNING))
        wire.cut_all()
        for pod in running(cluster, namespace, "cut"):
            kubelet.end(cluster.api, pod)
        _patiently(partial(_is, engine, job, State.EXITED))
        assert seen(engine, job).code == 0
        for kind in (JOB, POD):
            assert watches[kind].streams >= before[kind] + 4  # a new stream after each cut
            assert watches[kind].relists == 1  # and nothing listed anew: it went on from the version that it had
    finally:
        engine.close()


def test_a_server_that_does_not_answer_is_tried_again_and_nothing_is_taken_for_absent(tmp_path: Path, cluster: Cluster) -> None:
    text = cluster.kubeconfig().read_text().replace(cluster.server, "https://127.0.0.1:9")
    (tmp_path / "config").write_text(text)
    engine = connect(Config(tmp_path / "config"))
    try:
        with pytest.raises(TryLater, match="cannot be reached"):
            engine.look([placed("one", job_object({}))], time.time())
    finally:
        engine.close()
