"""What we render, on a real Kubernetes: accepted as it stands, placed where the plan says, and held within its quota."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from chipwise.renderer.deployment import Deployment, Node
from chipwise.renderer.file import CannotRender
from chipwise.renderer.joining import joining
from chipwise.renderer.launch.streams import groups, streams_per_group
from chipwise.renderer.layout import pods
from deployments import AWS_NAMES, NAMES, deployment, session
from kube.control_plane import Cluster
from kube.process import wait_for
from kube.rendered import EFA, disks, has, labels_of, manifests, named, reasons, settled, taints_of

pytestmark = pytest.mark.e2e
TARGETS = ("kubernetes", "karpenter", "kueue", "keda")
AWS = "clouds=[aws]"
CASES = (
    [(name, ()) for name in NAMES]
    + [(name, (AWS,)) for name in AWS_NAMES]
    + [
        ("serve", (AWS, "chips=[inferentia2]")),
        ("train", ("clouds=[gcp]", "chips=[h100]")),
        ("train", ("clouds=[azure]",)),
        ("batch", ("clouds=[azure]",)),
    ]
)


@pytest.fixture(scope="module")
def knowing(kueued: Cluster) -> Cluster:
    """The cluster with all definitions that rendered files name."""
    for component in ("karpenter", "karpenter-aws", "keda", "prometheus-operator"):
        kueued.install(component)
    return kueued


@pytest.mark.parametrize(("example", "limits"), CASES, ids=[f"{name}-{'-'.join(limits)}".rstrip("-") for name, limits in CASES])
def test_the_server_accepts_every_field_of_every_manifest(
    knowing: Cluster, namespace: str, example: str, limits: tuple[str, ...]
) -> None:
    planned = named(deployment(example, *limits), namespace)
    planned = replace(planned, stages=tuple(replace(one, namespace=namespace) for one in planned.stages))
    written = 0
    for one in (planned, *planned.stages):
        for target in TARGETS:
            try:
                made = manifests(target, one)
            except CannotRender:
                continue
            for manifest, answer in zip(made, knowing.api.apply(made, dry_run=True), strict=True):
                assert answer.accepted, f"{target}: {manifest['kind']}: {answer.message}"
            written += len(made)
    assert written or example in ("edge", "hpc", "interactive", "quantum", "pipeline", "stream")


@pytest.fixture
def machines(cluster: Cluster) -> Iterator[Any]:
    """Makes nodes; they are gone afterwards."""
    made: list[str] = []

    def make(planned: Deployment, name: str, many: int = 1, **changed: Any) -> list[str]:
        capacity = {**has(planned.node), **changed.get("capacity", {})}
        labels = {**labels_of(planned), **changed.get("labels", {})}
        taints = taints_of(planned) + list(changed.get("taints", ()))
        names = [f"{planned.name}-{name}-{number}" for number in range(many)]
        for one in names:
            cluster.fake_node(one, {k: v for k, v in capacity.items() if v}, {k: v for k, v in labels.items() if v}, taints)
        made.extend(names)
        return names

    yield make
    for one in made:
        cluster.api.delete("v1", "Node", one)


def trainium(planned: Deployment) -> Deployment:
    """The same training on Trainium, as no example plans it."""
    node = replace(
        planned.node,
        machine="trn1.32xlarge",
        chip="Trainium",
        kind="neuron",
        vendor="AWS",
        chips=16,
        capability=None,
        cores=2,
        vcpus=128,
        memory_bytes=512 * 2.0**30,
        interfaces=8,
    )
    platforms = {**planned.platforms, **joining(session().catalog.rows("runtimes"), node)}
    return replace(planned, node=node, chips_each=16, alternatives=(), platforms=platforms)


PLACED = {
    "training on GPUs over EFA": lambda: deployment("train", AWS),
    "training on Trainium over EFA": lambda: trainium(deployment("train", AWS)),
    "a service on GPUs": lambda: deployment("serve", AWS),
    "a service on Inferentia": lambda: deployment("serve", AWS, "chips=[inferentia2]"),
    "a job on processors": lambda: deployment("hybrid", AWS),
    "training on spot machines of Google": lambda: deployment("train", "clouds=[gcp]", "chips=[h100]"),
    "training on AMD of Azure": lambda: deployment("train", "clouds=[azure]"),
}


@pytest.mark.parametrize("case", PLACED)
def test_pods_land_on_the_machine_of_the_plan_and_on_no_other(
    cluster: Cluster, namespace: str, machines: Any, case: str
) -> None:
    planned = named(PLACED[case](), namespace)
    made = manifests("kubernetes", planned, "namespace.yaml", "workload.yaml")
    wrong: dict[str, dict[str, Any]] = {
        "type": {"labels": {"node.kubernetes.io/instance-type": "m5.large"}},
        "taint": {"taints": [{"key": "of-others", "effect": "NoSchedule"}]},
    }
    bought = {key: "" for key in labels_of(planned) if "capacity" in key or "spot" in key or "scalesetpriority" in key}
    if bought:
        wrong["purchase"] = {"labels": bought}
    if planned.node.chips:
        wrong["chips"] = {"capacity": {key: "" for key in has(planned.node) if key not in ("cpu", "memory", EFA)}}
    if EFA in str(made):
        wrong["efa"] = {"capacity": {EFA: ""}}
    for name, change in wrong.items():
        machines(planned, name, **change)
    with disks(cluster, made):
        cluster.must_apply(made)
        many = planned.scaling.usual if planned.scaling is not None else pods(planned)
        if planned.scaling is not None:  # the autoscaler has no metrics here, so it leaves the number to us
            cluster.api.merge("apps/v1", "Deployment", namespace, {"spec": {"replicas": many}}, namespace).must()
        wait_for("all pods", lambda: len(cluster.pods(namespace)) == many, 20)
        # At first the scheduler may only say that disks are not bound yet.
        said = ("untolerated taint", "didn't match Pod's node affinity")
        wait_for(
            "reasons that name the taint and the affinity",
            lambda: all(text in reason for reason in reasons(cluster, namespace) for text in said),
            30,
        )
        assert not cluster.bound(namespace)

        right = machines(planned, "right", planned.machines)
        assert set(settled(cluster, namespace, many).values()) <= set(right)


@pytest.mark.parametrize("cloud", ["aws", "gcp", "azure"])
def test_live_streams_land_on_the_machines_of_the_plan_each_in_one_group(
    cluster: Cluster, namespace: str, machines: Any, cloud: str
) -> None:
    planned = named(deployment("transcode", f"clouds=[{cloud}]"), namespace)
    made = manifests("kubernetes", planned, "namespace.yaml", "streams.yaml", "workload.yaml")
    right = machines(planned, "right", planned.machines)
    machines(planned, "wrong", 2, labels={"node.kubernetes.io/instance-type": "m5.large"})
    cluster.must_apply(made)
    placed = settled(cluster, namespace, groups(planned))
    assert Counter(placed.values()) == dict.fromkeys(right, max(planned.node.chips, 1)), "a pod for each chip"
    numbers = sorted(int(pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"]) for pod in cluster.pods(namespace))
    assert numbers == list(range(groups(planned)))
    taken = [
        at for number in numbers for at in range(number * streams_per_group(planned), (number + 1) * streams_per_group(planned))
    ]
    assert [at for at in taken if at < planned.streams] == list(range(planned.streams)), "every stream, and none twice"


def _quota_stands(cluster: Cluster, namespace: str) -> bool:
    """Whether the controller has made its first count: pods that come during it may be missed until its next, minutes later."""
    return all("used" in quota.get("status", {}) for quota in cluster.api.list("v1", "ResourceQuota", namespace))


def _quota_is_used_up(cluster: Cluster, namespace: str) -> bool:
    """Whether the pods of the first job are counted: another that comes before that may pass by."""
    quotas = [one["status"] for one in cluster.api.list("v1", "ResourceQuota", namespace)]
    gpus = [(one.get("used", {}).get(name), count) for one in quotas for name, count in one["hard"].items() if "gpu" in name]
    return bool(gpus) and all(used == count for used, count in gpus)


def test_a_quota_holds_the_second_job_back(cluster: Cluster, namespace: str, machines: Any) -> None:
    planned = named(deployment("train", AWS), namespace)
    made = manifests("kubernetes", planned, "namespace.yaml", "workload.yaml")
    machines(planned, "right", 2 * planned.machines)
    with disks(cluster, made):
        cluster.must_apply([one for one in made if one["kind"] != "Job"])
        wait_for("the quota's first count", lambda: _quota_stands(cluster, namespace), 30)
        cluster.must_apply([one for one in made if one["kind"] == "Job"])
        first = settled(cluster, namespace, planned.machines)
        wait_for("the quota's count of the first job", lambda: _quota_is_used_up(cluster, namespace), 60)
        job = next(one for one in made if one["kind"] == "Job")
        second = {**job, "metadata": {**job["metadata"], "name": "second"}}
        cluster.must_apply([second])

        def told() -> str | None:
            events = cluster.api.list("v1", "Event", namespace, fields="involvedObject.name=second")
            refused = [one["message"] for one in events if one["reason"] == "FailedCreate"]
            return next((message for message in refused if "exceeded quota" in message), None)

        message = wait_for("the quota's refusal", told, 30)
        assert "requests.nvidia.com/gpu" in message
        assert set(cluster.bound(namespace)) == set(first)


def test_a_job_of_several_machines_stays_on_one_machine_type(cluster: Cluster, namespace: str, machines: Any) -> None:
    planned = named(deployment("train", AWS), namespace)
    other = replace(planned.node, machine="p5en.48xlarge")
    planned = replace(planned, alternatives=(other,))
    made = manifests("kubernetes", planned, "namespace.yaml", "workload.yaml")
    machines(planned, "right", 1)
    machines(replace(planned, node=other), "other", 1)
    with disks(cluster, made):
        cluster.must_apply(made)
        wait_for("one bound pod", lambda: len(cluster.bound(namespace)) == 1, 20)
        assert any("pod affinity" in reason for reason in reasons(cluster, namespace))
        taken = next(iter(cluster.bound(namespace).values()))
        same = planned.node if "-right-" in taken else other
        machines(replace(planned, node=same), "more", 1)
        settled(cluster, namespace, 2)


def test_device_plugins_run_where_the_devices_are(cluster: Cluster, namespace: str, machines: Any) -> None:
    planned = named(deployment("train", AWS), namespace)
    shared = _shared(planned)
    for one in (planned, shared, trainium(planned)):
        for manifest, answer in zip(made := manifests("kubernetes", one, "devices.yaml"), cluster.apply(made), strict=True):
            assert answer.accepted, f"{manifest['kind']}: {answer.message}"
    plugins = ("nvidia-device-plugin", "aws-efa-k8s-device-plugin", "neuron-device-plugin")
    try:
        [gpu] = machines(planned, "gpu")
        [neuron] = machines(trainium(planned), "neuron")
        [plain] = machines(planned, "plain", labels={"node.kubernetes.io/instance-type": "m5.large"})

        def placed() -> dict[str, set[str]]:
            bound = cluster.bound("kube-system")
            return {node: {pod.rsplit("-", 1)[0] for pod, at in bound.items() if at == node} for node in (gpu, neuron, plain)}

        # The last of the EFA plugins that were applied is that of Trainium.
        wanted = {gpu: {"nvidia-device-plugin"}, neuron: {"neuron-device-plugin", "aws-efa-k8s-device-plugin"}, plain: set()}
        wait_for("the plugins on their machines", lambda: placed() == wanted, 30)
    finally:
        for name in plugins:
            cluster.api.delete("apps/v1", "DaemonSet", name, "kube-system")


def _shared(planned: Deployment) -> Deployment:
    node: Node = replace(planned.node, sharing="turns", users_per_chip=4)
    return replace(planned, node=node)
