"""What we write for operators beside the cluster's own kinds, on a real server with their definitions: every field is known."""

from __future__ import annotations

import pytest

from fixed_deployments import CASES
from kube.control_plane import Cluster
from kube.programs import manifests as published
from kube.rendered import manifests, named

pytestmark = pytest.mark.e2e
COMPONENTS = ("prometheus-operator",)
WRITTEN = [
    ("monitoring", case, ("monitors.yaml", "rules.yaml", "dashboard.yaml")) for case in ("serve", "wide", "train", "neuron")
]


@pytest.fixture(scope="module")
def knowing(cluster: Cluster) -> Cluster:
    for component in COMPONENTS:
        cluster.install(component, published(component, "definitions"))
    return cluster


@pytest.mark.parametrize(("target", "case", "files"), WRITTEN, ids=[f"{target}-{case}" for target, case, _ in WRITTEN])
def test_the_server_accepts_every_field(
    knowing: Cluster, namespace: str, target: str, case: str, files: tuple[str, ...]
) -> None:
    for name in ("monitoring", "neuron-monitor"):
        knowing.must_apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}])
    every = [one for one in manifests(target, named(CASES[case], namespace), *files) if one["kind"] != "Namespace"]
    assert every
    for one, answer in zip(every, knowing.api.apply(every, dry_run=True), strict=True):
        assert answer.accepted, f"{one['kind']}: {answer.message}"


def test_the_server_refuses_a_field_that_a_rule_has_not(knowing: Cluster, namespace: str) -> None:
    [rule] = manifests("monitoring", named(CASES["serve"], namespace), "rules.yaml")
    rule["spec"]["groups"][0]["rules"][0]["forr"] = "1m"
    [answer] = knowing.api.apply([rule], dry_run=True)
    assert not answer.accepted
