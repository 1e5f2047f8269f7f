"""The real Karpenter beside the test cluster, with its KWOK provider: a test writes down the machine types and their prices.

The provider makes Node objects instead of machines, and the real kwok declares them ready, as a kubelet that joins would.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from kube import programs
from kube.control_plane import Cluster
from kube.process import Running, free_ports, wait_for

VERSION = "karpenter.sh/v1"
NODE_CLASS = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
CAPACITY_TYPE = "karpenter.sh/capacity-type"
ZONE = "topology.kubernetes.io/zone"
READY_SECONDS = 60.0
GONE_SECONDS = 150.0


@dataclass(frozen=True, slots=True)
class Offering:
    capacity_type: str  # on-demand, spot or reserved
    zone: str
    price_usd_per_hour: float


@dataclass(frozen=True, slots=True)
class MachineType:
    name: str
    resources: Mapping[str, str]
    offerings: Sequence[Offering]
    architecture: str = "amd64"


@dataclass(frozen=True, slots=True)
class Karpenter:
    """Both programs, and a way to end them with the machines that they brought."""

    cluster: Cluster
    provider: Running
    nodes: Running

    def stop(self) -> None:
        try:
            for kind in ("NodePool", "NodeClaim"):
                for one in self.cluster.api.list(VERSION, kind):
                    self.cluster.api.delete(VERSION, kind, one["metadata"]["name"])
            # Its nodes are held by finalizers that only Karpenter removes, so it must still run.
            wait_for("Karpenter's machines to go", lambda: not self.cluster.api.list(VERSION, "NodeClaim"), GONE_SECONDS)
        finally:
            self.cluster.halt(self.provider)
            self.cluster.halt(self.nodes)


def start(cluster: Cluster, types: Sequence[MachineType]) -> Karpenter:
    """Installs and starts Karpenter with these machine types alone; back when it watches."""
    for name in ("karpenter-kwok", "kwok"):
        programs.program(name)
    cluster.install("karpenter")
    node_class = {
        "apiVersion": f"{NODE_CLASS['group']}/v1alpha1",
        "kind": NODE_CLASS["kind"],
        "metadata": {"name": NODE_CLASS["name"]},
    }
    cluster.must_apply([node_class])
    offered = cluster.folder / "machine-types.json"
    offered.write_text(json.dumps([_written(one) for one in types], indent=1), encoding="utf-8")
    stages = programs.files("kwok", "stages")
    nodes = cluster.run(
        "kwok",
        [
            f"--kubeconfig={cluster.kubeconfig()}",
            "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
            "--node-lease-duration-seconds=0",
            *(f"--config={path}" for path in stages),
        ],
    )
    [health] = free_ports(1)
    provider = cluster.run(
        "karpenter-kwok",
        [],
        {
            "KUBECONFIG": str(cluster.kubeconfig()),
            "INSTANCE_TYPES_FILE_PATH": str(offered),
            "DISABLE_LEADER_ELECTION": "true",
            "METRICS_PORT": "0",
            "HEALTH_PROBE_PORT": str(health),
            "KARPENTER_SERVICE": "karpenter",
            "SYSTEM_NAMESPACE": "kube-system",
            "KUBERNETES_MIN_VERSION": "1.19.0-0",
            "LOG_LEVEL": "info",
        },
    )
    started = Karpenter(cluster, provider, nodes)
    wait_for("Karpenter to watch", lambda: _watches(started, health), READY_SECONDS)
    return started


def _watches(started: Karpenter, port: int) -> bool:
    started.provider.must_run()
    started.nodes.must_run()
    try:
        return httpx.get(f"http://127.0.0.1:{port}/readyz", trust_env=False, timeout=5).is_success
    except httpx.TransportError:
        return False


def _written(one: MachineType) -> dict[str, Any]:
    """A machine type as the KWOK provider reads it."""
    return {
        "name": one.name,
        "architecture": one.architecture,
        "operatingSystems": ["linux"],
        "resources": dict(one.resources),
        "offerings": [
            {
                "Price": offering.price_usd_per_hour,
                "Available": True,
                "Requirements": [
                    {"key": CAPACITY_TYPE, "operator": "In", "values": [offering.capacity_type]},
                    {"key": ZONE, "operator": "In", "values": [offering.zone]},
                ],
            }
            for offering in one.offerings
        ],
    }


def on_played_machines(pool: Mapping[str, Any]) -> dict[str, Any]:
    """A NodePool that was written for a real cloud, with the node class of the KWOK provider and all else as it was."""
    made = copy.deepcopy(dict(pool))
    made["spec"]["template"]["spec"]["nodeClassRef"] = dict(NODE_CLASS)
    return made
