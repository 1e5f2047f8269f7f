"""Nothing that is only slow is ended: rollouts wait for predicted starts, and what ends may end its longest answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml

from chipwise.api.render import RenderRequest, deployment_of
from chipwise.renderer.answer_times import TOKEN_S
from chipwise.renderer.deployment import Deployment
from chipwise.renderer.file import CannotRender
from chipwise.renderer.launch.health import start_seconds, waited_for
from chipwise.renderer.launch.timing import drain_seconds, grace_seconds, progress_seconds, ready_seconds, rollout_seconds
from chipwise.renderer.named_targets import files, target
from deployments import EXAMPLES, few_session
from deployments import on_few_offers as deployment
from fixed_deployments import CASES
from once_in_run import once_in_run

SERVE, WIDE, SMALL = CASES["serve"], CASES["wide"], CASES["small"]
LONG = replace(SERVE, predicted=replace(SERVE.predicted, longest_s=2048 * 0.114))


def objects(name: str, planned: Deployment) -> list[dict[str, Any]]:
    return [one for file in files(name, target(name), planned) for one in yaml.safe_load_all(file.text)]


def one(kind: str, name: str, planned: Deployment) -> dict[str, Any]:
    return next(it for it in objects(name, planned) if it["kind"] == kind)


def seconds(text: str) -> int:
    return int(text[:-1]) * {"s": 1, "m": 60, "h": 3600}[text[-1]]


@pytest.mark.parametrize("name", ["kubernetes", "kueue"])
@pytest.mark.parametrize("planned", [SERVE, SMALL, CASES["azure"]], ids=["serve", "small", "azure"])
def test_a_rollout_may_take_as_long_as_a_machine_and_a_start(name: str, planned: Deployment) -> None:
    spec = one("Deployment", name, planned)["spec"]
    assert spec["progressDeadlineSeconds"] == progress_seconds(planned) > ready_seconds(planned) > 600


def test_a_start_of_two_hours_is_not_rolled_back_by_the_pipeline_of_builds() -> None:
    model = replace(SERVE.model, fetched_bytes=800e9) if SERVE.model else None
    slow = replace(SERVE, model=model)
    [workflow] = objects("github-actions", slow)
    job = workflow["jobs"]["deploy"]
    steps = {step["name"]: step for step in job["steps"]}
    wait = int(steps["Roll out"]["run"].partition("--timeout=")[2].partition("s\n")[0])
    assert start_seconds(slow) > 1800
    assert wait >= min(rollout_seconds(slow), 5 * 3600)
    assert job["timeout-minutes"] * 60 > wait
    assert job["timeout-minutes"] <= 360, "GitHub ends a job after six hours"
    assert "ProgressDeadlineExceeded" in steps["Go back"]["run"], "slow is not failed"
    sign_in = next(step for step in job["steps"] if "configure-aws-credentials" in str(step.get("uses")))
    assert sign_in["with"]["role-duration-seconds"] >= wait


def test_a_quick_service_is_waited_for_in_minutes() -> None:
    [workflow] = objects("github-actions", replace(SMALL, scaling=replace(SMALL.scaling, maximum=1) if SMALL.scaling else None))
    assert workflow["jobs"]["deploy"]["timeout-minutes"] <= 45


def test_the_stage_of_a_workflow_waits_for_every_replica() -> None:
    stage = CASES["pipeline"].stages[1]
    assert stage.scaling is not None
    workflows = [it for it in objects("argo", CASES["pipeline"]) if "templates" in it.get("spec", {})]
    every = [it for workflow in workflows for it in workflow["spec"]["templates"]]
    [serve] = [it for it in every if "kind: Deployment" in it.get("resource", {}).get("manifest", "")]
    assert serve["activeDeadlineSeconds"] >= stage.scaling.minimum * progress_seconds(stage)


def test_an_endpoint_that_starts_slower_than_it_may_is_refused() -> None:
    model = replace(SERVE.model, fetched_bytes=800e9) if SERVE.model else None
    with pytest.raises(CannotRender, match="3,600 s"):
        files("sagemaker", target("sagemaker"), replace(SERVE, model=model, software=replace(SERVE.software, secrets=())))


def test_the_grace_is_that_of_the_longest_answer() -> None:
    assert grace_seconds(LONG) >= 15 + 233
    pod = one("Deployment", "kubernetes", LONG)["spec"]["template"]["spec"]
    [main] = pod["containers"]
    waits = main["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert pod["terminationGracePeriodSeconds"] == grace_seconds(LONG) > waits + 233


def test_an_engine_is_told_to_end_what_it_began() -> None:
    planned = deployment("serve", "clouds=[aws]")
    words = planned.software.command
    assert planned.predicted.longest_s is not None
    assert int(words[words.index("--shutdown-timeout") + 1]) == drain_seconds(planned.predicted.longest_s)


def test_an_engine_that_cannot_is_given_the_time_before() -> None:
    old = replace(LONG, software=replace(LONG.software, version="0.11.0"))
    pod = one("Deployment", "kubernetes", old)["spec"]["template"]["spec"]
    assert pod["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"] >= 233


def test_workers_of_a_group_stay_while_the_leader_ends_its_answers() -> None:
    spec = one("LeaderWorkerSet", "kubernetes", WIDE)["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]
    waits = spec["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert grace_seconds(WIDE) > waits >= 15 + drain_seconds(WIDE.predicted.longest_s)


def test_the_longest_answer_is_by_tokens() -> None:
    planned = deployment("serve", "clouds=[aws]")
    each = max(value for goal, value in planned.predicted.latency.items() if goal.startswith("tpot"))
    assert planned.predicted.longest_s is not None
    assert planned.predicted.longest_s >= 1024 * each, "output_tokens.max of the example"


def test_a_goal_for_the_first_token_alone_cuts_no_long_answer_off() -> None:
    text = """\
kind: serve
name: first-token
model: llama-3.1-8b
arrival: {rate: 2 req/s}
input_tokens: {mean: 800, max: 6000}
output_tokens: {mean: 250, max: 2048}
goals: {ttft: {p95: 1s}, objective: cost}
limits: {clouds: [aws], interruptible: false}
"""
    path = str(EXAMPLES / "serve" / "workload.yaml")
    planned = once_in_run(("first token",), lambda: deployment_of(few_session(), path, RenderRequest(text=text)))
    assert {goal.partition(" ")[0] for goal in planned.predicted.latency} == {"ttft"}
    assert drain_seconds(planned.predicted.longest_s) >= 2048 * TOKEN_S


@pytest.mark.parametrize("planned", [LONG, WIDE, CASES["serve"]], ids=["long", "wide", "serve"])
def test_machines_of_services_do_not_expire_and_drain_at_the_pace_of_starts(planned: Deployment) -> None:
    pool = one("NodePool", "karpenter", planned)["spec"]
    assert pool["template"]["spec"]["expireAfter"] == "Never", "expiry asks no budget"
    assert pool["disruption"]["budgets"] == [{"nodes": "1"}]
    assert seconds(pool["template"]["spec"]["terminationGracePeriod"]) >= grace_seconds(planned) + ready_seconds(planned)


@pytest.mark.parametrize(("kind", "words"), [("neuron", "20 minutes"), ("tpu", "20 to 30 minutes")])
def test_what_is_assumed_of_a_compiler_is_said_beside_the_probe(kind: str, words: str) -> None:
    slow = replace(SERVE, node=replace(SERVE.node, kind=kind))
    assert start_seconds(slow) >= start_seconds(SERVE) + 900
    assert "Assumed for the compiler" in waited_for(kind)
    assert words in waited_for(kind)
    assert "Assumed" not in waited_for("gpu")
