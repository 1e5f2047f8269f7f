"""One served name and one set of flags of an engine, whichever target starts it; one user of containers."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace
from itertools import pairwise

import pytest
import yaml

from chipwise.api.render import RenderRequest, deployment_of
from chipwise.renderer.deployment import Deployment
from chipwise.renderer.named_targets import files, target
from deployments import EXAMPLES
from deployments import few_session as session
from deployments import on_few_offers as deployment
from fixed_deployments import CASES
from once_in_run import once_in_run

SERVE = CASES["serve"]


def texts(name: str, planned: Deployment) -> dict[str, str]:
    return {file.path: file.text for file in files(name, target(name), planned)}


def flags(words: list[str]) -> dict[str, str]:
    return {flag: value for flag, value in pairwise(words) if flag.startswith("--") and not value.startswith("--")}


def test_clients_ask_for_one_name_everywhere() -> None:
    planned = deployment("serve", "clouds=[aws]")
    assert planned.model is not None
    name = planned.model.served
    assert flags(list(planned.software.command))["--served-model-name"] == name
    assert yaml.safe_load(texts("vllm", planned)["config.yaml"])["served-model-name"] == name
    service = next(one for one in yaml.safe_load_all(texts("ray", planned)["service.yaml"]))
    config = yaml.safe_load(service["spec"]["serveConfigV2"])["applications"][0]["args"]["llm_configs"][0]
    assert config["model_loading_config"]["model_id"] == name
    assert any(path.split("/")[1] == name for path in texts("triton", planned) if path.startswith("model_repository/"))


@pytest.mark.parametrize(
    ("asked", "source", "served"),
    [
        ("llama-3.1-8b", "meta-llama/Llama-3.1-8B", "llama-3-1-8b"),
        ("meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-8B-Instruct", "llama-3-1-8b-instruct"),
        ("llama-3.1-8b-instruct", "meta-llama/Llama-3.1-8B-Instruct", "llama-3-1-8b-instruct"),
    ],
)
def test_of_networks_with_one_shape_the_one_that_was_asked_for_is_served(asked: str, source: str, served: str) -> None:
    path = str(EXAMPLES / "serve" / "workload.yaml")
    text = re.sub(
        r"^  budget: .*\n", "", (EXAMPLES / "serve" / "workload.yaml").read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    text = text.replace("model: llama-3.1-8b\n", f"model: {asked}\n")
    planned = once_in_run(("asked", asked), lambda: deployment_of(session(), path, RenderRequest(text=text)))
    assert planned.model is not None
    assert planned.model.source == source
    assert flags(list(planned.software.command))["--served-model-name"] == planned.model.served == served


def test_tgi_has_the_same_flags_in_its_script_and_in_a_cluster() -> None:
    text = (EXAMPLES / "serve" / "workload.yaml").read_text(encoding="utf-8")
    text = re.sub(r"^  budget: .*\n", "", text, flags=re.MULTILINE) + "\nprogram: {engine: tgi}\n"
    path = str(EXAMPLES / "serve" / "workload.yaml")
    planned = once_in_run(("tgi",), lambda: deployment_of(session(), path, RenderRequest(text=text)))
    script = texts("tgi", planned)["serve.sh"]
    command = shlex.split(script[script.index("exec ") :].replace("\\\n", " "))
    assert flags(command) == flags(list(planned.software.command))


def test_ray_and_triton_take_the_engine_settings_of_the_command() -> None:
    planned = deployment("serve", "clouds=[aws]")
    told = flags(list(planned.software.command))
    service = next(one for one in yaml.safe_load_all(texts("ray", planned)["service.yaml"]))
    config = yaml.safe_load(service["spec"]["serveConfigV2"])["applications"][0]["args"]["llm_configs"][0]
    [model] = [text for path, text in texts("triton", planned).items() if path.endswith("model.json")]
    for settings in (config["engine_kwargs"], json.loads(model)):
        for key, value in settings.items():
            if key != "model":
                assert told[f"--{key.replace('_', '-')}"] == str(value)


def test_containers_run_as_one_user() -> None:
    pod = next(one for one in yaml.safe_load_all(texts("kubernetes", SERVE)["workload.yaml"]) if one["kind"] == "Deployment")
    assert pod["spec"]["template"]["spec"]["securityContext"]["runAsUser"] == 10001
    compose = yaml.safe_load(texts("compose", SERVE)["compose.yaml"])
    assert {one["user"] for one in compose["services"].values()} == {"10001:10001"}
    assert "USER 10001" in texts("dockerfile", SERVE)["Dockerfile"]
    assert "10001:10001" in texts("terraform", SERVE)["start.sh"]
    assert "--user 10001:10001" in texts("ec2", SERVE)["start.sh"].replace("'", "").replace("\n", " ")
    open_serve = replace(SERVE, software=replace(SERVE.software, secrets=()))
    assert "USER 10001" in texts("sagemaker", open_serve)["Dockerfile"]
