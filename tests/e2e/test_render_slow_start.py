"""A rollout that takes longer than the ten minutes that Kubernetes gives one by itself, on a real control plane."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from chipwise.renderer.deployment import Scaling
from chipwise.renderer.launch.timing import progress_seconds, ready_seconds
from fixed_deployments import CASES
from kube.control_plane import Cluster
from kube.kubelet import COMES_SECONDS
from kube.process import wait_for
from kube.rendered import disks, has, labels_of, manifests, named, taints_of

pytestmark = pytest.mark.e2e
DEFAULT_S = 600  # of apps/v1
FASTER = 20.0  # all times are played so much faster, alike
REPLICAS = 2


def exceeded(seen: Mapping[str, Any] | None) -> bool:
    conditions = (seen or {}).get("status", {}).get("conditions") or ()
    return any(one["type"] == "Progressing" and one.get("reason") == "ProgressDeadlineExceeded" for one in conditions)


@pytest.mark.parametrize("by_default", [False, True], ids=["as-rendered", "by-default"])
def test_a_service_that_takes_longer_than_ten_minutes_to_come_is_not_given_up(
    cluster: Cluster, namespace: str, by_default: bool
) -> None:
    """With the deadline that the files have; by default the same start is called failed, which a pipeline would roll back."""
    planned = replace(named(CASES["serve"], namespace), scaling=Scaling(REPLICAS, REPLICAS, REPLICAS, 6.9, 128))
    comes = (ready_seconds(planned) + DEFAULT_S) / 2  # slow, and within what is predicted at most
    assert DEFAULT_S < comes < progress_seconds(planned)
    made = manifests("kubernetes", planned, "namespace.yaml", "workload.yaml")
    [deployment] = [one for one in made if one["kind"] == "Deployment"]
    deadline = DEFAULT_S if by_default else deployment["spec"]["progressDeadlineSeconds"]
    deployment["spec"] |= {"progressDeadlineSeconds": round(deadline / FASTER), "minReadySeconds": 1}
    deployment["spec"]["template"]["metadata"]["annotations"] = {COMES_SECONDS: f"{comes / FASTER:.0f}"}
    labels = {key: value for key, value in labels_of(planned).items() if value}
    for number in range(REPLICAS):
        cluster.fake_node(f"{namespace}-{number}", has(planned.node), labels, taints_of(planned))
    given_up = False

    def came() -> bool:
        nonlocal given_up
        seen = cluster.api.get("apps/v1", "Deployment", namespace, namespace)
        given_up = given_up or exceeded(seen)
        return bool((seen or {}).get("status", {}).get("availableReplicas") == REPLICAS)

    with disks(cluster, made):
        cluster.must_apply(made)
        wait_for("all replicas", came, 3 * comes / FASTER)
    assert given_up is by_default
