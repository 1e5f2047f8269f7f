"""Argo: a pipeline as a DAG, one workflow for each place, hand-offs that reach every stage, and an end in any case."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml

from chipwise.planner.values.split import Runs
from chipwise.renderer.deployment import Deployment, Form, HandOff
from chipwise.renderer.file import CannotRender
from chipwise.renderer.targets import argo
from fixed_deployments import DEVICE, NOTEBOOKS, PIPELINE, SERVE, TRAIN

ALONE = replace(TRAIN, machines=1)


def stage(base: Deployment, title: str, **changes: Any) -> Deployment:
    return replace(base, name=f"product-search-{title}", title=title, namespace="product-search", **changes)


def pipeline(*stages: Deployment, passed: tuple[HandOff, ...] = ()) -> Deployment:
    return replace(PIPELINE, stages=stages, hand_offs=passed)


def workflows(planned: Deployment) -> dict[str, Any]:
    return {file.path: yaml.safe_load(file.text) for file in argo.render(planned) if file.path.endswith("workflow.yaml")}


def spec(planned: Deployment) -> Any:
    [whole] = workflows(planned).values()
    return whole["spec"]


def tasks(found: Any) -> dict[str, Any]:
    [dag] = [one["dag"]["tasks"] for one in found["templates"] if "dag" in one]
    return {task["name"]: task for task in dag}


def templates(found: Any) -> dict[str, Any]:
    return {one["name"]: one for one in found["templates"]}


HERE = pipeline(
    stage(ALONE, "clean"),
    stage(TRAIN, "train"),
    stage(SERVE, "serve", node=replace(SERVE.node, region="eu-north-1")),
    passed=(HandOff("clean", "train", 1e11, "arrow"), HandOff("train", "serve", 1.6e10, "safetensors")),
)


def test_a_stage_begins_after_those_that_hand_something_to_it() -> None:
    found = tasks(spec(HERE))
    assert "depends" not in found["clean"]
    assert found["train-fetch"]["depends"] == "clean"
    assert found["train"]["depends"] == "train-fetch"
    assert found["serve-fetch"]["depends"] == "train-publish"


def test_every_artifact_that_a_task_takes_is_one_that_another_makes() -> None:
    found = spec(HERE)
    made = {
        f"{{{{tasks.{one['name']}.outputs.artifacts.{artifact['name']}}}}}"
        for one in found["templates"]
        for artifact in one.get("outputs", {}).get("artifacts", ())
    }
    taken = {one["from"] for task in tasks(found).values() for one in task.get("arguments", {}).get("artifacts", ())}
    assert taken
    assert taken <= made


def test_one_pod_is_a_container_several_are_a_job_and_a_service_is_applied() -> None:
    found = templates(spec(HERE))
    assert "container" in found["clean"]
    assert found["train"]["resource"]["action"] == "create"
    assert yaml.safe_load(found["train"]["resource"]["manifest"])["spec"]["completions"] == 2
    assert found["serve"]["resource"]["action"] == "apply"
    assert yaml.safe_load(found["serve"]["resource"]["manifest"])["kind"] == "Deployment"


def test_a_job_is_named_by_its_run_and_its_pods_meet_under_that_name() -> None:
    job = yaml.safe_load(templates(spec(HERE))["train"]["resource"]["manifest"])
    assert job["metadata"]["name"] == "{{workflow.name}}-train"
    [main] = job["spec"]["template"]["spec"]["containers"]
    [endpoint] = [word for word in main["command"][2].split() if word.startswith("--rdzv-endpoint=")]
    assert endpoint == "--rdzv-endpoint={{workflow.name}}-train-0.product-search-train.product-search.svc:29500"


def test_runs_of_a_simulation_are_one_job_that_ends_when_too_many_fail() -> None:
    software = replace(TRAIN.software, framework="mpi")
    runs = replace(TRAIN, software=software, machines=3, split=Runs(at_once=1, chips_each=4), runs=6)
    resource = templates(spec(runs))["llama-8b-legal"]["resource"]
    job = yaml.safe_load(resource["manifest"])
    assert (job["spec"]["completions"], job["spec"]["parallelism"]) == (6, 1)
    assert resource["successCondition"] == "status.succeeded = 6"
    assert resource["failureCondition"] == "status.conditions.0.type in (Failed, FailureTarget)"


def test_a_lost_machine_is_tried_again_and_a_fault_of_the_program_is_not() -> None:
    again = templates(spec(HERE))["clean"]["retryStrategy"]
    assert again["expression"] == 'lastRetry.status == "Error" or asInt(lastRetry.exitCode) >= 128'
    assert again["limit"] == "6"


def test_each_place_has_a_workflow_and_waits_for_the_other() -> None:
    far = pipeline(
        stage(ALONE, "train"), stage(SERVE, "serve"), passed=(HandOff("train", "serve", 1e9, "onnx"),)
    )  # eu-north-1 and eu-central-1
    found = workflows(far)
    assert set(found) == {"aws-eu-north-1/workflow.yaml", "aws-eu-central-1/workflow.yaml"}
    second = found["aws-eu-central-1/workflow.yaml"]["spec"]
    assert tasks(second)["serve-fetch"]["depends"] == "train-elsewhere"
    assert templates(second)["wait"] == {"name": "wait", "suspend": {}}
    sent = templates(found["aws-eu-north-1/workflow.yaml"]["spec"])["train"]["outputs"]["artifacts"][0]["s3"]["key"]
    assert templates(second)["serve-fetch"]["inputs"]["artifacts"][0]["s3"]["key"] == sent


def test_a_failed_run_lets_its_machines_go() -> None:
    found = spec(HERE)
    assert found["onExit"] == "ended"
    steps = templates(found)["ended"]["steps"]
    assert steps[0][0]["when"] == "{{workflow.status}} != Succeeded"
    assert templates(found)["release"]["resource"]["action"] == "delete"
    assert "release" not in templates(spec(ALONE))


def test_a_job_on_a_clock_is_a_cron_workflow_and_a_services_hours_are_not_its_pipelines() -> None:
    [cron] = workflows(replace(ALONE, starts="0 20 1 * *", time_zone="Europe/Berlin")).values()
    assert (cron["kind"], cron["spec"]["schedules"], cron["spec"]["timezone"]) == (
        "CronWorkflow",
        ["0 20 1 * *"],
        "Europe/Berlin",
    )
    assert all(one["kind"] == "Workflow" for one in workflows(HERE).values())


def test_stages_on_devices_are_left_out_and_named() -> None:
    whole = pipeline(
        stage(ALONE, "train"), replace(DEVICE, title="inspect"), passed=(HandOff("train", "inspect", 2.6e7, "onnx"),)
    )
    text = next(file.text for file in argo.render(whole) if file.path == "workflow.yaml")
    assert "inspect: on devices" in text
    assert [one["name"] for one in templates(spec(whole))["train"]["outputs"]["artifacts"]] == ["to-inspect"]


@pytest.mark.parametrize("word", ["{{ .Values.x }}", "{{workflow.name}}", "a}}b"])
def test_a_command_that_argo_would_change_is_refused(word: str) -> None:
    own = replace(ALONE, software=replace(ALONE.software, command=("python", "a.py", word)))
    with pytest.raises(CannotRender):
        argo.render(own)


@pytest.mark.parametrize("planned", [SERVE, NOTEBOOKS, DEVICE])
def test_what_does_not_end_is_refused_with_another_way(planned: Deployment) -> None:
    assert planned.form is not Form.JOB
    with pytest.raises(CannotRender) as refused:
        argo.render(planned)
    assert "--to" in str(refused.value.remedy)
