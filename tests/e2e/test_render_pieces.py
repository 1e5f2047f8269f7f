"""What we write for operators beside the cluster's own kinds, on a real server with their definitions: every field is known."""

from __future__ import annotations

import pytest

from fixed_deployments import CASES
from kube.control_plane import Cluster
from kube.kueue import WITHOUT
from kube.rendered import manifests, named

pytestmark = pytest.mark.e2e
COMPONENTS = (
    "prometheus-operator",
    "jobset",
    "trainer",
    "mpi-operator",
    "gateway-api",
    "inference-extension",
    "argo-rollouts",
    "kserve",
    "external-secrets",
)
WATCHED = ("monitors.yaml", "rules.yaml", "dashboard.yaml")  # exporter.yaml has values of a chart
WRITTEN: list[tuple[str, str, tuple[str, ...]]] = [
    *(("monitoring", case, WATCHED) for case in ("serve", "wide", "train", "neuron")),
    *(("jobset", case, ()) for case in ("train", "neuron", "tpu")),
    *(("trainjob", case, ()) for case in ("train", "neuron")),
    ("mpijob", "hpc", ("namespace.yaml", "workload.yaml")),  # queues.yaml is Kueue's
    *(("gateway", case, ("gateway.yaml", "pool.yaml")) for case in ("serve", "wide", "azure")),  # istio.yaml is Istio's
    *(("argo_rollouts", case, ("analysis.yaml", "rollout.yaml")) for case in ("serve", "azure")),
    *(("kserve", case, ("inference.yaml",)) for case in ("serve", "azure")),
    *(("external_secrets", case, ()) for case in ("serve", "train")),
]


@pytest.fixture(scope="module")
def knowing(cluster: Cluster) -> Cluster:
    for component in COMPONENTS:
        cluster.install(component)
    return cluster


@pytest.mark.parametrize(("target", "case", "files"), WRITTEN, ids=[f"{target}-{case}" for target, case, _ in WRITTEN])
def test_the_server_accepts_every_field(
    knowing: Cluster, namespace: str, target: str, case: str, files: tuple[str, ...]
) -> None:
    # Kueue, where an earlier test started it, knows only the runtimes that were there before it.
    knowing.must_apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": {WITHOUT: "yes"}}}])
    for name in ("monitoring", "neuron-monitor"):
        knowing.must_apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}])
    every = [one for one in manifests(target, named(CASES[case], namespace), *files) if one["kind"] != "Namespace"]
    assert every
    for one, answer in zip(every, knowing.api.apply(every, dry_run=True), strict=True):
        assert answer.accepted, f"{one['kind']}: {answer.message}"


UNKNOWN = [
    ("monitoring", "serve", "PrometheusRule"),
    ("jobset", "train", "JobSet"),
    ("trainjob", "train", "TrainJob"),
    ("mpijob", "hpc", "MPIJob"),
    ("gateway", "serve", "InferencePool"),
    ("gateway", "serve", "HTTPRoute"),
    ("argo_rollouts", "serve", "Rollout"),
    ("argo_rollouts", "serve", "AnalysisTemplate"),
    ("kserve", "serve", "ServingRuntime"),
    ("kserve", "serve", "InferenceService"),
    ("external_secrets", "serve", "ExternalSecret"),
]


@pytest.mark.parametrize(("target", "case", "kind"), UNKNOWN)
def test_the_server_refuses_a_field_that_the_kind_has_not(
    knowing: Cluster, namespace: str, target: str, case: str, kind: str
) -> None:
    [one] = [one for one in manifests(target, named(CASES[case], namespace)) if one.get("kind") == kind]
    one["spec"]["unheard"] = 1
    [answer] = knowing.api.apply([one], dry_run=True)
    assert not answer.accepted
