"""Jobs that share a quota of Kueue, led by the real controller: who is let in, who waits, and what each is told."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from chipwise.adapters.engines.kubernetes.plain import command_objects
from chipwise.errors import BadInput
from chipwise.runner.job import Needs, Phase, Spec
from kube import kubelet
from kube.control_plane import Cluster
from kube.kueue import VERSION
from kube.led import Led, led_on, placed, running, worked
from kube.process import wait_for

pytestmark = pytest.mark.e2e
GPU = "nvidia.com/gpu"


@pytest.fixture
def led(kueued: Cluster, namespace: str, tmp_path: Path) -> Iterator[Led]:
    """team-a has 8 GPUs, team-b none, and the cluster has 16."""
    kueued.fake_node(f"{namespace}-a", {GPU: "16"})
    flavor = {"apiVersion": VERSION, "kind": "ResourceFlavor", "metadata": {"name": namespace}, "spec": {}}
    made = [flavor]
    for team, gpus in (("team-a", "8"), ("team-b", "0")):
        quotas = [{"name": "cpu", "nominalQuota": "64"}, {"name": GPU, "nominalQuota": gpus}]
        group = {"coveredResources": ["cpu", GPU], "flavors": [{"name": namespace, "resources": quotas}]}
        every = {"namespaceSelector": {}, "resourceGroups": [group]}
        made += [
            {"apiVersion": VERSION, "kind": "ClusterQueue", "metadata": {"name": f"{namespace}-{team}"}, "spec": every},
            {
                "apiVersion": VERSION,
                "kind": "LocalQueue",
                "metadata": {"name": team, "namespace": namespace},
                "spec": {"clusterQueue": f"{namespace}-{team}"},
            },
        ]
    kueued.must_apply(made)
    with led_on(kueued.kubeconfig(), namespace, tmp_path) as held:
        yield held
    kueued.api.empty("batch/v1", "Job", namespace)
    for team in ("team-a", "team-b"):
        kueued.api.delete(VERSION, "LocalQueue", team, namespace)
        kueued.api.delete(VERSION, "ClusterQueue", f"{namespace}-{team}")
    kueued.api.delete(VERSION, "ResourceFlavor", namespace)


def _asked(name: str, gpus: int) -> Spec:
    return Spec(("python", "train.py"), name, "kubernetes", needs=Needs(gpus=gpus))


def _submit(led: Led, id: str, gpus: int) -> None:
    queue = led.engine.queue_for("Team A")
    led.submit(id, objects=worked(command_objects(_asked(id, gpus), "team/trainer:1.4", queue)), team="Team A")


def test_a_quota_holds_and_who_waits_is_told_how_full_it_is_and_how_many_are_ahead(
    kueued: Cluster, namespace: str, led: Led
) -> None:
    _submit(led, "large", 8)
    led.until("it to run", "large", lambda job: job.phase is Phase.RUNNING)
    for number, id in enumerate(("second", "third", "fourth")):
        time.sleep(1.1)  # the order is that of arrival, by whole seconds
        _submit(led, id, 8)
        ahead = ("", "; 1 job ahead", "; 2 jobs ahead")[number]
        wanted = f"waiting: team-a has 8 of 8 GPUs in use{ahead}"
        led.until("it to be told", id, lambda job, wanted=wanted: job.waiting == wanted)  # type: ignore[misc]
    assert len(running(kueued, namespace)) == 1  # though the cluster has room for another
    order = ("large", "second", "third", "fourth")
    for at, id in enumerate(order):
        led.until("it to run", id, lambda job: job.phase is Phase.RUNNING)
        [pod] = wait_for("its pod alone", lambda: found if len(found := running(kueued, namespace)) == 1 else None, 30)
        assert pod["metadata"]["labels"]["chipwise.dev/job"] == id
        assert [led.job(other).phase for other in order[at + 1 :]] == [Phase.STARTING] * (len(order) - at - 1)
        kubelet.end(kueued.api, pod)
        led.until("it to be done", id, lambda job: job.phase is Phase.DONE)
    assert [len(led.job(id).attempts) for id in order] == [1, 1, 1, 1]


def test_a_job_that_is_stopped_while_it_waits_goes_without_having_run(kueued: Cluster, namespace: str, led: Led) -> None:
    _submit(led, "large", 8)
    led.until("it to run", "large", lambda job: job.phase is Phase.RUNNING)
    _submit(led, "waiting", 4)
    led.until("it to wait", "waiting", lambda job: "8 of 8 GPUs" in job.waiting)
    led.stop("waiting")
    stopped = led.until("it to be stopped", "waiting", lambda job: job.phase is Phase.STOPPED)
    assert stopped.attempts[0].begun is None
    assert led.job("large").phase is Phase.RUNNING
    wait_for("its Job to go", lambda: kueued.api.get("batch/v1", "Job", "waiting-a1", namespace) is None, 30)


def test_what_no_quota_will_ever_hold_is_refused_before_it_is_recorded(kueued: Cluster, namespace: str, led: Led) -> None:
    engine = led.engine
    for queue, gpus, most in (("team-a", 9, 8), ("team-b", 1, 0)):
        job = placed("large", *command_objects(_asked("large", gpus), "team/trainer:1.4", queue))
        told = f"large needs {gpus} GPU{'' if gpus == 1 else 's'}, and queue {queue} never gives more than {most}"
        with pytest.raises(BadInput, match=told):
            engine.check(job)
    with pytest.raises(BadInput, match=r"several queues: team-a, team-b"):
        engine.queue_for("")
    assert not kueued.api.list("batch/v1", "Job", namespace)
