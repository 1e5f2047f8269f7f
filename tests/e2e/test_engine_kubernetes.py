"""The kubernetes engine on the real control plane, with Kueue and Karpenter, led by the real controller over a real record.

Only machines are played: nodes are objects, and `kube.kubelet` says of their pods what a kubelet would.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from chipwise.adapters.engines.kubernetes.plain import command_objects
from chipwise.catalog.offer import Purchase
from chipwise.renderer.cluster.work import work
from chipwise.renderer.deployment import Deployment
from chipwise.runner.job import MachinePlace, Needs, Outcome, Phase, Spec
from deployments import deployment
from engines.kubernetes import job_object
from kube import kubelet
from kube.control_plane import Cluster
from kube.karpenter import VERSION as KARPENTER
from kube.karpenter import MachineType, Offering, on_played_machines
from kube.kueue import VERSION as KUEUE
from kube.led import Led, led_on, running, service_objects, worked
from kube.process import wait_for
from kube.rendered import disks, has, labels_of, manifests, named, taints_of

pytestmark = pytest.mark.e2e


@pytest.fixture
def led(cluster: Cluster, namespace: str, tmp_path: Path) -> Iterator[Led]:
    with led_on(cluster.kubeconfig(), namespace, tmp_path, image_patience_s=1.0) as made:
        yield made


def _offered(planned: Deployment) -> list[MachineType]:
    zones = (f"{planned.node.region}a", f"{planned.node.region}b")
    offered = [Offering(kind, zone, 1.0) for kind in ("spot", "on-demand") for zone in zones]
    return [MachineType(planned.node.machine, {**has(planned.node), "pods": "110"}, offered, planned.node.arch)]


def test_a_job_is_queued_admitted_gets_a_machine_loses_it_and_is_done(
    kueued: Cluster, namespace: str, led: Led, start_karpenter: Callable[[Sequence[MachineType]], None]
) -> None:
    """Kueue, Karpenter, the Job controller and ours, each in its own part."""
    cluster, planned = kueued, named(deployment("train", "clouds=[aws]"), namespace)
    start_karpenter(_offered(planned))
    pool = next(one for one in manifests("karpenter", planned) if one["kind"] == "NodePool")
    rendered = manifests("kueue", planned)
    around = [one for one in rendered if one["kind"] not in ("Job", "Service", "PersistentVolumeClaim")]
    queue = next(one for one in rendered if one["kind"] == "LocalQueue")["metadata"]["name"]
    machines = planned.machines
    with disks(cluster, rendered):
        cluster.must_apply([*around, on_played_machines(pool)])
        try:
            place = MachinePlace(Purchase.SPOT, "aws", planned.node.region, "", planned.node.machine, 1.5)
            led.submit("first", objects=worked(rendered), places=(place,), team="vision", grace_s=20.0)
            begun = led.until("the first to run", "first", lambda job: job.phase is Phase.RUNNING)
            assert begun.attempts[0].where.machine == planned.node.machine
            assert begun.attempts[0].where.purchase is Purchase.SPOT
            assert begun.attempts[0].where.usd_per_hour == 1.5
            wait_for("all of its pods", lambda: len(running(cluster, namespace, "first")) == machines or None, 30)
            told = " | ".join(led.waited("first"))
            assert "no node fits" in told or "machine is being provisioned" in told, told

            led.submit("second", objects=worked(rendered, seconds=1.0), places=(place,))
            led.until("the second to wait", "second", lambda job: "in use" in job.waiting)
            time.sleep(1.1)  # a cluster knows by the second which was there first
            led.submit("third", objects=worked(rendered, seconds=1.0), places=(place,))
            held = led.until("the third to be told why", "third", lambda job: "1 job ahead" in job.waiting)
            chips = machines * planned.node.chips
            assert held.waiting == f"waiting: {queue} has {chips} of {chips} GPUs in use; 1 job ahead"
            assert held.phase is Phase.STARTING

            # Its machine is taken away: Karpenter marks it, the job is told, saves, and goes on elsewhere.
            lost = running(cluster, namespace, "first")[0]["spec"]["nodeName"]
            cluster.api.delete("v1", "Node", lost)
            left = led.until("the notice", "first", lambda job: job.attempts[0].ended is not None)
            assert left.attempts[0].outcome is Outcome.LEFT
            assert lost in left.attempts[0].reason or lost in str(led.record.events("first"))

            again = led.until("its next attempt", "first", lambda job: len(job.attempts) == 2)
            assert again.attempts[1].number == 2

            def finished() -> bool:
                """Whoever Kueue lets in next; the first is ended by hand when all of its pods run again."""
                pods = running(cluster, namespace, "first")
                if led.job("first").phase is Phase.RUNNING and len(pods) == machines:
                    for pod in pods:
                        assert pod["spec"]["nodeName"] != lost
                        kubelet.end(cluster.api, pod)
                return all(led.job(id).phase is Phase.DONE for id in ("first", "second", "third"))

            wait_for("all three to be done", finished, 90, every=0.5)
            done = led.until("the first to be done", "first", lambda job: job.phase is Phase.DONE)
            assert [one.outcome for one in done.attempts] == [Outcome.LEFT, Outcome.DONE]
            for version, kind in (("batch/v1", "Job"), ("v1", "Service")):
                listed = partial(cluster.api.list, version, kind, namespace, "chipwise.dev/job")
                wait_for(f"no {kind} of it to be left", lambda listed=listed: not listed(), 30)  # type: ignore[misc]
            assert cluster.api.list("v1", "PersistentVolumeClaim", namespace)  # checkpoints stay
        finally:
            cluster.api.empty("batch/v1", "Job", namespace)
            cluster.api.delete(KARPENTER, "NodePool", namespace)
            for kind in ("ClusterQueue", "ResourceFlavor"):
                for one in cluster.api.list(KUEUE, kind):
                    cluster.api.delete(KUEUE, kind, one["metadata"]["name"])


def test_pods_of_a_lost_machine_are_made_anew_by_the_same_attempt(cluster: Cluster, namespace: str, led: Led) -> None:
    """Several machines: an Indexed Job, whose policy does not count lost pods."""
    planned = named(deployment("train", "clouds=[aws]"), namespace)
    assert planned.machines > 1
    for number in range(planned.machines + 1):
        cluster.fake_node(f"{namespace}-{number}", has(planned.node), labels_of(planned), taints_of(planned))
    objects = work(planned, image="team/trainer:1.4")  # all that it needs: nobody prepared the namespace
    with disks(cluster, objects):
        led.submit("many", objects=worked(objects))
        led.until("it to run", "many", lambda job: job.phase is Phase.RUNNING)
        pods = wait_for(
            "its pods", lambda: found if len(found := running(cluster, namespace, "many")) == planned.machines else None, 30
        )
        kubelet.disrupt(cluster.api, pods[0], "the node is shutting down")

        def replaced() -> list[Mapping[str, Any]] | None:
            found = running(cluster, namespace, "many")
            fresh = {one["metadata"]["uid"] for one in found} - {one["metadata"]["uid"] for one in pods}
            return found if len(found) == planned.machines and fresh else None

        again = wait_for("a pod in its place", replaced, 60)
        script = str(again[0]["spec"]["containers"][0]["command"])
        assert f"many-a1-0.many-a1.{namespace}.svc" in script  # where its pods meet, by the names of the attempt
        assert again[0]["spec"]["subdomain"] == "many-a1"
        assert cluster.api.get("v1", "Service", "many-a1", namespace) is not None
        assert len(led.job("many").attempts) == 1
        for pod in again:
            kubelet.end(cluster.api, pod)
        done = led.until("it to be done", "many", lambda job: job.phase is Phase.DONE)
        assert len(done.attempts) == 1


def test_a_lost_attempt_is_followed_by_another_and_a_bug_is_not_for_ever(cluster: Cluster, namespace: str, led: Led) -> None:
    cluster.fake_node(f"{namespace}-node", {})
    led.submit("lost", objects=(job_object({kubelet.ON_TERM: "75"}),))
    led.submit(
        "bug", objects=(job_object({kubelet.RUNS_SECONDS: "0.2", kubelet.EXIT_CODE: "3"}, completions=2, parallelism=2),)
    )
    led.until("it to run", "lost", lambda job: job.phase is Phase.RUNNING)
    [pod] = running(cluster, namespace, "lost")
    kubelet.disrupt(cluster.api, pod, "the node is shutting down")
    led.until("its second attempt", "lost", lambda job: len(job.attempts) == 2 and job.phase is Phase.RUNNING)
    assert led.job("lost").attempts[0].outcome is Outcome.LOST
    assert "the node is shutting down" in led.job("lost").attempts[0].reason
    cluster.api.delete("batch/v1", "Job", "lost-a2", namespace)  # by somebody else
    led.until("its third", "lost", lambda job: len(job.attempts) == 3 and job.phase is Phase.RUNNING)
    assert "gone from the cluster" in led.job("lost").attempts[1].reason
    led.stop("lost")
    stopped = led.until("it to be stopped", "lost", lambda job: job.phase is Phase.STOPPED)
    assert stopped.attempts[2].code == 75
    failed = led.until("the bug to be final", "bug", lambda job: job.phase is Phase.FAILED)
    assert [one.code for one in failed.attempts] == [3, 3, 3]
    assert "of 2 ended with code 3" in failed.reason
    wait_for("nothing to be left", lambda: not cluster.api.list("batch/v1", "Job", namespace), 30)


def test_a_plain_command_on_several_machines_is_one_gang_that_ends_and_begins_together(
    cluster: Cluster, namespace: str, led: Led
) -> None:
    cluster.fake_node(f"{namespace}-node", {"nvidia.com/gpu": "8"})
    asked = Spec(("python", "train.py"), "gang", needs=Needs(gpus=2, machines=3))
    led.submit("gang", objects=worked(command_objects(asked, "team/trainer:1.4")))
    led.until("it to run", "gang", lambda job: job.phase is Phase.RUNNING)
    pods = wait_for("its pods", lambda: found if len(found := running(cluster, namespace, "gang")) == 3 else None, 30)
    env = {one["name"]: one.get("value") for one in pods[0]["spec"]["containers"][0]["env"]}
    assert env["MASTER_ADDR"] == f"gang-a1-0.gang-a1.{namespace}.svc"
    ranks = sorted(one["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] for one in pods)
    assert ranks == ["0", "1", "2"]
    kubelet.disrupt(cluster.api, pods[1], "the node is shutting down")
    led.until("all three anew", "gang", lambda job: len(job.attempts) == 2 and job.phase is Phase.RUNNING)
    again = wait_for("its pods", lambda: found if len(found := running(cluster, namespace, "gang")) == 3 else None, 30)
    assert not {one["metadata"]["uid"] for one in again} & {one["metadata"]["uid"] for one in pods}
    for pod in again:
        kubelet.end(cluster.api, pod)
    done = led.until("it to be done", "gang", lambda job: job.phase is Phase.DONE)
    first, second = (one.outcome for one in done.attempts)
    # Whether the controller looks before the Job controller has ended the others, and asks them to leave, is a matter of luck.
    assert (first in (Outcome.LOST, Outcome.LEFT), second) == (True, Outcome.DONE)


def test_an_image_that_does_not_exist_ends_the_job_with_one_sentence_and_leaves_nothing(
    cluster: Cluster, namespace: str, led: Led
) -> None:
    cluster.fake_node(f"{namespace}-node", {})
    led.submit("typo", objects=(job_object({kubelet.NO_IMAGE: "yes"}),))
    failed = led.until("it to be given up", "typo", lambda job: job.phase is Phase.FAILED)
    told = "its image example.com/none:1 cannot be pulled: ErrImagePull: example.com/none:1: not found"
    assert failed.reason == told
    assert told in led.waited("typo")  # said while it was still waited for
    assert len(failed.attempts) == 1
    wait_for("nothing to be left", lambda: not cluster.api.list("batch/v1", "Job", namespace), 30)
    wait_for("no pod either", lambda: not cluster.pods(namespace), 30)


def test_a_service_runs_until_its_owner_stops_it(cluster: Cluster, namespace: str, led: Led) -> None:
    cluster.fake_node(f"{namespace}-node", {})
    led.submit("web", objects=service_objects(), service=True)
    led.until("it to answer", "web", lambda job: job.phase is Phase.RUNNING)
    led.stop("web")
    stopped = led.until("it to be stopped", "web", lambda job: job.phase is Phase.STOPPED)
    assert len(stopped.attempts) == 1
    wait_for("nothing to be left", lambda: not cluster.api.list("apps/v1", "Deployment", namespace), 30)
