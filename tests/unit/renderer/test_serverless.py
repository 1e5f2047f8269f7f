"""Functions: which service fits, what starts it, and what is refused with which numbers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from chipwise.renderer.deployment import Deployment
from chipwise.renderer.file import CannotRender
from chipwise.renderer.targets import serverless
from deployments import on_few_offers as deployment
from hostile import TEXTS, hostile
from scripts import accepted, constants, literals, same_files, texts
from small_runs import small

ON_AWS = "clouds=[aws]"


def batch() -> Deployment:
    return deployment("batch", ON_AWS)


def serve() -> Deployment:
    return deployment("serve", ON_AWS)


TRIGGERS = {"aws": "s3://uploads/photos/", "gcp": "gs://uploads/photos/", "azure": "az://uploads/photos/"}


@pytest.mark.parametrize("provider", TRIGGERS)
@pytest.mark.parametrize("triggered", [True, False])
@pytest.mark.parametrize("example", ["batch", "serve"])
def test_small_runs_render_on_every_cloud(provider: str, triggered: bool, example: str, tmp_path: Path) -> None:
    wanted = small(deployment(example, ON_AWS), TRIGGERS[provider] if triggered else None, provider)
    files = serverless.render(wanted)
    accepted(files, tmp_path)
    assert same_files(serverless.render, wanted)
    for file in files:
        if file.path.endswith(".yaml"):
            assert yaml.safe_load(file.text)


def test_an_object_goes_through_a_queue_to_the_function() -> None:
    files = texts(serverless.render(small(batch(), TRIGGERS["aws"])))
    said = constants(files["lambda_deploy.json"])
    assert (said["BUCKET"], said["PREFIX"]) == ("uploads", "photos/")
    assert said["SECONDS"] <= 900
    assert said["MEMORY_MB"] <= 10_240
    assert "ENTRYPOINT" in files["Dockerfile"]


def test_the_handler_runs_the_command_for_each_object_and_gives_back_what_failed(tmp_path: Path) -> None:
    program = "import os, sys; url = os.environ['OBJECT_URL']; open(os.environ['OUT'], 'a').write(url + chr(10)); "
    program += "sys.exit('bad' in url)"
    planned = small(batch(), TRIGGERS["aws"])
    planned = replace(planned, software=replace(planned.software, command=(sys.executable, "-c", program)))
    for name in ("handler.py", "handler.json"):
        (tmp_path / name).write_text(texts(serverless.render(planned))[name])

    def message(name: str, key: str) -> dict[str, str]:
        inside = {"Records": [{"s3": {"bucket": {"name": "uploads"}, "object": {"key": key}}}]}
        return {"messageId": name, "body": json.dumps(inside)}

    event = {"Records": [message("1", "photos/a+b.jpg"), message("2", "photos/bad.jpg"), {"messageId": "3", "body": "{}"}]}
    code = f"import handler, json; print(json.dumps(handler.handle(json.loads({json.dumps(json.dumps(event))}), None)))"
    out = tmp_path / "seen"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "OUT": str(out)},
    )
    assert out.read_text().split("\n")[:2] == ["s3://uploads/photos/a b.jpg", "s3://uploads/photos/bad.jpg"]
    assert json.loads(done.stdout.splitlines()[-1]) == {"batchItemFailures": [{"itemIdentifier": "2"}]}


def test_cloud_run_gets_the_gpu_the_plan_says() -> None:
    service = yaml.safe_load(texts(serverless.render(small(serve(), provider="gcp")))["service.yaml"])
    spec = service["spec"]["template"]["spec"]
    assert spec["nodeSelector"] == {"run.googleapis.com/accelerator": "nvidia-l4"}
    assert spec["containers"][0]["resources"]["limits"] == {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"}


def test_container_apps_run_a_job_for_each_message() -> None:
    job = yaml.safe_load(texts(serverless.render(small(batch(), TRIGGERS["azure"], "azure")))["job.yaml"])
    settings = job["properties"]["configuration"]
    assert settings["triggerType"] == "Event"
    assert settings["eventTriggerConfig"]["scale"]["rules"][0]["type"] == "azure-queue"


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("train", r"\d machines"),
        ("serve", "10,240 MB"),
        ("batch", "8 x {chip}"),
        ("transcode", "do not end"),
        ("hybrid", "no function with an accelerator"),
        ("interactive", "Notebooks"),
        ("pipeline", "stage"),
    ],
)
def test_what_does_not_fit_is_refused_with_numbers(name: str, what: str) -> None:
    planned = deployment(name, ON_AWS)
    with pytest.raises(CannotRender, match=what.format(chip=planned.node.chip)) as refused:
        serverless.render(planned)
    assert "--to " in str(refused.value.remedy)


def test_a_model_too_large_for_a_function_is_refused_with_both_sizes() -> None:
    planned = small(batch())
    assert planned.model is not None
    large = replace(planned, model=replace(planned.model, weight_bytes=16e9))
    with pytest.raises(CannotRender, match=r"10,240 MiB of memory; .* needs 23,"):
        serverless.render(large)


def test_a_chip_that_cloud_run_does_not_have_and_a_driver_too_new_are_refused() -> None:
    planned = small(serve(), provider="gcp")
    other = replace(planned, node=replace(planned.node, chip="H100-SXM"), platforms={"Cloud Run": {}})
    with pytest.raises(CannotRender, match="H100-SXM"):
        serverless.render(other)
    new = replace(planned, software=replace(planned.software, driver="580", image=planned.software.base))
    with pytest.raises(CannotRender, match="needs driver 580; Cloud Run's L4 has 535"):
        serverless.render(new)


def test_a_bucket_of_another_cloud_is_refused() -> None:
    with pytest.raises(CannotRender, match="gs://"):
        serverless.render(small(batch(), TRIGGERS["gcp"], "aws"))


@pytest.mark.parametrize("text", TEXTS)
def test_hostile_text_stays_text(text: str) -> None:
    files = texts(serverless.render(hostile(small(batch(), TRIGGERS["aws"]), text)))
    assert {text, f"--a={text}"} <= literals(files["handler.json"])
    assert {text, f"x{text}"} <= literals(files["lambda_deploy.json"])
    for provider, path in (("gcp", "service.yaml"), ("azure", "app.yaml")):
        evil = texts(serverless.render(hostile(small(serve(), provider=provider), text)))
        found = yaml.safe_load(evil[path])
        spec = found["spec"]["template"]["spec"] if provider == "gcp" else found["properties"]["template"]
        assert spec["containers"][0]["args"][-2:] == [text, f"--a={text}"]
        subprocess.run(["bash", "-n"], input=evil["deploy.sh"], text=True, check=True)
