"""KServe: the pods are those of --to kubernetes, split between the runtime and the service, and scaled by what is in work."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml

from chipwise.renderer.deployment import Deployment, Scaling
from chipwise.renderer.file import CannotRender
from chipwise.renderer.targets import kserve, kubernetes
from fixed_deployments import CASES

SERVE = CASES["serve"]


def documents(target: Any, planned: Deployment) -> list[dict[str, Any]]:
    return [one for file in target.render(planned) for one in yaml.safe_load_all(file.text)]


def made(planned: Deployment, kind: str) -> dict[str, Any]:
    [found] = [one for one in documents(kserve, planned) if one["kind"] == kind]
    return dict(found)


def predictor(planned: Deployment) -> dict[str, Any]:
    return dict(made(planned, "InferenceService")["spec"]["predictor"])


@pytest.mark.parametrize("case", ["serve", "azure"])
def test_runtime_and_service_together_are_the_pod_of_a_deployment(case: str) -> None:
    planned = CASES[case]
    [plain] = [one for one in documents(kubernetes, planned) if one["kind"] == "Deployment"]
    pod = plain["spec"]["template"]["spec"]
    runtime, service = made(planned, "ServingRuntime")["spec"], predictor(planned)
    [main], [other] = runtime["containers"], pod["containers"]
    user = {key: pod["securityContext"][key] for key in ("runAsNonRoot", "runAsUser", "runAsGroup")}
    rights = other["securityContext"] | user  # also here: another service may name the runtime
    assert main == other | {"name": "kserve-container", "securityContext": rights}
    for key in pod:
        assert (runtime if key in runtime else service)[key] == pod[key] or key == "containers", key
    assert service["labels"] == plain["spec"]["template"]["metadata"]["labels"]


def test_the_service_names_its_runtime_and_nobody_else_takes_it() -> None:
    runtime = made(SERVE, "ServingRuntime")
    [known] = runtime["spec"]["supportedModelFormats"]
    assert known["autoSelect"] is False
    assert predictor(SERVE)["model"] == {"modelFormat": {"name": known["name"]}, "runtime": runtime["metadata"]["name"]}


def test_replicas_follow_requests_in_work_by_keda() -> None:
    service = made(SERVE, "InferenceService")
    assert service["metadata"]["annotations"]["serving.kserve.io/autoscalerClass"] == "keda"
    [metric] = service["spec"]["predictor"]["autoScaling"]["metrics"]
    assert SERVE.scaling is not None
    target = {"type": "Value", "value": str(SERVE.scaling.busy)}  # its webhook refuses AverageValue with `value`
    assert metric["external"]["target"] == target
    assert metric["external"]["metric"]["query"] == 'sum(vllm:num_requests_running{namespace="chat-api"})'


def test_engines_that_count_no_requests_in_work_scale_by_those_that_wait() -> None:
    tei = replace(SERVE, software=replace(SERVE.software, engine="tei"))
    assert made(tei, "InferenceService")["metadata"]["annotations"]["serving.kserve.io/autoscalerClass"] == "keda"
    [metric] = predictor(tei)["autoScaling"]["metrics"]
    assert metric["external"]["metric"]["query"] == 'sum(te_queue_size{namespace="chat-api"})'
    assert metric["external"]["target"] == {"type": "Value", "value": "5"}


def test_a_fixed_number_is_not_scaled_and_an_unknown_program_by_its_processor() -> None:
    fixed = replace(SERVE, scaling=Scaling(2, 2, 2, 6.9, 128))
    assert made(fixed, "InferenceService")["metadata"]["annotations"]["serving.kserve.io/autoscalerClass"] == "none"
    assert "autoScaling" not in predictor(fixed)
    own = replace(SERVE, software=replace(SERVE.software, engine=""))
    assert predictor(own)["scaleMetric"] == "cpu"


def test_a_request_has_time_for_the_longest_answer() -> None:
    longest = SERVE.predicted.longest_s
    assert longest is not None
    assert predictor(SERVE)["timeout"] > longest + 60


def test_text_of_a_user_is_no_template_of_go() -> None:
    planned = replace(SERVE, software=replace(SERVE.software, command=("serve", "{{.Name}}"), is_custom=True))
    [main] = made(planned, "ServingRuntime")["spec"]["containers"]
    assert main["command"] == ["serve", "{{`{{`}}.Name}}"]


def test_a_slow_start_is_said() -> None:
    [file] = [one for one in kserve.render(SERVE) if one.path == "inference.yaml"]
    assert "KServe gives its Deployment 600 s" in file.text


@pytest.mark.parametrize("case", ["train", "notebooks", "device", "pipeline", "wide"])
def test_what_is_no_service_of_one_pod_each_is_refused(case: str) -> None:
    with pytest.raises(CannotRender, match="KServe"):
        kserve.render(CASES[case])


def test_a_service_is_not_taken_for_one_of_several_models() -> None:
    """KServe 0.17 does so where nothing says how a model is stored, unless its format is huggingface, and adds an agent that
    waits for others (IsMMSPredictor); seen with its controller."""
    assert predictor(SERVE)["model"]["modelFormat"]["name"] == "huggingface"
    assert [one["name"] for one in made(SERVE, "ServingRuntime")["spec"]["supportedModelFormats"]] == ["huggingface"]
