"""Argo Rollouts: one replica first, goals measured on the new pods alone, and deadlines from the time that a start takes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml

from chipwise.renderer.deployment import Deployment, Scaling
from chipwise.renderer.file import CannotRender
from chipwise.renderer.launch.timing import progress_seconds
from chipwise.renderer.targets import argo_rollouts, kubernetes
from fixed_deployments import CASES

SERVE = CASES["serve"]


def made(planned: Deployment, kind: str) -> dict[str, Any]:
    documents = [one for file in argo_rollouts.render(planned) for one in yaml.safe_load_all(file.text)]
    [found] = [one for one in documents if one["kind"] == kind]
    return dict(found)


def metrics(planned: Deployment) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in made(planned, "AnalysisTemplate")["spec"]["metrics"]}


def test_the_pods_are_those_of_the_deployment_that_it_replaces() -> None:
    plain = [one for file in kubernetes.render(SERVE) for one in yaml.safe_load_all(file.text)]
    [other] = [one for one in plain if one["kind"] == "Deployment"]
    rollout = made(SERVE, "Rollout")
    assert rollout["spec"]["template"] == other["spec"]["template"]
    assert rollout["spec"]["selector"] == other["spec"]["selector"]
    assert rollout["spec"]["strategy"]["canary"]["maxSurge"] == other["spec"]["strategy"]["rollingUpdate"]["maxSurge"]


def test_the_autoscaler_scales_the_rollout() -> None:
    assert made(SERVE, "HorizontalPodAutoscaler")["spec"]["scaleTargetRef"]["kind"] == "Rollout"


def test_a_version_that_does_not_come_up_is_taken_back_after_the_time_that_a_start_takes() -> None:
    spec = made(SERVE, "Rollout")["spec"]
    assert spec["progressDeadlineAbort"] is True
    assert spec["progressDeadlineSeconds"] == progress_seconds(SERVE)


def test_one_replica_then_half_of_them_each_judged() -> None:
    steps = made(SERVE, "Rollout")["spec"]["strategy"]["canary"]["steps"]
    assert [next(iter(one)) for one in steps] == ["setWeight", "pause", "analysis"] * 2
    assert [one["setWeight"] for one in steps if "setWeight" in one] == [1, 50]


def test_of_two_replicas_one_is_half() -> None:
    steps = made(replace(SERVE, scaling=Scaling(2, 2, 2, 6.9, 128)), "Rollout")["spec"]["strategy"]["canary"]["steps"]
    assert [next(iter(one)) for one in steps] == ["setWeight", "pause", "analysis"]


def test_every_goal_is_measured_on_pods_of_the_new_version() -> None:
    found = metrics(SERVE)
    assert set(found) == {"ttft-p95", "tpot-p95", "latency-p99", "errors", "restarts"}
    for one in found.values():
        assert 'pod=~"chat-api-{{args.canary-hash}}-.*"' in one["provider"]["prometheus"]["query"]
    assert found["ttft-p95"]["failureCondition"].endswith("result[0] > 1")
    assert made(SERVE, "AnalysisTemplate")["spec"]["args"] == [{"name": "canary-hash"}]


def test_no_request_is_neither_good_nor_bad() -> None:
    for one in metrics(SERVE).values():
        assert "len(result) > 0 && !isNaN(result[0])" in one["successCondition"]
        assert "len(result) > 0 && !isNaN(result[0])" in one["failureCondition"]
        assert one["inconclusiveLimit"] == one["count"] - 1


def test_windows_do_not_overlap_so_that_no_request_counts_twice() -> None:
    for one in metrics(SERVE).values():
        assert one["interval"] == one["initialDelay"] == "300s"
        assert "[5m]" in one["provider"]["prometheus"]["query"]
        assert one["failureLimit"] == 1


def test_a_few_requests_roll_nothing_back() -> None:
    """One error in sixty is over 1%, and says nothing about a hundredth."""
    found = {name: one["provider"]["prometheus"]["query"] for name, one in metrics(SERVE).items()}
    chosen = '{namespace="chat-api",pod=~"chat-api-{{args.canary-hash}}-.*"}'
    assert found["errors"].endswith(f" and on () (sum(increase(http_requests_total{chosen}[5m])) >= 200)")
    first = f" and on () (sum(increase(vllm:time_to_first_token_seconds_count{chosen}[5m])) >= 40)"
    assert found["ttft-p95"].endswith(first)
    assert found["latency-p99"].endswith(">= 200)")


def test_a_program_that_publishes_nothing_known_is_watched_for_restarts() -> None:
    own = replace(SERVE, software=replace(SERVE.software, engine="", is_custom=True))
    assert set(metrics(own)) == {"restarts"}
    [file] = [one for one in argo_rollouts.render(own) if one.path == "analysis.yaml"]
    assert "No goal of the workload is measured" in file.text


@pytest.mark.parametrize("case", ["train", "batch", "notebooks", "device", "pipeline", "wide"])
def test_what_is_no_service_of_pods_alike_is_refused(case: str) -> None:
    with pytest.raises(CannotRender, match="Argo Rollouts replaces"):
        argo_rollouts.render(CASES[case])
