"""Groups of machines on a real server with the definition of LeaderWorkerSet: every field is known and every value allowed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chipwise.renderer.deployment import Deployment
from fixed_deployments import CASES
from kube.control_plane import Cluster
from kube.programs import manifests as published
from kube.rendered import manifests, named

pytestmark = pytest.mark.e2e
WIDE = CASES["wide"]
OWN = replace(WIDE, software=replace(WIDE.software, engine="", is_custom=True, command=("python", "serve.py")))


@pytest.fixture(scope="module")
def knowing(cluster: Cluster) -> Cluster:
    cluster.install("lws", published("lws", "definitions"))
    return cluster


@pytest.mark.parametrize("planned", [WIDE, OWN], ids=["engine", "own"])
def test_the_server_accepts_every_field_of_a_group(knowing: Cluster, namespace: str, planned: Deployment) -> None:
    every = [one for one in manifests("kubernetes", named(planned, namespace)) if one["kind"] != "Namespace"]
    assert any(one["kind"] == "LeaderWorkerSet" for one in every)
    for one, answer in zip(every, knowing.api.apply(every, dry_run=True), strict=True):
        assert answer.accepted, f"{one['kind']}: {answer.message}"


def test_the_server_refuses_a_field_that_a_group_has_not(knowing: Cluster, namespace: str) -> None:
    [group] = [one for one in manifests("kubernetes", named(WIDE, namespace)) if one["kind"] == "LeaderWorkerSet"]
    group["spec"]["leaderWorkerTemplate"]["sizes"] = 2
    [answer] = knowing.api.apply([group], dry_run=True)
    assert not answer.accepted
