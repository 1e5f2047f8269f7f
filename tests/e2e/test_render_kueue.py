"""Rendered queues on the real Kueue: quota holds work back, a cohort lends, and what runs lands on its flavor's machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from chipwise.renderer.deployment import Deployment
from deployments import deployment
from fixed_deployments import CASES
from kube import kubelet
from kube.control_plane import Cluster
from kube.kueue import VERSION
from kube.process import wait_for
from kube.rendered import disks, has, labels_of, manifests, named, settled, taints_of

pytestmark = pytest.mark.e2e
GPU = "nvidia.com/gpu"


@pytest.fixture
def planned(kueued: Cluster, namespace: str) -> Iterator[Deployment]:
    """Training on two machines, with twice as many in the cluster; its queues are gone afterwards."""
    one = named(deployment("train", "clouds=[aws]"), namespace)
    for number in range(2 * one.machines):
        kueued.fake_node(f"{namespace}-{number}", has(one.node), labels_of(one), taints_of(one))
    made = manifests("kueue", one)
    with disks(kueued, made):
        kueued.must_apply(made)
        yield one
    for kind in ("ClusterQueue", "ResourceFlavor"):
        for queue in kueued.api.list(VERSION, kind):
            kueued.api.delete(VERSION, kind, queue["metadata"]["name"])


def _second(planned: Deployment) -> dict[str, Any]:
    job = next(one for one in manifests("kueue", planned) if one["kind"] == "Job")
    return {**job, "metadata": {**job["metadata"], "name": "second"}}


def _held(cluster: Cluster, planned: Deployment) -> str | None:
    """Kueue's reason for holding the second job, while it is suspended."""
    seen = cluster.api.get("batch/v1", "Job", "second", planned.name)
    if not seen or not seen["spec"].get("suspend"):
        return None
    for workload in cluster.api.list(VERSION, "Workload", planned.name):
        if any(owner["name"] == "second" for owner in workload["metadata"].get("ownerReferences", ())):
            conditions = workload.get("status", {}).get("conditions", ())
            return next((str(one["message"]) for one in conditions if one["type"] == "QuotaReserved"), None)
    return None


def _of(cluster: Cluster, planned: Deployment, job: str) -> list[Mapping[str, Any]]:
    return cluster.pods(planned.name, f"job-name={job}")


def test_the_second_job_waits_until_the_first_is_done(kueued: Cluster, planned: Deployment) -> None:
    settled(kueued, planned.name, planned.machines)
    kueued.must_apply([_second(planned)])
    held = wait_for("the second to be held", lambda: _held(kueued, planned), 20)
    assert "insufficient" in held
    assert GPU in held
    assert not _of(kueued, planned, "second")

    for pod in _of(kueued, planned, planned.name):
        kubelet.end(kueued.api, pod)
    wait_for("the second to run", lambda: len(_of(kueued, planned, "second")) == planned.machines, 30)


def test_a_pod_that_was_let_in_runs_on_the_machine_of_its_flavor(kueued: Cluster, planned: Deployment) -> None:
    settled(kueued, planned.name, planned.machines)
    for pod in _of(kueued, planned, planned.name):
        chosen = pod["spec"]["nodeSelector"]
        assert chosen["node.kubernetes.io/instance-type"] == planned.node.machine
        assert chosen["karpenter.sh/capacity-type"] == "spot"


def test_what_others_of_the_cohort_do_not_use_is_lent(kueued: Cluster, planned: Deployment) -> None:
    settled(kueued, planned.name, planned.machines)
    kueued.must_apply([_second(planned)])
    wait_for("the second to be held", lambda: _held(kueued, planned), 20)
    queue = next(one for one in manifests("kueue", planned) if one["kind"] == "ClusterQueue")
    idle = {**queue, "metadata": {"name": f"{planned.name}-idle"}}
    kueued.must_apply([idle])
    wait_for("the second to run on what is lent", lambda: len(_of(kueued, planned, "second")) == planned.machines, 30)


def test_a_service_takes_its_part_of_the_quota(kueued: Cluster, namespace: str) -> None:
    one = named(deployment("serve", "clouds=[aws]"), namespace)
    assert one.scaling is not None
    for number in range(one.machines):
        kueued.fake_node(f"{namespace}-{number}", has(one.node), labels_of(one), taints_of(one))
    made = manifests("kueue", one)
    try:
        with disks(kueued, made):
            kueued.must_apply(made)
            kueued.api.merge("apps/v1", "Deployment", namespace, {"spec": {"replicas": one.scaling.usual}}, namespace).must()
            settled(kueued, namespace, one.scaling.usual)
            [queue] = [it for it in kueued.api.list(VERSION, "ClusterQueue") if it["metadata"]["name"] == namespace]

            def used() -> list[str] | None:
                seen = kueued.api.get(VERSION, "ClusterQueue", namespace)
                usage = (seen or {}).get("status", {}).get("flavorsUsage", [])
                totals = [it["total"] for flavor in usage for it in flavor["resources"] if it["name"] == GPU]
                return totals if totals == [str(one.machines)] else None

            wait_for("the quota's use", used, 20)
            assert queue["spec"]["cohortName"] == "accelerators"
    finally:
        kueued.api.delete(VERSION, "ClusterQueue", namespace)
        for flavor in kueued.api.list(VERSION, "ResourceFlavor"):
            kueued.api.delete(VERSION, "ResourceFlavor", flavor["metadata"]["name"])


@pytest.mark.parametrize(
    ("target", "api", "kind"),
    [("jobset", "jobset.x-k8s.io/v1alpha2", "JobSet"), ("trainjob", "trainer.kubeflow.org/v1alpha1", "TrainJob")],
)
def test_a_set_is_let_in_as_a_whole_within_the_quota_of_its_queue(
    kueued: Cluster, namespace: str, target: str, api: str, kind: str
) -> None:
    """The controllers of JobSet and Kubeflow Trainer do not run: Kueue lets in, and nothing starts."""
    one = named(deployment("train", "clouds=[aws]"), namespace)
    made = manifests(target, one)
    runs = next(it for it in made if it["kind"] == kind)
    assert "suspend" not in runs["spec"]
    try:
        kueued.must_apply([*manifests("kueue", one, "namespace.yaml", "queues.yaml")])
        kueued.must_apply([it for it in made if it["kind"] == "ClusterTrainingRuntime"])
        kueued.must_apply([runs])

        def admitted() -> Mapping[str, Any] | None:
            for workload in kueued.api.list(VERSION, "Workload", namespace):
                conditions = workload.get("status", {}).get("conditions", ())
                if any((it["type"], it["status"]) == ("Admitted", "True") for it in conditions):
                    return workload
            return None

        workload = wait_for("the workload to be admitted", admitted, 30)
        [pods] = workload["spec"]["podSets"]
        assert pods["count"] == one.machines
        [given] = workload["status"]["admission"]["podSetAssignments"]
        assert given["resourceUsage"][GPU] == str(one.machines * one.node.chips)
        wait_for(
            "it to be resumed",
            lambda: not (kueued.api.get(api, kind, namespace, namespace) or {"spec": {"suspend": True}})["spec"].get("suspend"),
            20,
        )
    finally:
        kueued.api.delete(api, kind, namespace, namespace)
        for queued in ("ClusterQueue", "ResourceFlavor"):
            for queue in kueued.api.list(VERSION, queued):
                kueued.api.delete(VERSION, queued, queue["metadata"]["name"])


def test_ranks_of_mpi_are_let_in_when_there_is_room_for_every_machine(kueued: Cluster, namespace: str) -> None:
    """The MPI Operator does not run: Kueue lets in, and nothing starts."""
    one = named(CASES["hpc"], namespace)
    made = manifests("mpijob", one)
    job = next(it for it in made if it["kind"] == "MPIJob")
    second = {**job, "metadata": {**job["metadata"], "name": "second"}}
    api = str(job["apiVersion"])

    def suspended(name: str) -> bool:
        return bool((kueued.api.get(api, "MPIJob", name, namespace) or job)["spec"]["runPolicy"].get("suspend"))

    try:
        kueued.must_apply([it for it in made if it["kind"] != "MPIJob"])
        kueued.must_apply([job])
        wait_for("the first to be let in", lambda: _quota(kueued, namespace, namespace) == "True", 30)
        wait_for("it to be resumed", lambda: not suspended(namespace), 20)
        workload = _workload(kueued, namespace, namespace)
        assert {it["name"]: it["count"] for it in workload["spec"]["podSets"]} == {"launcher": 1, "worker": one.machines - 1}
        kueued.must_apply([second])
        wait_for("the second to be held", lambda: _quota(kueued, namespace, "second") == "False", 30)
        assert suspended("second")
    finally:
        for name in (namespace, "second"):
            kueued.api.delete(api, "MPIJob", name, namespace)
        for kind in ("ClusterQueue", "ResourceFlavor"):
            for queue in kueued.api.list(VERSION, kind):
                kueued.api.delete(VERSION, kind, queue["metadata"]["name"])


def _workload(cluster: Cluster, namespace: str, job: str) -> Mapping[str, Any]:
    every = cluster.api.list(VERSION, "Workload", namespace)
    owned = (it for it in every if any(owner["name"] == job for owner in it["metadata"].get("ownerReferences", ())))
    return next(owned, {})


def _quota(cluster: Cluster, namespace: str, job: str) -> str | None:
    conditions = _workload(cluster, namespace, job).get("status", {}).get("conditions", ())
    return next((str(it["status"]) for it in conditions if it["type"] == "QuotaReserved"), None)
