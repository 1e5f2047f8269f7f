"""A new version of a service on the real controller of Argo Rollouts: kept where goals are kept, taken back where not."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from chipwise.renderer.deployment import Deployment, Scaling
from fixed_deployments import CASES
from kube import rollouts
from kube.control_plane import Cluster
from kube.process import wait_for
from kube.rendered import disks, has, labels_of, manifests, named, taints_of
from kube.rollouts import API, PlayedPrometheus

pytestmark = pytest.mark.e2e
HASH = "rollouts-pod-template-hash"
REPLICAS = 3
# Every time in the files is played this much faster; limits and steps stay as they are.
FASTER = 300.0
GOOD = {"time_to_first_token": 0.4, "time_per_output_token": 0.03, "e2e_request_latency": 8.0, "http_requests": 0.0}


@pytest.fixture(scope="module")
def controller(cluster: Cluster) -> Iterator[None]:
    with rollouts.controller(cluster):
        yield


@pytest.fixture
def controlled(cluster: Cluster, controller: None, namespace: str) -> Iterator[Cluster]:
    yield cluster
    cluster.api.empty(API, "Rollout", namespace)  # whose controller would make its pods anew


@pytest.fixture
def prometheus() -> Iterator[PlayedPrometheus]:
    with PlayedPrometheus() as played:
        played.values = GOOD | {"restarts_total": 0.0}
        yield played


def planned(namespace: str) -> Deployment:
    case = named(CASES["serve"], namespace)
    return replace(case, scaling=Scaling(REPLICAS, REPLICAS, REPLICAS, 6.9, 128, concurrency=61.4), machines=REPLICAS)


def written(namespace: str, address: str) -> list[dict[str, Any]]:
    """The files as a user gets them, with times of a test and the address of its Prometheus."""
    made = manifests("argo_rollouts", planned(namespace), "namespace.yaml", "analysis.yaml", "rollout.yaml")
    for one in made:
        if one["kind"] == "AnalysisTemplate":
            for metric in one["spec"]["metrics"]:
                metric["provider"]["prometheus"]["address"] = address
                metric["initialDelay"] = metric["interval"] = "1s"
        if one["kind"] == "Rollout":
            one["spec"]["minReadySeconds"] = 1
            for step in one["spec"]["strategy"]["canary"]["steps"]:
                if "pause" in step:
                    step["pause"]["duration"] = f"{float(step['pause']['duration'].removesuffix('s')) / FASTER:.0f}s"
    return made


def rollout(cluster: Cluster, namespace: str) -> Mapping[str, Any]:
    found = cluster.api.get(API, "Rollout", namespace, namespace)
    assert found is not None
    return found


def phase(cluster: Cluster, namespace: str) -> str:
    return str(rollout(cluster, namespace).get("status", {}).get("phase", ""))


def versions(cluster: Cluster, namespace: str) -> list[str]:
    pods = [one for one in cluster.pods(namespace) if not one["metadata"].get("deletionTimestamp")]
    return [one["metadata"]["labels"][HASH] for one in pods]


def started(cluster: Cluster, namespace: str, prometheus: PlayedPrometheus, made: list[dict[str, Any]]) -> str:
    """The first version, on all replicas; its hash."""
    case = planned(namespace)
    labels = {key: value for key, value in labels_of(case).items() if value}
    for number in range(REPLICAS):
        cluster.fake_node(f"{namespace}-{number}", has(case.node), labels, taints_of(case))
    cluster.must_apply(made)
    wait_for("the first version", lambda: phase(cluster, namespace) == "Healthy", 90)
    [first] = set(versions(cluster, namespace))
    assert len(versions(cluster, namespace)) == REPLICAS
    return first


def change(cluster: Cluster, namespace: str, image: str) -> None:
    found = rollout(cluster, namespace)
    [main] = found["spec"]["template"]["spec"]["containers"]
    template = {"spec": {"containers": [{**main, "image": image}]}}
    cluster.api.merge(API, "Rollout", namespace, {"spec": {"template": template}}, namespace).must()


def runs(cluster: Cluster, namespace: str) -> list[str]:
    return [str(one.get("status", {}).get("phase")) for one in cluster.api.list(API, "AnalysisRun", namespace)]


def test_a_version_that_misses_the_goal_is_taken_back(
    controlled: Cluster, namespace: str, prometheus: PlayedPrometheus
) -> None:
    made = written(namespace, prometheus.address)
    with disks(controlled, made):
        first = started(controlled, namespace, prometheus, made)
        prometheus.values["time_to_first_token"] = 1.4  # the goal is 1 s
        change(controlled, namespace, "vllm/vllm-openai:slower")
        wait_for("one replica of the new version", lambda: len(set(versions(controlled, namespace))) == 2, 60)
        assert versions(controlled, namespace).count(first) >= REPLICAS - 1
        wait_for("the new version to be given up", lambda: rollout(controlled, namespace)["status"].get("abort"), 90)
        assert runs(controlled, namespace) == ["Failed"]
        wait_for("all replicas on the old one", lambda: versions(controlled, namespace) == [first] * REPLICAS, 60)
        wait_for("its word for it", lambda: phase(controlled, namespace) == "Degraded", 60)


def test_a_version_that_keeps_the_goals_replaces_the_old_one(
    controlled: Cluster, namespace: str, prometheus: PlayedPrometheus
) -> None:
    made = written(namespace, prometheus.address)
    with disks(controlled, made):
        first = started(controlled, namespace, prometheus, made)
        change(controlled, namespace, "vllm/vllm-openai:faster")
        wait_for("two versions", lambda: len(set(versions(controlled, namespace))) == 2, 60)
        [second] = set(versions(controlled, namespace)) - {first}
        wait_for("the new version everywhere", lambda: versions(controlled, namespace) == [second] * REPLICAS, 120)
        wait_for("its word for it", lambda: phase(controlled, namespace) == "Healthy", 60)
        assert runs(controlled, namespace) == ["Successful", "Successful"]  # of one replica, and of half of them
        patterns = {found for query in prometheus.queries for found in re.findall(r'pod=~"([^"]*)"', query)}
        assert patterns
        of_new = [one["metadata"]["name"] for one in controlled.pods(namespace)]
        for pattern in patterns:
            assert all(re.fullmatch(pattern, name) for name in of_new)
            assert not re.fullmatch(pattern, f"{namespace}-{first}-abcde")


def test_a_version_that_nobody_asks_anything_waits_for_a_person(
    controlled: Cluster, namespace: str, prometheus: PlayedPrometheus
) -> None:
    made = written(namespace, prometheus.address)
    with disks(controlled, made):
        started(controlled, namespace, prometheus, made)
        prometheus.values = {"restarts_total": 0.0, "time_to_first_token": float("nan")}
        change(controlled, namespace, "vllm/vllm-openai:unasked")
        wait_for("a run that says nothing", lambda: runs(controlled, namespace) == ["Inconclusive"], 120)
        seen = rollout(controlled, namespace)["status"]
        assert not seen.get("abort")
        assert len(set(versions(controlled, namespace))) == 2
