"""Machines in capacity that is held: the server takes Karpenter's objects, and refuses an id that EC2 would not give."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chipwise.renderer.deployment import Reservation
from fixed_deployments import CASES
from kube.control_plane import Cluster
from kube.rendered import manifests, named

pytestmark = pytest.mark.e2e
HELD = replace(CASES["train"], purchase="on-demand", reservation=Reservation("cr-0123456789abcdef0", block=True))


@pytest.fixture(scope="module")
def knowing(cluster: Cluster) -> Cluster:
    for component in ("karpenter", "karpenter-aws"):
        cluster.install(component)
    return cluster


def test_the_server_accepts_a_pool_of_what_is_held(knowing: Cluster, namespace: str) -> None:
    made = manifests("karpenter", named(HELD, namespace))
    for one, answer in zip(made, knowing.api.apply(made, dry_run=True), strict=True):
        assert answer.accepted, f"{one['kind']}: {answer.message}"


def test_the_server_refuses_what_is_no_reservation(knowing: Cluster, namespace: str) -> None:
    [node_class] = [one for one in manifests("karpenter", named(HELD, namespace)) if one["kind"] == "EC2NodeClass"]
    node_class["spec"]["capacityReservationSelectorTerms"] = [{"id": "block-7"}]
    [answer] = knowing.api.apply([node_class], dry_run=True)
    assert not answer.accepted
