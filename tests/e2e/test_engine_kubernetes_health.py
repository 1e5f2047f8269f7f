"""A sick node on a real control plane: it is cordoned where the rights allow it, and the job moves either way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

import kubernetes_rights as rights
from chipwise.adapters.engines.kubernetes import health
from chipwise.errors import NotAllowed
from chipwise.runner.job import Outcome, Phase
from chipwise.runner.story import event_sentence
from engines.kubernetes import job_object
from kube import kubelet
from kube.control_plane import Cluster
from kube.credentials import kubeconfig
from kube.led import Led, led_on, running
from kube.process import wait_for

pytestmark = pytest.mark.e2e
PAGES = Path(__file__).parents[2] / "docs" / "running"
GPU = "nvidia.com/gpu"


def granted(cluster: Cluster, namespace: str, folder: Path, *pages: str) -> Path:
    """The kubeconfig of an account that has the rights of these pages."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "runner", "namespace": namespace}}
    cluster.must_apply([account])
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/runner/token"
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    token = cluster.api.call("POST", path, asked).must()["status"]["token"]
    for page in pages:
        text = (PAGES / page).read_text().replace("NAMESPACE", namespace)
        text = text.replace("SOMEBODY", f"system:serviceaccount:{namespace}:runner")
        cluster.must_apply(list(yaml.safe_load_all(text)))
    return kubeconfig(folder / "runner", cluster.server, cluster.folder / "authority.crt", token)


@pytest.fixture(
    params=[("kubernetes-role.yaml",), ("kubernetes-role.yaml", "kubernetes-cordon-role.yaml")], ids=["may not", "may"]
)
def led(
    request: pytest.FixtureRequest, cluster: Cluster, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Led, bool]]:
    monkeypatch.setattr(health, "LASTS_S", 1.0)
    may_cordon = len(request.param) > 1
    file = granted(cluster, namespace, tmp_path, *request.param)
    with led_on(file, namespace, tmp_path) as made:
        wait_for("the rights to hold", lambda: _may(made), 20)
        made.trouble.clear()
        yield made, may_cordon
    for name in (rights.NAME, rights.CORDONS):
        cluster.api.delete("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", f"{name}-{namespace}")
        cluster.api.delete("rbac.authorization.k8s.io/v1", "ClusterRole", name)


def _may(led: Led) -> bool:
    try:
        led.engine.look([], 0.0)
    except NotAllowed:
        return False
    return all(watch.is_listed for watch in led.engine.watches if watch.watched.kind.name == "Node")


def sicken(cluster: Cluster, node: str, kind: str) -> None:
    conditions = [
        {"type": "Ready", "status": "True", "reason": "KubeletReady"},
        {"type": kind, "status": "True", "reason": "XID79"},
    ]
    cluster.api.merge("v1", "Node", node, {"status": {"conditions": conditions}}, status=True).must()


def test_a_job_on_a_sick_node_moves_to_another_and_says_why(cluster: Cluster, namespace: str, led: tuple[Led, bool]) -> None:
    controller, may_cordon = led
    nodes = {cluster.fake_node(f"{namespace}-{letter}", {GPU: "8"}) for letter in "ab"}
    work = job_object({kubelet.ON_TERM: "75"}, {"cpu": "1", GPU: "8"})
    controller.submit("one", objects=(work,))
    controller.until("it to run", "one", lambda job: job.phase is Phase.RUNNING)
    [pod] = wait_for("its pod", lambda: running(cluster, namespace, "one"), 30)
    sick = pod["spec"]["nodeName"]

    sicken(cluster, sick, "XIDErrors")  # a sign to watch, and no more
    sicken(cluster, sick, "GPUMissing")
    moved = controller.until("its second attempt", "one", lambda job: len(job.attempts) == 2 and job.phase is Phase.RUNNING)
    assert moved.attempts[0].outcome is Outcome.LEFT
    [pod] = wait_for("its second pod", lambda: running(cluster, namespace, "one"), 30)
    assert pod["spec"]["nodeName"] == (nodes - {sick}).pop()
    story = " ".join(event_sentence(one.event) or "" for one in controller.record.events("one"))
    assert f"node {sick} is unhealthy: condition GPUMissing is True (XID79)" in story
    node = cluster.api.get("v1", "Node", sick)
    assert node is not None
    taints = [taint for taint in node["spec"].get("taints", ()) if taint["key"] == health.TAINT]
    assert [(taint["effect"], taint["value"]) for taint in taints] == (
        [("NoSchedule", "condition-GPUMissing-is-True-XID79")] if may_cordon else []
    )
    kubelet.end(cluster.api, pod)
    done = controller.until("it to be done", "one", lambda job: job.phase is Phase.DONE)
    assert replace(done.attempts[1]).outcome is Outcome.DONE
