"""One more is started before goals are missed: at a share of what the plan has in work on a replica, in every target."""

from __future__ import annotations

import importlib.util
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from chipwise.api.render import RenderRequest, deployment_of
from chipwise.renderer.deployment import BUSY, Deployment
from chipwise.renderer.named_targets import files, target
from deployments import EXAMPLES, few_session
from deployments import on_few_offers as deployment
from fixed_deployments import CASES
from once_in_run import once_in_run

SERVE = CASES["serve"]
OPEN = replace(SERVE, software=replace(SERVE.software, secrets=()))


def written(name: str, planned: Deployment) -> dict[str, str]:
    return {file.path: file.text for file in files(name, target(name), planned)}


def made(name: str, planned: Deployment, kind: str) -> dict[str, Any]:
    every = [one for text in written(name, planned).values() for one in yaml.safe_load_all(text)]
    return next(one for one in every if one["kind"] == kind)


def test_the_planned_concurrency_is_rate_times_the_usual_answer() -> None:
    planned = deployment("serve", "clouds=[aws]")
    scaling, latency = planned.scaling, planned.predicted.latency
    assert scaling is not None
    assert scaling.per_replica is not None
    each = min(value for goal, value in latency.items() if goal.startswith("tpot"))
    first = min(value for goal, value in latency.items() if goal.startswith("ttft"))
    assert scaling.concurrency == pytest.approx(scaling.per_replica * (first + each * 240)), "mean of the example"
    assert scaling.concurrency is not None
    assert scaling.busy == max(int(BUSY * scaling.concurrency), 1)
    assert scaling.slots is not None
    assert scaling.busy < BUSY * scaling.slots, "slots have room for bursts; the target has not"


@pytest.mark.parametrize("name", ["kubernetes", "kueue"])
def test_the_autoscaler_of_the_cluster_takes_it(name: str) -> None:
    assert SERVE.scaling is not None
    [metric] = made(name, SERVE, "HorizontalPodAutoscaler")["spec"]["metrics"]
    assert metric["pods"]["target"]["averageValue"] == str(SERVE.scaling.busy) == "42"


def test_a_goal_for_the_first_token_alone_scales_by_requests_too() -> None:
    """Not by the host's processor, which does not show what a GPU has in work. How long tokens take is assumed, and said."""
    path = EXAMPLES / "serve" / "workload.yaml"
    text = re.sub(r"^  (tpot|latency|budget): .*\n", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    planned = once_in_run(("ttft",), lambda: deployment_of(few_session(), str(path), RenderRequest(text=text)))
    scaling, latency = planned.scaling, planned.predicted.latency
    assert scaling is not None
    assert scaling.per_replica is not None
    assert scaling.concurrency == pytest.approx(scaling.per_replica * (min(latency.values()) + 0.03 * 240))
    [metric] = made("kubernetes", planned, "HorizontalPodAutoscaler")["spec"]["metrics"]
    assert metric["pods"]["metric"]["name"] == "vllm_num_requests_running"
    assert metric["pods"]["target"]["averageValue"] == str(scaling.busy)
    assert "an assumed 0.03 s for a token" in scaling.busy_reason


@pytest.mark.parametrize("name", ["kubernetes", "argo-rollouts"])
def test_without_any_goal_requests_that_wait_count(name: str) -> None:
    assert SERVE.scaling is not None
    unknown = replace(SERVE, scaling=replace(SERVE.scaling, concurrency=None))
    [metric] = made(name, unknown, "HorizontalPodAutoscaler")["spec"]["metrics"]
    assert metric["pods"]["metric"]["name"] == "vllm_num_requests_waiting"


def test_ray_and_sagemaker_take_it() -> None:
    config = yaml.safe_load(made("ray", SERVE, "RayService")["spec"]["serveConfigV2"])
    options = config["applications"][0]["args"]["llm_configs"][0]["deployment_config"]["autoscaling_config"]
    assert options["target_ongoing_requests"] == 42
    settings = json.loads(written("sagemaker", OPEN)["sagemaker_endpoint.json"])
    assert settings["METRIC"]["TargetValue"] == 42.0


def test_ecs_counts_requests_and_not_the_processor_of_a_gpu_machine() -> None:
    settings = json.loads(written("ecs", SERVE)["ecs_deploy.json"])
    assert settings["LOAD"] == {"metric": "ALBRequestCountPerTarget", "target": pytest.approx(0.7 * 6.9 * 60, rel=0.01)}
    unknown = replace(SERVE, scaling=replace(SERVE.scaling, per_replica=None) if SERVE.scaling else None)
    assert json.loads(written("ecs", unknown)["ecs_deploy.json"])["LOAD"] is None
    small = CASES["small"]
    unknown = replace(small, scaling=replace(small.scaling, per_replica=None) if small.scaling else None)
    assert json.loads(written("ecs", unknown)["ecs_deploy.json"])["LOAD"]["metric"] == "ECSServiceAverageCPUUtilization"


class _Balancers:
    def describe_target_groups(self, TargetGroupArns: list[str]) -> dict[str, Any]:  # noqa: N803 (boto3's own spelling)
        balancer = "arn:aws:elasticloadbalancing:eu-central-1:1:loadbalancer/app/front/50dc6c495c0c9188"
        return {"TargetGroups": [{"TargetGroupArn": TargetGroupArns[0], "LoadBalancerArns": [balancer]}]}


def test_the_script_names_the_balancer_with_its_target_group(tmp_path: Path) -> None:
    pytest.importorskip("boto3")
    for path, text in written("ecs", SERVE).items():
        (tmp_path / path).write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("rendered_ecs_deploy", tmp_path / "ecs_deploy.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    group = "arn:aws:elasticloadbalancing:eu-central-1:1:targetgroup/chat/943f017f100becff"
    label = "app/front/50dc6c495c0c9188/targetgroup/chat/943f017f100becff"
    assert script.load_metric(_Balancers(), group) == {
        "PredefinedMetricType": "ALBRequestCountPerTarget",
        "ResourceLabel": label,
    }
    assert script.load_metric(_Balancers(), None) is None, "nobody counts requests"
