"""What the kubernetes engine sees and does on the real control plane, without a controller."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from chipwise.adapters.engines.kubernetes import gate
from chipwise.adapters.engines.kubernetes.connection import Connection
from chipwise.adapters.engines.kubernetes.engine import Config, Kubernetes, connect
from chipwise.errors import BadInput, TryLater
from chipwise.runner.engine import Clear, End, Leave, Start, State
from engines.kubernetes import job_object
from kube import kubelet
from kube.control_plane import Cluster
from kube.led import counts, placed, seen, service_objects, until
from kube.process import wait_for

pytestmark = pytest.mark.e2e
GPU = "nvidia.com/gpu"


@pytest.fixture
def engine(cluster: Cluster, namespace: str) -> Iterator[Kubernetes]:
    made = connect(Config(cluster.kubeconfig(), namespace=namespace, record="mine", stray_after_s=0.0))
    yield made
    made.close()


def test_why_a_job_waits_is_told_in_words(cluster: Cluster, namespace: str, engine: Kubernetes) -> None:
    cluster.fake_node(f"{namespace}-a", {GPU: "1"})
    large = placed("large", job_object({}, {GPU: "4"}))
    engine.do(Start(large))
    told = until(engine, large, lambda one: "no node fits" in one.reason)
    assert told.state is State.PENDING
    assert told.reason.endswith(f"1 Insufficient {GPU}")
    refused = job_object({})
    refused["spec"]["template"]["spec"]["serviceAccountName"] = "nobody-made-it"
    unmade = placed("unmade", refused)
    engine.do(Start(unmade))
    assert "its pods are refused" in until(engine, unmade, lambda one: "nobody-made-it" in one.reason).reason
    queued = placed("queued", job_object({}, labels={"kueue.x-k8s.io/queue-name": "team"}, suspend=True))
    engine.do(Start(queued))
    assert "queue team" in until(engine, queued, lambda one: bool(one.reason)).reason


def test_an_image_that_does_not_exist_is_told_and_not_waited_for_long(
    cluster: Cluster, namespace: str, engine: Kubernetes
) -> None:
    cluster.fake_node(f"{namespace}-a", {})
    job = placed("typo", job_object({kubelet.NO_IMAGE: "yes"}))
    engine.do(Start(job))
    told = until(engine, job, lambda one: "ErrImagePull" in one.reason)
    assert told.state is State.PENDING
    assert told.reason == "its image example.com/none:1 cannot be pulled: ErrImagePull: example.com/none:1: not found"
    assert told.held_since is not None  # its machine is there, and paid for
    later = engine.look([job], time.time() + 600).attempts[(job.id, 1)]
    assert (later.state, later.code) == (State.EXITED, 127)


def test_a_service_runs_when_a_replica_answers_and_stays_until_it_is_stopped(
    cluster: Cluster, namespace: str, engine: Kubernetes
) -> None:
    cluster.fake_node(f"{namespace}-a", {})
    job = placed("web", *service_objects(), service=True)
    engine.do(Start(job))
    until(engine, job, lambda one: one.state is State.RUNNING)
    assert counts(cluster, namespace) == {
        "Deployment": 1,
        "Service": 1,
        "PodDisruptionBudget": 1,
        "NetworkPolicy": 1,
        "HorizontalPodAutoscaler": 1,
    }
    [pod] = cluster.pods(namespace)
    cluster.api.delete("v1", "Pod", pod["metadata"]["name"], namespace)  # its Deployment makes another
    wait_for(
        "another", lambda: {one["metadata"]["uid"] for one in cluster.pods(namespace)} - {pod["metadata"]["uid"]} or None, 20
    )
    until(engine, job, lambda one: one.state is State.RUNNING)
    engine.do(Leave(job, time.time() + 30, "requested by its owner"))
    ended = until(engine, job, lambda one: one.state is State.EXITED)
    engine.do(Clear(ended.handle))
    wait_for("all of it to go", lambda: not any(counts(cluster, namespace).values()), 30)
    assert cluster.api.get("v1", "PersistentVolumeClaim", "web-cache", namespace) is not None


def test_what_belongs_to_no_attempt_is_found_and_cleared_and_what_is_of_others_is_not(
    cluster: Cluster, namespace: str, engine: Kubernetes
) -> None:
    cluster.fake_node(f"{namespace}-a", {})
    ours, kept = placed("ours", job_object({})), placed("kept", job_object({}))
    theirs = placed("theirs", job_object({}))
    other = connect(Config(cluster.kubeconfig(), namespace=namespace, record="another", stray_after_s=0.0))
    try:
        for one in (ours, kept):
            engine.do(Start(one))
        other.do(Start(theirs))
        wait_for("all three", lambda: len(cluster.pods(namespace)) == 3 or None, 20)
        now = time.time() + 2.0
        assert engine.look([kept], now).strays == ("ours-a1",)
        engine.do(Clear("ours-a1"))
        wait_for("it to go", lambda: cluster.api.get("batch/v1", "Job", "ours-a1", namespace) is None, 20)
        wait_for("nothing to be left", lambda: engine.look([kept], time.time()).strays == (), 20)
        assert len(cluster.api.list("batch/v1", "Job", namespace)) == 2
        hours = time.time() + 7200
        wait_for("its gate alone", lambda: engine.look([kept], hours).strays == ("ours-gate",), 20)
        engine.do(Clear("ours-gate"))
        wait_for("its gate to go", lambda: engine.look([kept], hours).strays == (), 20)
    finally:
        other.close()


def test_a_job_with_a_cunning_id_and_objects_reaches_nothing_of_another(
    cluster: Cluster, namespace: str, engine: Kubernetes
) -> None:
    """As a member could write them into a team's record by any client."""
    cluster.fake_node(f"{namespace}-a", {})
    theirs = placed("train-x", job_object({}))
    engine.do(Start(theirs))
    until(engine, theirs, lambda one: one.state is State.RUNNING)
    policy = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "all"}}
    policy["spec"] = {"podSelector": {}, "policyTypes": ["Ingress"]}
    cunning = placed("Train.x", job_object({}), policy)
    assert seen(engine, cunning).state is State.ABSENT
    engine.do(Start(cunning))
    until(engine, cunning, lambda one: one.state is State.RUNNING)
    [applied] = cluster.api.list("networking.k8s.io/v1", "NetworkPolicy", namespace)
    assert applied["spec"]["podSelector"]["matchLabels"]["chipwise.dev/job"].startswith("train-x-")
    engine.do(End(cunning))
    until(engine, cunning, lambda one: one.state in (State.LOST, State.ABSENT))
    assert seen(engine, theirs).state is State.RUNNING
    with pytest.raises(BadInput, match="are not valid Kubernetes objects"):
        engine.do(Start(placed("odd", {**job_object({}), "metadata": None})))


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_start_that_was_cut_off_anywhere_is_made_whole_or_cleared_whole(
    cluster: Cluster, namespace: str, engine: Kubernetes, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """Before or after each request of a start: what follows from looking, with the next controller, ends the same."""
    whole = {"Deployment": 1, "Service": 1, "PodDisruptionBudget": 1, "NetworkPolicy": 1, "HorizontalPodAutoscaler": 1}
    calls, cut = [0], [0]
    real = Connection._call

    def cuts(self: Connection, method: str, *rest: Any, **more: Any) -> Any:
        calls[0] += 1
        now = calls[0] == cut[0]
        if now and when == "before":
            raise TryLater("cut off")
        try:
            return real(self, method, *rest, **more)
        finally:
            if now:  # whatever the server answered: nobody heard it
                raise TryLater("cut off")

    engine.look([], time.time())
    for number in range(1, 30):
        job = placed(f"cut-{number}", *service_objects(replicas=0), service=True)
        calls[0], cut[0] = 0, number
        with monkeypatch.context() as patched:
            patched.setattr(Connection, "_call", cuts)
            try:
                engine.do(Start(job))
            except TryLater:
                finished = False
            else:
                finished = True
        kubernetes = connect(engine.config)
        try:
            if seen(kubernetes, job).state is State.ABSENT:
                kubernetes.do(Start(job))
            assert counts(cluster, namespace) == whole
            kubernetes.do(Clear(seen(kubernetes, job).handle))
            wait_for("all of it to go", lambda: not any(counts(cluster, namespace).values()), 30)
            kubernetes.do(Start(job))  # late
            assert not any(counts(cluster, namespace).values())
        finally:
            kubernetes.close()
        if finished:
            break
    assert finished
    assert number > 8


def test_of_attempts_that_enter_at_once_none_starts_after_a_newer_one(cluster: Cluster, namespace: str) -> None:
    """As many controllers as attempts, each with a connection of its own: the server takes one word after the other."""
    let_in: list[int] = []

    def controller(seed: int) -> None:
        made = connect(Config(cluster.kubeconfig(), namespace=namespace))
        entry = gate.Gate(made.connection, "", time.time)
        for number in random.Random(seed).sample(range(1, 9), 8):
            while True:
                try:
                    if entry.enter(("race", number)) is gate.Entry.FIRST:
                        let_in.append(number)
                    break
                except TryLater:
                    continue
        made.close()

    threads = [threading.Thread(target=controller, args=(seed,)) for seed in range(6)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(60)
    assert len(set(let_in)) == len(let_in)  # each at most once
    assert max(let_in) == 8
    held = gate.stand(cluster.api.get("v1", "ConfigMap", gate.gate_name("race"), namespace))
    assert held == gate.GateState(8, 0)
