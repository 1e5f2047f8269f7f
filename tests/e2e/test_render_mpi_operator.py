"""The MPIJob of a plan by Kubeflow's own MPI Operator: a pod on each machine, with the hosts and keys that scripts look for.

`make cluster` does not build the operator, whose libraries take half an hour: put `mpi-operator` into KUBEBUILDER_ASSETS.
"""

from __future__ import annotations

from typing import Any

import pytest

from chipwise.renderer.launch import mpi
from cluster import build
from fixed_deployments import CASES
from kube.control_plane import Cluster
from kube.process import free_ports, wait_for
from kube.programs import manifests as published
from kube.rendered import has, labels_of, manifests, named, settled, taints_of

OPERATOR = build.find("mpi-operator", build.cache_folder(build.recipe()))
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(OPERATOR is None, reason="mpi-operator: not in KUBEBUILDER_ASSETS"),
]


def test_the_operator_makes_a_pod_for_each_machine_with_its_hosts_and_keys(cluster: Cluster, namespace: str) -> None:
    cluster.install("mpi-operator", published("mpi-operator", "definitions"))
    planned = named(CASES["hpc"], namespace)
    for number in range(planned.machines):
        cluster.fake_node(f"{namespace}-{number}", has(planned.node), labels_of(planned), taints_of(planned))
    lease = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "mpi-operator"}}
    cluster.must_apply([lease])
    [port] = free_ports(1)
    operator = cluster.run("mpi-operator", [f"--kubeConfig={cluster.kubeconfig()}", f"--monitoring-port={port}"])
    try:
        cluster.must_apply(manifests("mpijob", planned, "namespace.yaml", "workload.yaml"))
        nodes = settled(cluster, namespace, planned.machines, 90)
        assert len(set(nodes.values())) == planned.machines, "one on each machine"
        hosts = wait_for("the list of hosts", lambda: _hosts(cluster, namespace), 30)
        assert [line.split()[1] for line in hosts] == ["slots=192"] * planned.machines
        assert "launcher" in hosts[0], "the script leaves the first out: it runs there"
        launcher = next(one for one in cluster.pods(namespace) if "launcher" in one["metadata"]["name"])
        mounts = {one["mountPath"]: one["name"] for one in launcher["spec"]["containers"][0]["volumeMounts"]}
        assert mpi.KEYS in mounts
        [keys] = [one for one in launcher["spec"]["volumes"] if one["name"] == mounts[mpi.KEYS]]
        assert {one["path"] for one in keys["secret"]["items"]} == {"id_rsa", "id_rsa.pub", "authorized_keys"}
        assert mpi.HOSTS.rpartition("/")[0] in mounts
    finally:
        cluster.api.delete("kubeflow.org/v2beta1", "MPIJob", namespace, namespace)
        cluster.halt(operator)


def _hosts(cluster: Cluster, namespace: str) -> list[str] | None:
    found: Any = cluster.api.get("v1", "ConfigMap", f"{namespace}-config", namespace)
    return str(found["data"]["hostfile"]).splitlines() if found else None
