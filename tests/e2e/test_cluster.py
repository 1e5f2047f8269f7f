"""The test cluster itself: it is a real Kubernetes that refuses, schedules, queues and grows as one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from kube import kubelet, programs
from kube.control_plane import Cluster
from kube.karpenter import CAPACITY_TYPE, NODE_CLASS, MachineType, Offering
from kube.karpenter import VERSION as KARPENTER
from kube.kueue import VERSION as KUEUE
from kube.process import wait_for

pytestmark = pytest.mark.e2e
GPU = "nvidia.com/gpu"
OLDEST_MINOR = 32  # what our manifests are written for
INSTANCE_TYPE = "node.kubernetes.io/instance-type"


def _container(gpus: int, name: str = "main") -> dict[str, Any]:
    resources = {"cpu": "1", "memory": "1Gi", GPU: str(gpus)}
    return {"name": name, "image": "example.com/none:1", "resources": {"requests": resources, "limits": resources}}


def _pod(name: str, gpus: int, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [_container(gpus)], **spec}}


def _condition(seen: Mapping[str, Any], kind: str) -> bool:
    return any(one["type"] == kind and one["status"] == "True" for one in seen.get("status", {}).get("conditions", ()))


def test_the_server_is_the_kubernetes_that_was_asked_for(cluster: Cluster) -> None:
    version = cluster.api.call("GET", "/version").must()
    if not programs.is_own("kube-apiserver"):  # one's own may be of any version
        assert version["gitVersion"] == f"v{programs.version('kubernetes')}"
    assert int(version["minor"]) >= OLDEST_MINOR


def test_a_stranger_may_not_read_secrets(cluster: Cluster) -> None:
    stranger = cluster.api_as("stranger")
    try:
        answer = stranger.call("GET", "/api/v1/namespaces/default/secrets")
    finally:
        stranger.close()
    assert answer.status == 403
    assert 'User "stranger" cannot list resource "secrets"' in answer.message


def test_eight_gpus_take_two_pods_of_four_and_leave_the_third_pending(cluster: Cluster, namespace: str) -> None:
    node = cluster.fake_node(f"{namespace}-gpu", {GPU: "8"}, taints=[{"key": GPU, "effect": "NoSchedule"}])
    tolerated = [{"key": GPU, "operator": "Exists"}]
    cluster.must_apply([_pod(f"p{number}", 4, tolerations=tolerated) for number in range(3)], namespace)

    def settled() -> list[str] | None:
        reasons = [cluster.why_pending(pod) for pod in cluster.pods(namespace) if not pod["spec"].get("nodeName")]
        return reasons if len(reasons) == 1 and reasons[0] else None

    [reason] = wait_for("two pods bound and a reason for the third", settled, 45)
    assert set(cluster.bound(namespace).values()) == {node}
    assert f"Insufficient {GPU}" in reason
    wait_for("both to run", lambda: sum(pod["status"]["phase"] == "Running" for pod in cluster.pods(namespace)) == 2, 10)


def test_a_pod_that_tolerates_nothing_stays_off_a_tainted_node(cluster: Cluster, namespace: str) -> None:
    cluster.fake_node(f"{namespace}-gpu", {GPU: "8"}, taints=[{"key": GPU, "effect": "NoSchedule"}])
    cluster.must_apply([_pod("plain", 1)], namespace)
    reason = wait_for("a reason", lambda: cluster.why_pending(cluster.pods(namespace)[0]) or None, 45)
    assert "untolerated taint" in reason
    assert not cluster.bound(namespace)


WRONG = {
    "misspelt": ("nodeSelektor: {a: b}", "nodeSelektor"),
    "given twice": ("hostPID: true\n  hostPID: false", "hostPID"),
    "of another type": ("nodeSelector: [a, b]", "nodeSelector"),
}


@pytest.mark.parametrize(("field", "said"), WRONG.values(), ids=WRONG)
def test_a_wrong_field_is_refused_by_name(cluster: Cluster, namespace: str, field: str, said: str) -> None:
    text = f"apiVersion: v1\nkind: Pod\nmetadata: {{name: a}}\nspec:\n  containers: [{{name: a, image: a}}]\n  {field}\n"
    [answer] = cluster.apply(text, namespace)
    assert not answer.accepted
    assert said in answer.message
    assert not cluster.pods(namespace)


def test_half_a_gpu_is_refused(cluster: Cluster, namespace: str) -> None:
    half = _pod("half", 1)
    half["spec"]["containers"][0]["resources"] = {"limits": {GPU: "500m"}}
    [answer] = cluster.apply([half], namespace)
    assert not answer.accepted
    assert "must be an integer" in answer.message


def _job(name: str, queue: str) -> dict[str, Any]:
    template = {"spec": {"restartPolicy": "Never", "containers": [_container(4)]}}
    meta = {"name": name, "labels": {"kueue.x-k8s.io/queue-name": queue}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": {"template": template}}


def test_a_quota_of_four_gpus_holds_the_second_job_until_the_first_ends(kueued: Cluster, namespace: str) -> None:
    cluster, node = kueued, f"{namespace}-gpu"
    cluster.fake_node(node, {GPU: "8"})
    resources = [
        {"name": "cpu", "nominalQuota": "64"},
        {"name": "memory", "nominalQuota": "64Gi"},
        {"name": GPU, "nominalQuota": "4"},
    ]
    group = {"coveredResources": ["cpu", "memory", GPU], "flavors": [{"name": namespace, "resources": resources}]}
    cluster.must_apply(
        [
            {"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": namespace}},
            {
                "apiVersion": KUEUE,
                "kind": "ClusterQueue",
                "metadata": {"name": namespace},
                "spec": {"namespaceSelector": {}, "resourceGroups": [group]},
            },
            {"apiVersion": KUEUE, "kind": "LocalQueue", "metadata": {"name": "team"}, "spec": {"clusterQueue": namespace}},
            _job("first", "team"),
        ],
        namespace,
    )
    try:
        running = wait_for("the first job to run", lambda: _running(cluster, namespace) or None, 45)
        cluster.must_apply([_job("second", "team")], namespace)
        held = wait_for("the second to be held", lambda: _held(cluster, namespace, "second"), 45)
        assert "insufficient unused quota" in held
        assert GPU in held
        assert len(_running(cluster, namespace)) == 1

        older = cluster.api.get("kueue.x-k8s.io/v1beta1", "ClusterQueue", namespace)  # only Kueue can convert it
        assert older is not None
        assert older["spec"]["resourceGroups"] == [group]

        kubelet.end(cluster.api, running[0])
        wait_for("the first to be complete", lambda: _job_has(cluster, namespace, "first", "Complete"), 45)
        second = wait_for("the second to run", lambda: _running(cluster, namespace) or None, 45)
        assert [pod["metadata"]["labels"]["job-name"] for pod in second] == ["second"]
    finally:
        cluster.api.delete(KUEUE, "ClusterQueue", namespace)
        cluster.api.delete(KUEUE, "ResourceFlavor", namespace)


def _running(cluster: Cluster, namespace: str) -> list[Mapping[str, Any]]:
    return [pod for pod in cluster.pods(namespace) if pod["status"]["phase"] == "Running"]


def _job_has(cluster: Cluster, namespace: str, name: str, condition: str) -> bool:
    return _condition(cluster.api.get("batch/v1", "Job", name, namespace) or {}, condition)


def _held(cluster: Cluster, namespace: str, job: str) -> str | None:
    """Kueue's reason for holding the job, while the job is suspended."""
    seen = cluster.api.get("batch/v1", "Job", job, namespace)
    if not seen or not seen["spec"].get("suspend"):
        return None
    for workload in cluster.api.list(KUEUE, "Workload", namespace):
        if any(owner["name"] == job for owner in workload["metadata"].get("ownerReferences", ())):
            conditions = workload.get("status", {}).get("conditions", ())
            return next(
                (str(one["message"]) for one in conditions if one["type"] == "QuotaReserved" and one["status"] == "False"), None
            )
    return None


TYPES = (
    MachineType(
        "g5.12xlarge",
        {"cpu": "48", "memory": "192Gi", GPU: "4"},
        [Offering("on-demand", "zone-a", 5.672), Offering("spot", "zone-a", 2.1)],
    ),
    MachineType(
        "p4d.24xlarge",
        {"cpu": "96", "memory": "1152Gi", GPU: "8"},
        [Offering("on-demand", "zone-a", 21.96), Offering("spot", "zone-a", 9.5)],
    ),
    MachineType("m7i.4xlarge", {"cpu": "16", "memory": "64Gi"}, [Offering("on-demand", "zone-a", 0.8064)]),
)


def test_karpenter_brings_the_cheapest_machine_for_gpu_pods_and_removes_it(
    cluster: Cluster, namespace: str, start_karpenter: Callable[[Sequence[MachineType]], None]
) -> None:
    start_karpenter(TYPES)
    pool = {
        "apiVersion": KARPENTER,
        "kind": "NodePool",
        "metadata": {"name": namespace},
        "spec": {
            "template": {
                "spec": {
                    "nodeClassRef": NODE_CLASS,
                    "requirements": [{"key": CAPACITY_TYPE, "operator": "In", "values": ["spot"]}],
                    "taints": [{"key": GPU, "effect": "NoSchedule"}],
                    "expireAfter": "Never",
                }
            },
            "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "0s"},
        },
    }
    labels = {"app": "render"}
    spec = {"containers": [_container(1)], "tolerations": [{"key": GPU, "operator": "Exists"}]}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "render"},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }
    cluster.must_apply([pool, deployment], namespace)
    wait_for("three bound pods", lambda: len(cluster.bound(namespace)) == 3, 45)
    [name] = set(cluster.bound(namespace).values())
    node = cluster.api.get("v1", "Node", name)
    assert node is not None
    assert (node["metadata"]["labels"][INSTANCE_TYPE], node["metadata"]["labels"][CAPACITY_TYPE]) == ("g5.12xlarge", "spot")

    cluster.api.merge("apps/v1", "Deployment", "render", {"spec": {"replicas": 0}}, namespace).must()
    wait_for("the machine to go", lambda: cluster.api.get("v1", "Node", name) is None, 60)


def test_karpenter_refuses_a_pool_with_an_operator_that_does_not_exist(cluster: Cluster) -> None:
    cluster.install("karpenter")
    requirements = [{"key": CAPACITY_TYPE, "operator": "Is", "values": ["spot"]}]
    template = {"spec": {"nodeClassRef": NODE_CLASS, "requirements": requirements}}
    pool = {"apiVersion": KARPENTER, "kind": "NodePool", "metadata": {"name": "wrong"}, "spec": {"template": template}}
    [answer] = cluster.apply([pool])
    assert not answer.accepted
    assert "Unsupported value" in answer.message


KINDS = {
    "karpenter": (KARPENTER, "NodePool"),
    "karpenter-aws": ("karpenter.k8s.aws/v1", "EC2NodeClass"),
    "kueue": (KUEUE, "Cohort"),
    "keda": ("keda.sh/v1alpha1", "ScaledObject"),
    "lws": ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"),
}


@pytest.mark.parametrize("component", KINDS)
def test_a_misspelt_field_of_an_extension_is_refused_by_name(cluster: Cluster, component: str) -> None:
    cluster.install(component)
    version, kind = KINDS[component]
    [answer] = cluster.apply([{"apiVersion": version, "kind": kind, "metadata": {"name": "wrong"}, "spek": {}}])
    assert not answer.accepted
    assert "spek" in answer.message
