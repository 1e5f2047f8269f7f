"""Chips by claims on a real server and scheduler: each pod gets the slice that it asks for, and no more than there are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from fixed_deployments import CASES
from kube.control_plane import Cluster
from kube.process import wait_for
from kube.rendered import disks, has, labels_of, manifests, named, reasons, settled, taints_of

pytestmark = pytest.mark.e2e
AZURE = CASES["azure"]
SLICED = replace(AZURE, claims=True, node=replace(AZURE.node, profile="2g.20gb", sharing="slices", users_per_chip=3))


def published_slices(node: str, profiles: list[str]) -> dict[str, Any]:
    """What NVIDIA's driver tells of the chip of a node."""
    devices = [
        {
            "name": f"mig-{number}",
            "attributes": {"type": {"string": "mig"}, "profile": {"string": profile}},
            "capacity": {"memory": {"value": "20Gi"}},
        }
        for number, profile in enumerate(profiles)
    ]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-gpus"},
        "spec": {
            "driver": "gpu.nvidia.com",
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": devices,
        },
    }


def test_each_copy_is_given_a_slice_and_the_next_waits(cluster: Cluster, namespace: str) -> None:
    planned = named(SLICED, namespace)
    node = f"{namespace}-0"
    room = {key: value for key, value in has(replace(planned.node, profile="")).items() if key != "nvidia.com/gpu"}
    cluster.fake_node(node, room, labels_of(planned), taints_of(planned))
    cluster.must_apply([published_slices(node, ["1g.10gb", "2g.20gb", "2g.20gb", "1g.10gb"])])
    made = manifests("kubernetes", planned)
    scaled = {"HorizontalPodAutoscaler"}
    try:
        with disks(cluster, made):
            cluster.must_apply([one for one in made if one["kind"] not in scaled])
            cluster.api.merge("apps/v1", "Deployment", namespace, {"spec": {"replicas": 3}}, namespace).must()
            settled(cluster, namespace, 2, 90)
            assert any("claim" in said or "resourceclaim" in said for said in reasons(cluster, namespace))

            def given() -> list[str] | None:
                claims = cluster.api.list("resource.k8s.io/v1", "ResourceClaim", namespace)
                devices = [result for one in claims for result in _results(one)]
                return sorted(devices) if len(devices) == 2 else None

            assert wait_for("two allocated claims", given, 30) == ["mig-1", "mig-2"], "those of the asked profile"
    finally:
        cluster.api.delete("resource.k8s.io/v1", "ResourceSlice", f"{node}-gpus")
        cluster.api.delete("resource.k8s.io/v1", "DeviceClass", "chipwise-mig-2g-20gb")


def _results(claim: Mapping[str, Any]) -> list[str]:
    allocation = claim.get("status", {}).get("allocation", {})
    return [str(one["device"]) for one in allocation.get("devices", {}).get("results", ())]


def test_the_server_refuses_a_field_that_a_claim_has_not(cluster: Cluster, namespace: str) -> None:
    [template] = [one for one in manifests("kubernetes", named(SLICED, namespace)) if one["kind"] == "ResourceClaimTemplate"]
    template["spec"]["spec"]["devices"]["unheard"] = 1
    [answer] = cluster.api.apply([template], dry_run=True)
    assert not answer.accepted
